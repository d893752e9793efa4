"""Brace expansion, read from the parts of a word: {a,b} and {1..9..2}."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TypeAlias

from msgspec.structs import replace

from belljar.shell.nodes import BraceList, BraceRange, BraceSequence, Literal, Param, Tilde, WordPart

MAX_NESTING = 50
MAX_LISTED = 1000

MARK = re.compile(r"[{},]")
RANGE = re.compile(r"(?:(-?[0-9]+|\+[0-9]+)\.\.([-+]?[0-9]+)|([A-Za-z])\.\.([A-Za-z]))(?:\.\.([-+]?[0-9]+))?\Z")
TILDE = re.compile(r"~([^/:]*)")
NAME_TAIL = re.compile(r"[A-Za-z0-9_]+")
INT64 = 0x7FFFFFFFFFFFFFFF

Item: TypeAlias = "WordPart | BraceList | BraceRange"
#: A part, or one of the characters `{`, `,` and `}` as a str.
Piece: TypeAlias = "WordPart | str"


def tokens_of(parts: tuple[WordPart, ...]) -> list[Piece]:
    tokens: list[Piece] = []
    for part in parts:
        if not isinstance(part, Literal):
            tokens.append(part)
            continue
        start = 0
        for match in MARK.finditer(part.text):
            if match.start() > start:
                tokens.append(Literal(part.text[start : match.start()]))
            tokens.append(match.group())
            start = match.end()
        if start < len(part.text):
            tokens.append(Literal(part.text[start:]))
    return tokens


def match_braces(tokens: list[Piece]) -> dict[int, int]:
    """The closing brace of each opening one that has one."""
    closing: dict[int, int] = {}
    stack: list[int] = []
    for place, piece in enumerate(tokens):
        if piece == "{":
            stack.append(place)
        elif piece == "}" and stack:
            closing[stack.pop()] = place
    return closing


def parse_range(text: str) -> BraceRange | None:
    match = RANGE.match(text)
    if match is None:
        return None
    first, last, letter, last_letter, increment = match.groups()
    step = int(increment) if increment and len(increment) < 21 else 0
    if increment and not -INT64 <= step <= INT64:
        return None
    if letter:
        return BraceRange(ord(letter), ord(last_letter), step, letters=True)
    if len(first) > 20 or len(last) > 20 or not (-INT64 <= int(first) <= INT64 and -INT64 <= int(last) <= INT64):
        return None
    padded = any((len(end) > 1 and end[0] == "0") or (len(end) > 2 and end[:2] == "-0") for end in (first, last))
    return BraceRange(int(first), int(last), step, max(len(first), len(last)) if padded else 0)


class _BraceReader:
    def __init__(self, tokens: list[Piece]) -> None:
        self.tokens = tokens
        self.closing = match_braces(tokens)

    def sequence(self, start: int, end: int, depth: int, *, begins: bool) -> BraceSequence:
        """The tokens start:end; `begins`: at the beginning of a resulting word, where a tilde is one."""
        items: list[Item] = []
        place = start
        first = self.tokens[start] if begins and start < end else None
        if isinstance(first, Literal) and (match := TILDE.match(first.text)):
            if match.end() == len(first.text) and start + 1 < end:
                pass  # quoted or expanded text belongs to the prefix, which makes it none
            else:
                items.append(Tilde(match.group(1)))
                if match.end() < len(first.text):
                    items.append(Literal(first.text[match.end() :]))
                place += 1
        while place < end:
            piece = self.tokens[place]
            if piece == "{" and depth < MAX_NESTING:
                close = self.closing.get(place, end)
                group = self.group(place, close, depth, begins=begins and not items) if close < end else None
                if group is not None:
                    items.append(group)
                    place = close + 1
                    continue
            items.append(Literal(piece) if isinstance(piece, str) else piece)
            place += 1
        return BraceSequence(fold(items))

    def group(self, start: int, close: int, depth: int, *, begins: bool) -> BraceList | BraceRange | None:
        """Parse the text between two matching braces; None if it is no expansion."""
        commas = []
        place = start + 1
        while place < close:
            if self.tokens[place] == ",":
                commas.append(place)
            place = self.closing.get(place, place) + 1
        if commas:
            bounds = [start, *commas, close]
            return BraceList(
                tuple(self.sequence(left + 1, right, depth + 1, begins=begins) for left, right in pairwise(bounds))
            )
        inner = self.tokens[start + 1 : close]
        return parse_range(inner[0].text) if len(inner) == 1 and isinstance(inner[0], Literal) else None


def fold(items: list[Item]) -> tuple[Item, ...]:
    """Join adjacent literals, as bash expands braces on text: `$x{a,b}` is `$xa $xb`."""
    out: list[Item] = []
    for item in _joined(items):
        last = out[-1] if out else None
        if isinstance(item, Literal) and isinstance(last, BraceList) and NAME_TAIL.match(item.text):
            _extend_names(out, last, item)
        elif isinstance(item, BraceList | BraceRange) and isinstance(last, Param) and _open_ended(last):
            if isinstance(item, BraceRange):
                listed = _listed(item)
                if listed is None:
                    out.append(item)
                    continue
                item = listed
            out[-1] = BraceList(tuple(BraceSequence(_join(last, inner.items)) for inner in item.alternatives))
        elif isinstance(item, BraceList | BraceRange) and isinstance(last, BraceList) and _any_open(last):
            out[-1] = BraceList(tuple(BraceSequence(fold([*inner.items, item])) for inner in last.alternatives))
        else:
            out.append(item)
    return tuple(out)


def _listed(item: BraceRange) -> BraceList | None:
    """A short range as a list; a long one after a bare `$name` is left alone."""
    step = abs(item.step) or 1
    numbers = (
        range(item.first, item.last + 1, step) if item.first <= item.last else range(item.first, item.last - 1, -step)
    )
    if not 2 <= len(numbers) <= MAX_LISTED:
        return None
    texts = [chr(number) if item.letters else str(number).zfill(item.width) for number in numbers]
    return BraceList(tuple(BraceSequence((Literal(text),)) for text in texts))


def _joined(items: list[Item]) -> Iterator[Item]:
    run: list[str] = []
    for item in items:
        if isinstance(item, Literal):
            run.append(item.text)
            continue
        if run:
            yield Literal("".join(run))
            run.clear()
        yield item
    if run:
        yield Literal("".join(run))


def _open_ended(part: Item | None) -> bool:
    """Whether text right after the part could still belong to its name."""
    return isinstance(part, Param) and not part.braced and (part.name[0].isalpha() or part.name[0] == "_")


def _any_open(braces: BraceList) -> bool:
    return any(inner.items and _open_ended(inner.items[-1]) for inner in braces.alternatives)


def _join(param: Param, items: tuple[Item, ...]) -> tuple[Item, ...]:
    """`$name` followed by items: a leading literal's name characters become part of the name."""
    if not items or not isinstance(items[0], Literal):
        return (param, *items)
    match = NAME_TAIL.match(items[0].text)
    if match is None:
        return (param, *items)
    rest = items[0].text[match.end() :]
    longer = replace(param, name=param.name + match.group())
    return (longer, *((Literal(rest),) if rest else ()), *items[1:])


