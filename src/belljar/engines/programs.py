"""Every program a sandbox has: the utilities, and those that run in engine processes."""

from __future__ import annotations

from functools import cache
from typing import Final

from belljar.bin._kit import discovery
from belljar.bin._kit.program import Program
from belljar.engines.js import program as js
from belljar.engines.python import program as python

_PYTHON: Final = Program("python3", python.__doc__ or "", None, lambda process, _: python.main(process))
_NODE: Final = Program("node", js.__doc__ or "", None, lambda process, _: js.main(process))
_ENGINES: Final = {
    "python": _PYTHON,
    "python3": _PYTHON,
    "python3.15": _PYTHON,
    "node": _NODE,
    "nodejs": _NODE,
    "js": _NODE,
}


@cache
def names() -> tuple[str, ...]:
    """Sorted."""
    return tuple(sorted({*discovery.names(), *_ENGINES}))


def find(name: str) -> Program | None:
    """The program of that name; None if there is none."""
    return _ENGINES.get(name) or discovery.find(name)
