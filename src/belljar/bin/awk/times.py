"""strftime() and mktime() of awk, over the calendar that all of belljar shares."""

from __future__ import annotations

from belljar.libc import strftime as libc
from belljar.libc import zones
from belljar.libc.calendar import EARLIEST, LATEST


def strftime(form: str, moment: float, timezone: str) -> str:
    """Format a time, by C's conversions (the C locale); "" if its year is too large."""
    seconds = int(moment) if moment - moment == 0.0 else 0
    if not EARLIEST <= seconds <= LATEST:
        return ""
    return libc.strftime(form, zones.localtime(seconds, zones.parse_zone(timezone or "UTC0")))


def mktime(text: str, timezone: str) -> float:
    """ "YYYY MM DD HH MM SS [DST]" as seconds since the epoch, -1 when it is not one."""
    fields = text.split()
    if len(fields) < 6:
        return -1.0
    try:
        year, month, day, hour, minute, second = (int(field) for field in fields[:6])
        daylight = int(fields[6]) if len(fields) > 6 else -1
    except ValueError:
        return -1.0
    if max(map(abs, (year, month, day, hour, minute, second))) >= 1 << 31:
        return -1.0
    wall = zones.wall_seconds(year, month, day, hour, minute, second)
    found = zones.mktime(wall, zones.parse_zone(timezone or "UTC0"), None if daylight < 0 else daylight > 0)
    return float(found) if EARLIEST <= found <= LATEST else -1.0
