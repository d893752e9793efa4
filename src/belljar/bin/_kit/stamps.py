"""Written-out times: POSIX's [[CC]YY]MMDDhhmm[.ss], and dates as ISO 8601 has them, in a process's time zone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from belljar.abi.records import NANO
from belljar.bin._kit.clock import zone_of
from belljar.shell.strftime import local

_STAMP = re.compile(r"((?:\d\d){4,6})(?:\.(\d\d))?")
_ISO = re.compile(
    r"\s*(\d{4})-(\d\d?)-(\d\d?)(?:(?:[Tt]|\s+)(\d\d?):(\d\d)(?::(\d\d)(?:[.,](\d+))?)?)?\s*(Z|UTC|GMT|[-+]\d\d(?::?\d\d)?)?\s*"
)
_EPOCH = re.compile(r"\s*@([-+]?\d+)(?:[.,](\d+))?\s*")


def seconds_of(
    env: Mapping[str, str], year: int, month: int, day: int, hour: int, minute: int, second: int
) -> int | None:
    """The time that clocks of the process's zone show so; None if there is no such day or hour."""
    try:
        wall = int(datetime(year, month, day, hour, minute, min(second, 59), tzinfo=UTC).timestamp())
    except ValueError:
        return None
    if second > 60:
        return None
    wall += second - min(second, 59)
    zone = zone_of(env)
    guess = wall - zone.offset
    return wall - local(guess, zone).offset


def parse_stamp(text: str, now: int, env: Mapping[str, str]) -> int | None:
    """Seconds of a stamp as `touch -t` takes it; without a year, this one."""
    match = _STAMP.fullmatch(text)
    if match is None:
        return None
    digits = match[1]
    month, day, hour, minute = (int(digits[i : i + 2]) for i in range(len(digits) - 8, len(digits), 2))
    year_text = digits[:-8]
    if not year_text:
        year = local(now, zone_of(env)).when.year
    else:
        year = int(year_text)
        if len(year_text) == 2:
            year += 1900 if year >= 69 else 2000
    return seconds_of(env, year, month, day, hour, minute, int(match[2] or 0))


def parse_iso(text: str, env: Mapping[str, str]) -> int | None:
    """Nanoseconds of `2024-05-06 07:08:09.5 +02:00`, of its parts, or of `@seconds`; None if it is neither."""
    if match := _EPOCH.fullmatch(text):
        fraction = _fraction(match[2])
        return int(match[1]) * NANO + (-fraction if match[1].startswith("-") else fraction)
    match = _ISO.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    offset = match[8]
    found = seconds_of(env if offset is None else {"TZ": "UTC0"}, year, month, day, hour, minute, second)
    if found is None:
        return None
    if offset is not None and offset[0] in "+-":
        digits = offset[1:].replace(":", "")
        shift = int(digits[:2]) * 3600 + int(digits[2:] or 0) * 60
        found -= shift if offset[0] == "+" else -shift
    return found * NANO + _fraction(match[7])


def _fraction(digits: str | None) -> int:
    return int((digits or "0")[:9].ljust(9, "0"))
