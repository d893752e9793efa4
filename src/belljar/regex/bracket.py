"""Parses `[...]`: ranges, classes, equivalence classes and collating symbols."""

from __future__ import annotations

from belljar.libc.ctype import ASCII, union
from belljar.regex.dialect import Dialect
from belljar.regex.nodes import RegexError, Set

_UNMATCHED = "Unmatched [, [^, [:, [., or [="
_AWK = {"a": 7, "b": 8, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}


def parse_bracket(text: str, pos: int, dialect: Dialect) -> tuple[Set, int]:
    """Parse after the `[`; returns the set and the position after its `]`."""
    negated = text.startswith("^", pos)
    if negated:
        pos += 1
    begin = pos
    ranges: list[tuple[int, int]] = []
    classes: list[str] = []
    plain = True
    while True:
        if pos >= len(text):
            raise RegexError(_UNMATCHED)
        char = text[pos]
        if char == "]" and pos > begin:
            break
        if text.startswith("[:", pos):
            name, pos = _symbol(text, pos, ":")
            if name not in ASCII:
                raise RegexError("Invalid character class name")
            if text.startswith("-", pos) and not text.startswith("-]", pos):
                raise RegexError("Invalid range end")
            classes.append(name)
            plain = False
            continue
        if char == "-" and pos > begin and not text.startswith("-]", pos) and not dialect.bracket_escapes:
            raise RegexError("Invalid range end" if pos + 1 < len(text) else _UNMATCHED)
        equivalence = text.startswith("[=", pos)
        low, pos = _point(text, pos, dialect)
        high = low
        if text.startswith("-", pos) and not text.startswith("-]", pos):
            if pos + 1 >= len(text):
                raise RegexError(_UNMATCHED)
            if equivalence or text.startswith(("[:", "[="), pos + 1):
                raise RegexError("Invalid range end")
            high, pos = _point(text, pos + 1, dialect)
            plain = False
            if high < low:
                raise RegexError("Invalid range end")
        ranges.append((low, high))
    if dialect.colon_check and plain and not negated and pos - begin > 2 and text[begin] == text[pos - 1] == ":":
        raise RegexError("character class syntax is [[:space:]], not [:space:]")
    return Set(negated, union(ranges), tuple(classes)), pos + 1


def _symbol(text: str, pos: int, kind: str) -> tuple[str, int]:
    end = text.find(kind + "]", pos + 2)
    if end < 0:
        raise RegexError(_UNMATCHED)
    return text[pos + 2 : end], end + 2


def _point(text: str, pos: int, dialect: Dialect) -> tuple[int, int]:
    """One character of a bracket expression, however it is spelled."""
    for kind in (".", "="):
        if text.startswith("[" + kind, pos):
            name, pos = _symbol(text, pos, kind)
            if len(name) != 1:
                raise RegexError("Invalid collation character")
            return ord(name), pos
    char = text[pos]
    if char == "\\" and dialect.bracket_escapes and pos + 1 < len(text):
        return _awk_escape(text, pos + 1)
    return ord(char), pos + 1


def _awk_escape(text: str, pos: int) -> tuple[int, int]:
    char = text[pos]
    if "0" <= char <= "7":
        end = pos
        while end < min(pos + 3, len(text)) and text[end] in "01234567":
            end += 1
        return int(text[pos:end], 8) & 0xFF, end
    if char == "x":
        end = pos + 1
        while end < min(pos + 3, len(text)) and text[end] in "0123456789abcdefABCDEF":
            end += 1
        if end > pos + 1:
            return int(text[pos + 1 : end], 16), end
    return _AWK.get(char, ord(char)), pos + 1
