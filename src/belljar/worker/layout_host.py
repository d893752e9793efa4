"""Puts a zygote's memory in order, so that a fork of it costs less.

What every command uses lies together: a worker then copies fewer pages when it writes to it. Running a function counts
a reference to its code, which is a write; so is making any object. The rest goes on a shelf (`shelf_host.py`).
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Collection
from types import CodeType, FrameType, FunctionType
from typing import Final

_POOL: Final = 1 << 14
_POOL_HEADER: Final = 48
_STEP: Final = 16
_LARGEST: Final = 512
"""How CPython keeps small objects: in pools of blocks of one size, the sizes in steps."""
_HEADER: Final = sys.getsizeof(b"")
_ENOUGH: Final = 60_000


def fill_holes() -> list[bytes]:
    """Objects that take up the room between others, until new ones of any size lie side by side. Keep them."""
    fillers: list[bytes] = []
    for size in range(_STEP * (_HEADER // _STEP + 1), _LARGEST + 1, _STEP):
        together, last = 0, 0
        made: list[bytes] = []
        while together < (_POOL - _POOL_HEADER) // size - 1 and len(made) < _ENOUGH:
            made.append(bytes(size - _HEADER))
            together = together + 1 if id(made[-1]) == last + size else 0
            last = id(made[-1])
        fillers += made[: -together - 1]
    return fillers


def gather_code(run: Callable[[], object], modules: Collection[str] = ()) -> None:
    """Give all functions that `run` calls, and those of `modules`, copies of their code that lie side by side."""
    called: dict[CodeType, None] = {}

    def note(frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            called.setdefault(frame.f_code)

    sys.setprofile(note)
    try:
        run()
    finally:
        sys.setprofile(None)
    functions = [found for found in gc.get_objects() if isinstance(found, FunctionType)]
    for function in functions:
        if function.__module__ in modules:
            called.setdefault(function.__code__)
    copies: dict[int, CodeType] = {}

    def copy(code: CodeType) -> CodeType:
        if id(code) not in copies:
            inner = tuple(
                copy(each) if isinstance(each, CodeType) and each in called else each for each in code.co_consts
            )
            copies[id(code)] = code.replace(co_consts=inner)
        return copies[id(code)]

    for code in called:
        copy(code)
    for function in functions:
        if id(function.__code__) in copies:
            function.__code__ = copies[id(function.__code__)]
