"""Dates: broken-down times as jq's arrays, strftime and strptime as glibc has them, in the C locale."""

import re
from collections.abc import Callable
from datetime import date, timedelta
from functools import lru_cache
from math import floor, isnan
from typing import NamedTuple

from belljar.bin.jq.errors import JqError
from belljar.bin.jq.numbers import from_float, to_float
from belljar.bin.jq.values import Value, is_number
from belljar.libc.strftime import DAYS, MONTHS

DIRECTIVE = re.compile(r"%([-_0^#+]*)(\d*)[EO]?(.)", re.DOTALL)
ZONE = re.compile(r"(?:<([^>]+)>|([A-Za-z]{3,}))([-+]?)(\d{1,2})(?::(\d\d))?(?::(\d\d))?.*", re.DOTALL)
LARGEST_TIME = 67_767_976_233_532_799
CYCLE = 146_097
"""Days in 400 years, after which the calendar repeats."""


class Moment(NamedTuple):
    year: int
    month: int
    """0 for January."""
    day: int
    hour: int
    minute: int
    second: int
    weekday: int
    """0 for Sunday."""
    yearday: int
    """0 for the first of January."""
    zone: str = "UTC"
    offset: int = 0

    def array(self, fraction: float = 0.0) -> list[Value]:
        second = from_float(self.second + fraction)
        return [self.year, self.month, self.day, self.hour, self.minute, second, self.weekday, self.yearday]


def days_before(year: int, month: int, day: int) -> int:
    """Days from 1970-01-01; any month and day are counted on, as timegm does."""
    year, month = year + month // 12, month % 12
    cycles, within = divmod(year - 1600, 400)
    return (date(1600 + within, month + 1, 1) - date(1970, 1, 1)).days + cycles * CYCLE + day - 1


def moment(seconds: int, zone: str = "UTC", offset: int = 0) -> Moment:
    """The broken-down time of a count of seconds since 1970."""
    days, rest = divmod(seconds + offset, 86_400)
    cycles, within = divmod(days, CYCLE)
    day = date(1970, 1, 1) + timedelta(days=within)
    year = day.year + cycles * 400
    yearday = day.timetuple().tm_yday - 1
    return Moment(
        year,
        day.month - 1,
        day.day,
        rest // 3600,
        rest // 60 % 60,
        rest % 60,
        (day.weekday() + 1) % 7,
        yearday,
        zone,
        offset,
    )


def seconds_of(item: Moment) -> int:
    days = days_before(item.year, item.month, item.day)
    return days * 86_400 + item.hour * 3600 + item.minute * 60 + item.second - item.offset


def parse_zone(text: str) -> tuple[str, int]:
    """Name and seconds east of UTC of a POSIX TZ value; what is not understood is UTC, as in glibc."""
    match = ZONE.fullmatch(text.lstrip(":"))
    if match is None:
        return "UTC", 0
    hours, minutes, seconds = (int(match.group(group) or 0) for group in (4, 5, 6))
    west = hours * 3600 + minutes * 60 + seconds
    return match.group(1) or match.group(2), west if match.group(3) == "-" else -west


def split_seconds(value: Value, function: str) -> tuple[int, float]:
    if not is_number(value):
        raise JqError(f"{function} requires numeric inputs")
    number = to_float(value)
    if isnan(number) or abs(number) > LARGEST_TIME:
        raise JqError("error converting number of seconds since epoch to datetime")
    # As C does: the seconds are cut towards zero, the fraction is what is left above the floor.
    return int(number), number - floor(number)


def gmtime(value: Value) -> list[Value]:
    whole, fraction = split_seconds(value, "gmtime()")
    return moment(whole).array(fraction)


def localtime(value: Value, zone: str) -> list[Value]:
    whole, fraction = split_seconds(value, "localtime()")
    return moment(whole, *parse_zone(zone)).array(fraction)


