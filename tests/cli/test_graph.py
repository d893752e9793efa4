"""The drawing of `belljar snapshot ls`."""

from __future__ import annotations

import random

import pytest

from belljar.cli.graph import children_first, draw


def drawn(newest_first: str, parents: str) -> list[str]:
    """`parents`: child and parent, in pairs."""
    of = {pair[0]: pair[1] for pair in parents.split()}
    order = children_first(newest_first, of)
    return [line if who is None else f"{line} {who}" for line, who in draw(order, of)]


@pytest.mark.parametrize(
    ("newest_first", "parents", "lines"),
    [
        ("", "", []),
        ("a", "", ["* a"]),
        ("cba", "cb ba", ["* c", "* b", "* a"]),
        ("cba", "ca ba", ["* c", "| * b", "|/", "* a"]),
        ("dcba", "db ca ba", ["* d", "| * c", "* | b", "|/", "* a"]),
        ("dcba", "da ca ba", ["* d", "| * c", "| | * b", "| |/", "|/", "* a"]),
        ("edcba", "ea db ca ba", ["* e", "| * d", "| | * c", "| * | b", "| |/", "|/", "* a"]),
        ("fedab", "fa eb da", ["* f", "| * e", "| | * d", "|_|/", "* | a", " /", "* b"]),
        ("ba", "bx", ["* b", "", "* a"]),  # the parent was removed
        ("dcba", "db ca", ["* d", "| * c", "* | b", " /", "* a"]),
        ("abc", "cb ba", ["* c", "* b", "* a"]),  # the clock went backwards
    ],
)
def test_drawing(newest_first: str, parents: str, lines: list[str]) -> None:
    assert drawn(newest_first, parents) == lines


def test_every_one_is_drawn_once_below_its_children() -> None:
    rng = random.Random(1)
    for _ in range(200):
        size = rng.randrange(1, 30)
        parents = {n: rng.randrange(n) for n in range(1, size) if rng.random() < 0.9}
        newest_first = [*range(size)]
        rng.shuffle(newest_first)
        order = children_first(newest_first, parents)
        assert sorted(order) == [*range(size)]
        assert all(order.index(child) < order.index(parent) for child, parent in parents.items())
        assert [who for _, who in draw(order, parents) if who is not None] == order
        assert all(line.count("*") == (who is not None) for line, who in draw(order, parents))
