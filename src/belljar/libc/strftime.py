"""strftime(3) in the C locale, over the times of a POSIX TZ value; knows no clock and no zone files."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Final

from msgspec import Struct

from belljar.libc.zones import zone_rule

DAYS: Final = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_NAME = r"(?:[A-Za-z]{3,}|<[A-Za-z0-9+-]+>)"
_OFFSET = r"[+-]?\d{1,2}(?::\d{2}){0,2}"
_ZONE = re.compile(rf"({_NAME})({_OFFSET})(?:({_NAME})({_OFFSET})?(?:,([^,]+),([^,]+))?)?")
_RULE = re.compile(r"M(\d{1,2})\.(\d)\.(\d)(?:/([+-]?\d{1,3}(?::\d{2}){0,2}))?")
_SPECIFIER = re.compile(r"%([-_0^#]*)(\d*)[EO]?([a-zA-Z%+])", re.DOTALL)


class Moment(Struct, frozen=True):
    """A second of time as a clock on the wall shows it."""

    when: datetime
    seconds: int
    offset: int
    zone: str


class Zone(Struct, frozen=True):
    """Standard and daylight names, offsets east of UTC, and the rules of change."""

    name: str = "UTC"
    offset: int = 0
    daylight: str = ""
    daylight_offset: int = 0
    begin: str = "M3.2.0"
    end: str = "M11.1.0"


@lru_cache(maxsize=64)
def parse_zone(text: str) -> Zone:
    """What TZ means: a POSIX rule, or a zone's name. An unknown name is UTC under that name, as glibc has it."""
    text = zone_rule(text.removeprefix(":")) or text
    match = _ZONE.fullmatch(text)
    if match is None:
        name = text.lstrip(":")
        return Zone(name.rpartition("/")[2]) if name.isascii() and name.isalpha() and len(name) > 2 else Zone()
    name, offset, daylight, shift, begin, end = match.groups()
    east = -_duration(offset)
    return Zone(
        name.strip("<>"),
        east,
        (daylight or "").strip("<>"),
        -_duration(shift) if shift else east + 3600,
        begin or "M3.2.0",
        end or "M11.1.0",
    )


def _duration(text: str) -> int:
    parts = [int(part) for part in text.lstrip("+-").split(":")] + [0, 0]
    seconds = parts[0] * 3600 + parts[1] * 60 + parts[2]
    return -seconds if text.startswith("-") else seconds


def local(seconds: int, zone: Zone) -> Moment:
    """The wall clock at a time since the epoch; beyond the years 1 to 9999 the nearest of these."""
    low, high = -62135596800 + 86400, 253402300799 - 86400
    bounded = min(max(seconds, low), high)
    offset, name = zone.offset, zone.name
    if zone.daylight:
        year = _at(bounded + zone.offset).year
        start = _change(zone.begin, year) - zone.offset
        end = _change(zone.end, year) - zone.daylight_offset
        inside = start <= bounded < end if start < end else not end <= bounded < start
        if inside:
            offset, name = zone.daylight_offset, zone.daylight
    return Moment(_at(bounded + offset), seconds, offset, name)


def _at(seconds: int) -> datetime:
    return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)


def _change(rule: str, year: int) -> int:
    """When a rule takes effect in a year, in seconds since the epoch on the wall clock before the change."""
    match = _RULE.fullmatch(rule)
    if match is None:
        return 0
    month, week, weekday = (int(match.group(part)) for part in (1, 2, 3))
    first = date(year, max(1, min(month, 12)), 1)
    day = first + timedelta((weekday - first.isoweekday() % 7) % 7 + 7 * (max(week, 1) - 1))
    while day.month != first.month:
        day -= timedelta(7)
    return (day - date(1970, 1, 1)).days * 86400 + _duration(match.group(4) or "2")


def strftime(template: str, moment: Moment) -> str:
    """The template with its % specifiers replaced, GNU's flags and widths included."""
    return _SPECIFIER.sub(lambda match: _expand(match, moment), template)


