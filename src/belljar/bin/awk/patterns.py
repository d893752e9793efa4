"""awk's regular expressions: belljar.regex with the choice of engine made once for each pattern."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from belljar import regex
from belljar.regex import Match
from belljar.regex.nodes import Cat, Char
from belljar.regex.program import ReProgram

LONG = 1 << 15
"""Subjects longer than this are left to belljar.regex, which then minds patterns of quadratic cost."""


class Pattern:
    """One compiled pattern for str subjects.

    `search(text, pos=0)` gives the leftmost-longest match or None; `test(text)` only whether there is one.
    """

    __slots__ = ("_narrow", "literal", "regex", "search", "test")

    def __init__(self, source: str, ignore_case: bool) -> None:
        self.regex = regex.compile(source, syntax="awk", ignore_case=ignore_case)
        self.literal = None if ignore_case else _literal(self.regex.tree)
        narrow = self.regex.program(wide=False, of_bytes=False)
        self._narrow: Any = narrow.compiled if isinstance(narrow, ReProgram) else None
        self.search: Callable[..., Match | None] = self._searcher(self._narrow)
        self.test: Callable[[str], object] = self._tester()

    def _searcher(self, narrow: Any) -> Callable[..., Match | None]:
        general = self.regex.search
        if narrow is None:
            return general
        quick = narrow.search

        def search(text: str, pos: int = 0) -> Match | None:
            if text.isascii() and len(text) < LONG:
                found: Match | None = quick(text, pos)
                return found
            return general(text, pos)

        return search

    def _tester(self) -> Callable[[str], object]:
        literal = self.literal
        if literal is not None:
            return lambda text: literal in text
        program = self.regex.program(wide=False, of_bytes=False, test=True)
        if not isinstance(program, ReProgram):
            return self.search
        quick = program.compiled.search
        general = self.regex.search

        def test(text: str) -> object:
            if text.isascii() and len(text) < LONG:
                return quick(text)
            return general(text)

        return test

    def finditer(self, text: str) -> Iterator[Match]:
        """All matches as POSIX counts them: none is empty right after another."""
        if self._narrow is None or not text.isascii() or len(text) >= LONG:
            yield from self.regex.finditer(text)
            return
        last = -1
        for match in self._narrow.finditer(text):
            start, end = match.span()
            if start == end == last:
                continue
            last = end
            yield match

    def spans(self, text: str) -> list[tuple[int, int]]:
        """Return where the matches are."""
        if self.literal:
            return _literal_spans(self.literal, text)
        if self._narrow is not None and text.isascii() and len(text) < LONG:
            found = [match.span() for match in self._narrow.finditer(text)]
            last = -1
            result = []
            for span in found:
                if span[0] == span[1] == last:
                    continue
                last = span[1]
                result.append(span)
            return result
        # The engines for these work in bytes: convert once, not for every match.
        data = text.encode("utf-8", "surrogateescape")
        spans = [match.span() for match in self.regex.finditer(data)]
        if len(data) == len(text):
            return spans
        return _in_characters(data, spans)


def _literal(tree: object) -> str | None:
    """The text a pattern without operators stands for."""
    if isinstance(tree, Char):
        return chr(tree.code)
    if isinstance(tree, Cat) and tree.items and all(isinstance(item, Char) for item in tree.items):
        return "".join(chr(item.code) for item in tree.items if isinstance(item, Char))
    return None


def _literal_spans(literal: str, text: str) -> list[tuple[int, int]]:
    spans = []
    width = len(literal)
    at = text.find(literal)
    while at >= 0:
        spans.append((at, at + width))
        at = text.find(literal, at + width)
    return spans


def _in_characters(data: bytes, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Byte offsets as character offsets; the spans are in order."""
    result = []
    byte = char = 0
    for start, end in spans:
        first = char + len(data[byte:start].decode("utf-8", "surrogateescape"))
        char = first + len(data[start:end].decode("utf-8", "surrogateescape"))
        byte = end
        result.append((first, char))
    return result


@lru_cache(maxsize=512)
def compile_pattern(source: str, ignore_case: bool = False) -> Pattern:
    """Raises RegexError with GNU's message."""
    return Pattern(source, ignore_case)
