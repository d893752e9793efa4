"""Motions of vi."""

from __future__ import annotations

from typing import Final, NamedTuple

_BRACKETS: Final = {"(": ")", "[": "]", "{": "}"}
_BLANKS: Final = " \t\n"


class Target(NamedTuple):
    """A place in the line; an operator takes the character there as well if it is inclusive."""

    place: int
    inclusive: bool = False


def find_target(
    text: str, point: int, key: str, count: int | None, argument: str = "", *, operator: str = ""
) -> Target | None:
    """The target of a motion from a place; None if it is none, or has no target."""
    times = count or 1
    last = max(0, len(text) - 1)
    match key:
        case "h" | "\x08":
            return Target(max(0, point - times)) if point else None
        case "l" | " ":
            limit = len(text) if operator else last
            return Target(min(limit, point + times)) if point < limit else None
        case "0":
            return Target(0)
        case "^":
            return Target(len(text) - len(text.lstrip(_BLANKS)))
        case "$":
            return Target(len(text) if operator else last)
        case "|":
            return Target(min(times - 1, last))
        case "w" | "W":
            return Target(_forward(text, point, times, key == "W", operator))
        case "e" | "E":
            return Target(_word_end(text, point, times, key == "E"), inclusive=True)
        case "b" | "B":
            return Target(_backward(text, point, times, key == "B")) if point else None
        case "%":
            return _matching(text, point)
        case "f" | "F" | "t" | "T":
            return _find(text, point, key, argument, times)
    return None


def _kind(char: str, big: bool) -> int:
    """Blanks, what words are of, and the rest; to `W` and its like all that is not blank is one."""
    if char in _BLANKS:
        return 0
    return 1 if big or char.isalnum() or char == "_" else 2


def _forward(text: str, point: int, times: int, big: bool, operator: str) -> int:
    place = point
    for number in range(times):
        start = place
        if place < len(text) and (kind := _kind(text[place], big)):
            while place < len(text) and _kind(text[place], big) == kind:
                place += 1
        if operator == "c" and number == times - 1 and place > start:
            return place  # the blanks behind the last word are left alone
        while place < len(text) and not _kind(text[place], big):
            place += 1
    return place if operator else min(place, max(0, len(text) - 1))


def _word_end(text: str, point: int, times: int, big: bool) -> int:
    place, last = point, len(text) - 1
    for _ in range(times):
        if place < last:
            place += 1
        while place < last and not _kind(text[place], big):
            place += 1
        while place < last and _kind(text[place + 1], big) == _kind(text[place], big):
            place += 1
    return place


def _backward(text: str, point: int, times: int, big: bool) -> int:
    place = point
    for _ in range(times):
        while place > 0 and not _kind(text[place - 1], big):
            place -= 1
        if place > 0:
            kind = _kind(text[place - 1], big)
            while place > 0 and _kind(text[place - 1], big) == kind:
                place -= 1
    return place


def _matching(text: str, point: int) -> Target | None:
    """The bracket that belongs to the next one."""
    closing = {close: open for open, close in _BRACKETS.items()}
    place = next((at for at in range(point, len(text)) if text[at] in _BRACKETS or text[at] in closing), None)
    if place is None:
        return None
    mine = text[place]
    other, step = (_BRACKETS[mine], 1) if mine in _BRACKETS else (closing[mine], -1)
    depth = 0
    while 0 <= place < len(text):
        depth += (text[place] == mine) - (text[place] == other)
        if not depth:
            return Target(place, inclusive=True)
        place += step
    return None


def _find(text: str, point: int, key: str, char: str, times: int) -> Target | None:
    place = point
    for _ in range(times):
        place = text.find(char, place + 1) if key in "ft" else text.rfind(char, 0, place)
        if place < 0:
            return None
    if key == "t":
        place -= 1
    elif key == "T":
        place += 1
    return Target(place, inclusive=key in "ft")
