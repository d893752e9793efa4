"""One WebAssembly program in a process of its own: what it uses is counted, how it ends is told."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from typing import Final, NoReturn

from belljar.engines.calls.client_host import CallError, Client, ConnectionEnded, Program
from belljar.engines.python.watch_host import Watch
from belljar.engines.wasi.kernel_host import HostWorld, RemoteKernel
from belljar.engines.wasi.preview1 import Preview1

CANNOT_EXECUTE: Final = 126
_ABORTED: Final = 6


class Running:
    """A program from its START on."""

    def __init__(self, client: Client, program: Program) -> None:
        self._client = client
        self.program = program
        self._began = time.process_time_ns()

    def adopt(self, wasi: Preview1) -> None:
        """Direct the guest's calls to this program's kernel, and watch its processor time."""
        kernel = RemoteKernel(self._client)
        watch = Watch(self._client, kernel.interrupt, self._spent)
        watch.allow(self.program.numbers.cpu_ns)
        watch.start()
        world = HostWorld(self.leave, self.program.options.get("replay"))
        wasi.adopt(kernel, world, self.program.stdio, self.program.numbers.ttys)
        wasi.args, wasi.environ = self.program.argv, _with_directory(self.program)

    def say(self, text: str) -> None:
        name = self.program.argv[0] if self.program.argv else b"wasm"
        with suppress(CallError):
            self._client.call("write", 2, name + b": " + text.encode("utf-8", "replace") + b"\n")

    def fail(self, reason: str) -> NoReturn:
        self.say(f"cannot execute: {reason}")
        self.end(CANNOT_EXECUTE, 0)

    def trapped(self, error: Exception) -> NoReturn:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        self.say(f"ended by a trap: {lines[-1] if lines else 'unknown'}")
        self.end(0, _ABORTED)

    def leave(self, code: int) -> int:
        self.end(code, 0)

    def end(self, code: int, signal: int) -> NoReturn:
        with suppress(ConnectionEnded):
            self._client.post("exit", code & 0xFF, signal, time.process_time_ns() - self._began)
        os._exit(0)

    def _spent(self) -> None:
        try:
            self._client.post("exceeded", b"cpu_seconds", time.process_time_ns() - self._began)
        finally:
            os._exit(0)


def _with_directory(program: Program) -> list[bytes]:
    """The environment, with where the program was called as PWD: WASI has no other way to say it."""
    return [b"PWD=" + program.cwd, *(entry for entry in program.env if not entry.startswith(b"PWD="))]
