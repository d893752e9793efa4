"""A WebSocket server that sends every message back (RFC 6455)."""

from __future__ import annotations

import base64
import hashlib
import socket

from tests.net.servers.http1 import Request
from tests.net.servers.listener import Listener

_MAGIC = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class EchoSocket(Listener):
    """`handshakes` are the requests that asked for a socket, `messages` what came over them."""

    def __init__(self, address: str = "127.0.0.1", port: int = 0) -> None:
        super().__init__(address, port)
        self.handshakes: list[Request] = []
        self.messages: list[bytes] = []

    def serve(self, connection: socket.socket) -> None:
        stream = connection.makefile("rb")
        line = stream.readline(8192).decode("latin-1")
        method, target, _ = line.split(" ", 2)
        headers: list[tuple[str, str]] = []
        while (line := stream.readline(8192).decode("latin-1").rstrip("\r\n")) != "":
            name, _, value = line.partition(":")
            headers.append((name.lower(), value.strip()))
        request = Request(method, target, headers)
        self.handshakes.append(request)
        key = request.header("sec-websocket-key")
        if (request.header("upgrade") or "").lower() != "websocket" or key is None:
            connection.sendall(b"HTTP/1.1 426 Upgrade Required\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            return
        accept = base64.b64encode(hashlib.sha1(key.encode() + _MAGIC).digest())  # noqa: S324 - the protocol's own
        connection.sendall(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
        )
        while True:
            first, second = stream.read(2)
            size = second & 0x7F
            if size == 126:
                size = int.from_bytes(stream.read(2), "big")
            elif size == 127:
                size = int.from_bytes(stream.read(8), "big")
            mask = stream.read(4) if second & 0x80 else b"\0\0\0\0"
            data = bytes(byte ^ mask[i % 4] for i, byte in enumerate(stream.read(size)))
            kind = first & 15
            if kind in (TEXT, BINARY):
                self.messages.append(data)
            connection.sendall(frame(PONG if kind == PING else kind, data))
            if kind == CLOSE:
                return


def frame(kind: int, data: bytes, mask: bytes | None = None) -> bytes:
    """One final frame; a client's has a mask."""
    bit = 0x80 if mask is not None else 0
    if len(data) < 126:
        head = bytes([0x80 | kind, bit | len(data)])
    elif len(data) < 1 << 16:
        head = bytes([0x80 | kind, bit | 126]) + len(data).to_bytes(2, "big")
    else:
        head = bytes([0x80 | kind, bit | 127]) + len(data).to_bytes(8, "big")
    if mask is None:
        return head + data
    return head + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(data))
