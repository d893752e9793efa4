"""A template of guest Python: `python -I -m belljar.engines.python.template_host KIND QUALITY ARTEFACT STDLIB FD`.

Loads the interpreter, lets it import what programs need, and waits, inside a host call of the guest, to be forked. Each
child seals itself, learns what to run, and returns from that call: the guest goes on as the program.
"""

from __future__ import annotations

import gc
import os
import signal
import socket
import struct
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NoReturn

import msgspec
import wasmtime

from belljar.abi.base import WORKSPACE, environment
from belljar.abi.wire import HELLO
from belljar.engines.artefact_host import open_checked
from belljar.engines.calls.client_host import Client, ConnectionEnded, Program
from belljar.engines.python.bundled_host import bundled_packages
from belljar.engines.python.guest_host import added_modules
from belljar.engines.python.hostcalls_host import HostCalls
from belljar.engines.python.library_host import STDLIB_SHA256, PythonLibrary
from belljar.engines.python.watch_host import Watch
from belljar.engines.wasi import numbers
from belljar.engines.wasi.kernel_host import HostWorld, RemoteKernel
from belljar.engines.wasi.linker_host import Bindings, direct, engine, give_back_zeros, guest_memory
from belljar.engines.wasi.preview1 import Preview1, functions
from belljar.engines.wasi.program import Refused
from belljar.engines.wire.calls import (
    ANSWER,
    AT_FDCWD,
    CALLS,
    PROGRAM_CLOSED_SHIFT,
    PROGRAM_SESSION,
    PROGRAM_SITE,
    PROGRAM_TERMINAL,
    START,
    BadFrame,
    Start,
    encode,
)
from belljar.forking.server.copied_host import OwnerGone, fork_copy
from belljar.forking.server.server_host import Child, become_child
from belljar.forking.timeout_host import set_receive_timeout
from belljar.lockdown.children_host import Children
from belljar.lockdown.seal_host import (
    ENGINE_SPACE,
    LockdownFailed,
    enter_namespaces,
    prepare_filter,
    prepare_judged,
    prove,
    seal,
    set_signal,
)

SPARES: Final = 3
AHEAD: Final = b" ahead"
"""Message to a copy of a prefix that is made before a run is asked for."""
OVERHEAD: Final = 192 << 20
"""Memory of the process, beside the guest's own."""
MEMORY_MAX: Final = (1 << 32) - (1 << 16)


WARM_UPS: Final = 32
_REPLAY: Final = (0, "template")
"""Time and seed while the interpreter of a replay starts: its hashes are then the same in every run."""
DIRECTORY: Final = (0o040755, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0)
OPTIONS: Final = {"executable": "/usr/bin/python3", "session": False, "site": False, "directory": DIRECTORY}
"""START's options in an ordinary sandbox."""
_PROGRAM: Final = struct.Struct("<iII6q")
WARM_UP_NS: Final = 1_000_000_000
"""Processor time of a warm-up."""
READY, WARM_UP = 0, -1
"""The status sent with a program: run it, or run the warm-up."""


class NullKernel:
    """The kernel of a template: writes are discarded, and there are no files but the library's."""

    said = b""
    """The end of what was written to standard error: why the interpreter could not be started, if it could not."""

    def call(self, name: str, *arguments: Any) -> list[Any]:
        match name:
            case "write":
                if arguments[0] == 2:
                    self.said = (self.said + arguments[1])[-4000:]
                return [len(arguments[1])]
            case "read":
                return [b""]
            case "fstat" if 0 <= arguments[0] <= 2:
                return [(0o010600, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0)]
            case "getfl":
                return [2, 0]
            case "isatty":
                return [0]
            case "stat" if arguments[1].rstrip(b"/.") in (b"", b"/tmp", b"/tmp/matplotlib"):
                return [(0o040755, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0)]
            case "catch" | "mkdir":
                return []
        raise Refused(numbers.ENOENT)

    def post(self, name: str, *arguments: Any) -> None:
        return


