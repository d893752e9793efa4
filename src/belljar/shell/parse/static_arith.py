"""Arithmetic found in a script: parsed ahead where its text is known but for whole operands."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from msgspec.structs import replace

from belljar.shell.nodes import (
    AllElements,
    AnsiQuoted,
    Arith,
    ArithNode,
    ArithSub,
    BackquoteSub,
    CommandSub,
    Escaped,
    Index,
    Literal,
    Param,
    SingleQuoted,
    Subscript,
    Word,
    WordPart,
)
from belljar.shell.parse.arith import BRACKET, SUBST, ArithParser
from belljar.shell.parse.errors import ArithSyntaxError

#: An expansion that touches a name, a number, a subscript or another expansion isn't an operand of its own.
TOUCHING = re.compile(rf"[A-Za-z0-9_#@\]{SUBST}]{SUBST}|{SUBST}[A-Za-z0-9_#@\[{SUBST}]")
#: Shell quoting or expansion in a literal subscript, which only the runtime can resolve.
ACTIVE = re.compile(r"[$`\"'\\]")


def make_arith(parts: tuple[WordPart, ...]) -> Arith:
    """The expression whose text is `parts`."""
    if not parts:
        return _literal_arith("")
    if len(parts) == 1 and isinstance(parts[0], Literal):
        return _literal_arith(parts[0].text)
    text: list[str] = []
    substitutions: list[WordPart] = []
    for part in parts:
        if isinstance(part, Literal):
            if SUBST in part.text:
                return Arith(Word(parts), None)
            text.append(part.text)
        elif isinstance(part, Param | CommandSub | BackquoteSub | ArithSub):
            substitutions.append(part)
            text.append(SUBST)
        else:
            return Arith(Word(parts), None)
    return Arith(Word(parts), _parse("".join(text), substitutions))


@lru_cache(maxsize=4096)
def _literal_arith(text: str) -> Arith:
    return Arith(Word((Literal(text),) if text else ()), None if SUBST in text else _parse(text, ()))


def _parse(text: str, substitutions: Sequence[WordPart]) -> ArithNode | None:
    if substitutions and TOUCHING.search(text):
        return None

    def subscript(text: str, start: int, used: int) -> tuple[Index, int]:
        end = closing_bracket(text, start)
        inner = text[start + 1 : end]
        if end < 0 or ACTIVE.search(inner):
            raise ArithSyntaxError(text, "left to the runtime", inner)
        pieces = inner.split(SUBST)
        parts: list[WordPart] = []
        for place, piece in enumerate(pieces):
            if place:
                parts.append(substitutions[used + place - 1])
            if piece:
                parts.append(Literal(piece))
        index = make_subscript(tuple(parts))
        return (replace(index, arith=replace(index.arith, nested=True)) if isinstance(index, Subscript) else index), end

    try:
        return ArithParser(text, subscript, substitutions).parse()
    except ArithSyntaxError:
        return None


def closing_bracket(text: str, start: int) -> int:
    """The position of the `]` that matches the `[` at `start`; -1 if there is none."""
    depth = 0
    for match in BRACKET.finditer(text, start):
        depth += 1 if match.group() == "[" else -1
        if not depth:
            return match.start()
    return -1


def make_subscript(parts: tuple[WordPart, ...]) -> Index:
    """[parts] of an array element."""
    if len(parts) == 1 and isinstance(parts[0], Literal) and parts[0].text in ("@", "*"):
        return AllElements(parts[0].text == "*")
    return Subscript(Word(parts), make_arith(tuple(_as_double_quoted(part) for part in parts)))


def _as_double_quoted(part: WordPart) -> WordPart:
    """A part of a subscript as arithmetic has it: single quotes and most backslashes are plain (and wrong) there."""
    if isinstance(part, SingleQuoted | AnsiQuoted):
        return Literal(f"'{part.text}'")
    if isinstance(part, Escaped) and part.text not in '$`"\\':
        return Literal(f"\\{part.text}")
    return part
