"""The shortest way from one list of lines to another, as a list of changes.

Myers' search from both ends in linear space, over lines numbered by their contents. Lines that the other side
doesn't have are left out of the search, and where it gets expensive the lines that occur once on both sides
(in an order common to both) are taken as fixed points, so that unrelated files cost little more than similar ones.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence

from belljar.abi.dataclass import dataclass

Charge = Callable[[int], None]

_EXPENSIVE = 600
"""Edits searched for from each end before a cheaper split is taken."""


@dataclass(frozen=True, slots=True)
class Change:
    """Lines [low_a, high_a) of the first are replaced by lines [low_b, high_b) of the second."""

    low_a: int
    high_a: int
    low_b: int
    high_b: int
    trivial: bool = False
    """Whether options say that it doesn't count (blank lines, lines that match -I)."""


def find_changes(first: Sequence[bytes], second: Sequence[bytes], charge: Charge, horizon: int = 0) -> list[Change]:
    """The changes in order, none touching the next. `charge` pays for the work before it is done.

    Lines common to both ends are left alone but for `horizon` of them.
    """
    charge((len(first) + len(second)) // 8 + 1)
    start = 0
    shorter = min(len(first), len(second))
    while start < shorter and first[start] == second[start]:
        start += 1
    end = 0
    while end < shorter - start and first[-1 - end] == second[-1 - end]:
        end += 1
    start, end = max(0, start - horizon), max(0, end - horizon)
    numbers: dict[bytes, int] = {}
    a = [numbers.setdefault(line, len(numbers)) for line in first[start : len(first) - end]]
    b = [numbers.setdefault(line, len(numbers)) for line in second[start : len(second) - end]]
    changed_a, changed_b = bytearray(len(a)), bytearray(len(b))
    kept_a = _leave_out_strangers(a, set(b), changed_a)
    kept_b = _leave_out_strangers(b, set(a), changed_b)
    _Search([a[i] for i in kept_a], [b[i] for i in kept_b], kept_a, kept_b, changed_a, changed_b, charge).run()
    _slide(a, changed_a, changed_b)
    _slide(b, changed_b, changed_a)
    return _collect(changed_a, changed_b, start)


def _leave_out_strangers(lines: list[int], known: set[int], changed: bytearray) -> list[int]:
    kept: list[int] = []
    for index, line in enumerate(lines):
        if line in known:
            kept.append(index)
        else:
            changed[index] = 1
    return kept


@dataclass(slots=True)
class _Search:
    """Marks in `changed_a` and `changed_b` what is not common to a and b."""

    a: list[int]
    b: list[int]
    where_a: list[int]
    where_b: list[int]
    changed_a: bytearray
    changed_b: bytearray
    charge: Charge

    def run(self) -> None:
        """Boxes are searched from a list of their own: a split may be very uneven, and so very deep."""
        a, b = self.a, self.b
        size = len(a) + len(b) + 3
        forward, backward = [0] * size, [0] * size
        boxes = [(0, len(a), 0, len(b))]
        while boxes:
            low_a, high_a, low_b, high_b = boxes.pop()
            while low_a < high_a and low_b < high_b and a[low_a] == b[low_b]:
                low_a += 1
                low_b += 1
            while low_a < high_a and low_b < high_b and a[high_a - 1] == b[high_b - 1]:
                high_a -= 1
                high_b -= 1
            if low_a == high_a:
                for index in self.where_b[low_b:high_b]:
                    self.changed_b[index] = 1
            elif low_b == high_b:
                for index in self.where_a[low_a:high_a]:
                    self.changed_a[index] = 1
            else:
                points = self._split(low_a, high_a, low_b, high_b, forward, backward)
                for x, y in points:
                    boxes.append((low_a, x, low_b, y))
                    low_a, low_b = x, y
                boxes.append((low_a, high_a, low_b, high_b))

    def _split(
        self, low_a: int, high_a: int, low_b: int, high_b: int, forward: list[int], backward: list[int]
    ) -> list[tuple[int, int]]:
        """Where a shortest path through the box passes. Diagonal d is x - y; arrays are offset for negative ones."""
        a, b = self.a, self.b
        shift = len(b) + 1
        lowest, highest = low_a - high_b, high_a - low_b
        first, last = low_a - low_b, high_a - high_b
        f_min = f_max = first
        b_min = b_max = last
        odd = (first - last) & 1
        forward[first + shift] = low_a
        backward[last + shift] = high_a
        for cost in range(1, _EXPENSIVE + 1):
            self.charge(cost // 4 + 1)
            # From the start: extend every reachable diagonal by one edit.
            if f_min > lowest:
                f_min -= 1
                forward[f_min - 1 + shift] = -1
            else:
                f_min += 1
            if f_max < highest:
                f_max += 1
                forward[f_max + 1 + shift] = -1
            else:
                f_max -= 1
            for d in range(f_max, f_min - 1, -2):
                below, above = forward[d - 1 + shift], forward[d + 1 + shift]
                x = above if below < above else below + 1
                y = x - d
                while x < high_a and y < high_b and a[x] == b[y]:
                    x += 1
                    y += 1
                forward[d + shift] = x
                if odd and b_min <= d <= b_max and backward[d + shift] <= x:
                    return [(x, y)]
            # The same from the end.
            if b_min > lowest:
                b_min -= 1
                backward[b_min - 1 + shift] = 1 << 60
            else:
                b_min += 1
            if b_max < highest:
                b_max += 1
                backward[b_max + 1 + shift] = 1 << 60
            else:
                b_max -= 1
            for d in range(b_max, b_min - 1, -2):
                below, above = backward[d - 1 + shift], backward[d + 1 + shift]
                x = below if below < above else above - 1
                y = x - d
                while x > low_a and y > low_b and a[x - 1] == b[y - 1]:
                    x -= 1
                    y -= 1
                backward[d + shift] = x
                if not odd and f_min <= d <= f_max and x <= forward[d + shift]:
                    return [(x, y)]
        points = self._fixed_points(low_a, high_a, low_b, high_b)
        if points:
            return points
        best = max(range(f_max, f_min - 1, -2), key=lambda d: 2 * min(forward[d + shift], high_b + d) - d)
        x = min(forward[best + shift], high_a, high_b + best)
        return [(x, x - best)]

    def _fixed_points(self, low_a: int, high_a: int, low_b: int, high_b: int) -> list[tuple[int, int]]:
        """Lines that both sides of the box have once: a longest run of them in the same order."""
        self.charge((high_a - low_a + high_b - low_b) // 8)
        count_a, count_b = Counter(self.a[low_a:high_a]), Counter(self.b[low_b:high_b])
        position = {line: y for y, line in enumerate(self.b[low_b:high_b], low_b) if count_b[line] == 1}
        pairs = [
            (x, position[line])
            for x, line in enumerate(self.a[low_a:high_a], low_a)
            if count_a[line] == 1 and line in position
        ]
        tails: list[int] = []
        ends: list[int] = []
        before: list[int] = []
        for index, (_, y) in enumerate(pairs):
            length = bisect_left(tails, y)
            before.append(ends[length - 1] if length else -1)
            tails[length : length + 1] = [y]
            ends[length : length + 1] = [index]
        found: list[tuple[int, int]] = []
        index = ends[-1] if ends else -1
        while index >= 0:
            x, y = pairs[index]
            found += [(x + 1, y + 1), (x, y)]
            index = before[index]
        return found[::-1]


def _slide(lines: list[int], changed: bytearray, other: bytearray) -> None:
    """Move each run of changed lines as far down as equal lines let it, joining runs that meet.

    A place where the other side has a change too is preferred, so that both make one. `j` is where the other side is
    as many unchanged lines down as `start`, behind the changed ones there.
    """
    end = len(lines)
    i = 0
    j = _run_end(other, 0)
    while (start := changed.find(1, i)) >= 0:
        for _ in range(start - i):
            j = _run_end(other, j + 1)
        i = _run_end(changed, start)
        while True:
            length = i - start
            while start and lines[start - 1] == lines[i - 1]:
                start, i, j = _step_up(changed, other, start, i, j)
            beside = i if j and other[j - 1] else end
            while i < end and lines[start] == lines[i]:
                changed[start] = 0
                changed[i] = 1
                start += 1
                i = _run_end(changed, i)
                j = _run_end(other, j + 1)
                if other[j - 1]:
                    beside = i
            if length == i - start:
                break
        while beside < i:
            start, i, j = _step_up(changed, other, start, i, j)


def _step_up(changed: bytearray, other: bytearray, start: int, i: int, j: int) -> tuple[int, int, int]:
    start -= 1
    i -= 1
    changed[start] = 1
    changed[i] = 0
    start = changed.rfind(0, 0, start) + 1
    return start, i, other.rfind(0, 0, j)


def _collect(changed_a: bytearray, changed_b: bytearray, offset: int) -> list[Change]:
    changes: list[Change] = []
    x = y = 0
    while True:
        next_a, next_b = changed_a.find(1, x), changed_b.find(1, y)
        if next_a < 0 and next_b < 0:
            return changes
        steps = min(next_a - x if next_a >= 0 else 1 << 62, next_b - y if next_b >= 0 else 1 << 62)
        x += steps
        y += steps
        end_a = _run_end(changed_a, x)
        end_b = _run_end(changed_b, y)
        changes.append(Change(x + offset, end_a + offset, y + offset, end_b + offset))
        x, y = end_a, end_b


def _run_end(flags: bytearray, start: int) -> int:
    if start >= len(flags) or not flags[start]:
        return start
    end = flags.find(0, start)
    return len(flags) if end < 0 else end
