"""Times of files as a process's time zone shows them, to the nanosecond."""

from __future__ import annotations

import re
from collections.abc import Mapping

from belljar.abi.records import NANO
from belljar.libc.calendar import Moment, iso_week
from belljar.libc.strftime import strftime
from belljar.libc.zones import Zone, localtime, parse_zone

_FINE = re.compile(r"%%|%([-_0^#+]*)(\d*)(:{0,3}z|[A-Za-z])|%\+")
_YEARS = {"C": 2, "F": 4, "G": 4, "g": 2, "Y": 4, "y": 2}
"""How many digits the fields that have to do with years have."""
_WIDEST = 1000
"""Columns that a field can be padded to."""


def zone_of(env: Mapping[str, str]) -> Zone:
    return parse_zone(env.get("TZ", "UTC0") or "UTC0")


def format_time(template: str, ns: int, zone: Zone) -> str:
    """strftime, and what GNU's commands have beyond it: %N for nanoseconds, %:z for +01:00, the flag + for years."""
    seconds, fraction = divmod(ns, NANO)
    moment = localtime(seconds, zone)

    def fine(match: re.Match[str]) -> str:
        flags, width, field = match.groups()
        if field is None:
            return "%%" + match[0][1:].replace("%", "")
        padding = _padding(flags)
        if field == "N":
            return _nanoseconds(fraction, padding, width)
        if field[-1] == "z":
            return _offset(moment.offset, len(field) - 1, padding, width)
        if field in _YEARS:
            return _year(moment, field, padding, width)
        if field == "q":
            return _number((moment.month + 2) // 3, padding, int(width or 1))
        flags = flags.replace("+", "0")
        if padding == "-":
            width = ""
        elif field == "s" and not padding:
            flags += "0"
        return f"%{flags}{width}{field}"

    return strftime(_FINE.sub(fine, template), moment)


def _padding(flags: str) -> str:
    """The flag that says what to fill with: the last one counts."""
    return next((flag for flag in reversed(flags) if flag in "-_0+"), "")


def _nanoseconds(fraction: int, padding: str, width: str) -> str:
    size = min(int(width or 9), _WIDEST)
    digits = f"{fraction:09d}"[:size]
    if padding == "_":
        return (digits.rstrip("0") or "0").ljust(size)
    if padding == "-" and width:
        return digits.rstrip("0") or "0"
    return digits.ljust(size, "0")


def _offset(offset: int, colons: int, padding: str, width: str) -> str:
    """Hours and minutes from UTC: its hour is filled up, after the sign with zeros and before it with spaces."""
    hours, rest = divmod(abs(offset), 3600)
    minutes, seconds = divmod(rest, 60)
    if colons == 3:
        colons = 2 if seconds else 1 if minutes else 3
    text, size = {
        0: (str(hours * 100 + minutes), 5),
        1: (f"{hours}:{minutes:02d}", 6),
        2: (f"{hours}:{minutes:02d}:{seconds:02d}", 9),
        3: (str(hours), 3),
    }[colons]
    return _number(text, padding, int(width) if width else size, "-" if offset < 0 else "+")


def _year(moment: Moment, letter: str, padding: str, width: str) -> str:
    """A year or part of one; with the flag + (and in a plain %F) it has a sign where it is longer than usual."""
    digits = _YEARS[letter]
    size = int(width) if width else digits
    tail = ""
    if letter == "F":
        padding, size = (padding, max(0, size - 6)) if padding or width else ("+", digits)
        tail = strftime("-%m-%d", moment)
    year = iso_week(moment)[0] if letter in "gG" else moment.year
    number = abs(year) // 100 if letter == "C" else abs(year) % 100 if letter in "gy" else abs(year)
    sign = "-" if year < 0 and letter not in "gy" else ""
    if not sign and padding == "+" and (len(str(number)) > digits or size > digits):
        sign = "+"
    return _number(number, padding, size, sign) + tail


def _number(value: int | str, padding: str, size: int, sign: str = "") -> str:
    size = min(size, _WIDEST)
    if padding == "-":
        return f"{sign}{value}"
    if padding == "_":
        return f"{sign}{value}".rjust(size)
    return sign + str(value).rjust(size - len(sign), "0")
