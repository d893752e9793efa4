"""Patterns of ed and ex: the last one used, searching by it, and what s does with it."""

from __future__ import annotations

import re

from belljar.abi.dataclass import dataclass
from belljar.bin.ed.buffer import Buffer, EditError
from belljar.regex import Regex, RegexError
from belljar.regex import compile as compile_regex


def read_delimited(text: str, at: int, delimiter: str) -> tuple[str, int, bool]:
    """Return the text up to a delimiter, where that ends, and whether the delimiter was there."""
    out: list[str] = []
    while at < len(text):
        char = text[at]
        if char == delimiter:
            return "".join(out), at + 1, True
        if char == "\\" and at + 1 < len(text):
            if text[at + 1] == delimiter:
                out.append(delimiter)
            else:
                out.append(text[at : at + 2])
            at += 2
            continue
        if char == "[" and (closed := re.compile(r"\[\^?\]?(?:\[[:.=].*?[:.=]\]|[^\]])*\]").match(text, at)):
            out.append(closed[0])
            at = closed.end()
            continue
        out.append(char)
        at += 1
    return "".join(out), at, False


class Patterns:
    """Compiles patterns and remembers the last one."""

    def __init__(self, syntax: str, ignore_case: bool = False) -> None:
        self._syntax = syntax
        self.ignore_case = ignore_case
        self._last: Regex | None = None

    def get(self, text: str, *, ignore_case: bool = False) -> Regex:
        """The pattern a text is; an empty one is the last."""
        if not text:
            if self._last is None:
                raise EditError("No previous pattern")
            return self._last
        try:
            self._last = compile_regex(text, syntax=self._syntax, ignore_case=ignore_case or self.ignore_case)
        except RegexError as error:
            raise EditError(str(error)) from None
        return self._last

    def find(self, buffer: Buffer, text: str, *, backwards: bool, start: int, step: int) -> int:
        """The nearest line that matches, beginning beside `start` and going round."""
        pattern = self.get(text)
        size = buffer.last
        for distance in range(1, size + 1):
            number = (start - distance * step - 1) % size + 1 if backwards else (start + distance * step - 1) % size + 1
            if pattern.search(buffer.text(number)) is not None:
                return number
        raise EditError("No match")


@dataclass(frozen=True, slots=True)
class Substitution:
    """An s command: pattern, replacement, which matches of a line it means, and what to print."""

    pattern: Regex
    replacement: str
    every: bool = False
    number: int = 1
    shows: str = ""
    """Of p, l and n those that follow the last changed line."""

    def apply(self, text: bytes) -> bytes | None:
        """The changed line; None if it has no such match."""
        out: list[bytes] = []
        position = seen = done = 0
        while position <= len(text):
            match = self.pattern.search(text, position)
            if match is None:
                break
            start, end = match.start(), match.end()
            seen += 1
            out.append(text[position:start])
            if seen >= self.number and (self.every or not done):
                done += 1
                spans = [match.span(index) for index in range(self.pattern.groups + 1)]
                groups = [text[a:b] if a >= 0 else b"" for a, b in spans]
                out.append(self._expanded(groups))
            else:
                out.append(text[start:end])
            if end == start:
                out.append(text[end : end + 1])
                end += 1
            position = end
            if done and not self.every:
                break
        return b"".join(out) + text[position:] if done else None

    def _expanded(self, groups: list[bytes]) -> bytes:
        out: list[bytes] = []
        for piece in re.findall(r"\\(?:.|\n)|&|[^\\&]+|\\", self.replacement):
            if piece == "&":
                out.append(groups[0])
            elif re.fullmatch(r"\\\d", piece):
                number = int(piece[1])
                out.append(groups[number] if number < len(groups) else b"")
            else:
                literal = piece[1:] if piece.startswith("\\") and len(piece) == 2 else piece
                out.append(literal.encode("utf-8", "surrogateescape"))
        return b"".join(out)