class Template:
    """The interpreter of this process, from loading to the end of a program."""

    def __init__(self, kind: str, quality: str, artefact: Path, stdlib: Path, control: socket.socket) -> None:
        self._control = control
        self._replays = kind == "python-replay"
        self._client: Client | None = None
        self._watch: Watch
        self._memory_limit = 0
        """The guest's memory limit for the run."""
        self._runs: socket.socket | None = None
        """Socket on which an interpreter with a prefix receives requests for runs."""
        self._pretended: Program | None = None
        """The pretended program, while a process warms up."""
        native = engine(optimised=quality == "optimised")
        with open_checked(artefact) as name:
            module = wasmtime.Module.deserialize_file(native, name)
        self._store = wasmtime.Store(native)
        linker = wasmtime.Linker(native)
        self._bindings = Bindings(linker)
        added, removed = added_modules()
        self._null_kernel = NullKernel()
        self._wasi = Preview1(
            self._null_kernel,
            HostWorld(_ended_early, _REPLAY if self._replays else None),
            PythonLibrary(stdlib, STDLIB_SHA256, added, removed, bundled_packages()),
        )
        self._wasi.args = [b"/usr/local/bin/python3", b"-c", f"import _belljar; _belljar.start({kind!r})".encode()]
        self._wasi.environ = [b"TMPDIR=/tmp", b"PYTHONTZPATH="]
        self._bindings.define_all("wasi_snapshot_preview1", numbers.SIGNATURES, functions(self._wasi))
        self._hostcalls = HostCalls(self._wasi, self._park)
        self._bindings.define("host", "call", "iiii", "i", self._hostcalls.call)
        self._exports = linker.instantiate(self._store, module).exports(self._store)
        self._wasi.memory = guest_memory(self._store, self._exports)
        self._grown_from = self._wasi.memory.size()
        allocate = self._exports["host_alloc"]
        assert isinstance(allocate, wasmtime.Func)
        self._hostcalls.alloc = direct(self._store, allocate)

    def run(self) -> NoReturn:
        """Start the interpreter; programs run in the children of `_park`."""
        try:
            for name in ("_initialize", "run"):
                function = self._exports[name]
                assert isinstance(function, wasmtime.Func)
                function(self._store)
        except (wasmtime.Trap, wasmtime.WasmtimeError) as error:
            raised = self._bindings.raised
            if raised is not None:
                raise raised from error
            self._hostcalls.trapped(error)
            raise
        said = self._null_kernel.said.decode("utf-8", "replace")
        raise SystemExit(f"the guest interpreter ended before it was asked to\n{said}")

    def _park(self) -> bytes:
        """Wait to be forked; return in each child, with its program.

        A child made ahead first returns with nothing, to warm up: the memory that any program writes to is its own by
        the time it is needed. Then it is here again, and waits.
        """
        if self._client is not None:
            return self._wait(self._client)
        if self._hostcalls.interrupter is not None:
            self._hostcalls.interrupter.locate_flags()
        prepare_filter(judged=False, threads=True)
        prepare_judged(threads=True)
        children = Children()
        enter_namespaces()
        self._warm_up(WARM_UPS)
        gc.collect()
        gc.freeze()
        give_back_zeros(self._wasi.memory, self._grown_from)
        child = become_child(self._control, SPARES, children=children)
        if child is None:
            os._exit(0)
        # A session lives long, and what it never needs would be its own for as long. In a replay, one made ahead must
        # not differ from one that is not.
        warms_up = child.ahead and not child.request.options.get("session") and not self._replays
        program = self._warm_up(1) if warms_up else None
        self._client = self._become(child)
        return _encode_program(program, WARM_UP) if program is not None else self._wait(self._client)

    def _become(self, child: Child) -> Client:
        request, control = child.request, child.control
        self._runs = control if request.options.get("forkable") else None
        copied = None if self._runs is not None else control
        try:
            if copied is not None:
                set_receive_timeout(child.connection)
            memory = min(request.memory_bytes, MEMORY_MAX)
            self._store.set_limits(memory_size=memory)
            keep = {child.connection.fileno()} | ({control.fileno()} if control is not None else set())
            cpu_seconds = int(request.cpu_seconds) + 2
            seal(keep, memory + OVERHEAD, cpu_seconds, control, threads=True, address_space=ENGINE_SPACE)
            prove(forks=control is not None)
            if control is not None:
                set_signal(signal.SIGCHLD, ignored=True)  # it may not wait for its copies
        except (LockdownFailed, OSError):
            os._exit(1)
        return Client(child.connection, copied)

    def _park_again(self, control: socket.socket) -> bytes:
        """Wait, as an interpreter with a prefix, to be copied; return in each copy, with its program."""
        ends = None
        while ends is None:
            try:
                ends = fork_copy(control)
            except OwnerGone:
                os._exit(0)
        assert self._client is not None
        self._client.disconnect()
        control.close()
        ends.control.send(HELLO)
        ends.control.close()
        program = self._detach() if ends.kind == AHEAD else None
        self._runs = None
        client = Client(ends.connection)
        if program is None:
            return self._wait(client)
        self._enter(client, lambda: self._learn(client))
        # The warm-up runs with the prefix's changes to the interpreter: it needs a time limit.
        self._watch.allow(WARM_UP_NS)
        return _encode_program(program, WARM_UP)

    def _wait(self, client: Client) -> bytes:
        """Wait for START, then become the program."""
        control = self._runs
        self._enter(client, None)
        told = self._learn(client)
        if control is not None:
            self._hostcalls.park_again = lambda: self._park_again(control)
        return told

    def _enter(self, client: Client, park_again: Callable[[], bytes] | None) -> None:
        """Attach the guest to a connection, and start the watch thread."""
        kernel = self._kernel(client)
        self._client = client
        client.on_limits = self._limit
        client.on_copy = lambda control: self._copy(client, kernel, control)
        self._hostcalls.enter(client, kernel, park_again)
        self._watch = Watch(client, kernel.interrupt, self._spent)
        self._watch.start()

    def _learn(self, client: Client) -> bytes:
        self._hostcalls.park_again = None
        try:
            program = client.wait_for_start()
        except (ConnectionEnded, BadFrame):
            os._exit(0)
        self._hostcalls.started_ns = time.process_time_ns()
        self._watch.allow(program.numbers.cpu_ns)
        self._adopt(program)
        return _encode_program(program, READY)

    def _kernel(self, client: Client) -> RemoteKernel:
        kernel = RemoteKernel(client)
        if self._hostcalls.interrupter is not None:
            kernel.interrupt = self._hostcalls.interrupter.interrupt
        return kernel

    def _adopt(self, program: Program, kernel: RemoteKernel | None = None) -> None:
        """Direct the guest's calls to a program's kernel."""
        kernel = kernel or self._hostcalls.kernel
        assert kernel is not None
        world = HostWorld(self._hostcalls.leave, program.options.get("replay"))
        self._wasi.adopt(kernel, world, program.stdio, program.numbers.ttys)
        directory = program.options.pop("directory", None)
        if directory is not None:
            self._wasi.directory = program.cwd, directory

    def _warm_up(self, rounds: int) -> Program:
        """Make the host's calls of a program's start, against a socket pair; return the pretended program.

        In a template this specialises bytecode for all programs; in a spare it copies the pages that a program
        writes to before they are needed.
        """
        pipe, file = 0o010600, (0o100644, *range(11))
        numbers = Start(1, 0, 1000, 1000, 0o022, 0, 10**9, 1 << 28)
        variables = [f"{name}={value}".encode() for name, value in environment().items()]
        place, options = WORKSPACE.encode(), msgspec.json.encode(OPTIONS)
        stdio = [pipe, 0, pipe, 1, pipe, 1, 0, 0]
        start = encode("llssQQ", [[b"python3", b"-c"], variables, place, options, numbers, stdio])
        calls: list[tuple[str, list[Any], list[Any]]] = [
            ("write", [1, b"x"], [1]),
            ("read", [0, 1], [b"x"]),
            ("open", [AT_FDCWD, b"/x", 0, 0], [5, file]),
            ("fstat", [5], [file]),
            ("stat", [AT_FDCWD, b"/x", 0], [file]),
            ("close", [5], []),
            ("readdir", [AT_FDCWD, b"/"], [[(1, 0o100644, b"x")]]),
            ("chdir", [AT_FDCWD, b"/"], []),
        ]
        world = self._wasi.world
        assert rounds
        for _ in range(rounds):
            ours, theirs = socket.socketpair()
            with ours, theirs:
                ours.sendall(ANSWER.pack(len(start) + 8, 0, START) + start)
                client = Client(theirs)
                program = client.wait_for_start()
                kernel = self._kernel(client)
                self._adopt(program, kernel)
                for name, arguments, results in calls:
                    answer = encode(CALLS[name].gives, results)
                    ours.sendall(ANSWER.pack(len(answer) + 8, 1, 0) + answer)
                    kernel.call(name, *arguments)
                ours.sendall(ANSWER.pack(8, 1, 2))
                with suppress(Refused):
                    kernel.call("stat", AT_FDCWD, b"/none", 0)
                client.peek_signals()
                client.post("close", 5)
        self._wasi.adopt(self._null_kernel, world)
        self._pretended = program
        return self._detach()

    def _detach(self) -> Program:
        """Detach the guest from any kernel; return the pretended program."""
        assert self._pretended is not None
        self._wasi.adopt(self._null_kernel, self._wasi.world)
        self._wasi.directory = WORKSPACE.encode(), DIRECTORY
        return self._pretended

    def _limit(self, cpu_ns: int, memory: int) -> None:
        self._watch.allow(cpu_ns)
        limit = min(self._wasi.memory.size() + memory, MEMORY_MAX)
        if limit != self._memory_limit:
            self._memory_limit = limit
            self._store.set_limits(memory_size=limit)

    def _copy(self, client: Client, kernel: RemoteKernel, control: socket.socket) -> None:
        """Fork a copy of this process while it waits for an answer; both then wait."""
        used, left = time.process_time_ns() - self._hostcalls.started_ns, self._watch.left
        try:
            ends = fork_copy(control)
        except OwnerGone:
            client.drop_control()
            return
        if ends is None:
            return
        # The copy's processor time is counted from nothing; what was used before is its own too.
        self._hostcalls.started_ns = time.process_time_ns() - used
        client.disconnect()
        client.connect(ends.connection, ends.control)
        self._watch = Watch(client, kernel.interrupt, self._spent)
        self._watch.allow(left)
        self._watch.start()
        ends.control.send(HELLO)

    def _spent(self) -> None:
        """Report that the processor time is used up, and exit."""
        try:
            if self._client is not None:
                self._client.post("exceeded", b"cpu_seconds", time.process_time_ns() - self._hostcalls.started_ns)
        finally:
            os._exit(0)


