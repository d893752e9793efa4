"""Bounds how deeply a program's functions may call each other: generators in generators need C stack."""

from collections.abc import Callable
from typing import Any, TypeVar

from belljar.bin.jq.errors import JqError
from belljar.bin.jq.nodes import children

T = TypeVar("T")
MAX_WEIGHT = 24_000
"""Nested syntax nodes under execution; some 200 bytes of C stack each, where a few megabytes are safe."""


def weigh(node: Any) -> int:
    """Return how deeply a syntax tree nests, which bounds the frames that running it needs."""
    weight, level = 0, [node]
    while level:
        weight += 1
        level = [child for item in level for child in children(item)]
    return weight


class Stack:
    """The weight of the calls now running."""

    __slots__ = ("weight",)

    def __init__(self) -> None:
        self.weight = 0

    def push(self, weight: int) -> None:
        self.weight += weight
        if self.weight > MAX_WEIGHT:
            self.weight -= weight
            raise JqError("Function calls nested too deeply")

    def run(self, weight: int, function: Callable[[Any, Any], T], v: Any, e: Any) -> T:
        self.push(weight)
        try:
            return function(v, e)
        finally:
            self.weight -= weight
