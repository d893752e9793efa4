"""A template of WebAssembly programs: `python -I -m belljar.engines.wasm.template_host FD`.

Each process made of it does one thing (see `start_host`): it compiles a program, or it runs one. It is sealed before it
sees the first byte of it: what a program does to the compiler, or to the code that loads native code, happens in a room
without doors, within its processor time and memory.
"""

from __future__ import annotations

import array  # noqa: F401 - receiving a descriptor needs it, and a sealed process can't import
import ctypes
import gc
import os
import socket
import sys
import threading
import time
from contextlib import suppress
from typing import Any, Final, NoReturn

import wasmtime
from wasmtime._instance import InstanceExports

from belljar.engines.calls.client_host import Client, ConnectionEnded
from belljar.engines.wasi import numbers
from belljar.engines.wasi.host_call import HostCall
from belljar.engines.wasi.kernel_host import HostWorld
from belljar.engines.wasi.linker_host import Bindings, _address, _library, configuration, guest_memory
from belljar.engines.wasi.memory import Fault, Memory
from belljar.engines.wasi.preview1 import Preview1, functions
from belljar.engines.wasi.program import Refused
from belljar.engines.wasm.running_host import Running
from belljar.engines.wire.calls import BadFrame
from belljar.engines.wire.wasm import COMPILE, LENGTH, MADE, PROGRAM_MAX, REFUSED, RESULT, RUN, SPENT
from belljar.forking.server.server_host import become_child
from belljar.forking.wire import Request
from belljar.lockdown.children_host import Children
from belljar.lockdown.seal_host import ENGINE_SPACE, LockdownFailed, enter_namespaces, prepare_filter, prove, seal
from belljar.lockdown.sockets_host import receive_descriptors

SPARES: Final = 2
OVERHEAD: Final = 256 << 20
"""Memory of the process and the compiler, beside the program's own."""
DIRECTORY, DATA_START = 64, 1024
"""Where a path is written, and where a linker puts a program's data; a null pointer means address 0."""
MEMORY_MAX: Final = (1 << 32) - (1 << 16)


class NoKernel:
    """The kernel of a template, which runs no program: calls fail with ENOSYS."""

    def call(self, name: str, *arguments: Any) -> list[Any]:
        raise Refused(numbers.ENOSYS)

    def post(self, name: str, *arguments: Any) -> None:
        return


class Template:
    """The parts that all programs share: the engine, and WASI's functions."""

    def __init__(self) -> None:
        config = configuration(optimised=True)
        # A memory's first contents would be shared by a file in memory, which a sealed process may not make.
        _library().wasmtime_config_memory_init_cow_set(_address(config.ptr()), ctypes.c_bool(False))
        self.engine = wasmtime.Engine(config)
        self.linker = wasmtime.Linker(self.engine)
        self.bindings = Bindings(self.linker)
        self.wasi = Preview1(NoKernel(), HostWorld(lambda code: code))
        self.bindings.define_all("wasi_snapshot_preview1", numbers.SIGNATURES, functions(self.wasi))
        self.bindings.define("belljar", "call", "iiii", "i", HostCall(self.wasi))


def run(template: Template, client: Client, memory: int, native: bytes) -> NoReturn:
    """Run a program, from its native code to its end."""
    running = Running(client, client.wait_for_start())
    running.adopt(template.wasi)
    try:
        module = wasmtime.Module.deserialize(template.engine, native)
        store = wasmtime.Store(template.engine)
        store.set_limits(memory_size=memory)
        exports = template.linker.instantiate(store, module).exports(store)
        start = exports.get("_start")
        if not isinstance(start, wasmtime.Func):
            raise wasmtime.WasmtimeError("it has no _start: it is a library, or not for wasm32-wasip1")
        template.wasi.memory = guest_memory(store, exports)
        enter_directory(store, exports, template.wasi.memory, running.program.cwd)
    except wasmtime.WasmtimeError as error:
        running.fail(str(error).splitlines()[0])
    except wasmtime.Trap as error:
        running.trapped(error)
    try:
        start(store)
    except (wasmtime.Trap, wasmtime.WasmtimeError) as error:
        if template.bindings.raised is not None:
            raise template.bindings.raised from error
        running.trapped(error)
    running.end(0, 0)


