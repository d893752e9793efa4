"""Two files side by side (diff -y, sdiff)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsdecode, fsencode
from belljar.bin.diff.sides import Comparison
from belljar.libc.quote import is_printable
from belljar.libc.width import character_width

_GUTTER: Final = 3
_PIECES: Final = re.compile(r"[\t\r\b]|[^\t\r\b]+")


@dataclass(frozen=True, slots=True)
class Columns:
    """Layout of the columns."""

    width: int = 130
    tabsize: int = 8
    expand_tabs: bool = False
    left_column: bool = False
    suppress_common: bool = False

    @property
    def offset(self) -> int:
        """Return where the right column starts: at a tab stop near the middle."""
        unit = 1 if self.expand_tabs else self.tabsize
        space = unit + _GUTTER
        middle = (self.width >> 1) + (space >> 1) + (self.width & space & 1)
        return middle - middle % unit

    @property
    def half(self) -> int:
        return max(0, min(self.offset - _GUTTER, self.width - self.offset))

    def move(self, start: int, to: int) -> str:
        """White space from one column to another."""
        text = ""
        if not self.expand_tabs:
            while (tab := start + self.tabsize - start % self.tabsize) <= to:
                text += "\t"
                start = tab
        return text + " " * (to - start)


def side_by_side(comparison: Comparison, columns: Columns) -> Iterator[bytes]:
    first, second = comparison.lines
    at_a = at_b = 0
    for change in comparison.changes:
        yield from _common(comparison, columns, at_a, change.low_a, at_b)
        at_a, at_b = change.low_a, change.low_b
        if change.trivial:
            # Ignored lines stand beside each other as if they were equal.
            pairs = min(change.high_a - change.low_a, change.high_b - change.low_b)
            yield from _common(comparison, columns, at_a, at_a + pairs, at_b)
            at_a, at_b = at_a + pairs, at_b + pairs
        while at_a < change.high_a or at_b < change.high_b:
            left = first[at_a] if at_a < change.high_a else None
            right = second[at_b] if at_b < change.high_b else None
            mark = "|" if left is not None and right is not None else "<" if left is not None else ">"
            if change.trivial:
                mark = "(" if mark == "<" else ")"
            yield _row(comparison, columns, left, right, mark, at_a, at_b)
            at_a += left is not None
            at_b += right is not None
    yield from _common(comparison, columns, at_a, len(first), at_b)


def _common(comparison: Comparison, columns: Columns, low: int, high: int, other: int) -> Iterator[bytes]:
    if columns.suppress_common:
        return
    for index in range(low, high):
        left, right = comparison.lines[0][index], comparison.lines[1][other + index - low]
        if columns.left_column:
            yield _row(comparison, columns, left, None, "(", index, 0)
        else:
            yield _row(comparison, columns, left, right, " ", index, other + index - low)


def _row(
    comparison: Comparison, columns: Columns, left: bytes | None, right: bytes | None, mark: str, x: int, y: int
) -> bytes:
    text, column = "", 0
    ended = [False, False]
    if left is not None:
        ended[0] = comparison.complete[0] or x < len(comparison.lines[0]) - 1
        text, column = fit(columns, fsdecode(left), 0)
    if right is not None:
        ended[1] = comparison.complete[1] or y < len(comparison.lines[1]) - 1
    if mark == "|" and ended[0] != ended[1]:
        mark = "/" if ended[0] else "\\"
    if mark != " ":
        at = (columns.half + (columns.offset if columns.half else columns.width) - 1) // 2
        text += columns.move(column, at) + mark
        column = max(column, at) + 1
    if right:
        start = columns.offset if columns.half else columns.width
        text += columns.move(column, start) + fit(columns, fsdecode(right), start)[0]
    return fsencode(text) + (b"\n" if any(ended) else b"")


def fit(columns: Columns, line: str, start: int) -> tuple[str, int]:
    """As much of a line as a column takes, and how wide that is. `start` is where the column is on the screen."""
    limit = columns.half
    if line.isascii() and line.isprintable():
        return line[:limit], min(len(line), limit)
    out: list[str] = []
    at = shown = 0
    for piece in _PIECES.findall(line):
        if piece == "\t":
            step = columns.tabsize - at % columns.tabsize
            if at == shown:
                if columns.expand_tabs:
                    stop = min(shown + step, limit)
                    out.append(" " * (stop - shown))
                    shown = stop
                elif shown + step < limit:
                    shown += step
                    out.append("\t")
            at += step
        elif piece == "\r":
            out.append("\r" + columns.move(0, start))
            at = shown = 0
        elif piece == "\b":
            if at:
                at -= 1
                if shown > at:
                    shown = at
                    out.append("\b")
        else:
            for char in piece:
                width = character_width(char) if is_printable(char) else 0
                at += width
                if at <= limit:
                    shown = at
                    out.append(char)
    return "".join(out), shown
