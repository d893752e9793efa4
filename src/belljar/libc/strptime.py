"""strptime(3) as glibc has it, in the C locale."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

from belljar.libc.calendar import DAY, DAYS, LATEST, MONTHS, Moment, days_since_epoch, moment_at
from belljar.libc.strftime import COMPOSED

_NUMBER_WIDTHS: Final = {
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
_RANGES: Final = {
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
_WORDS: Final = {
    "a": "|".join(f"{name}|{name[:3]}" for name in DAYS),
    "b": "|".join(f"{name}|{name[:3]}" for name in MONTHS),
}
_OTHER: Final = {
    "n": r"\s*+",
    "t": r"\s*+",
    "%": r"\s*+%",
    "s": r"\s*+([-+]?\d{1,18}+)",
    "p": r"\s*+(am|pm)",
    "P": r"\s*+(am|pm)",
    "z": r"\s*+(Z|[-+]\d\d(?::?\d\d)?)",
    "Z": r"\s*+([A-Za-z]*+)",
}
_SAME: Final = {"e": "d", "k": "H", "l": "I", "A": "a", "B": "b", "h": "b", "P": "p"}


@lru_cache(64)
def _reader(form: str) -> tuple[re.Pattern[str], list[str]] | None:
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
        name = _SAME.get(letter, letter)
        if letter in _NUMBER_WIDTHS:
            pieces.append(rf"\s*+([-+]?\d{{1,{_NUMBER_WIDTHS[letter]}}}+)")
        elif name in _WORDS:
            pieces.append(rf"\s*+({_WORDS[name]})")
        elif letter in _OTHER:
            pieces.append(_OTHER[letter])
            if "(" not in _OTHER[letter]:
                continue
        else:
            return None
        letters.append(name)
    return re.compile("".join(pieces), re.IGNORECASE), letters


def strptime(text: str, form: str) -> tuple[Moment, str] | None:
    """Read a time at the start of a text, and return what follows it; None if the text is not of that form.

    Parts that the form leaves open are those of 1900-01-00, as in a `struct tm` of zeros.
    """
    found = _reader(form)
    match = found[0].match(text) if found is not None else None
    if found is None or match is None:
        return None
    fields = _read_fields(match.groups(), found[1])
    return None if fields is None else (_assemble(fields), text[match.end() :])


def _read_fields(groups: tuple[str, ...], letters: list[str]) -> dict[str, int] | None:
    """The value of each directive by its letter; None if a number is out of its range."""
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
            low, high = _RANGES.get(letter, (-LATEST, LATEST))
            if not low <= value <= high:
                return None
            fields["w" if letter == "u" else letter] = value % 7 if letter == "u" else value
    return fields


def _assemble(fields: dict[str, int]) -> Moment:
    if "s" in fields:
        return moment_at(fields["s"])
    year = fields.get("Y", 1900)
    if "y" in fields:
        short = fields["y"]
        year = fields["C"] * 100 + short if "C" in fields else short + (1900 if short > 68 else 2000)
    month, day = fields.get("m", 1), fields.get("d", 0)
    if "j" in fields and "m" not in fields and "d" not in fields:
        base = moment_at(days_since_epoch(year, 1, fields["j"]) * DAY)
        month, day = base.month, base.day
    hour = fields.get("H", 0)
    if "I" in fields:
        hour = fields["I"] % 12 + (12 if fields.get("p") else 0)
    known = "d" in fields or "j" in fields
    base = moment_at(days_since_epoch(year, month, max(1, day)) * DAY)
    weekday = base.weekday if known else fields.get("w", base.weekday if day else 0)
    yearday = fields.get("j", base.yearday) if known or "m" in fields else 1
    return Moment(year, month, day, hour, fields.get("M", 0), fields.get("S", 0), weekday, yearday)
