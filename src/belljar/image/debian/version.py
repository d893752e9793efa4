"""Versions of Debian packages, compared as dpkg does (deb-version(7))."""

from __future__ import annotations

import re
from functools import cmp_to_key
from typing import Final

_PART: Final = re.compile(r"(\D*)(\d*)")
_ORDERS: Final = {"<<": (-1,), "<=": (-1, 0), "=": (0,), ">=": (0, 1), ">>": (1,), "<": (-1, 0), ">": (0, 1)}


def compare_versions(one: str, other: str) -> int:
    """-1, 0 or 1."""
    for mine, theirs in zip(_split(one), _split(other), strict=True):
        if order := _compare(mine, theirs):
            return order
    return 0


version_key = cmp_to_key(compare_versions)


def satisfies(version: str, operator: str, wanted: str) -> bool:
    """Whether a version is in a relation to another; without an operator each is."""
    return not operator or compare_versions(version, wanted) in _ORDERS[operator]


def _split(version: str) -> tuple[str, str, str]:
    epoch, colon, rest = version.partition(":")
    if not colon:
        epoch, rest = "0", version
    upstream, dash, revision = rest.rpartition("-")
    return epoch, upstream if dash else rest, revision if dash else "0"


def _compare(one: str, other: str) -> int:
    """Compare text and numbers in turn."""
    for (text, digits), (text2, digits2) in zip(*_padded(_PART.findall(one), _PART.findall(other)), strict=True):
        keys = [_weight(c) for c in text] + [0], [_weight(c) for c in text2] + [0]
        numbers = int(digits or 0), int(digits2 or 0)
        if keys[0] != keys[1]:
            return -1 if keys[0] < keys[1] else 1
        if numbers[0] != numbers[1]:
            return -1 if numbers[0] < numbers[1] else 1
    return 0


def _padded(one: list[tuple[str, str]], other: list[tuple[str, str]]) -> tuple[list[tuple[str, str]], ...]:
    most = max(len(one), len(other))
    return tuple([*parts, *[("", "")] * (most - len(parts))] for parts in (one, other))


def _weight(character: str) -> int:
    """A tilde sorts before the end of the text, letters before all other characters."""
    if character == "~":
        return -1
    return ord(character) if character.isalpha() else ord(character) + 256