def _encode_program(program: Program, status: int) -> bytes:
    """Encode the answer to the guest's `park` (see `guest/_belljar/hostcalls.py`)."""
    options, numbers = program.options, program.numbers
    flags = PROGRAM_SESSION if options.get("session") else 0
    flags |= PROGRAM_SITE if options.get("site", True) else 0
    flags |= PROGRAM_TERMINAL if numbers.ttys & 1 else 0
    for fd in range(3):
        flags |= (program.stdio[2 * fd] == 0) << PROGRAM_CLOSED_SHIFT + fd
    words = [options["executable"].encode("latin-1"), program.cwd, *program.argv, *program.env]
    text = b"\0".join(words)
    if text.count(b"\0") != len(words) - 1:
        text = b"\0".join([word.partition(b"\0")[0] for word in words])  # as a C program would see it
    return _PROGRAM.pack(status, len(program.argv), flags, *numbers[:6]) + text


def _ended_early(code: int) -> int:
    raise SystemExit(f"the guest interpreter ended with status {code} before it was asked to")


def main(arguments: list[str]) -> None:
    kind, quality, artefact, stdlib, fd = arguments
    Template(kind, quality, Path(artefact), Path(stdlib), socket.socket(fileno=int(fd))).run()


if __name__ == "__main__":
    main(sys.argv[1:])
