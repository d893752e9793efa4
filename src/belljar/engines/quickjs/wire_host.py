"""The one socket of a JavaScript process: frames in and out, and what a guest printed until it is sent.

The same as addon/wire.h is for V8. Whatever fails here ends the process: the other side is gone, and nobody is left to
tell.
"""

from __future__ import annotations

import os
import select
import socket
import threading
from typing import Final, NoReturn

from belljar.engines.wire.js import FRAME_MAX, OUTPUT, frame

_BESIDE: Final = int.from_bytes(frame(0, b"")[:4], "little")
"""Bytes that a frame's length counts beside its body."""
_KEPT: Final = 32 << 10
"""Bytes of printed text at which the buffer is flushed."""


class Wire:
    """A connection. `send_and_exit` may be called by another thread."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self._stream = 0
        self._printed = bytearray()
        self._sending = threading.Lock()
        self._ready = select.poll()
        self._ready.register(connection, select.POLLIN)

    def receive(self) -> tuple[int, bytes]:
        """A frame of an owner's: its kind and its body."""
        self.flush()
        head = self._take(5)
        return head[4], self._take(self._length(head) - _BESIDE)

    def receive_body(self) -> bytes:
        """A frame of a kernel's (belljar/engines/wire/calls.py): a length and a body."""
        return self._take(self._length(self._take(4)))

    def readable(self, milliseconds: float) -> bool:
        self.flush()
        return bool(self._ready.poll(None if milliseconds < 0 else milliseconds))

    def wait(self, control: socket.socket) -> bool:
        """Wait for something to receive; False if it is on the control socket."""
        self.flush()
        either = select.poll()
        either.register(self.connection, select.POLLIN)
        either.register(control, select.POLLIN)
        return any(fd == self.connection.fileno() for fd, _ in either.poll())

    def send(self, kind: int, body: bytes) -> None:
        self.flush()
        self.send_bytes(frame(kind, body))

    def send_bytes(self, data: bytes) -> None:
        with self._sending:
            self._push(data)

    def print(self, stream: int, data: bytes) -> None:
        """Buffer output until there is much of it, something else is sent, or the process waits."""
        if stream != self._stream:
            self.flush()
            self._stream = stream
        self._printed += data
        if len(self._printed) >= _KEPT:
            self.flush()

    def flush(self) -> None:
        if self._printed:
            with self._sending:
                self._flush()

    def send_and_exit(self, data: bytes) -> NoReturn:
        """Send the reason and exit. Waits for a frame that is half sent."""
        with self._sending:
            self._flush()
            self._push(data)
            os._exit(0)

    def _flush(self) -> None:
        data, self._printed = self._printed, bytearray()
        while data:
            self._push(frame(OUTPUT, bytes([self._stream]) + data[: FRAME_MAX // 2]))
            del data[: FRAME_MAX // 2]

    def _push(self, data: bytes) -> None:
        try:
            self.connection.sendall(data)
        except OSError:
            os._exit(0)

    def _take(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size:
            try:
                piece = self.connection.recv(min(size - len(data), 1 << 20))
            except OSError:
                os._exit(0)
            if not piece:
                os._exit(0)
            data += piece
        return bytes(data)

    @staticmethod
    def _length(head: bytes) -> int:
        length = int.from_bytes(head[:4], "little")
        if length > FRAME_MAX:
            os._exit(0)
        return length