def enter_directory(store: wasmtime.Store, exports: InstanceExports, memory: Memory, path: bytes) -> None:
    """Have a program begin in a directory, if it says where its C library keeps that: WASI has none to begin in.

    The sandbox's compiler exports `__wasilibc_cwd`, the address of a pointer to the path. The path itself goes to where
    no program keeps anything: below its data, or, if it is too long for that, into a page of memory of its own.
    """
    pointer = exports.get("__wasilibc_cwd")
    if not isinstance(pointer, wasmtime.Global):
        return
    place = DIRECTORY
    if len(path) >= DATA_START - place:
        place = memory.size()
        grown = exports["memory"]
        assert isinstance(grown, wasmtime.Memory)
        grown.grow(store, 1)
    with suppress(Fault):
        memory.write(place, path + b"\0")
        memory.write_u32(pointer.value(store), place)


def compile_for(connection: socket.socket, engine: wasmtime.Engine, cpu_seconds: float) -> None:
    """Receive a program, send its native code or why there is none."""
    began = time.process_time()

    def answer(outcome: bytes, result: bytes) -> None:
        connection.sendall(RESULT.pack(outcome, time.process_time() - began, len(result)))
        connection.sendall(result)

    def watch() -> None:
        while (left := began + cpu_seconds - time.process_time()) > 0:
            time.sleep(max(left, 0.001))
        answer(SPENT, b"its processor time was used up")
        os._exit(0)

    (length,) = LENGTH.unpack(_receive(connection, LENGTH.size))
    if length > PROGRAM_MAX:
        answer(REFUSED, b"larger than %d MB" % (PROGRAM_MAX >> 20))
        return
    program = _receive(connection, length)
    threading.Thread(target=watch, daemon=True).start()
    try:
        native = bytes(wasmtime.Module(engine, bytes(program)).serialize())
    except wasmtime.WasmtimeError as error:
        answer(REFUSED, str(error).splitlines()[0].encode()[:1000])
    else:
        answer(MADE, native)


def _receive(connection: socket.socket, size: int) -> bytearray:
    data = bytearray()
    while len(data) < size:
        piece = connection.recv(min(size - len(data), 1 << 20))
        if not piece:
            raise ConnectionEnded
        data += piece
    return data


def _read(fd: int) -> bytes:
    with open(fd, "rb", buffering=0, closefd=True) as file:
        return file.readall()


def serve(template: Template, connection: socket.socket, request: Request) -> int:
    """Carry out the owner's order: compile or run."""
    memory = min(request.memory_bytes, MEMORY_MAX)
    try:
        cpu_seconds = int(request.cpu_seconds) + 2
        seal(
            {connection.fileno()},
            memory + OVERHEAD,
            cpu_seconds,
            threads=True,
            compiles=True,
            address_space=ENGINE_SPACE,
        )
        prove()
        order, descriptors = receive_descriptors(connection, 1, 1)
        if order == COMPILE:
            compile_for(connection, template.engine, request.cpu_seconds)
        elif order == RUN:
            native = _read(descriptors[0])
            run(template, Client(connection), memory, native)
    except (LockdownFailed, OSError):
        return 1
    except (ConnectionEnded, BadFrame):
        return 0
    return 0


def main(arguments: list[str]) -> None:
    template = Template()
    prepare_filter(judged=False, threads=True, compiles=True)
    children = Children()
    enter_namespaces()
    gc.collect()
    gc.freeze()
    child = become_child(socket.socket(fileno=int(arguments[0])), SPARES, children=children)
    if child is not None:
        status = 1
        try:
            status = serve(template, child.connection, child.request)
        finally:
            os._exit(status)


if __name__ == "__main__":
    main(sys.argv[1:])
