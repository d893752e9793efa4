"""A template of QuickJS: `python -I -m belljar.engines.quickjs.template_host ENGINE TRANSFORMER LIBRARY FD`.

Brings the engine to the point where our JavaScript and Node's library are in it, and is forked from then on: a prefix
is a fork of it, a run is a fork of a prefix, a program is a fork of it. Each seals itself before it sees a guest's
code.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any, Final, NoReturn

import msgspec

from belljar.abi.wire import HELLO
from belljar.engines.quickjs.guest_host import Guest
from belljar.engines.quickjs.sources_host import load_sources
from belljar.engines.quickjs.strip_host import Stripper
from belljar.engines.quickjs.wire_host import Wire
from belljar.engines.wire.js import MESSAGE
from belljar.forking.server.copied_host import OwnerGone, fork_copy
from belljar.forking.server.server_host import Child, become_child
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

SPARES: Final = 2
OVERHEAD: Final = 256 << 20
"""Memory of the process, beside the guest's own."""
PREFIX_MEMORY: Final = 4 << 30
FOREVER: Final = 1 << 30
"""Seconds: a prefix computes only while it is evaluated, and its owner watches that."""
SESSION: Final = b" session"
"""Message to a copy of a prefix that becomes a session."""


class _Run(msgspec.Struct):
    """The fields of a run's first message that this process reads itself."""

    op: str
    limits: dict[str, float] = msgspec.field(default_factory=dict)


class Template:
    """The engine of this process, and what its forks become."""

    def __init__(self, arguments: list[str]) -> None:
        engine, transformer, library = map(Path, arguments)
        stripper = Stripper(transformer)
        stripper.javascript("const warm: number = 1; type T = { a: string }; function f<T>(x: T): T { return x }")
        self._guest = Guest(engine, stripper, load_sources(library))
        self._guest.warm()
        self._layers: list[str] = []

    def serve(self, control: socket.socket) -> NoReturn:
        prepare_filter(judged=False, threads=True)
        prepare_judged(threads=True)
        children = Children()
        self._layers = enter_namespaces()
        gc.collect()
        gc.freeze()
        child = become_child(control, SPARES, children=children)
        if child is None:
            os._exit(0)
        try:
            if child.request.memory_bytes == 0:
                self._be_prefix(child)
            self._be_program(child)
        except LockdownFailed:
            os._exit(1)

    def _be_program(self, child: Child) -> NoReturn:
        """Become a program, whose only connection is to the sandbox's kernel."""
        memory = child.request.memory_bytes
        self._seal({child.connection.fileno()}, memory, int(child.request.cpu_seconds) + 2)
        prove()
        self._guest.open(Wire(child.connection))
        self._guest.limit_memory(memory)
        self._guest.reseed()
        self._guest.run_program()
        os._exit(0)

    def _be_prefix(self, child: Child) -> NoReturn:
        """Evaluates its code, then makes runs of itself whenever it is asked."""
        control = child.control
        assert control is not None
        keep = {child.connection.fileno(), control.fileno()}
        self._layers += self._seal(keep, PREFIX_MEMORY, FOREVER, control)
        prove(forks=True)
        set_signal(signal.SIGCHLD, ignored=True)  # it may not wait for its copies
        wire = Wire(child.connection)
        self._guest.open(wire)
        self._guest.reseed()
        _, start = wire.receive()
        if not self._handle(start):
            os._exit(0)
        self._guest.collect()
        gc.collect()
        gc.freeze()
        while True:
            try:
                ends = fork_copy(control)
            except OwnerGone:
                os._exit(0)
            if ends is not None:
                wire.connection.close()
                control.close()
                ends.control.send(HELLO)
                if ends.kind == SESSION:
                    self._be_run(ends.connection, ends.control)
                ends.control.close()
                self._be_run(ends.connection, None)

    def _seal(self, keep: set[int], memory: int, cpu_seconds: int, control: socket.socket | None = None) -> list[str]:
        return seal(keep, memory + OVERHEAD, cpu_seconds, control, threads=True, address_space=ENGINE_SPACE)

    def _be_run(self, connection: socket.socket, control: socket.socket | None) -> NoReturn:
        """One run; or, with a control socket, a session: one run after another, and copies between them if asked.

        It has the seal of its prefix.
        """
        wire = Wire(connection)
        self._guest.open(wire)
        self._guest.reseed()
        if not wire.readable(0):
            self._guest.warm_up()
        wire.send(MESSAGE, json.dumps({"op": "ready", "layers": " ".join(self._layers)}).encode())
        while True:
            if control is not None and not wire.wait(control):
                wire, control = self._copy(wire, control)
                continue
            kind, body = wire.receive()
            if kind == MESSAGE:
                self._handle(body)

    def _copy(self, wire: Wire, control: socket.socket) -> tuple[Wire, socket.socket]:
        """Fork a copy of this process between two runs; return the sockets that each of the two goes on with."""
        try:
            ends = fork_copy(control)
        except OwnerGone:
            os._exit(0)
        if ends is None:
            return wire, control
        wire.connection.close()
        control.close()
        copied = Wire(ends.connection)
        self._guest.open(copied)
        self._guest.redraw()
        ends.control.send(HELLO)
        return copied, ends.control

    def _handle(self, body: bytes) -> bool:
        message: Any = msgspec.json.decode(body, type=_Run)
        if message.op == "run":
            self._guest.limit_memory(int(message.limits.get("memory_mb", 1.0) * (1 << 20)))
        return self._guest.handle(body.decode("utf-8", "replace"))


def main(arguments: list[str]) -> None:
    Template(arguments[:-1]).serve(socket.socket(fileno=int(arguments[-1])))


if __name__ == "__main__":
    main(sys.argv[1:])
