"""strftime() and mktime() without a host: calendar arithmetic over POSIX TZ rules."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

_NAME = r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]+>)"
_ZONE = re.compile(
    rf"({_NAME})([+-]?\d{{1,2}}(?::\d{{2}}){{0,2}})(?:({_NAME})([+-]?\d{{1,2}}(?::\d{{2}}){{0,2}})?(?:,([^,]+),([^,]+))?)?"
)
_RULE = re.compile(r"M(\d{1,2})\.(\d)\.(\d)(?:/([+-]?\d{1,3}(?::\d{2}){0,2}))?")

DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


@dataclass(frozen=True, slots=True)
class Zone:
    """A POSIX TZ value: standard and daylight names and offsets east of UTC in seconds, and the change rules."""

    name: str = "UTC"
    offset: int = 0
    daylight: str = ""
    daylight_offset: int = 0
    begin: str = ""
    end: str = ""


def _seconds(text: str) -> int:
    sign = -1 if text.startswith("-") else 1
    parts = [int(part) for part in text.lstrip("+-").split(":")]
    parts += [0] * (3 - len(parts))
    return sign * (parts[0] * 3600 + parts[1] * 60 + parts[2])


def parse_zone(text: str) -> Zone:
    """What TZ means; anything that is not a POSIX rule counts as UTC, as with glibc and no zone files."""
    match = _ZONE.fullmatch(text)
    if match is None:
        return Zone()
    name, offset, daylight, shift, begin, end = match.groups()
    east = -_seconds(offset)
    return Zone(
        name.strip("<>"),
        east,
        (daylight or "").strip("<>"),
        -_seconds(shift) if shift else east + 3600,
        begin or "M3.2.0",
        end or "M11.1.0",
    )


def _change(rule: str, year: int) -> int:
    """Seconds from the start of the year (wall clock) at which a rule takes effect."""
    match = _RULE.fullmatch(rule)
    if match is None:
        return 0
    month, week, weekday = (int(match.group(part)) for part in (1, 2, 3))
    first = date(year, max(1, min(month, 12)), 1)
    day = first + timedelta((weekday - (first.isoweekday() % 7)) % 7 + 7 * (max(week, 1) - 1))
    while day.month != first.month:
        day -= timedelta(7)
    return (day - date(year, 1, 1)).days * 86400 + _seconds(match.group(4) or "2")


def offset_at(zone: Zone, moment: int) -> tuple[int, str, bool]:
    """Offset, name and whether daylight saving holds at a UTC moment."""
    if not zone.daylight:
        return zone.offset, zone.name, False
    year = _utc(moment + zone.offset).year
    start_of_year = int(datetime(year, 1, 1, tzinfo=UTC).timestamp())
    begin = start_of_year + _change(zone.begin, year) - zone.offset
    end = start_of_year + _change(zone.end, year) - zone.daylight_offset
    inside = begin <= moment < end if begin < end else not end <= moment < begin
    return (zone.daylight_offset, zone.daylight, True) if inside else (zone.offset, zone.name, False)


_FIRST = -62135596800
_LAST = 253402300799


def _utc(moment: int) -> datetime:
    return datetime.fromtimestamp(max(_FIRST, min(_LAST, moment)), UTC)


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
    local = days * 86400 + hour * 3600 + minute * 60 + second
    zone = parse_zone(timezone)
    if saving > 0 and zone.daylight:
        return float(local - zone.daylight_offset)
    offset = offset_at(zone, local - zone.offset)[0]
    if saving != 0 and offset != zone.offset and offset_at(zone, local - offset)[0] == offset:
        return float(local - offset)
    return float(local - zone.offset)


def strftime(form: str, moment: float, timezone: str) -> str:
    """Format a time, by C's conversions (the C locale)."""
    stamp = int(moment) if moment - moment == 0.0 else 0
    offset, zone_name, _ = offset_at(parse_zone(timezone), stamp)
    when = _utc(stamp + offset)
    return _SPEC.sub(lambda match: _conversion(match, when, stamp, offset, zone_name), form)


