"""Dates as people write them: GNU's grammar for `date -d`, `touch -d` and their kin.

A text is a set of items in any order (a calendar date, a time of day, a zone, a weekday, displacements), read from left
to right and then combined with the present moment as GNU does.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from belljar.abi.dataclass import dataclass, field
from belljar.abi.records import NANO
from belljar.bin._kit.clock import zone_of
from belljar.libc.calendar import DAYS, MONTHS, days_since_epoch, month_days
from belljar.libc.zones import Zone, fixed_zone, localtime, mktime, parse_zone, wall_seconds

_MONTH_NAMES: Final = {
    **{name.lower(): n for n, name in enumerate(MONTHS, 1)},
    **{name[:3].lower(): n for n, name in enumerate(MONTHS, 1)},
    "sept": 9,
}
_DAY_NAMES: Final = {
    **{name.lower(): n for n, name in enumerate(DAYS)},
    **{name[:3].lower(): n for n, name in enumerate(DAYS)},
    "tues": 2, "wednes": 3, "thur": 4, "thurs": 4,
}  # fmt: skip
_ORDINALS: Final = {
    "last": -1, "this": 0, "next": 1, "first": 1, "third": 3, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7,
    "eighth": 8, "ninth": 9, "tenth": 10, "eleventh": 11, "twelfth": 12,
}  # fmt: skip
_UNITS: Final = {
    "year": ("years", 1), "month": ("months", 1), "fortnight": ("days", 14), "week": ("days", 7), "day": ("days", 1),
    "hour": ("seconds", 3600), "minute": ("seconds", 60), "min": ("seconds", 60), "second": ("seconds", 1),
    "sec": ("seconds", 1),
}  # fmt: skip
_RELATIVE_DAYS: Final = {"tomorrow": 1, "yesterday": -1, "today": 0, "now": 0}
_ZONES: Final = {
    "gmt": 0, "ut": 0, "utc": 0, "wet": 0, "west": 1, "bst": 1, "art": -3, "brt": -3, "brst": -2, "nst": -3.5,
    "ndt": -2.5, "ast": -4, "adt": -3, "clt": -4, "clst": -3, "est": -5, "edt": -4, "cst": -6, "cdt": -5, "mst": -7,
    "mdt": -6, "pst": -8, "pdt": -7, "akst": -9, "akdt": -8, "hst": -10, "hast": -10, "hadt": -9, "sst": -12, "wat": 1,
    "cet": 1, "cest": 2, "met": 1, "mez": 1, "mest": 2, "mesz": 2, "eet": 2, "eest": 3, "cat": 2, "sast": 2, "eat": 3,
    "msk": 3, "msd": 4, "ist": 5.5, "sgt": 8, "kst": 9, "jst": 9, "gst": 10, "nzst": 12, "nzdt": 13,
}  # fmt: skip
_UNIVERSAL: Final = ("gmt", "ut", "utc")
_MILITARY: Final = {
    **{chr(ord("a") + n): n + 1 for n in range(9)}, "k": 10, "l": 11, "m": 12,
    **{chr(ord("n") + n): -(n + 1) for n in range(12)}, "z": 0,
}  # fmt: skip


class BadDate(ValueError):
    """A text that is no date."""


@dataclass(slots=True)
class _Items:
    """Parsed items of a date, before they are combined."""

    year: int | None = None
    month: int = 0
    day: int = 0
    year_digits: int = 0
    hour: int = 0
    minute: int = 0
    second: int = 0
    nano: int = 0
    meridian: str = ""
    zone: float | None = None
    daylight: bool | None = None
    """A name of the process's own zone was given: that of daylight saving time, or the other."""
    corrected: bool = False
    """A zone's offset was given in digits; it can't be shifted (`UTC+2`) any more."""
    weekday: int = 0
    ordinal: int = 0
    epoch: int | None = None
    dates: int = 0
    times: int = 0
    days: int = 0
    zones: int = 0
    relatives: int = 0
    after_time: bool = False
    """The last thing read was a time of 24 hours."""
    moved: dict[str, int] = field(default_factory=lambda: {"years": 0, "months": 0, "days": 0, "seconds": 0, "nano": 0})


