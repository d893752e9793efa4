"""The engine process's side of a connection: one blocking socket, one call at a time."""

from __future__ import annotations

import select
import socket
import struct
import threading
from collections.abc import Callable
from typing import Any, Final

import msgspec

from belljar.engines.wire.calls import (
    ANSWER,
    ANSWER_MAX,
    CALLS,
    LIMITS,
    NO_ANSWER,
    REQUEST,
    SIGNAL,
    START,
    BadFrame,
    Start,
    decode,
    encode,
)

_FIRST: Final = 1 << 16
_LIMITS: Final = struct.Struct("<qq")


class CallError(Exception):
    """The kernel refused: its errno."""

    def __init__(self, errno: int) -> None:
        super().__init__(errno)
        self.errno = errno


class ConnectionEnded(BaseException):
    """The worker closed the connection. Not an Exception: the process can only exit."""


class Program(msgspec.Struct, frozen=True):
    """The contents of a START frame."""

    argv: list[bytes]
    env: list[bytes]
    cwd: bytes
    options: dict[str, Any]
    numbers: Start
    stdio: list[int]
    """For each of the descriptors 0 to 3 its mode (0: closed) and its flags."""


class Client:
    """Makes calls. `signals` collects the numbers of reported signals as they come.

    With a control socket, the connection must have a receive timeout (`forking/timeout_host.py`).
    """

    def __init__(self, connection: socket.socket, control: socket.socket | None = None) -> None:
        self._rest = b""
        self.on_copy: Callable[[socket.socket], None] | None = None
        """Called while a call waits for its answer, when something is to be read from the control socket."""
        self.connect(connection, control)
        self.signals: list[int] = []
        self.on_limits: Callable[[int, int], None] = lambda cpu_ns, memory: None
        """Called with the limits of an interpreter's next run."""
        self._told = 0
        """Number of unreceived signals that `peek_signals` has already returned."""
        self.busy = False
        """Whether a call is under way."""
        self.calls = 0

    def connect(self, connection: socket.socket, control: socket.socket | None) -> None:
        """Switch to another connection, in a forked copy, which has only this thread."""
        self._connection = connection
        self._control = control
        self._send = connection.sendall
        self._recv = connection.recv
        self._sending = threading.Lock()
        self._ready: select.poll | None = None
        if control is not None:
            self._ready = select.poll()
            for end in (connection, control):
                self._ready.register(end.fileno(), select.POLLIN)

    def wait_for_start(self) -> Program:
        """Wait for START; return the program to run."""
        id, kind, body = self._receive()
        if id != 0 or kind != START:
            raise BadFrame("the first frame is not START")
        argv, env, cwd, options, numbers, stdio = decode("llssQQ", body)
        return Program(argv, env, cwd, msgspec.json.decode(options), Start(*numbers), stdio)

    def call(self, name: str, *arguments: Any) -> list[Any]:
        """Make a call by name. Raises CallError."""
        number, takes, gives = CALLS[name]
        return decode(gives, self.request(number, encode(takes, arguments)))

    def request(self, number: int, body: bytes) -> bytes:
        """Make a call whose arguments are encoded already. Raises CallError."""
        self.busy = True
        self.calls += 1
        try:
            with self._sending:
                self._send(REQUEST.pack(len(body) + 8, 1, number, 0) + body)
        except OSError:
            raise ConnectionEnded from None
        while True:
            id, errno, results = self._receive()
            if id:
                break
            self._take_event(errno, results)
        while self._rest:  # an event that came with the answer: nobody would look at it before the next call
            _, kind, body = self._receive()
            self._take_event(kind, body)
        self.busy = False
        if errno:
            raise CallError(errno)
        return results

    def post(self, name: str, *arguments: Any) -> None:
        """Make a call without waiting: its answer is not needed, or it has none (`exit`, `exceeded`)."""
        number, takes, _ = CALLS[name]
        body = encode(takes, arguments)
        try:
            with self._sending:
                self._send(REQUEST.pack(len(body) + 8, 1, number, NO_ANSWER) + body)
        except OSError:
            raise ConnectionEnded from None

    def peek_signals(self) -> list[int]:
        """The signals that have come since the last look, without receiving them: for another thread than the caller's,
        while that makes no call. Raises ConnectionEnded when the kernel's side is gone."""
        try:
            data = self._connection.recv(_FIRST, socket.MSG_DONTWAIT | socket.MSG_PEEK)
        except BlockingIOError:
            return []
        except OSError:
            raise ConnectionEnded from None
        if not data:
            raise ConnectionEnded
        found: list[int] = []
        while len(data) >= ANSWER.size:
            length, id, kind = ANSWER.unpack_from(data)
            if id or len(data) < length + 4:
                break
            if kind == SIGNAL:
                found.append(decode("q", data[ANSWER.size : length + 4])[0])
            data = data[length + 4 :]
        fresh = found[self._told :]
        self._told += len(fresh)
        return fresh

    def _take_event(self, kind: int, body: bytes) -> None:
        if kind == SIGNAL:
            if self._told:
                self._told -= 1
            else:
                self.signals.append(decode("q", body)[0])
        elif kind == LIMITS:
            self.on_limits(*_LIMITS.unpack(body))

    def _receive(self) -> tuple[int, int, bytes]:
        data = self._rest
        while len(data) < ANSWER.size:
            data += self._more(_FIRST, between=not data)
        length, id, status = ANSWER.unpack_from(data)
        if not 8 <= length <= ANSWER_MAX:
            raise BadFrame(f"an answer claims {length} bytes")
        end = length + 4
        if len(data) == end:
            self._rest = b""
            return id, status, data[12:]
        if len(data) > end:
            self._rest = data[end:]
            return id, status, data[12:end]
        parts, have = [data], len(data)
        while have < end:
            more = self._more(end - have)
            parts.append(more)
            have += len(more)
        self._rest = b""
        return id, status, b"".join(parts)[12:]

    def _wait(self) -> None:
        """Wait for input; call `on_copy` for requests on the control socket meanwhile."""
        while self._ready is not None:
            ready = [fd for fd, _ in self._ready.poll()]
            if self._connection.fileno() in ready:
                return
            assert self._control is not None
            if self.on_copy is not None:
                self.on_copy(self._control)
            else:
                self._ready.unregister(self._control.fileno())

    def disconnect(self) -> None:
        """Close the inherited sockets, in a forked copy."""
        self._connection.close()
        if self._control is not None:
            self._control.close()

    def drop_control(self) -> None:
        """Stop polling the control socket: no further copies are requested."""
        self._control = self._ready = None

    def _more(self, size: int, *, between: bool = False) -> bytes:
        while True:
            try:
                data = self._recv(size)
                break
            except BlockingIOError:  # nothing came for a while: only then look elsewhere too
                if between:
                    self._wait()
            except OSError:
                raise ConnectionEnded from None
        if not data:
            raise ConnectionEnded
        return data