def _extend_names(out: list[Item], braces: BraceList, literal: Literal) -> None:
    """`{$x,b}a`: give the literal after the braces to each alternative if one of them ends in a bare `$name`."""
    ends = [inner.items[-1] if inner.items else None for inner in braces.alternatives]
    if not any(_open_ended(end) or isinstance(end, Tilde) for end in ends):
        out.append(literal)
        return
    alternatives = []
    for inner, end in zip(braces.alternatives, ends, strict=True):
        if isinstance(end, Param) and _open_ended(end):
            alternatives.append(BraceSequence((*inner.items[:-1], *_join(end, (literal,)))))
        elif isinstance(end, Tilde):
            alternatives.append(BraceSequence((*inner.items[:-1], Literal(f"~{end.user}{literal.text}"))))
        else:
            alternatives.append(BraceSequence(fold([*inner.items, literal])))
    out[-1] = BraceList(tuple(alternatives))


def parse_braces(parts: tuple[WordPart, ...]) -> BraceSequence | None:
    """The brace expansion of a word made of `parts`, or None if it has none."""
    tokens = tokens_of(parts)
    reader = _BraceReader(tokens)
    if not reader.closing:
        return None
    sequence = reader.sequence(0, len(tokens), 0, begins=True)
    return sequence if any(isinstance(item, BraceList | BraceRange) for item in sequence.items) else None