_YEAR_AFTER: Final = r"(?:(?:\s*-\s*|\s*,\s*|\s+)(\d{2,})(?![\d:]))?"
_TOKENS: Final = [
    ("iso", re.compile(r"(\d{4,})-(\d{1,2})-(\d{1,2})(?:[Tt](?=\d))?")),
    ("short_iso", re.compile(r"(\d{1,3})-(\d{1,2})-(\d{1,2})(?![\d])")),
    ("time", re.compile(r"(\d{1,2}):(\d{1,2})(?::(\d{1,2})(?:[.,](\d+))?)?(?:\s*([ap])\.?m\b\.?)?(?![:\d])", re.I)),
    ("hour", re.compile(r"(\d{1,2})\s*([ap])\.?m\b\.?", re.I)),
    ("us", re.compile(r"(\d{1,4})/(\d{1,2})(?:/(\d+))?(?![\d/])")),
    ("day_month", re.compile(r"(\d{1,2})\s*-?\s*([A-Za-z]{3,9})\.?" + _YEAR_AFTER + r"(?![A-Za-z])")),
    ("month_day", re.compile(r"([A-Za-z]{3,9})\.?(?:\s*-\s*|\s*)(\d{1,2})(?![\d:/])" + _YEAR_AFTER)),
    ("epoch", re.compile(r"@\s*([-+]?\d+)(?:[.,](\d+))?")),
    ("offset", re.compile(r"([-+])(\d{1,2}):(\d{2})(?!\d)|([-+])\s*(\d{1,4})(?![\d:.])")),
    ("relative", re.compile(r"([-+]?)\s*(\d+)(?:\.(\d+))?\s*([A-Za-z]+)")),
    ("number", re.compile(r"(\d+)(?:\.\d+)?")),
    ("word", re.compile(r"[A-Za-z][A-Za-z.]*")),
    ("sign", re.compile(r"[-+]+(?=\s|$)")),
]
_SKIP = re.compile(r"[\s,]+")


