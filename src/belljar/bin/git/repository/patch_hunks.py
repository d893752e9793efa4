"""The hunks of one file's patch: taken apart, split, edited, and some of them applied."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from belljar.abi.dataclass import dataclass
from belljar.bin.git.repository.diffs import Pair, patch, split_lines
from belljar.kernel.process import Process

_HEAD = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@(.*)\n")
_NO_NEWLINE = b"\\ No newline at end of file\n"

Line = tuple[bytes, bytes]
"""A mark (blank, minus or plus), and the line with its newline, if it has one."""


@dataclass(frozen=True, slots=True)
class Hunk:
    start: int
    """The line of the old file that it begins at."""
    new_start: int
    lines: tuple[Line, ...]
    tail: bytes = b""
    """Text after the line numbers in the header."""

    def count(self, but: bytes) -> int:
        return sum(mark != but for mark, _ in self.lines)

    def span(self) -> str:
        """`-1,8 +1,8`, as hunks are named."""
        old, new = self.count(b"+"), self.count(b"-")
        first = f"-{self.start}" + (f",{old}" if old != 1 else "")
        return f"{first} +{self.new_start}" + (f",{new}" if new != 1 else "")

    def text(self) -> bytes:
        out = [b"@@ " + self.span().encode() + b" @@" + self.tail + b"\n"]
        for mark, line in self.lines:
            out += [mark + line] if line.endswith(b"\n") else [mark + line + b"\n", _NO_NEWLINE]
        return b"".join(out)

    def split(self) -> list[Hunk]:
        """A hunk for each row of changes; the lines between two of them are in both."""
        parts: list[list[int]] = []
        changed = [at for at, (mark, _) in enumerate(self.lines) if mark != b" "]
        for at in changed:
            if parts and parts[-1][-1] == at - 1:
                parts[-1].append(at)
            else:
                parts.append([at])
        found = []
        for number in range(len(parts)):
            low = parts[number - 1][-1] + 1 if number else 0
            high = parts[number + 1][0] if number + 1 < len(parts) else len(self.lines)
            before = self.lines[:low]
            start = self.start + sum(mark != b"+" for mark, _ in before)
            new_start = self.new_start + sum(mark != b"-" for mark, _ in before)
            found.append(Hunk(start, new_start, self.lines[low:high], self.tail if not number else b""))
        return found

    def fits(self, before: bytes) -> bool:
        """Whether what it takes away and leaves is there."""
        lines = split_lines(before)
        old = [line for mark, line in self.lines if mark != b"+"]
        at = self._place()
        return lines[at : at + len(old)] == old

    def _place(self) -> int:
        return self.start - 1 if self.count(b"+") else self.start

    def changes(self) -> list[tuple[int, int, list[bytes]]]:
        """Return the replacements: first line, number of lines removed, lines inserted."""
        found: list[tuple[int, int, list[bytes]]] = []
        at = self._place()
        fresh = True
        for mark, line in self.lines:
            if mark == b" ":
                at, fresh = at + 1, True
                continue
            if fresh:
                found.append((at, 0, []))
                fresh = False
            low, gone, added = found[-1]
            if mark == b"-":
                found[-1] = (low, gone + 1, added)
                at += 1
            else:
                added.append(line)
        return found


def read_hunks(process: Process, pair: Pair) -> tuple[bytes, list[Hunk]]:
    """Parse a pair's patch into its header and its hunks."""
    text = patch(process, pair)
    head, hunks = b"", []
    lines = split_lines(text)
    starts = [at for at, line in enumerate(lines) if _HEAD.fullmatch(line)]
    head = b"".join(lines[: starts[0]] if starts else lines)
    for at, end in pairwise([*starts, len(lines)]):
        hunks.append(parse_hunk(lines[at:end]))
    return head, hunks


def parse_hunk(lines: list[bytes]) -> Hunk:
    """A hunk from its text, the line of numbers first."""
    match = _HEAD.fullmatch(lines[0])
    assert match is not None
    found: list[Line] = []
    for line in lines[1:]:
        if line.startswith(b"\\"):
            mark, last = found[-1]
            found[-1] = (mark, last.removesuffix(b"\n"))
        else:
            found.append((line[:1], line[1:]))
    return Hunk(int(match[1]), int(match[3]), tuple(found), match[5])


def parse_edited(hunk: Hunk, text: bytes) -> Hunk | None:
    """A hunk as an editor left it; None if there is nothing of it."""
    found: list[Line] = []
    for line in split_lines(text):
        if line.startswith((b"#", b"@@")):
            continue
        if line.startswith(b"\\") and found:
            found[-1] = (found[-1][0], found[-1][1].removesuffix(b"\n"))
        elif line[:1] in (b" ", b"-", b"+"):
            found.append((line[:1], line[1:]))
        elif line == b"\n":
            found.append((b" ", line))
    return Hunk(hunk.start, hunk.new_start, tuple(found), hunk.tail) if found else None


def apply_hunks(before: bytes, hunks: Iterable[Hunk]) -> bytes:
    """A file with some of the hunks of its patch."""
    lines = split_lines(before)
    out: list[bytes] = []
    done = 0
    for at, gone, added in sorted(
        (change for hunk in hunks for change in hunk.changes()), key=lambda change: change[0]
    ):
        out += lines[done:at] + added
        done = at + gone
    return b"".join(out + lines[done:])
