"""strftime(3) as glibc has it, in the C locale."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from belljar.libc.calendar import DAYS, MONTHS, Moment, iso_week

_SPECIFIER = re.compile(r"%([-_0^#]*)(\d*)[EO]?([a-zA-Z%])")
_WIDEST: Final = 1024


def strftime(template: str, moment: Moment) -> str:
    """The template with its % specifiers replaced; unknown ones stay as they are."""
    return _SPECIFIER.sub(lambda match: _expand(match, moment), template)


def _expand(match: re.Match[str], moment: Moment) -> str:
    flags, width, letter = match.groups()
    if (number := _NUMBERS.get(letter)) is not None:
        read, fill, size = number
        text = str(read(moment))
    elif (words := _TEXTS.get(letter)) is not None:
        text, fill, size = words(moment), "", 0
    elif (template := COMPOSED.get(letter)) is not None:
        text, fill, size = strftime(template, moment), "", 0
    else:
        return match.group()
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
        size, fill = min(int(width), _WIDEST), fill or " "
    if fill == "0" and text.startswith("-"):
        return "-" + text[1:].rjust(size - 1, "0")
    return text.rjust(size, fill) if fill else text


def offset_digits(offset: int) -> str:
    """+hhmm"""
    minutes = abs(offset) // 60
    return f"{'-' if offset < 0 else '+'}{minutes // 60:02d}{minutes % 60:02d}"


_NUMBERS: Final[dict[str, tuple[Callable[[Moment], int], str, int]]] = {
    "C": (lambda m: m.year // 100, "0", 1),
    "d": (lambda m: m.day, "0", 2),
    "e": (lambda m: m.day, " ", 2),
    "g": (lambda m: iso_week(m)[0] % 100, "0", 2),
    "G": (lambda m: iso_week(m)[0], "0", 1),
    "H": (lambda m: m.hour, "0", 2),
    "I": (lambda m: m.hour % 12 or 12, "0", 2),
    "j": (lambda m: m.yearday, "0", 3),
    "k": (lambda m: m.hour, " ", 2),
    "l": (lambda m: m.hour % 12 or 12, " ", 2),
    "m": (lambda m: m.month, "0", 2),
    "M": (lambda m: m.minute, "0", 2),
    "s": (lambda m: m.seconds, "0", 1),
    "S": (lambda m: m.second, "0", 2),
    "u": (lambda m: m.weekday or 7, "0", 1),
    "U": (lambda m: (m.yearday + 6 - m.weekday) // 7, "0", 2),
    "V": (lambda m: iso_week(m)[1], "0", 2),
    "w": (lambda m: m.weekday, "0", 1),
    "W": (lambda m: (m.yearday + 6 - (m.weekday - 1) % 7) // 7, "0", 2),
    "y": (lambda m: m.year % 100, "0", 2),
    "Y": (lambda m: m.year, "0", 1),
}
"""Getter, padding character and width of each numeric specifier."""
_TEXTS: Final[dict[str, Callable[[Moment], str]]] = {
    "a": lambda m: DAYS[m.weekday][:3],
    "A": lambda m: DAYS[m.weekday],
    "b": lambda m: MONTHS[m.month - 1][:3],
    "h": lambda m: MONTHS[m.month - 1][:3],
    "B": lambda m: MONTHS[m.month - 1],
    "n": lambda _: "\n",
    "p": lambda m: "AM" if m.hour < 12 else "PM",
    "P": lambda m: "am" if m.hour < 12 else "pm",
    "t": lambda _: "\t",
    "z": lambda m: offset_digits(m.offset),
    "Z": lambda m: m.zone,
    "%": lambda _: "%",
}
COMPOSED: Final = {
    "c": "%a %b %e %H:%M:%S %Y",
    "D": "%m/%d/%y",
    "F": "%Y-%m-%d",
    "r": "%I:%M:%S %p",
    "R": "%H:%M",
    "T": "%H:%M:%S",
    "x": "%m/%d/%y",
    "X": "%H:%M:%S",
}
"""Specifiers that stand for others."""
