"""Draws who comes from whom, as `git log --graph` does: the newest first, and each with one parent at most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from heapq import heappop, heappush
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T")


def children_first(newest_first: Sequence[T], parents: Mapping[T, T]) -> list[T]:
    """The same in an order in which nobody comes before their children, whatever the clocks said."""
    places = {each: place for place, each in enumerate(newest_first)}
    children = Counter(parents.get(each) for each in newest_first)
    ready = [place for each, place in places.items() if not children[each]]
    order: list[T] = []
    while ready:
        each = newest_first[heappop(ready)]
        order.append(each)
        parent = parents.get(each)
        children[parent] -= 1
        if parent in places and not children[parent]:
            heappush(ready, places[parent])
    return order


def draw(order: Sequence[T], parents: Mapping[T, T]) -> Iterator[tuple[str, T | None]]:
    """Lines: the drawing, and whom it is about (None: only branches that come together, or nothing at all)."""
    there = set(order)
    lanes: list[T] = []
    for each in order:
        mine = [index for index, wanted in enumerate(lanes) if wanted == each]
        for into, index in reversed([*pairwise(mine)]):
            yield _join(len(lanes), into, index), None
            del lanes[index]
        if not mine:
            mine = [len(lanes)]
            lanes.append(each)
        yield " ".join("*" if index == mine[0] else "|" for index in range(len(lanes))), each
        parent = parents.get(each)
        if parent is not None and parent in there:
            lanes[mine[0]] = parent
        else:
            # What stands to the right moves to its place.
            del lanes[mine[0]]
            if not lanes and each != order[-1]:
                yield "", None
            elif mine[0] < len(lanes):
                yield "| " * mine[0] + " ".join(" /" for _ in lanes[mine[0] :]).rstrip(), None


def _join(count: int, into: int, lane: int) -> str:
    """The line on which a lane goes over to another one on its left, and those on its right follow."""
    across = "|" + "_|" * (lane - into - 1) + "/"
    return "| " * into + across + " /" * (count - lane - 1)
