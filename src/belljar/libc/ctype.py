"""Sets of characters as code-point ranges, and the POSIX classes in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cache

Ranges = tuple[tuple[int, int], ...]

MAX = 0x10FFFF
ASCII: dict[str, Ranges] = {
    "alpha": ((65, 90), (97, 122)),
    "digit": ((48, 57),),
    "alnum": ((48, 57), (65, 90), (97, 122)),
    "upper": ((65, 90),),
    "lower": ((97, 122),),
    "space": ((9, 13), (32, 32)),
    "blank": ((9, 9), (32, 32)),
    "punct": ((33, 47), (58, 64), (91, 96), (123, 126)),
    "print": ((32, 126),),
    "graph": ((33, 126),),
    "cntrl": ((0, 31), (127, 127)),
    "xdigit": ((48, 57), (65, 70), (97, 102)),
}
_SPACES: Ranges = (
    (0x1680, 0x1680),
    (0x2000, 0x2006),
    (0x2008, 0x200A),
    (0x2028, 0x2029),
    (0x205F, 0x205F),
    (0x3000, 0x3000),
)
_PREDICATES: dict[str, Callable[[str], bool]] = {
    "alpha": lambda c: c.isalpha() or (c.isnumeric() and c.isdecimal()),
    "upper": str.isupper,
    "lower": str.islower,
    "print": lambda c: c.isprintable() or c.isspace(),
    "graph": lambda c: c.isprintable() and not c.isspace(),
    "punct": lambda c: c.isprintable() and not c.isalnum() and not c.isspace(),
}
_PREDICATES["alnum"] = _PREDICATES["alpha"]
_IDEOGRAPHS = (0x20000, 0x323AF)
_SCANNED = 0x20000  # above lie only ideographs, private use and unassigned planes


def union(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Sorted, disjoint, non-adjacent ranges covering the same points."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            if high > merged[-1][1]:
                merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    return tuple(merged)


def complement(ranges: Ranges, top: int = MAX) -> Ranges:
    """The points of 0..top outside sorted disjoint `ranges`."""
    gaps = []
    start = 0
    for low, high in ranges:
        if low > start:
            gaps.append((start, low - 1))
        start = high + 1
    if start <= top:
        gaps.append((start, top))
    return tuple(gaps)


def subtract(ranges: Ranges, point: int) -> Ranges:
    """`ranges` without one code point."""
    kept = []
    for low, high in ranges:
        if low <= point <= high:
            if low < point:
                kept.append((low, point - 1))
            if point < high:
                kept.append((point + 1, high))
        else:
            kept.append((low, high))
    return tuple(kept)


@cache
def wide(name: str) -> Ranges:
    """A class in a UTF-8 locale; scanned once, when first needed for non-ASCII text."""
    ranges = list(ASCII[name])
    if name in ("space", "blank"):
        ranges += _SPACES if name == "space" else [r for r in _SPACES if r[0] not in (0x2028,)]
    elif name == "cntrl":
        ranges += [(0x80, 0x9F), (0x2028, 0x2029)]
    elif name in _PREDICATES:
        ranges += _scan(_PREDICATES[name])
        if name in ("alpha", "alnum", "print", "graph"):
            ranges.append(_IDEOGRAPHS)
    return union(ranges)


@cache
def letters() -> Ranges:
    """Unicode's category L, which is narrower than what a locale calls alphabetic."""
    return union([*ASCII["alpha"], *_scan(str.isalpha), _IDEOGRAPHS])


def _scan(accept: Callable[[str], bool]) -> list[tuple[int, int]]:
    ranges = []
    start = -1
    for code in range(0x80, _SCANNED):
        if accept(chr(code)):
            if start < 0:
                start = code
        elif start >= 0:
            ranges.append((start, code - 1))
            start = -1
    return ranges


def resolve(ranges: Ranges, classes: tuple[str, ...], *, unicode: bool) -> Ranges:
    """The points of a bracket expression, before any negation."""
    parts = list(ranges)
    for name in classes:
        parts += wide(name) if unicode else ASCII[name]
    return union(parts)
