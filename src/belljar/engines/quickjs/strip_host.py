"""TypeScript as JavaScript, by OXC: the transformer that quickjs-rs brings as WebAssembly.

It prints the program anew: what is left is the same program, not the same lines.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from belljar.engines.quickjs.machine_host import WASI, Machine, Trapped
from belljar.engines.wasi.linker_host import Bindings

CHANGED: Final = 0
_SOURCE_TS, _STRIP = 1 << 0, 1 << 8
_NAME: Final = b"run.ts"


class Stripper:
    """One instance of the transformer."""

    def __init__(self, artefact: Path) -> None:
        self._machine = machine = Machine(artefact, self._define)
        self._alloc, self._free = machine.export("qjst_alloc"), machine.export("qjst_free")
        self._transform, self._forget = machine.export("qjst_transform"), machine.export("qjst_result_free")
        self._length, self._pointer = machine.export("qjst_result_len"), machine.export("qjst_result_ptr")

    def _define(self, bindings: Bindings) -> None:
        bindings.define(WASI, "proc_exit", "i", "", _exit)

    def javascript(self, code: str) -> str | None:
        """The JavaScript of some TypeScript; None if it is none."""
        data = code.encode("utf-8", "replace")
        if not data:
            return code
        try:
            name, source = self._put(_NAME), self._put(data)
            status = self._transform(name, len(_NAME), source, len(data), _SOURCE_TS | _STRIP)
            made = self._machine.memory.read(self._pointer(), self._length()) if status == CHANGED else b""
            self._forget()
            self._free(name, len(_NAME))
            self._free(source, len(data))
        except Trapped:
            return None  # too deep for it: then it is no program
        return made.decode("utf-8", "replace") if status == CHANGED else None

    def _put(self, data: bytes) -> int:
        pointer = self._alloc(len(data))
        self._machine.memory.write(pointer, data)
        return pointer


def _exit(_code: int) -> None:
    raise Trapped("it ended itself", stack=False)
