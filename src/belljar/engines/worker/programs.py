"""Every program a sandbox has: the utilities, and those that run in engine processes."""

from __future__ import annotations

from functools import cache
from typing import Final

from belljar.bin._kit import discovery
from belljar.bin._kit.program import Program
from belljar.engines.wire.tools import TOOLS
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
    import belljar.engines.worker.cc
    import belljar.engines.worker.js
    import belljar.engines.worker.native
    import belljar.engines.worker.python
    import belljar.engines.worker.wasm  # noqa: F401


@cache
def names() -> tuple[str, ...]:
    """Sorted."""
    return tuple(sorted({*discovery.names(), *_ENGINES}))


@cache
def tool_program(kind: str, name: str) -> Program:
    """A program of a prepared tool."""

    def run(process: Process, _words: list[str]) -> int:
        from belljar.engines.worker.tools import run_program  # when it is used: a sandbox in a hurry does without

        return run_program(process, kind, name)

    return Program(name, f"{name} - {TOOLS[kind].title}", None, run)


def find(name: str) -> Program | None:
    """The program of that name; None if there is none. `KIND:NAME` is one of a tool, prepared or not."""
    kind, colon, tool = name.partition(":")
    if colon:
        return tool_program(kind, tool) if kind in TOOLS and tool in TOOLS[kind].names else None
    return _ENGINES.get(name) or discovery.find(name)
