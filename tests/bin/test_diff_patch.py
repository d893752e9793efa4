"""What diff finds must lead from one file to the other, and patch must take it there."""

from __future__ import annotations

from random import Random

import pytest

from belljar.bin.diff.formats import Style, context, normal, unified
from belljar.bin.diff.sides import Comparison, Ignoring, Side, compared_lines, split_lines
from belljar.bin.patch.apply import Applier
from belljar.bin.patch.parse import Reader
from belljar.libc.line_diff import find_changes


def free(steps: int) -> None:
    """Charges nothing."""


def make_pair(random: Random) -> tuple[bytes, bytes]:
    letters = b"abcdefghij"[: random.choice([2, 4, 10])]
    first = [bytes([random.choice(letters)]) for _ in range(random.randrange(30))]
    second = list(first)
    for _ in range(random.randrange(8)):
        at = random.randrange(len(second) + 1)
        if random.random() < 0.5:
            second.insert(at, bytes([random.choice(letters)]))
        else:
            del second[at : at + 2]
    ends = [random.choice([b"\n", b"\n", b""]) for _ in range(2)]
    return tuple(b"\n".join(lines) + (end if lines else b"") for lines, end in zip((first, second), ends, strict=True))  # type: ignore[return-value]


def compare(first: bytes, second: bytes) -> Comparison:
    lines_a, whole_a = split_lines(first)
    lines_b, whole_b = split_lines(second)
    keys = [compared_lines(lines, whole, Ignoring(), 8) for lines, whole in ((lines_a, whole_a), (lines_b, whole_b))]
    changes = find_changes(keys[0], keys[1], free, 3)
    sides = (Side("a", None, first, "a"), Side("b", None, second, "b"))
    return Comparison(sides, (lines_a, lines_b), (whole_a, whole_b), changes)


@pytest.mark.parametrize("seed", range(60))
def test_changes_lead_from_one_to_the_other(seed: int) -> None:
    first, second = make_pair(Random(seed))
    comparison = compare(first, second)
    built: list[bytes] = []
    at = 0
    for change in comparison.changes:
        built += comparison.lines[0][at : change.low_a]
        built += comparison.lines[1][change.low_b : change.high_b]
        at = change.high_a
    built += comparison.lines[0][at:]
    assert built == comparison.lines[1]


@pytest.mark.parametrize("style", [unified, context, normal])
@pytest.mark.parametrize("seed", range(40))
def test_patch_takes_a_diff_back(style: object, seed: int) -> None:
    first, second = make_pair(Random(seed))
    if first == second:
        return
    text = b"".join(style(compare(first, second), Style()))  # type: ignore[operator]
    (patch,) = Reader(text, free).read()
    lines = first.splitlines(keepends=True)
    outcome = Applier(lines, 0, free).apply(patch.hunks)
    assert not outcome.failed
    assert b"".join(outcome.lines) == second


def test_unrelated_files_cost_little() -> None:
    random = Random(1)
    first = [b"%d" % random.randrange(20) for _ in range(3000)]
    second = [b"%d" % random.randrange(20) for _ in range(3000)]
    steps = 0

    def charge(amount: int) -> None:
        nonlocal steps
        steps += amount

    assert find_changes(first, second, charge)
    assert steps < 2_000_000