def parse_date(text: str, now: int, env: Mapping[str, str]) -> int:
    """Nanoseconds since the epoch of the moment a text means. Raises BadDate."""
    zone = zone_of(env)
    match = re.match(r'\s*TZ="((?:[^"\\]|\\["\\])*)"', text)
    if match is not None:
        zone = parse_zone(re.sub(r"\\(.)", r"\1", match[1]) or "UTC0")
        text = text[match.end() :]
    items = _Items()
    _read(_without_comments(text), items, _local_names(now // NANO, zone))
    return _combine(items, now, zone)


def _local_names(now: int, zone: Zone) -> dict[str, bool]:
    """The zone's names in the course of a year, and whether each is that of daylight saving time."""
    around = [zone.at(now + quarter * 90 * 86400) for quarter in range(4)]
    return {offset.name.lower(): offset.daylight for offset in around}


def _without_comments(text: str) -> str:
    """Nested parentheses are comments."""
    out: list[str] = []
    depth = 0
    for char in text:
        depth += char == "("
        if depth == 0:
            out.append(char)
        elif char == ")":
            depth -= 1
    return "".join(out)


def _read(text: str, items: _Items, local_names: dict[str, bool]) -> None:
    position = 0
    while position < len(text):
        skip = _SKIP.match(text, position)
        if skip is not None:
            position = skip.end()
            continue
        for kind, pattern in _TOKENS:
            match = pattern.match(text, position)
            if match is not None and _take(kind, match, items, local_names, text):
                items.after_time = kind == "time" and match[5] is None
                position = match.end()
                break
        else:
            raise BadDate(text)
    if items.times > 1 or items.dates > 1 or items.days > 1 or items.zones > 1:
        raise BadDate(text)


def _take(kind: str, match: re.Match[str], items: _Items, local_names: dict[str, bool], text: str) -> bool:
    """Use a token if it makes sense as one of this kind."""
    groups = match.groups()
    match kind:
        case "iso" | "short_iso":
            _set_date(items, groups[0], int(groups[1]), int(groups[2]))
        case "time":
            hour, minute, second, fraction, meridian = groups
            _set_time(items, int(hour), int(minute), int(second or 0), fraction, meridian)
        case "hour":
            _set_time(items, int(groups[0]), 0, 0, None, groups[1])
        case "us":
            first, second, third = groups
            if len(first) == 4 and third:
                _set_date(items, first, int(second), int(third))
            elif len(first) > 2:
                return False
            else:
                _set_date(items, third, int(first), int(second))
        case "day_month":
            month = _MONTH_NAMES.get(groups[1].lower())
            if month is None:
                return False
            _set_date(items, groups[2], month, int(groups[0]))
        case "month_day":
            month = _MONTH_NAMES.get(groups[0].lower())
            if month is None:
                return False
            _set_date(items, groups[2], month, int(groups[1]))
        case "epoch":
            if items.epoch is not None:
                raise BadDate(text)
            whole, fraction = int(groups[0][:40]), _fraction(groups[1])
            items.epoch = whole * NANO + (-fraction if groups[0].startswith("-") else fraction)
        case "offset":
            return _take_offset(groups, items, match.string[match.end() :])
        case "relative":
            return _take_relative(groups, items)
        case "number":
            _take_number(groups[0], items)
        case "word":
            return _take_word(match[0], items, local_names, match.string[match.end() :])
    return True


def _fraction(digits: str | None) -> int:
    return int((digits or "")[:9].ljust(9, "0"))


def _set_date(items: _Items, year: str | None, month: int, day: int) -> None:
    items.dates += 1
    items.month, items.day = month, day
    if year is not None:
        items.year, items.year_digits = int(year[:18]), len(year)


def _set_time(items: _Items, hour: int, minute: int, second: int, fraction: str | None, meridian: str | None) -> None:
    if minute > 59 or second > 60 or hour > 24 or (meridian and not 1 <= hour <= 12):
        raise BadDate
    if meridian:
        hour = hour % 12 + (12 if meridian.lower() == "p" else 0)
    elif hour == 24 and (minute or second):
        raise BadDate
    items.times += 1
    items.hour, items.minute, items.second, items.nano = hour, minute, second, _fraction(fraction)


def _take_offset(groups: tuple[str | None, ...], items: _Items, rest: str) -> bool:
    """+hh[:mm] right after a time is a zone, even if a unit follows; elsewhere a number with a unit is none."""
    following = re.match(r"\s*([A-Za-z]+)", rest)
    named = following is not None and (_unit(following[1]) or following[1].lower() in _DAY_NAMES)
    if named and groups[0] is None and not items.after_time:
        return False
    corrects = items.zones == 1 and items.zone is not None and not items.corrected
    if not (items.times and not items.zones) and not corrects:
        return False
    if groups[0] is not None:
        sign, hours, minutes = groups[0], int(groups[1] or 0), int(groups[2] or 0)
    else:
        sign, digits = groups[3] or "+", groups[4] or "0"
        hours, minutes = (int(digits), 0) if len(digits) <= 2 else (int(digits[:-2]), int(digits[-2:]))
    if hours * 60 + minutes > 24 * 60:
        raise BadDate
    shift = (hours + minutes / 60) * (-1 if sign == "-" else 1)
    if corrects:
        items.corrected = True
        items.zone = (items.zone or 0) + shift
    else:
        items.zones += 1
        items.corrected = True
        items.zone = shift
    return True


def _unit(word: str) -> tuple[str, int] | None:
    word = word.lower()
    found = _UNITS.get(word)
    return found if found is not None else _UNITS.get(word.removesuffix("s"))


def _move(items: _Items, amount: int, unit: tuple[str, int]) -> None:
    items.relatives += 1
    items.moved[unit[0]] += amount * unit[1]


def _take_relative(groups: tuple[str | None, ...], items: _Items) -> bool:
    sign, digits, fraction, word = groups
    assert digits is not None
    assert word is not None
    unit = _unit(word)
    amount = int(digits[:40]) * (-1 if sign == "-" else 1)
    if unit is None:
        weekday = _DAY_NAMES.get(word.lower())
        if weekday is not None and not fraction:
            items.days += 1
            items.weekday, items.ordinal = weekday, amount
            return True
        moved = _RELATIVE_DAYS.get(word.lower())
        if moved is not None and sign:
            _move(items, amount * moved, ("days", 1))
            return True
        return False
    if fraction is not None:
        if unit != ("seconds", 1):
            return False
        items.moved["nano"] += _fraction(fraction) * (-1 if sign == "-" else 1)
    _move(items, amount, unit)
    return True


def _take_number(digits: str, items: _Items) -> None:
    if items.dates and items.year is None and not items.relatives and (items.times or len(digits) > 2):
        items.year, items.year_digits = int(digits[:18]), len(digits)
    elif len(digits) > 4:
        items.dates += 1
        items.year, items.month, items.day = int(digits[:-4][:18]), int(digits[-4:-2]), int(digits[-2:])
        items.year_digits = len(digits) - 4
    else:
        hour, minute = (int(digits), 0) if len(digits) <= 2 else (int(digits[:-2]), int(digits[-2:]))
        _set_time(items, hour, minute, 0, None, None)


def _take_word(raw: str, items: _Items, local_names: dict[str, bool], rest: str) -> bool:
    word = raw.lower().rstrip(".")
    if word in _RELATIVE_DAYS:
        _move(items, _RELATIVE_DAYS[word], ("days", 1))
    elif word == "ago":
        for key in items.moved:
            items.moved[key] = -items.moved[key]
    elif word in _DAY_NAMES:
        items.days += 1
        items.weekday = _DAY_NAMES[word]
    elif word in _ORDINALS:
        return _take_ordinal(_ORDINALS[word], items, rest)
    elif (unit := _unit(word)) is not None:
        _move(items, 1, unit)
    elif word == "dst":
        if items.daylight is not None:
            items.daylight = True
        elif items.zone is None:
            return False
        else:
            items.zone += 1
    elif word == "t" and re.match(r"\s*\d", rest) and not items.times:
        return True
    elif word not in _UNIVERSAL and word in local_names:
        items.zones += 1
        items.daylight = local_names[word]
    elif word in _ZONES or word in _MILITARY:
        items.zones += 1
        items.zone = _ZONES[word] if word in _ZONES else _MILITARY[word]
    else:
        return False
    return True


def _take_ordinal(ordinal: int, items: _Items, rest: str) -> bool:
    """`next month`, `last friday`: the word that follows is consumed by the caller's loop, told of by a marker."""
    match = re.match(r"\s+([A-Za-z]+)", rest)
    if match is None:
        return False
    word = match[1].lower()
    if word in _DAY_NAMES:
        items.ordinal = ordinal
        return True
    unit = _unit(word)
    if unit is None:
        return False
    # The unit itself, read next, counts one: leave the rest of the displacement here.
    items.moved[unit[0]] += (ordinal - 1) * unit[1]
    return True


def _combine(items: _Items, now: int, zone: Zone) -> int:
    if items.epoch is not None:
        if items.dates or items.times or items.days or items.zones or items.relatives:
            raise BadDate
        return items.epoch
    offset = None if items.zone is None else round(items.zone * 3600)
    if offset is not None:
        zone = fixed_zone(offset)
    present = localtime(now // NANO, zone)
    year, month, day = present.year, present.month, present.day
    hour, minute, second, nano = present.hour, present.minute, present.second, now % NANO
    if items.dates:
        month, day = items.month, items.day
        if items.year is not None:
            year = items.year
            if items.year_digits <= 2:
                year += 2000 if year < 69 else 1900
        if not (1 <= month <= 12 and 1 <= day <= month_days(year, month)):
            raise BadDate
    if items.times:
        hour, minute, second, nano = items.hour, items.minute, items.second, items.nano
    elif not (items.relatives and not items.dates and not items.days):
        hour = minute = second = nano = 0
    seconds = _mktime(wall_seconds(year, month, day, hour, minute, second), zone, items.daylight)
    moved = items.moved
    if items.days and not items.dates:
        weekday = (days_since_epoch(year, month, day) + 4) % 7
        ahead = (items.weekday - weekday) % 7
        day += ahead + 7 * (items.ordinal - (items.ordinal > 0 and weekday != items.weekday))
    if items.days or moved["years"] or moved["months"] or moved["days"]:
        year, month, day = year + moved["years"], month + moved["months"], day + moved["days"]
        seconds = mktime(wall_seconds(year, month, day, hour, minute, second), zone, items.daylight)
    if abs(year) > 2_147_485_547:
        raise BadDate
    return (seconds + moved["seconds"]) * NANO + nano + moved["nano"]


def _mktime(wall: int, zone: Zone, daylight: bool | None) -> int:
    """The time at which clocks show `wall`. Raises BadDate if none ever does."""
    seconds = mktime(wall, zone, daylight)
    if seconds + zone.at(seconds).seconds != wall:
        raise BadDate
    return seconds
