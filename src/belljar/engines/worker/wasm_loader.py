"""Knows a WebAssembly file by how it begins; what runs it is loaded with the first one."""

from __future__ import annotations

from collections.abc import Callable

from belljar.engines.wire.wasm import MAGIC
from belljar.kernel.loader import Program
from belljar.kernel.process import Process


def load_binary(head: bytes) -> Callable[[str], Program] | None:
    """Return the function that runs a file with this head, for the kernel's loader; None if it is not WebAssembly."""
    return load_wasm if head.startswith(MAGIC) else None


def load_wasm(path: str) -> Program:
    return lambda process: _main(process, path)


def _main(process: Process, path: str) -> int:
    from belljar.engines.worker.wasm import main  # when it is used: a sandbox in a hurry does without

    return main(process, path)
