"""One side of a comparison: a file's lines, as they are and with the differences removed that options ignore."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from belljar.abi.dataclass import dataclass, replace
from belljar.abi.paths import fsdecode, fsencode
from belljar.abi.records import Stat
from belljar.libc.line_diff import Change
from belljar.regex import Regex

_SPACES: Final = re.compile(rb"[ \t\n\v\f\r]+")
_BINARY_LOOK: Final = 4096


@dataclass(slots=True)
class Side:
    """One of the two files."""

    name: str
    """As it was given, or built from a directory and a name."""
    stat: Stat | None
    """None if it doesn't exist and counts as empty (-N)."""
    data: bytes = b""
    label: str | None = None

    @property
    def looks_binary(self) -> bool:
        return b"\0" in self.data[:_BINARY_LOOK]


@dataclass(frozen=True, slots=True)
class Ignoring:
    """Differences to ignore."""

    case: bool = False
    tabs: bool = False
    trailing_space: bool = False
    space_change: bool = False
    all_space: bool = False
    blank_lines: bool = False
    matching: Regex | None = None
    carriage_return: bool = False

    @property
    def none(self) -> bool:
        return self == Ignoring()

    def key(self, tabsize: int) -> Callable[[bytes], bytes] | None:
        """Return the function that makes a line's comparison key; None for the line itself."""
        steps: list[Callable[[bytes], bytes]] = []
        if self.all_space:
            steps.append(lambda line: b"".join(line.split()))
        elif self.space_change:
            steps.append(lambda line: _SPACES.sub(b" ", line).rstrip(b" "))
        else:
            if self.trailing_space:
                steps.append(bytes.rstrip)
            if self.tabs:
                steps.append(lambda line: line.expandtabs(tabsize))
        if self.case:
            steps.append(_fold_case)
        if not steps:
            return None
        if len(steps) == 1:
            return steps[0]

        def apply(line: bytes) -> bytes:
            for step in steps:
                line = step(line)
            return line

        return apply


def _fold_case(line: bytes) -> bytes:
    return line.lower() if line.isascii() else fsencode(fsdecode(line).lower())


@dataclass(slots=True)
class Comparison:
    """Two files as lines, and the changes from one to the other."""

    sides: tuple[Side, Side]
    lines: tuple[list[bytes], list[bytes]]
    complete: tuple[bool, bool]
    """Whether the last line ends in a newline."""
    changes: list[Change]


def split_lines(data: bytes) -> tuple[list[bytes], bool]:
    """The lines without newlines, and whether the last had one."""
    if not data:
        return [], True
    lines = data.split(b"\n")
    if lines[-1]:
        return lines, False
    lines.pop()
    return lines, True


def compared_lines(lines: list[bytes], complete: bool, ignoring: Ignoring, tabsize: int) -> Sequence[bytes]:
    """Return the lines' keys: an unfinished last line differs from a finished one unless white space is ignored."""
    key = ignoring.key(tabsize)
    keys = lines if key is None else [key(line) for line in lines]
    loose = ignoring.all_space or ignoring.space_change or ignoring.trailing_space
    if complete or loose:
        return keys
    return [*keys[:-1], keys[-1] + b"\n"]


def mark_trivial(comparison: Comparison, ignoring: Ignoring) -> None:
    """Note which changes consist only of lines that -B or -I say don't count."""
    if not ignoring.blank_lines and ignoring.matching is None:
        return
    spaces = ignoring.all_space or ignoring.space_change or ignoring.trailing_space

    def counts(line: bytes) -> bool:
        if ignoring.blank_lines and not (line.strip() if spaces else line):
            return False
        return not (ignoring.matching is not None and ignoring.matching.test(line))

    first, second = comparison.lines
    comparison.changes = [
        replace(change, trivial=True)
        if not any(map(counts, first[change.low_a : change.high_a]))
        and not any(map(counts, second[change.low_b : change.high_b]))
        else change
        for change in comparison.changes
    ]
