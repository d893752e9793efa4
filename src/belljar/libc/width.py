"""Columns of a terminal that a text takes, as wcwidth(3) counts them."""

from __future__ import annotations

from typing import Final
from unicodedata import category, east_asian_width

# Visible format characters: the soft hyphen and signs that enclose or precede a number.
_VISIBLE: Final = frozenset(
    "\u00ad\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"
)


def display_width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(character_width(char) for char in text)


def character_width(char: str) -> int:
    if char < "\x7f":
        return 1
    if "\u1160" <= char <= "\u11ff" or "\ud7b0" <= char <= "\ud7fb":  # vowels and finals that join a syllable
        return 0
    if category(char) in ("Mn", "Me", "Cf") and char not in _VISIBLE:
        return 0
    if "\u3248" <= char <= "\u324f" or "\u4dc0" <= char <= "\u4dff":  # ambiguous to Unicode, wide to glibc
        return 2
    return 2 if east_asian_width(char) in "WF" else 1
