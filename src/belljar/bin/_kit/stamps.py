"""POSIX's written-out times, [[CC]YY]MMDDhhmm[.ss], in a process's time zone."""

from __future__ import annotations

import re
from collections.abc import Mapping

from belljar.bin._kit.clock import zone_of
from belljar.libc.calendar import month_days
from belljar.libc.zones import localtime, mktime, wall_seconds

_STAMP = re.compile(r"((?:\d\d){4,6})(?:\.(\d\d))?")


def seconds_of(
    env: Mapping[str, str], year: int, month: int, day: int, hour: int, minute: int, second: int
) -> int | None:
    """The time that clocks of the process's zone show so; None if there is no such day or hour."""
    if not (1 <= month <= 12 and 1 <= day <= month_days(year, month) and hour < 24 and minute < 60 and second <= 60):
        return None
    wall, zone = wall_seconds(year, month, day, hour, minute, second), zone_of(env)
    found = mktime(wall, zone)
    return found if found + zone.at(found).seconds == wall else None


def parse_stamp(text: str, now: int, env: Mapping[str, str]) -> int | None:
    """Seconds of a stamp as `touch -t` takes it; without a year, this one."""
    match = _STAMP.fullmatch(text)
    if match is None:
        return None
    digits = match[1]
    month, day, hour, minute = (int(digits[i : i + 2]) for i in range(len(digits) - 8, len(digits), 2))
    year_text = digits[:-8]
    if not year_text:
        year = localtime(now, zone_of(env)).year
    else:
        year = int(year_text)
        if len(year_text) == 2:
            year += 1900 if year >= 69 else 2000
    return seconds_of(env, year, month, day, hour, minute, int(match[2] or 0))
