"""A template of WebAssembly programs: `python -I -m belljar.engines.wasm.template_host FD`.

Each program is compiled in its own process, sealed before it reads the file: what a module does to the compiler happens
in a room without doors, within the program's processor time and memory. Nothing compiled there is kept: native code
that such a process made is not to be trusted by another.
"""

from __future__ import annotations

import ctypes
import gc
import os
import socket
import sys
import time
from contextlib import suppress
from typing import Final, NoReturn

import wasmtime

from belljar.abi.flags import O_RDONLY
from belljar.engines.calls.client_host import CallError, Client, ConnectionEnded, Program
from belljar.engines.calls.protocol import AT_FDCWD, DATA_MAX, BadFrame
from belljar.engines.fork_server_host import Request, serve_forks
from belljar.engines.python.watch_host import Watch
from belljar.engines.wasi import numbers
from belljar.engines.wasi.kernel_host import HostWorld, RemoteKernel
from belljar.engines.wasi.linker_host import Bindings, _address, _library, configuration, guest_memory
from belljar.engines.wasi.preview1 import Preview1, functions
from belljar.lockdown.seal_host import LockdownFailed, enter_namespaces, prepare_filter, prove, seal

OVERHEAD: Final = 256 << 20
"""What the process around the program, and the compiler, need on top of its memory."""
MODULE_MAX: Final = 128 << 20
MEMORY_MAX: Final = (1 << 32) - (1 << 16)
CANNOT_EXECUTE, ABORTED = 126, 6


class WasmProcess:
    """One program, from its file to its end."""

    def __init__(self, engine: wasmtime.Engine, client: Client, program: Program, memory: int) -> None:
        self._engine = engine
        self._client = client
        self._program = program
        self._memory = memory
        self._began = time.process_time_ns()

    def run(self) -> NoReturn:
        kernel = RemoteKernel(self._client)
        Watch(self._client, kernel.interrupt, self._spent).allow(self._program.numbers.cpu_ns)
        try:
            module = wasmtime.Module(self._engine, self._read())
            store = wasmtime.Store(self._engine)
            store.set_limits(memory_size=self._memory)
            linker = wasmtime.Linker(self._engine)
            bindings = Bindings(linker)
            wasi = Preview1(kernel, HostWorld(self._leave))
            wasi.adopt(kernel, wasi.world, self._program.stdio, self._program.numbers.ttys)
            wasi.args, wasi.environ = self._program.argv, _with_directory(self._program)
            bindings.define_all("wasi_snapshot_preview1", numbers.SIGNATURES, functions(wasi))
            exports = linker.instantiate(store, module).exports(store)
            start = exports.get("_start")
            if not isinstance(start, wasmtime.Func):
                raise wasmtime.WasmtimeError("it has no _start: it is a library, or not for wasm32-wasip1")
            wasi.memory = guest_memory(store, exports)
        except CallError as error:
            self._fail(os.strerror(error.errno))
        except wasmtime.WasmtimeError as error:
            self._fail(str(error).splitlines()[0])
        except wasmtime.Trap as error:
            self._trapped(error)
        try:
            start(store)
        except (wasmtime.Trap, wasmtime.WasmtimeError) as error:
            if bindings.raised is not None:
                raise bindings.raised from error
            self._trapped(error)
        self._end(0, 0)

    def _read(self) -> bytes:
        """The module's file, by the kernel's calls: with the rights of the process that runs it."""
        path = str(self._program.options.get("module", "")).encode("utf-8", "surrogateescape")
        fd, _ = self._client.call("open", AT_FDCWD, path, O_RDONLY, 0)
        data = bytearray()
        while piece := self._client.call("read", fd, DATA_MAX)[0]:
            data += piece
            if len(data) > MODULE_MAX:
                self._fail(f"larger than {MODULE_MAX >> 20} MB")
        self._client.call("close", fd)
        return bytes(data)

    def _say(self, text: str) -> None:
        name = self._program.argv[0] if self._program.argv else b"wasm"
        try:
            self._client.call("write", 2, name + b": " + text.encode("utf-8", "replace") + b"\n")
        except CallError:
            return

    def _fail(self, reason: str) -> NoReturn:
        self._say(f"cannot execute: {reason}")
        self._end(CANNOT_EXECUTE, 0)

    def _trapped(self, error: Exception) -> NoReturn:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        self._say(f"ended by a trap: {lines[-1] if lines else 'unknown'}")
        self._end(0, ABORTED)

    def _leave(self, code: int) -> int:
        self._end(code, 0)

    def _spent(self) -> None:
        try:
            self._client.post("exceeded", b"cpu_seconds", time.process_time_ns() - self._began)
        finally:
            os._exit(0)

    def _end(self, code: int, signal: int) -> NoReturn:
        with suppress(ConnectionEnded):
            self._client.post("exit", code & 0xFF, signal, time.process_time_ns() - self._began)
        os._exit(0)


def _with_directory(program: Program) -> list[bytes]:
    """The environment, with where the program was called as PWD: WASI has no other way to say it."""
    return [b"PWD=" + program.cwd, *(entry for entry in program.env if not entry.startswith(b"PWD="))]


def make_engine() -> wasmtime.Engine:
    config = configuration(optimised=True)
    # A memory's first contents would be shared by a file in memory, which a sealed process may not make.
    _library().wasmtime_config_memory_init_cow_set(_address(config.ptr()), ctypes.c_bool(False))
    return wasmtime.Engine(config)


def main(arguments: list[str]) -> None:
    engine = make_engine()
    prepare_filter(judged=False, copies=False, compiles=True)
    enter_namespaces()
    gc.collect()
    gc.freeze()

    def body(connection: socket.socket, request: Request) -> int:
        memory = min(request.memory_bytes, MEMORY_MAX)
        try:
            seal({connection.fileno()}, memory + OVERHEAD, int(request.cpu_seconds) + 2, compiles=True)
            prove()
            client = Client(connection)
            WasmProcess(engine, client, client.wait_for_start(), memory).run()
        except (LockdownFailed, OSError):
            return 1
        except (ConnectionEnded, BadFrame):
            return 0

    serve_forks(socket.socket(fileno=int(arguments[0])), body)


if __name__ == "__main__":
    main(sys.argv[1:])