def _expand(match: re.Match[str], moment: Moment) -> str:
    flags, width, letter = match.groups()
    maker = _MAKERS.get(letter)
    if maker is None:
        return match.group()
    value, fill, size = maker(moment)
    text = str(value)
    for flag in flags:
        if flag in "_0":
            fill = " " if flag == "_" else "0"
        elif flag == "-":
            fill, size = "", 0
        elif flag == "^":
            text = text.upper()
        elif flag == "#":
            text = text.lower() if letter in "Zp" else text.upper()
    if width:
        size, fill = min(int(width), 1000), fill or " "
    if fill == "0" and text.startswith("-"):
        return "-" + text[1:].rjust(size - 1, "0")
    return text.rjust(size, fill) if fill else text


def _iso(moment: Moment) -> tuple[int, int, int]:
    return tuple(moment.when.isocalendar())  # type: ignore[return-value]


def _weekday(moment: Moment) -> int:
    return moment.when.isoweekday() % 7


def _yday(moment: Moment) -> int:
    return moment.when.timetuple().tm_yday


def _nested(template: str) -> Callable[[Moment], tuple[str | int, str, int]]:
    return lambda moment: (strftime(template, moment), "", 0)


def _zone_digits(moment: Moment) -> str:
    sign = "-" if moment.offset < 0 else "+"
    minutes = abs(moment.offset) // 60
    return f"{sign}{minutes // 60:02d}{minutes % 60:02d}"


_MAKERS: Final[dict[str, Callable[[Moment], tuple[str | int, str, int]]]] = {
    "a": lambda m: (DAYS[_weekday(m)][:3], "", 0),
    "A": lambda m: (DAYS[_weekday(m)], "", 0),
    "b": lambda m: (MONTHS[m.when.month - 1][:3], "", 0),
    "h": lambda m: (MONTHS[m.when.month - 1][:3], "", 0),
    "B": lambda m: (MONTHS[m.when.month - 1], "", 0),
    "c": _nested("%a %b %e %H:%M:%S %Y"),
    "C": lambda m: (m.when.year // 100, "0", 2),
    "d": lambda m: (m.when.day, "0", 2),
    "D": _nested("%m/%d/%y"),
    "e": lambda m: (m.when.day, " ", 2),
    "F": _nested("%Y-%m-%d"),
    "g": lambda m: (_iso(m)[0] % 100, "0", 2),
    "G": lambda m: (_iso(m)[0], "0", 1),
    "H": lambda m: (m.when.hour, "0", 2),
    "I": lambda m: ((m.when.hour + 11) % 12 + 1, "0", 2),
    "j": lambda m: (_yday(m), "0", 3),
    "k": lambda m: (m.when.hour, " ", 2),
    "l": lambda m: ((m.when.hour + 11) % 12 + 1, " ", 2),
    "m": lambda m: (m.when.month, "0", 2),
    "M": lambda m: (m.when.minute, "0", 2),
    "n": lambda _: ("\n", "", 0),
    "p": lambda m: ("PM" if m.when.hour >= 12 else "AM", "", 0),
    "P": lambda m: ("pm" if m.when.hour >= 12 else "am", "", 0),
    "q": lambda m: ((m.when.month + 2) // 3, "0", 1),
    "r": _nested("%I:%M:%S %p"),
    "R": _nested("%H:%M"),
    "s": lambda m: (m.seconds, "", 0),
    "S": lambda m: (m.when.second, "0", 2),
    "t": lambda _: ("\t", "", 0),
    "T": _nested("%H:%M:%S"),
    "u": lambda m: (m.when.isoweekday(), "0", 1),
    "U": lambda m: ((_yday(m) + 6 - _weekday(m)) // 7, "0", 2),
    "v": _nested("%e-%b-%Y"),
    "V": lambda m: (_iso(m)[1], "0", 2),
    "w": lambda m: (_weekday(m), "0", 1),
    "W": lambda m: ((_yday(m) + 6 - (_weekday(m) - 1) % 7) // 7, "0", 2),
    "x": _nested("%m/%d/%y"),
    "X": _nested("%H:%M:%S"),
    "y": lambda m: (m.when.year % 100, "0", 2),
    "Y": lambda m: (m.when.year, "0", 1),
    "z": lambda m: (_zone_digits(m), "", 0),
    "Z": lambda m: (m.zone, "", 0),
    "%": lambda _: ("%", "", 0),
    "+": _nested("%a %b %e %H:%M:%S %Z %Y"),
}
