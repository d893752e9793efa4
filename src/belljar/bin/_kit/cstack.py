"""Keeps C code that recurses, as JSON parsers do, off the end of the C stack.

The interpreter's own recursion limit may be far higher: it is meant for plain Python calls, which need no C stack.
"""

import json
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, TypeVar

T = TypeVar("T")
JSON_LEVELS: Final = 1000


def parse_json(text: str | bytes) -> Any:
    """The value of a JSON text that the guest may have written. ValueError, RecursionError."""
    return bounded(JSON_LEVELS, json.loads, text)


def bounded(levels: int, function: Callable[..., T], *arguments: Any) -> T:
    """Call C code that recurses: RecursionError past `levels` instead of a crash."""
    depth = 0
    frame: FrameType | None = sys._getframe()
    while frame is not None:
        depth += 1
        frame = frame.f_back
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(min(limit, depth + levels))
    try:
        return function(*arguments)
    finally:
        sys.setrecursionlimit(limit)
