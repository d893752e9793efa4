"""strftime() and mktime() of awk, over the calendar that all of belljar shares."""

from __future__ import annotations

from datetime import date

from belljar.libc import strftime as calendar
from belljar.libc.strftime import local, parse_zone


def strftime(form: str, moment: float, timezone: str) -> str:
    """Format a time, by C's conversions (the C locale)."""
    stamp = int(moment) if moment - moment == 0.0 else 0
    return calendar.strftime(form, local(stamp, parse_zone(timezone or "UTC0")))


def mktime(text: str, timezone: str) -> float:
    """ "YYYY MM DD HH MM SS [DST]" as seconds since the epoch, -1 when it is not one."""
    fields = text.split()
    if len(fields) < 6:
        return -1.0
    try:
        year, month, day, hour, minute, second = (int(field) for field in fields[:6])
        saving = int(fields[6]) if len(fields) > 6 else -1
    except ValueError:
        return -1.0
    if abs(year) > 9000 or max(map(abs, (month, day, hour, minute, second))) > 10**9:
        return -1.0
    year += (month - 1) // 12
    month = (month - 1) % 12 + 1
    if not 1 <= year <= 9999:
        return -1.0
    days = date(year, month, 1).toordinal() - date(1970, 1, 1).toordinal() + day - 1
    wall = days * 86400 + hour * 3600 + minute * 60 + second
    zone = parse_zone(timezone or "UTC0")
    if saving > 0 and zone.daylight:
        return float(wall - zone.daylight_offset)
    offset = local(wall - zone.offset, zone).offset
    if saving != 0 and offset != zone.offset and local(wall - offset, zone).offset == offset:
        return float(wall - offset)
    return float(wall - zone.offset)
