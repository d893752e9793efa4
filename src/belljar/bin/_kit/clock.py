"""Times of files as a process's time zone shows them, to the nanosecond."""

from __future__ import annotations

import re
from collections.abc import Mapping

from belljar.abi.records import NANO
from belljar.libc.strftime import Moment, Zone, local, parse_zone, strftime

_FINE = re.compile(r"%%|%([-_0^#+]*)(\d*)(:{0,3}z|[A-Za-z])|%\+")
_YEARS = {"C": 2, "F": 10, "G": 4, "g": 2, "Y": 4, "y": 2}
"""How wide the fields that have to do with years usually are."""
_WIDEST = 1000
"""Columns that a field can be padded to."""


def zone_of(env: Mapping[str, str]) -> Zone:
    return parse_zone(env.get("TZ", "UTC0") or "UTC0")


def format_time(template: str, ns: int, zone: Zone) -> str:
    """strftime, and what GNU's commands have beyond it: %N for nanoseconds, %:z for +01:00, the flag + for years."""
    seconds, fraction = divmod(ns, NANO)
    moment = local(seconds, zone)

    def fine(match: re.Match[str]) -> str:
        flags, width, field = match.groups()
        if field is None:
            return "%%" + match[0][1:].replace("%", "")
        padding = _padding(flags)
        if field == "N":
            return _nanoseconds(fraction, padding, width)
        if field[-1] == "z":
            return _offset(moment.offset, len(field) - 1, padding, width)
        if padding == "+":
            if field in _YEARS:
                return _long_year(moment, field, width)
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
    return _signed("-" if offset < 0 else "+", text, padding, int(width) if width else size)


def _signed(sign: str, text: str, padding: str, size: int) -> str:
    size = min(size, _WIDEST)
    if padding == "-":
        return sign + text
    return (sign + text).rjust(size) if padding == "_" else sign + text.rjust(size - len(sign), "0")


def _long_year(moment: Moment, letter: str, width: str) -> str:
    """A year with the flag +: it has a sign where it is wider than years are."""
    usual = _YEARS[letter]
    text = strftime(f"%{letter}", moment)
    size = min(int(width or 0), _WIDEST)
    return _signed("+" if size > usual else "", text, "+", max(size, usual))
