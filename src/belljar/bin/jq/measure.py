"""Measures how much text a value will become, before it is written.

Values share their parts, so a small program can hold one whose text would fill the world (`[., .]` forty times).
"""

from collections.abc import Callable
from typing import Any

from belljar.bin.jq.errors import JqError

SMALL = 1 << 14
SHALLOW = 200
MAX_TEXT = 1 << 27


def check_size(value: Any) -> None:
    """Refuse to go through a value, part by part, whose text would be too long for any string."""
    if (value.__class__ is list or value.__class__ is dict) and text_size(value)[0] > MAX_TEXT:
        raise JqError("String too long")


class Measure:
    """Called with a value: pays for its text if that is large. True if the value is also known to be shallow."""

    def __init__(self, charge_size: Callable[[int], None], indent: int = 0) -> None:
        self.charge_size = charge_size
        self.indent = indent

    def __call__(self, value: Any) -> bool:
        if value.__class__ is list or value.__class__ is dict:
            size, depth = text_size(value)
            if depth >= SHALLOW:
                size += depth * depth * self.indent
            if size > SMALL:
                self.charge_size(size)
            return depth < SHALLOW
        if value.__class__ is str and len(value) > SMALL:
            self.charge_size(len(value))
        return True


def text_size(root: Any) -> tuple[int, int]:
    """About how many bytes of JSON `root` is (parts that occur often are measured once), and a bound of its depth."""
    sizes: dict[int, int] = {}
    depth = 0
    stack = [root]
    while stack:
        value = stack[-1]
        key = id(value)
        if key in sizes:
            stack.pop()
            continue
        items = value if value.__class__ is list else value.values()
        size = 2 + len(value)
        missing = False
        for item in items:
            kind = item.__class__
            if kind is list or kind is dict:
                known = sizes.get(id(item))
                if known is None:
                    stack.append(item)
                    missing = True
                else:
                    size += known
            elif kind is str:
                size += len(item) + 2
            else:
                size += 4
        if missing:
            depth = max(depth, len(stack))
            continue
        if value.__class__ is dict:
            size += sum(map(len, value)) + 3 * len(value)
        sizes[key] = size
        stack.pop()
    return sizes[id(root)], depth
