"""Starts WebAssembly programs from the owner: compiles each once, and gives the native code to a new process.

The owner looks into neither program nor native code: it counts, hashes and keeps bytes.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from functools import cache
from typing import Final

from belljar.engines.errors import EngineUnavailable
from belljar.engines.owner.template_host import EngineLimits, EngineProcess, template
from belljar.engines.owner.wasm_natives_host import Natives
from belljar.engines.wire.wasm import COMPILE, LENGTH, MADE, RESULT, RUN, SPENT, CompilerRefused, NotCompiled
from belljar.lockdown.sockets_host import send_descriptors

_REASON_MAX: Final = 4096
_GROWTH: Final = 32
"""Largest ratio of native code to program size."""
_LEAST: Final = 16 << 20
_WALL_PER_CPU: Final = 20.0
"""Wall-clock limit of a compilation, as a multiple of its CPU limit."""


@cache
def natives() -> Natives:
    """Return the native code cache of this process."""
    return Natives()


def start(limits: EngineLimits, digest: object) -> EngineProcess:
    """A process that has the native code of a program and waits for START. Raises NotCompiled, EngineUnavailable."""
    native = natives().find(digest) if isinstance(digest, str) else None
    if native is None:
        raise NotCompiled
    try:
        process = template("wasm").fork(limits, {})
        try:
            send_descriptors(process.connection, RUN, [native])
        except OSError as error:
            process.kill()
            raise EngineUnavailable(f"the process of the program ended early: {error}") from error
        return process
    finally:
        os.close(native)


def compile_program(program: bytearray, limits: EngineLimits, begun: Callable[[EngineProcess], None]) -> float:
    """Have a program compiled, in a process of its own: the seconds of processor time that took.

    `begun` is told of the process, to end it when nobody wants the result any more. Raises CompilerRefused,
    EngineUnavailable.
    """
    process = template("wasm").fork(limits, {})
    try:
        begun(process)
        connection = process.connection
        connection.settimeout(_WALL_PER_CPU * (limits.cpu_seconds + 1))
        connection.sendall(COMPILE + LENGTH.pack(len(program)))
        connection.sendall(program)
        outcome, seconds, length = RESULT.unpack(_receive(connection, RESULT.size))
        most = max(_LEAST, _GROWTH * len(program)) if outcome == MADE else _REASON_MAX
        if length > most or not 0 <= seconds < float("inf"):
            raise CompilerRefused(f"it makes more than {most} bytes of native code")
        result = _receive(connection, length)
    except OSError:
        raise CompilerRefused("the compiler ended, of its limits or of the program") from None
    finally:
        process.kill()
    if outcome == MADE:
        natives().add(program, result)
        return float(seconds)
    reason = "".join(letter for letter in result.decode("utf-8", "replace") if letter.isprintable())
    raise CompilerRefused(reason, seconds, spent=outcome == SPENT)


def _receive(connection: socket.socket, size: int) -> bytearray:
    data = bytearray(size)
    view = memoryview(data)
    while view:
        count = connection.recv_into(view)
        if not count:
            raise ConnectionResetError
        view = view[count:]
    return data
