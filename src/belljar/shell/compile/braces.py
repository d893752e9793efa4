"""Brace expansion: the words that a sequence makes, and how many."""

from __future__ import annotations

from itertools import pairwise
from typing import Final

from belljar.shell.expand.fields import MAGIC
from belljar.shell.nodes import BraceList, BraceRange, BraceSequence, Escaped, Literal, WordPart

BACKSLASH: Final = 0x5C


def plain_texts(sequence: BraceSequence) -> list[str] | None:
    """The words of a sequence that holds nothing but literal text; None if it holds more."""
    results = [""]
    for item in sequence.items:
        if isinstance(item, Literal):
            if MAGIC.search(item.text):
                return None
            choices = [item.text]
        elif isinstance(item, BraceRange):
            choices = range_texts(item)
        elif isinstance(item, BraceList):
            choices = []
            for inner in item.alternatives:
                found = plain_texts(inner)
                if found is None:
                    return None
                choices += found
        else:
            return None
        results = [left + right for left in results for right in choices] if results != [""] else choices
    return results if all(text and text[0] != "~" for text in results) else None


def unclosed_backquote(sequence: BraceSequence) -> str | None:
    """The end of a word that begins with a backquote made by a range, as in `{Z..a}x`.

    Bash reads the words again, and finds no closing one.
    """
    for item, following in pairwise(sequence.items):
        if (
            isinstance(item, BraceRange)
            and item.letters
            and "`" in range_texts(item)
            and isinstance(following, Literal)
        ):
            return f"`{following.text}"
    return None


def merge_literals(parts: tuple[WordPart, ...]) -> tuple[WordPart, ...]:
    """Literals next to each other made one (a range's numbers are literals too)."""
    out: list[WordPart] = []
    for part in parts:
        if out and isinstance(part, Literal) and isinstance(out[-1], Literal):
            out[-1] = Literal(out[-1].text + part.text)
        else:
            out.append(part)
    return tuple(out)


def count(sequence: BraceSequence) -> int:
    """The number of words the sequence makes, without making them."""
    total = 1
    for item in sequence.items:
        if isinstance(item, BraceList):
            total *= sum(count(inner) for inner in item.alternatives)
        elif isinstance(item, BraceRange):
            total *= abs(item.last - item.first) // (abs(item.step) or 1) + 1
    return total


def expand(sequence: BraceSequence) -> list[tuple[WordPart, ...]]:
    results: list[tuple[WordPart, ...]] = [()]
    for item in sequence.items:
        if isinstance(item, BraceList):
            choices = [parts for inner in item.alternatives for parts in expand(inner)]
        elif isinstance(item, BraceRange):
            choices = [(_range_part(text),) for text in range_texts(item)]
        else:
            choices = [(item,)]
        results = [(*left, *right) for left in results for right in choices]
    return results


def _range_part(text: str) -> WordPart:
    return Literal(text) if text.isalnum() or text[:1] == "-" else Escaped(text)


def range_texts(item: BraceRange) -> list[str]:
    step = abs(item.step) or 1
    numbers = (
        range(item.first, item.last + 1, step) if item.first <= item.last else range(item.first, item.last - 1, -step)
    )
    if item.letters:
        # The words are read again: a backslash among them quotes nothing and goes.
        return ["" if number == BACKSLASH else chr(number) for number in numbers]
    if item.width:
        return [f"{number:0{item.width}d}" for number in numbers]
    return [str(number) for number in numbers]
