"""Finds where a hunk belongs in a file that may have changed, and puts it there."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from belljar.abi.dataclass import dataclass, field
from belljar.bin.patch.parse import Hunk

_BLANKS: Final = re.compile(rb"[ \t]+")


@dataclass(frozen=True, slots=True)
class Placed:
    """A hunk's place: its line (from 1), its offset from the expected line, and its fuzz."""

    hunk: Hunk
    line: int
    offset: int
    fuzz: int
    remark: str = ""
    """How it was found, if not by its line number and context."""


@dataclass(slots=True)
class Outcome:
    lines: list[bytes]
    done: list[Placed] = field(default_factory=list)
    failed: list[tuple[Hunk, int]] = field(default_factory=list)
    """Failed hunks, each with the line where it was expected."""


@dataclass(slots=True)
class Applier:
    """Applies hunks in order. `lines` have their newlines."""

    lines: list[bytes]
    most_fuzz: int
    charge: Callable[[int], None]
    loose: bool = False
    """Whether runs of blanks are alike (-l)."""
    lenient: bool = True
    """Whether a hunk that fits in one place only goes there, be its context short or blanks at ends of lines lost."""

    def apply(self, hunks: list[Hunk]) -> Outcome:
        keys = self._keys(self.lines)
        outcome = Outcome([])
        taken = 0
        shift = 0
        new_shift = 0
        for hunk in hunks:
            found = None if hunk.recounted else self.place(hunk, keys, taken, shift)
            remark = ""
            if found is None and self.lenient:
                found, remark = self._place_alone(hunk, taken, shift)
            if found is None:
                wanted = hunk.old_start + (1 if hunk.old_count == 0 else 0) + new_shift
                outcome.failed.append((hunk, max(wanted, 1) if hunk.old_count == 0 else wanted))
                continue
            start, fuzz = found
            body = hunk.lines
            front, back = self.trims(hunk, fuzz)
            start_trimmed = start + front
            outcome.lines += self.lines[taken:start_trimmed]
            at = start_trimmed
            for mark, line in body[front : len(body) - back]:
                if mark == b" ":
                    outcome.lines.append(self.lines[at])
                    at += 1
                elif mark == b"-":
                    at += 1
                else:
                    self._end_line(outcome.lines)
                    outcome.lines.append(line)
            taken = at
            expected = hunk.old_start - (1 if hunk.old_count else 0)
            shift = start - expected
            outcome.done.append(Placed(hunk, start + 1 + new_shift, shift, fuzz, remark))
            new_shift += hunk.new_count - hunk.old_count
        rest = self.lines[taken:]
        if rest:
            self._end_line(outcome.lines)
        outcome.lines += rest
        return outcome

    def _end_line(self, lines: list[bytes]) -> None:
        if lines and not lines[-1].endswith(b"\n"):
            lines[-1] += b"\n"

    def _keys(self, lines: list[bytes]) -> list[bytes]:
        if not self.loose:
            return lines
        return [_BLANKS.sub(b" ", line.rstrip(b"\n")).rstrip(b" ") for line in lines]

    def trims(self, hunk: Hunk, fuzz: int) -> tuple[int, int]:
        """Return how many context lines are let go at the front and at the back."""
        prefix, suffix = context(hunk)
        most = max(prefix, suffix)
        return max(0, fuzz + prefix - most), max(0, fuzz + suffix - most)

    def place(self, hunk: Hunk, keys: list[bytes], taken: int, shift: int) -> tuple[int, int] | None:
        """The index of its first line and the fuzz; None if it fits nowhere."""
        prefix, suffix = context(hunk)
        most = max(prefix, suffix)
        old = self._keys(hunk.old)
        expected = hunk.old_start - (1 if hunk.old_count else 0) + shift
        for fuzz in range(min(self.most_fuzz, most) + 1):
            front, back = max(0, fuzz + prefix - most), max(0, fuzz + suffix - most)
            wanted = old[front : len(old) - back]
            at_start = fuzz + prefix - most < 0 and hunk.old_start <= 1
            at_end = fuzz + suffix - most < 0
            found = self._search(keys, wanted, expected + front, taken, at_start, at_end)
            if found is not None:
                return found - front, fuzz
        return None

    def _place_alone(self, hunk: Hunk, taken: int, shift: int) -> tuple[tuple[int, int] | None, str]:
        """Where a hunk's lines are, if they are at its line number or in just one place; and how it was found."""
        old, lines = hunk.old, self.lines
        stated = hunk.old_start - 1 + shift
        fits = hunk.recounted and old and stated >= taken and lines[stated : stated + len(old)] == old
        if fits and not self._is_applied(hunk, lines, _exact):
            return (stated, 0), hunk.recounted
        if not old:
            if hunk.recounted and not lines:
                return (0, 0), hunk.recounted
            return None, ""
        for alike, how in ((_exact, ""), (_without_blanks, "blanks at the ends of lines differ")):
            wanted, keys = [alike(line) for line in old], [alike(line) for line in lines]
            self.charge(len(keys) // 8 + 1)
            places = [
                at for at in range(taken, len(keys) - len(wanted) + 1)
                if keys[at] == wanted[0] and self._fits(keys, wanted, at)
            ]  # fmt: skip
            if len(places) == 1 and not self._is_applied(hunk, keys, alike):
                reasons = [text for text in (hunk.recounted, how) if text] or ["its context is short"]
                return (places[0], 0), " and ".join(reasons)
            if places:
                break
        return None, ""

    def _is_applied(self, hunk: Hunk, keys: list[bytes], alike: Callable[[bytes], bytes]) -> bool:
        """Whether the file has what the hunk would make, so that it must not be made again."""
        new = [alike(line) for line in hunk.new]
        if len(new) < len(hunk.old):
            return False
        return any(keys[at : at + len(new)] == new for at in range(len(keys) - len(new) + 1) if keys[at] == new[0])

    def _search(
        self, keys: list[bytes], wanted: list[bytes], expected: int, taken: int, at_start: bool, at_end: bool
    ) -> int | None:
        last = len(keys) - len(wanted)
        if last < taken:
            return None
        if not wanted:
            return expected if taken <= expected <= len(keys) else None
        if at_start:
            return 0 if taken == 0 and self._fits(keys, wanted, 0) else None
        if at_end:
            return last if self._fits(keys, wanted, last) else None
        expected = min(max(expected, taken), last) if expected > last or expected < taken else expected
        if self._fits(keys, wanted, expected):
            return expected
        for offset in range(1, max(last - expected, expected - taken) + 1):
            if offset % 64 == 0:
                self.charge(16)
            for at in (expected + offset, expected - offset):
                if taken <= at <= last and keys[at] == wanted[0] and self._fits(keys, wanted, at):
                    return at
        return None

    def _fits(self, keys: list[bytes], wanted: list[bytes], at: int) -> bool:
        part = keys[at : at + len(wanted)]
        if part == wanted:
            return True
        # A missing newline at the very end is forgiven.
        return (
            len(part) == len(wanted)
            and at + len(wanted) == len(keys)
            and part[:-1] == wanted[:-1]
            and part[-1].rstrip(b"\n") == wanted[-1].rstrip(b"\n")
        )


def _exact(line: bytes) -> bytes:
    return line


def _without_blanks(line: bytes) -> bytes:
    return line.rstrip(b" \t\n")


def context(hunk: Hunk) -> tuple[int, int]:
    """Return how many unchanged lines it begins and ends with."""
    marks = [mark for mark, _ in hunk.lines]
    prefix = next((i for i, mark in enumerate(marks) if mark != b" "), len(marks))
    suffix = next((i for i, mark in enumerate(reversed(marks)) if mark != b" "), len(marks))
    return prefix, suffix
