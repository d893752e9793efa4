"""Every program a sandbox has: the utilities, and those that run in engine processes."""

from __future__ import annotations

from functools import cache
from typing import Final

from belljar.bin._kit import discovery
from belljar.bin._kit.program import Program
from belljar.kernel.process import Process
from belljar.libc.tzdata_host import zone_files


def _python(process: Process) -> int:
    from belljar.engines.worker.python import main  # when it is used: a sandbox in a hurry does without

    return main(process)


def _node(process: Process) -> int:
    from belljar.engines.worker.js import main

    return main(process)


_PYTHON: Final = Program("python3", "python3 - guest Python", None, lambda process, _: _python(process))
_NODE: Final = Program("node", "node - guest JavaScript", None, lambda process, _: _node(process))
_ENGINES: Final = {
    "python": _PYTHON,
    "python3": _PYTHON,
    "python3.15": _PYTHON,
    "node": _NODE,
    "nodejs": _NODE,
    "js": _NODE,
}


def preload() -> None:
    """Import every program there is, and read the time zones: once a worker is locked it can't."""
    discovery.preload()
    zone_files()
    import belljar.engines.worker.js
    import belljar.engines.worker.native
    import belljar.engines.worker.python
    import belljar.engines.worker.wasm  # noqa: F401


@cache
def names() -> tuple[str, ...]:
    """Sorted."""
    return tuple(sorted({*discovery.names(), *_ENGINES}))


def find(name: str) -> Program | None:
    """The program of that name; None if there is none."""
    return _ENGINES.get(name) or discovery.find(name)
