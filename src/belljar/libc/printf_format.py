"""The format of printf, read once: plain bytes, conversions, and the mistakes that end the output where they stand."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeAlias

from msgspec import Struct

from belljar.libc.escapes import FORMAT, decode

INT_MAX = (1 << 31) - 1
_DIRECTIVE = re.compile(
    rb"%([-+ 0#']*+)(\*|\d*+)(?:(\.)(\*|-?\d*+))?(?:\(((?:[^()]++|\([^()]*+\))*+)\)(?=T)|[hjlLtz]*)(.?)", re.DOTALL
)
_BAD_TIME = re.compile(rb"%[-+ 0#']*+\*?+\d*+\((?:[^()]++|\([^()]*+\))*+\)([^T])", re.DOTALL)


PADDED = re.compile(r"%0?[1-9][0-9]{0,2}d")


class Conversion(Struct, frozen=True):
    """One `%...` directive. A width or precision of -1 is a `*`; `precision` None: not given."""

    letter: str
    flags: str = ""
    width: int = 0
    precision: int | None = None
    time_format: str = ""
    text: str = ""
    plain: bool = False
    """A %s or %d with nothing in between."""
    padded: bool = False
    """A %5d or %05d: a width, and at most that flag."""


class Mistake(Struct, frozen=True):
    """A directive that means nothing: `text` as written; `letter` is "" when the format ended too soon."""

    text: str
    letter: str


class Stop(Struct, frozen=True):
    r"""`\c` in the format, where that ends the output."""


class Missing(Struct, frozen=True):
    r"""A `\x`, `\u` or `\U` without digits."""

    letter: str


class BadTime(Struct, frozen=True):
    """A `%(...)` that no T follows: printed as it is, with a warning."""

    letter: str
    text: bytes


Piece: TypeAlias = "bytes | Conversion | Mistake | Stop | Missing | BadTime"


@lru_cache(maxsize=512)
def parse_format(data: bytes, letters: str, stops: bool) -> tuple[Piece, ...]:
    r"""The pieces of a format. `letters` are the conversions known; `stops`: a `\c` ends the output."""
    pieces: list[Piece] = []
    pos = 0
    while pos < len(data):
        percent = data.find(b"%", pos)
        if percent < 0:
            _plain(data[pos:], pieces, stops)
            break
        if percent > pos:
            _plain(data[pos:percent], pieces, stops)
        if data.startswith(b"%%", percent):
            pieces.append(b"%")
            pos = percent + 2
            continue
        bad_time = _BAD_TIME.match(data, percent) if "T" in letters else None
        if bad_time is not None:
            pieces.append(BadTime(bad_time[1].decode("utf-8", "surrogateescape"), bad_time[0]))
            pos = bad_time.end()
            continue
        match = _DIRECTIVE.match(data, percent)
        assert match is not None
        piece = _directive(match, letters)
        pieces.append(piece)
        if isinstance(piece, Mistake):
            break
        pos = match.end()
    return tuple(pieces)


def _plain(data: bytes, pieces: list[Piece], stops: bool) -> None:
    missing: list[str] = []
    if not stops:
        # Here `\c` is nothing special: protect it from being read as the end.
        data = re.sub(rb"(\\.)", lambda m: rb"\\c" if m.group() == rb"\c" else m.group(), data, flags=re.DOTALL)
    text, stopped = decode(data, FORMAT, missing.append)
    pieces.extend(Missing(letter) for letter in missing)
    if text:
        pieces.append(text)
    if stopped:
        pieces.append(Stop())


def _directive(match: re.Match[bytes], letters: str) -> Conversion | Mistake:
    flags, width, point, precision, time_format, last = match.groups()
    letter = last.decode("utf-8", "surrogateescape")
    text = match.group().decode("utf-8", "surrogateescape")
    if not letter or letter not in letters or (letter == "T" and time_format is None):
        return Mistake(text, letter)
    return Conversion(
        letter,
        flags.decode(),
        _size(width) or 0,
        None if not point else _size(precision) if precision else 0,
        (time_format or b"").decode("utf-8", "surrogateescape"),
        text,
        text in ("%s", "%d"),
        PADDED.fullmatch(text) is not None,
    )


def _size(text: bytes) -> int | None:
    """-1 for `*`; a negative precision is as none."""
    if text == b"*":
        return -1
    if text.startswith(b"-"):
        return None
    return int(text[:12] or b"0")
