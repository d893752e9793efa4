"""POSIX's written-out times, [[CC]YY]MMDDhhmm[.ss], in a process's time zone."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

from belljar.bin._kit.clock import zone_of
from belljar.libc.strftime import local

_STAMP = re.compile(r"((?:\d\d){4,6})(?:\.(\d\d))?")


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
