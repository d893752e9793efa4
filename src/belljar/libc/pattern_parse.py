r"""Reads bash patterns (`*`, `?`, `[...]`, and the extended `@(a|b)` forms) into a small tree.

The caller has escaped each quoted character as `\x`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from msgspec import Struct

from belljar.libc.ctype import ASCII, Ranges, wide


class Text(Struct, frozen=True):
    """Characters that stand for themselves."""

    text: str


class AnyOne(Struct, frozen=True):
    """`?`"""


class AnyMany(Struct, frozen=True):
    """`*`"""


class Set(Struct, frozen=True):
    """`[...]`: one character in (or, when `negated`, outside) the ranges and classes."""

    negated: bool
    ranges: Ranges
    classes: tuple[str, ...] = ()


class Group(Struct, frozen=True):
    """`kind(a|b)` with kind one of `? * + @ !`."""

    kind: str
    alternatives: tuple[Items, ...]


Item: TypeAlias = "Text | AnyOne | AnyMany | Set | Group"
Items: TypeAlias = "tuple[Item, ...]"

_EXTRA_CLASSES: dict[str, Ranges] = {"word": ((48, 57), (65, 90), (95, 95), (97, 122)), "ascii": ((0, 127),)}
CLASS_NAMES = frozenset([*ASCII, *_EXTRA_CLASSES])
_SYMBOLS = {
    "NUL": 0, "SOH": 1, "STX": 2, "ETX": 3, "EOT": 4, "ENQ": 5, "ACK": 6, "alert": 7, "BEL": 7, "backspace": 8,
    "BS": 8, "tab": 9, "HT": 9, "newline": 10, "LF": 10, "vertical-tab": 11, "VT": 11, "form-feed": 12, "FF": 12,
    "carriage-return": 13, "CR": 13, "SO": 14, "SI": 15, "DLE": 16, "DC1": 17, "DC2": 18, "DC3": 19, "DC4": 20,
    "NAK": 21, "SYN": 22, "ETB": 23, "CAN": 24, "EM": 25, "SUB": 26, "ESC": 27, "IS4": 28, "FS": 28, "IS3": 29,
    "GS": 29, "IS2": 30, "RS": 30, "IS1": 31, "US": 31, "space": 32, "exclamation-mark": 33, "quotation-mark": 34,
    "number-sign": 35, "dollar-sign": 36, "percent-sign": 37, "ampersand": 38, "apostrophe": 39,
    "left-parenthesis": 40, "right-parenthesis": 41, "asterisk": 42, "plus-sign": 43, "comma": 44, "hyphen": 45,
    "hyphen-minus": 45, "minus": 45, "dash": 45, "period": 46, "full-stop": 46, "slash": 47, "solidus": 47,
    "zero": 48, "one": 49, "two": 50, "three": 51, "four": 52, "five": 53, "six": 54, "seven": 55, "eight": 56,
    "nine": 57, "colon": 58, "semicolon": 59, "less-than-sign": 60, "equals-sign": 61, "greater-than-sign": 62,
    "question-mark": 63, "commercial-at": 64, "left-square-bracket": 91, "backslash": 92, "reverse-solidus": 92,
    "right-square-bracket": 93, "circumflex": 94, "circumflex-accent": 94, "underscore": 95, "grave-accent": 96,
    "left-brace": 123, "left-curly-bracket": 123, "vertical-line": 124, "right-brace": 125,
    "right-curly-bracket": 125, "tilde": 126, "DEL": 127,
}  # fmt: skip


def class_ranges(name: str, *, unicode: bool) -> Ranges:
    """The code points of a class; those past ASCII are looked up only when asked for."""
    if name == "word":
        return (*(wide("alnum") if unicode else ASCII["alnum"]), (95, 95))
    if name in _EXTRA_CLASSES:
        return _EXTRA_CLASSES[name]
    return wide(name) if unicode else ASCII[name]


def set_predicate(item: Set, *, nocase: bool) -> Callable[[str], bool]:
    """Whether one character belongs to the set. Folding case concerns the ranges, not the classes, as in bash."""
    ranges = item.ranges
    folded = tuple((ord(fold(chr(low))), ord(fold(chr(high)))) for low, high in ranges) if nocase else ranges
    classes = [class_ranges(name, unicode=True) for name in item.classes]

    def belongs(char: str) -> bool:
        code = ord(fold(char)) if nocase else ord(char)
        found = any(low <= code <= high for low, high in folded)
        if not found and classes:
            code = ord(char)
            found = any(low <= code <= high for ranges in classes for low, high in ranges)
        return found is not item.negated

    return belongs


def fold(char: str) -> str:
    """Lower case, where that is one character."""
    lower = char.lower()
    return lower if len(lower) == 1 else char


def parse_pattern(text: str, *, extglob: bool) -> Items:
    """The items of a pattern; adjacent plain characters are one Text. Never fails: what is malformed is text."""
    return _Parser(text, extglob=extglob).alternatives(0, len(text), split=False)[0]


class _Parser:
    def __init__(self, text: str, *, extglob: bool) -> None:
        self.text = text
        self.last_bracket = text.rfind("]")
        self.closes = self._match_parentheses() if extglob and "(" in text else {}

    def _match_parentheses(self) -> dict[int, int]:
        """The closing position of each extended form: one scan for all, or `@(@(@(...` would take quadratic time."""
        text = self.text
        closes: dict[int, int] = {}
        opened: list[tuple[int, bool]] = []
        pos = 0
        while pos < len(text):
            char = text[pos]
            if char == "\\":
                pos += 1
            elif char == "[":
                found = self.bracket(pos)
                if found is not None:
                    pos = found[1] - 1
                elif any(extended for _, extended in opened):
                    return closes  # an open bracket swallows what would close the groups around it
            elif char == "(":
                opened.append((pos, pos > 0 and text[pos - 1] in "?*+@!"))
            elif char == ")" and opened:
                start, extended = opened.pop()
                if extended:
                    closes[start] = pos
            pos += 1
        return closes

    def alternatives(self, pos: int, end: int, *, split: bool = True) -> tuple[Items, ...]:
        text = self.text
        found: list[Items] = []
        items: list[Item] = []
        plain: list[str] = []

        def flush() -> None:
            if plain:
                items.append(Text("".join(plain)))
                plain.clear()

        while pos < end:
            char = text[pos]
            if char == "\\":
                plain.append(text[pos + 1] if pos + 1 < end else char)
                pos += 2
                continue
            if char in "?*+@!" and pos + 1 in self.closes:
                close = self.closes[pos + 1]
                flush()
                items.append(Group(char, self.alternatives(pos + 2, close)))
                pos = close + 1
                continue
            if char == "?":
                flush()
                items.append(AnyOne())
            elif char == "*":
                flush()
                if not (items and isinstance(items[-1], AnyMany)):
                    items.append(AnyMany())
            elif char == "[" and (bracket := self.bracket(pos)) is not None and bracket[1] <= end:
                flush()
                items.append(bracket[0])
                pos = bracket[1]
                continue
            elif char == "|" and split:
                flush()
                found.append(tuple(items))
                items.clear()
            else:
                plain.append(char)
            pos += 1
        flush()
        found.append(tuple(items))
        return tuple(found)

    def bracket(self, start: int) -> tuple[Set, int] | None:
        """The set whose `[` is at `start`, and where it ends; None if it isn't one."""
        text = self.text
        pos = start + 1
        negated = pos < len(text) and text[pos] in "!^"
        pos += negated
        first = pos
        ranges: list[tuple[int, int]] = []
        classes: list[str] = []
        while pos <= self.last_bracket:
            char = text[pos]
            if char == "]" and pos > first:
                return Set(negated, tuple(ranges), tuple(classes)), pos + 1
            if char == "[" and pos + 1 < len(text) and text[pos + 1] == ":":
                close = text.find(":]", pos + 2)
                if close >= 0:
                    name = text[pos + 2 : close]
                    if name in CLASS_NAMES:
                        classes.append(name)
                    pos = close + 2
                    continue
            low, pos = self._point(pos)
            high = low
            if text.startswith("-", pos) and not text.startswith("-]", pos) and pos + 1 <= self.last_bracket:
                high, pos = self._point(pos + 1)
            if low is not None and high is not None and low <= high:
                ranges.append((low, high))
        return None

    def _point(self, pos: int) -> tuple[int | None, int]:
        """One character of a bracket expression, however it is spelled; None for an unknown symbol."""
        text = self.text
        for kind in ".=":
            if text.startswith("[" + kind, pos):
                close = text.find(kind + "]", pos + 2)
                if close >= 0:
                    name = text[pos + 2 : close]
                    code = ord(name) if len(name) == 1 else _SYMBOLS.get(name) if kind == "." else None
                    return code, close + 2
        if text[pos] == "\\" and pos + 1 < len(text):
            pos += 1
        return ord(text[pos]), pos + 1
