"""Puts a zygote's memory in order, so that a fork of it costs less.

What every command uses lies together: a worker then copies fewer pages when it writes to it. Running a function counts
a reference to its code, which is a write; so is making any object. Then all goes on a shelf (`shelf_host.py`).
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Collection
from types import CodeType, FrameType, FunctionType, ModuleType
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
    """Have all functions that `run` calls, and those of `modules`, lie side by side, and so their code."""
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
    order = {id(code): number for number, code in enumerate(called)}
    functions = [function for function in functions if id(function.__code__) in order]
    functions.sort(key=lambda function: order[id(function.__code__)])
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
        function.__code__ = copies[id(function.__code__)]
    _replace(functions)


def _replace(functions: list[FunctionType]) -> None:
    """Have copies, made in a row, in the place of functions that only modules and classes refer to."""
    homes: dict[int, list[tuple[ModuleType | type, str]]] = {id(function): [] for function in functions}
    for home in [found for found in gc.get_objects() if isinstance(found, ModuleType | type)]:
        for name, value in vars(home).items():
            if id(value) in homes:
                homes[id(value)].append((home, name))
    functions.append(_copy(_replace))  # nobody else has this one
    references = [sys.getrefcount(function) for function in functions]
    functions.pop()
    ours = references.pop()
    for function, count in zip(functions, references, strict=True):
        places = homes[id(function)]
        if places and count - ours == len(places):
            copy = _copy(function)
            for home, name in places:
                if isinstance(home, type):
                    type.__setattr__(home, name, copy)
                else:
                    setattr(home, name, copy)


def _copy(function: Callable[..., object]) -> FunctionType:
    assert isinstance(function, FunctionType)
    copy = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__annotations__ = function.__annotations__
    copy.__qualname__ = function.__qualname__
    copy.__module__ = function.__module__
    copy.__doc__ = function.__doc__
    copy.__dict__.update(function.__dict__)
    return copy
