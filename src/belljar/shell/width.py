"""How many columns of a terminal a text takes."""

from __future__ import annotations

from unicodedata import category, east_asian_width


def display_width(text: str) -> int:
    if text.isascii():
        return len(text)
    return sum(character_width(char) for char in text)


def character_width(char: str) -> int:
    if char < "\x7f":
        return 1
    if category(char) in ("Mn", "Me", "Cf") and char != "\u00ad":
        return 0
    return 2 if east_asian_width(char) in "WF" else 1
