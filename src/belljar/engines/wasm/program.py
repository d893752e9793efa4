"""Runs a WebAssembly file: an engine process compiles it and makes its calls, this process does them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from belljar.abi.signals import Signal
from belljar.engines.calls.server import CallServer
from belljar.kernel.engines import EngineUnavailable
from belljar.kernel.loader import Program
from belljar.kernel.process import Process

MAGIC: Final = b"\0asm"


def load_binary(head: bytes) -> Callable[[str], Program] | None:
    """For the kernel's loader: what runs a file that begins like this; None if we do not know it."""
    return load_wasm if head.startswith(MAGIC) else None


def load_wasm(path: str) -> Program:
    return lambda process: main(process, path)


def main(process: Process, path: str) -> int:
    limits = process.budget.limits
    options = {"memory_bytes": limits.memory_bytes, "cpu_seconds": limits.cpu_seconds}
    try:
        link = process.kernel.engines.open("wasm", options)
    except EngineUnavailable as error:
        process.warn(error.reason)
        return 127
    server = CallServer(process, link)
    process.catch(Signal.PIPE, lambda _: None)
    server.start({"module": process.absolute(path)})
    server.serve()