def from_array(value: Value, complaint: str, zone: str = "UTC", offset: int = 0) -> Moment:
    """A jq time array as a proper moment: fields out of range are carried over."""
    if value.__class__ is not list:
        raise JqError(complaint)
    fields = []
    for part in value[:8]:
        if not is_number(part) or isnan(to_float(part)):
            raise JqError(complaint)
        number = to_float(part)
        fields.append(int(min(max(number, -(2.0**31)), 2.0**31 - 1)))
    fields += [0] * (6 - len(fields))
    if len(value) < 3:
        fields[2] = 0
    year, month, day, hour, minute, second = fields[:6]
    seconds = days_before(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second - offset
    return moment(seconds, zone, offset)


def mktime(value: Value) -> Value:
    if value.__class__ is not list:
        raise JqError("mktime requires array of 6 numbers" if is_number(value) else "mktime requires array inputs")
    return from_float(float(seconds_of(from_array(value, "mktime requires parsed datetime inputs"))))


def format_time(value: Value, form: Value, function: str, zone: str) -> str:
    """`strftime` and `strflocaltime`."""
    complaint = f"{function}/1 requires parsed datetime inputs"
    name, offset = parse_zone(zone)
    if is_number(value):
        whole, _ = split_seconds(value, complaint.removesuffix(" requires parsed datetime inputs"))
        item = moment(whole, name, offset)
    elif value.__class__ is list:
        item = from_array(value, complaint, name, offset)
    else:
        raise JqError(complaint)
    if form.__class__ is not str:
        raise JqError(f"{function}/1 requires a string format")
    return strftime(item, form)


def strftime(item: Moment, form: str) -> str:
    return DIRECTIVE.sub(lambda match: _directive(item, *match.groups()), form)


def _directive(item: Moment, flags: str, width: str, letter: str) -> str:
    text, size, pad = _field(item, letter)
    if text is not None and not flags and not width:
        return text.rjust(size, pad) if size else text
    if text is None:
        return f"%{flags}{width}{letter}"
    for flag in flags:
        if flag == "-":
            pad, size = "", 0
        elif flag in "_0":
            pad = " " if flag == "_" else "0"
        elif flag == "^":
            text = text.upper()
        elif flag == "#":
            text = text.swapcase() if letter in "pZ" else text.upper()
    if width:
        size, pad = min(int(width), 1024), pad or " "
    sign = ""
    if text[:1] in ("-", "+") and pad == "0":
        sign, text = text[0], text[1:]
    return sign + text.rjust(size - len(sign), pad or " ")


NUMBERS: dict[str, tuple[Callable[[Moment], int], int, str]] = {
    "d": (lambda m: m.day, 2, "0"),
    "e": (lambda m: m.day, 2, " "),
    "H": (lambda m: m.hour, 2, "0"),
    "I": (lambda m: m.hour % 12 or 12, 2, "0"),
    "k": (lambda m: m.hour, 2, " "),
    "l": (lambda m: m.hour % 12 or 12, 2, " "),
    "j": (lambda m: m.yearday + 1, 3, "0"),
    "m": (lambda m: m.month + 1, 2, "0"),
    "M": (lambda m: m.minute, 2, "0"),
    "s": (lambda m: seconds_of(m), 1, "0"),
    "S": (lambda m: m.second, 2, "0"),
    "u": (lambda m: m.weekday or 7, 1, "0"),
    "w": (lambda m: m.weekday, 1, "0"),
    "U": (lambda m: (m.yearday + 7 - m.weekday) // 7, 2, "0"),
    "W": (lambda m: (m.yearday + 7 - (m.weekday - 1) % 7) // 7, 2, "0"),
    "V": (lambda m: iso_calendar(m)[1], 2, "0"),
    "G": (lambda m: iso_calendar(m)[0], 1, "0"),
    "g": (lambda m: iso_calendar(m)[0] % 100, 2, "0"),
    "C": (lambda m: m.year // 100, 2, "0"),
    "y": (lambda m: m.year % 100, 2, "0"),
    "Y": (lambda m: m.year, 1, "0"),
}
TEXTS: dict[str, Callable[[Moment], str]] = {
    "a": lambda m: DAYS[m.weekday][:3],
    "A": lambda m: DAYS[m.weekday],
    "b": lambda m: MONTHS[m.month][:3],
    "h": lambda m: MONTHS[m.month][:3],
    "B": lambda m: MONTHS[m.month],
    "p": lambda m: "AM" if m.hour < 12 else "PM",
    "P": lambda m: "am" if m.hour < 12 else "pm",
    "n": lambda m: "\n",
    "t": lambda m: "\t",
    "%": lambda m: "%",
    "Z": lambda m: m.zone,
    "z": lambda m: zone_digits(m.offset),
}
COMPOSED = {
    "c": "%a %b %e %H:%M:%S %Y",
    "D": "%m/%d/%y",
    "F": "%Y-%m-%d",
    "r": "%I:%M:%S %p",
    "R": "%H:%M",
    "T": "%H:%M:%S",
    "x": "%m/%d/%y",
    "X": "%H:%M:%S",
}


def _field(item: Moment, letter: str) -> tuple[str | None, int, str]:
    """The text of a directive, the width it is padded to and with what; None if there is no such directive."""
    if letter in NUMBERS:
        read, size, pad = NUMBERS[letter]
        return str(read(item)), size, pad
    if letter in TEXTS:
        return TEXTS[letter](item), 0, ""
    if letter in COMPOSED:
        return strftime(item, COMPOSED[letter]), 0, ""
    return None, 0, ""


def zone_digits(offset: int) -> str:
    minutes = abs(offset) // 60
    return f"{'-' if offset < 0 else '+'}{minutes // 60:02d}{minutes % 60:02d}"


def iso_calendar(item: Moment) -> tuple[int, int]:
    """ISO 8601 year and week."""
    cycles, within = divmod(item.year - 1600, 400)
    calendar = date(1600 + within, item.month + 1, max(1, item.day)).isocalendar()
    return calendar.year + cycles * 400, calendar.week


# Parsing

NUMBER_WIDTHS = {
    "C": 2,
    "d": 2,
    "e": 2,
    "H": 2,
    "k": 2,
    "I": 2,
    "l": 2,
    "j": 3,
    "m": 2,
    "M": 2,
    "S": 2,
    "u": 1,
    "w": 1,
    "y": 2,
    "Y": 4,
    "U": 2,
    "W": 2,
    "V": 2,
    "g": 2,
    "G": 4,
}
RANGES = {
    "d": (1, 31),
    "e": (1, 31),
    "H": (0, 23),
    "k": (0, 23),
    "I": (1, 12),
    "l": (1, 12),
    "j": (1, 366),
    "m": (1, 12),
    "M": (0, 59),
    "S": (0, 61),
    "u": (1, 7),
    "w": (0, 6),
}
WORDS = {
    "a": "|".join(f"{name}|{name[:3]}" for name in DAYS),
    "b": "|".join(f"{name}|{name[:3]}" for name in MONTHS),
}
OTHER = {
    "n": r"\s*+",
    "t": r"\s*+",
    "%": r"\s*+%",
    "s": r"\s*+([-+]?\d{1,18}+)",
    "p": r"\s*+(am|pm)",
    "P": r"\s*+(am|pm)",
    "z": r"\s*+(Z|[-+]\d\d(?::?\d\d)?)",
    "Z": r"\s*+([A-Za-z]*+)",
}
SAME = {"e": "d", "k": "H", "l": "I", "A": "a", "B": "b", "h": "b", "P": "p"}


@lru_cache(64)
def reader(form: str) -> tuple[re.Pattern[str], list[str]] | None:
    """A format as a regular expression and the letters of its groups; None if it has an unknown directive."""
    letters: list[str] = []
    pieces: list[str] = []
    previous = None
    while previous != form:
        previous = form
        form = re.sub("%([cDxFrRTX])", lambda match: COMPOSED[match.group(1)], form)
    place = 0
    while place < len(form):
        ch = form[place]
        place += 1
        if ch.isspace():
            pieces.append(r"\s*+")
            continue
        if ch != "%":
            pieces.append(re.escape(ch))
            continue
        while place < len(form) and form[place] in "-_0^#EO":
            place += 1
        letter = form[place : place + 1]
        place += 1
        name = SAME.get(letter, letter)
        if letter in NUMBER_WIDTHS:
            pieces.append(rf"\s*+([-+]?\d{{1,{NUMBER_WIDTHS[letter]}}}+)")
        elif name in WORDS:
            pieces.append(rf"\s*+({WORDS[name]})")
        elif letter in OTHER:
            pieces.append(OTHER[letter])
            if "(" not in OTHER[letter]:
                continue
        else:
            return None
        letters.append(name)
    return re.compile("".join(pieces), re.IGNORECASE), letters


def strptime(text: Value, form: Value) -> list[Value]:
    if text.__class__ is not str or form.__class__ is not str:
        raise JqError("strptime/1 requires string inputs and arguments")
    found = reader(form)
    match = found[0].match(text) if found is not None else None
    fields = read_fields(match.groups(), found[1]) if match is not None and found is not None else None
    if match is None or fields is None or (match.end() < len(text) and not text[match.end()].isspace()):
        raise JqError(f'date "{text}" does not match format "{form}"')
    result = assemble(fields).array()
    return [*result, text[match.end() :]] if match.end() < len(text) else result


def read_fields(groups: tuple[str, ...], letters: list[str]) -> dict[str, int] | None:
    """What each directive said; None if a number is out of its range."""
    fields: dict[str, int] = {}
    for letter, text in zip(letters, groups, strict=True):
        if letter == "a":
            fields["w"] = [day[:3] for day in DAYS].index(text[:3].capitalize())
        elif letter == "b":
            fields["m"] = [month[:3] for month in MONTHS].index(text[:3].capitalize()) + 1
        elif letter == "p":
            fields["p"] = int(text.lower() == "pm")
        elif letter not in "zZ":
            value = int(text)
            low, high = RANGES.get(letter, (-LARGEST_TIME, LARGEST_TIME))
            if not low <= value <= high:
                return None
            fields["w" if letter == "u" else letter] = value % 7 if letter == "u" else value
    return fields


def assemble(fields: dict[str, int]) -> Moment:
    if "s" in fields:
        return moment(fields["s"])
    year = fields.get("Y", 1900)
    if "y" in fields:
        short = fields["y"]
        year = fields["C"] * 100 + short if "C" in fields else short + (1900 if short > 68 else 2000)
    month, day = fields.get("m", 1) - 1, fields.get("d", 0)
    if "j" in fields and "m" not in fields and "d" not in fields:
        base = moment(days_before(year, 0, fields["j"]) * 86_400)
        month, day = base.month, base.day
    hour = fields.get("H", 0)
    if "I" in fields:
        hour = fields["I"] % 12 + (12 if fields.get("p") else 0)
    known = "d" in fields or "j" in fields
    base = moment(days_before(year, month, max(1, day)) * 86_400)
    weekday = base.weekday if known else fields.get("w", base.weekday if day else 0)
    yearday = fields.get("j", base.yearday + 1) - 1 if known or "m" in fields else 0
    return Moment(year, month, day, hour, fields.get("M", 0), fields.get("S", 0), weekday, yearday)
