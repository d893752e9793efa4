"""HTTP/2 servers that attack their client, frame by frame."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable, Iterator

from tests.net.servers.listener import Listener

HEADERS, RST_STREAM, SETTINGS, CONTINUATION = 1, 3, 4, 9
END_HEADERS = 4
_STATUS_200 = b"\x88"
"""The first entry of HPACK's table that says `:status: 200`."""


def frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


class Flood(Listener):
    """Answers whatever is asked with the frames of an attack, until the client goes or 64 MiB were sent."""

    def __init__(self, attack: Callable[[], Iterator[bytes]], context: ssl.SSLContext | None = None) -> None:
        super().__init__(context=context)
        self._attack = attack

    def serve(self, connection: socket.socket) -> None:
        connection.sendall(frame(SETTINGS, 0, 0, b""))
        connection.recv(1 << 16)
        sent = 0
        for piece in self._attack():
            connection.sendall(piece)
            sent += len(piece)
            if sent > 64 << 20:
                return


def continuation_flood() -> Iterator[bytes]:
    """Headers that never end."""
    field = b"\x40\x01a\x7f" + b"\x80\x7e"  # a literal header with a very long value, in pieces
    yield frame(HEADERS, 0, 1, _STATUS_200 + field[:3])
    while True:
        yield frame(CONTINUATION, 0, 1, b"\x00\x01a\x01b" * 3000)


def header_bomb() -> Iterator[bytes]:
    """One large entry in HPACK's table, then named a great many times with one byte each."""
    entry = b"\x40\x01a\x7f\x81\x1e" + b"x" * 4000
    yield frame(HEADERS, 0, 1, _STATUS_200 + entry)
    for _ in range(60):
        yield frame(CONTINUATION, 0, 1, b"\xbe" * 16000)
    yield frame(CONTINUATION, END_HEADERS, 1, b"\xbe")
    while True:
        yield frame(0, 0, 1, b"x" * 16000)


def reset_flood() -> Iterator[bytes]:
    """Streams reset by the thousand, ours among them."""
    while True:
        yield b"".join(frame(RST_STREAM, 0, stream, b"\0\0\0\x08") for stream in range(1, 999, 2))