_SPEC = re.compile(r"%([-_0^#]*)([0-9]{0,3})([EO]?)([a-zA-Z%+])")
_COMPOSED = {
    "c": "%a %b %e %H:%M:%S %Y",
    "D": "%m/%d/%y",
    "F": "%Y-%m-%d",
    "r": "%I:%M:%S %p",
    "R": "%H:%M",
    "T": "%H:%M:%S",
    "x": "%m/%d/%y",
    "X": "%H:%M:%S",
    "v": "%e-%b-%Y",
    "+": "%a %b %e %H:%M:%S %Z %Y",
}


def _conversion(match: re.Match[str], when: datetime, stamp: int, offset: int, zone_name: str) -> str:
    flags, width, _, letter = match.groups()
    if letter in _COMPOSED:
        text = _SPEC.sub(lambda inner: _conversion(inner, when, stamp, offset, zone_name), _COMPOSED[letter])
    elif (number := _number(letter, when, stamp)) is not None:
        value, digits, fill = number
        if "-" in flags:
            return str(value)
        fill = " " if "_" in flags else "0" if "0" in flags else fill
        return str(value).rjust(max(digits, int(width or 0)), fill)
    else:
        found = _word(letter, when, offset, zone_name)
        if found is None:
            return match.group()
        text = found
    if "^" in flags:
        text = text.upper()
    elif "#" in flags:
        text = text.lower() if letter in "pZ" else text.upper()
    return text.rjust(int(width), "0" if "0" in flags else " ") if width else text


def _number(letter: str, when: datetime, stamp: int) -> tuple[int, int, str] | None:
    """(value, digits, padding) of a numeric conversion."""
    weekday = when.isoweekday() % 7
    yearday = when.timetuple().tm_yday
    iso = when.isocalendar()
    match letter:
        case "Y":
            return when.year, 1, "0"
        case "C":
            return when.year // 100, 2, "0"
        case "y":
            return when.year % 100, 2, "0"
        case "G":
            return iso.year, 1, "0"
        case "g":
            return iso.year % 100, 2, "0"
        case "m":
            return when.month, 2, "0"
        case "d":
            return when.day, 2, "0"
        case "e":
            return when.day, 2, " "
        case "H":
            return when.hour, 2, "0"
        case "k":
            return when.hour, 2, " "
        case "I":
            return (when.hour + 11) % 12 + 1, 2, "0"
        case "l":
            return (when.hour + 11) % 12 + 1, 2, " "
        case "M":
            return when.minute, 2, "0"
        case "S":
            return when.second, 2, "0"
        case "j":
            return yearday, 3, "0"
        case "U":
            return (yearday + 6 - weekday) // 7, 2, "0"
        case "W":
            return (yearday + 6 - (weekday - 1) % 7) // 7, 2, "0"
        case "V":
            return iso.week, 2, "0"
        case "u":
            return when.isoweekday(), 1, "0"
        case "w":
            return weekday, 1, "0"
        case "s":
            return stamp, 1, "0"
    return None


def _word(letter: str, when: datetime, offset: int, zone_name: str) -> str | None:
    match letter:
        case "a":
            return DAYS[when.isoweekday() % 7][:3]
        case "A":
            return DAYS[when.isoweekday() % 7]
        case "b" | "h":
            return MONTHS[when.month - 1][:3]
        case "B":
            return MONTHS[when.month - 1]
        case "p":
            return "AM" if when.hour < 12 else "PM"
        case "P":
            return "am" if when.hour < 12 else "pm"
        case "n":
            return "\n"
        case "t":
            return "\t"
        case "%":
            return "%"
        case "Z":
            return zone_name
        case "z":
            sign = "-" if offset < 0 else "+"
            return f"{sign}{abs(offset) // 3600:02}{abs(offset) % 3600 // 60:02}"
    return None
