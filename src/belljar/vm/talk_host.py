"""The first frames of a machine: it says hello, gets its plan, and says that it is ready or which step failed."""

from __future__ import annotations

import socket
import struct
import time
from typing import Final

import msgspec

from belljar.abi.wire import Failure, Ready, WireError, worker_frames
from belljar.owner.handle_host import WorkerUnavailable
from belljar.vm.process_host import Process

HELLO_SECONDS: Final = 120.0
"""An emulated machine on a busy host takes its time."""
_FRAME_MAX: Final = 64 << 10
_HELLO: Final = msgspec.msgpack.encode(["hello"])


class NoAnswer(WorkerUnavailable):
    """The machine did not say in time what it should."""


def await_hello(process: Process, seconds: float = HELLO_SECONDS) -> None:
    """Wait until a booted machine wants its plan. WorkerUnavailable, with what it said last."""
    if _receive(process, seconds, "did not boot") != _HELLO:
        raise _explain(process, "did not begin as it should")


def send_plan(process: Process, plan: bytes, seconds: float = HELLO_SECONDS) -> None:
    """Have the machine become the sandbox. WorkerUnavailable, with the step that failed."""
    process.control.settimeout(seconds)
    try:
        process.control.sendall(plan)
        answer = _receive(process, seconds, "did not start the sandbox")
        (message,) = worker_frames().feed(struct.pack("<I", len(answer)) + answer)
    except (OSError, WireError, ValueError) as error:
        raise _explain(process, f"did not start the sandbox: {error}") from error
    if isinstance(message, Failure):
        raise WorkerUnavailable(f"the machine could not start: {message.message.decode('utf-8', 'replace')[:1000]}")
    if not isinstance(message, Ready):
        raise _explain(process, "did not say whether it is ready")
    process.control.settimeout(None)


def _receive(process: Process, seconds: float, failed: str) -> bytes:
    deadline = time.monotonic() + seconds
    try:
        (size,) = struct.unpack("<I", _exactly(process.control, 4, deadline))
        if not 0 < size <= _FRAME_MAX:
            raise _explain(process, f"{failed}: it spoke out of turn")
        return _exactly(process.control, size, deadline)
    except TimeoutError:
        raise _explain(process, f"{failed} within {seconds:g} s") from None
    except (OSError, EOFError):
        raise _explain(process, failed) from None


def _exactly(connection: socket.socket, size: int, deadline: float) -> bytes:
    data = b""
    while len(data) < size:
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        piece = connection.recv(size - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


def _explain(process: Process, what: str) -> NoAnswer:
    said = process.console_text()
    return NoAnswer(f"the machine {what}" + (f". Its last lines:\n{said}" if said else ""))
