"""The first bytes of a connection: a TLS ClientHello with its server name, plain HTTP, or something else."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from belljar.net.hosts import BadHost, parse_name

HELLO_MAX: Final = 16 << 10
_RECORDS_MAX: Final = 16
"""Most TLS records that a hello may be split into."""
_HANDSHAKE: Final = 22
_CLIENT_HELLO: Final = 1
_SERVER_NAME: Final = 0
_ENCRYPTED_HELLO: Final = 0xFE0D
_METHODS: Final = (b"GET ", b"HEAD ", b"POST ", b"PUT ", b"PATCH ", b"DELETE ", b"OPTIONS ")


@dataclass(frozen=True, slots=True)
class Hello:
    """A TLS client that introduces itself."""

    server_name: str | None
    """The name it asks for, if that is one."""
    encrypted: bool
    """Whether the real name is in an Encrypted Client Hello, unreadable on the way."""


class NotTls(ValueError):
    """These bytes do not begin a TLS connection."""


def is_http(data: bytes) -> bool | None:
    """Whether a plain web request begins here; None if more bytes are needed to tell."""
    if any(data.startswith(method) for method in _METHODS):
        return True
    return None if any(method.startswith(data) for method in _METHODS) else False


def parse_hello(data: bytes) -> Hello | None:
    """The hello at the start of `data`; None if it is not complete yet. Raises NotTls."""
    message = b""
    at = records = 0
    while True:
        records += 1
        if records > _RECORDS_MAX:
            raise NotTls
        head = data[at : at + 5]
        if head and (head[0] != _HANDSHAKE or head[1:2] not in (b"", b"\x03")):
            raise NotTls
        if len(head) < 5:
            _check_size(data)
            return None
        size = int.from_bytes(head[3:5], "big")
        if not 0 < size <= HELLO_MAX + 256:
            raise NotTls
        message += data[at + 5 : at + 5 + size]
        if message and message[0] != _CLIENT_HELLO:
            raise NotTls
        if len(message) >= 4:
            length = int.from_bytes(message[1:4], "big")
            if length > HELLO_MAX:
                raise NotTls
            if len(message) >= 4 + length:
                return _read(message[4 : 4 + length])
        if len(data) < at + 5 + size:
            _check_size(data)
            return None
        at += 5 + size


def hello_size(data: bytes) -> int:
    """Return the number of bytes that `parse_hello` needs to get further."""
    at = 0
    while len(data) >= at + 5:
        at += 5 + int.from_bytes(data[at + 3 : at + 5], "big")
        if at > len(data):
            return min(at, HELLO_MAX + 1)
    return min(at + 5, HELLO_MAX + 1)


def _check_size(data: bytes) -> None:
    if len(data) > HELLO_MAX:
        raise NotTls


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, count: int) -> bytes:
        if self.at + count > len(self.data):
            raise NotTls
        self.at += count
        return self.data[self.at - count : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def block(self, size: int) -> bytes:
        """Bytes after their own length, of `size` bytes."""
        return self.take(self.number(size))

    @property
    def left(self) -> bool:
        return self.at < len(self.data)


def _read(body: bytes) -> Hello:
    reader = _Reader(body)
    reader.take(34)  # version and random
    reader.block(1)  # session
    reader.block(2)  # ciphers
    reader.block(1)  # compression
    names: list[str | None] = []
    encrypted = False
    extensions = _Reader(reader.block(2)) if reader.left else _Reader(b"")
    while extensions.left:
        kind, value = extensions.number(2), extensions.block(2)
        if kind == _SERVER_NAME:
            names.append(_server_name(value))
        encrypted = encrypted or kind == _ENCRYPTED_HELLO
    if len(names) > 1:
        raise NotTls
    return Hello(names[0] if names else None, encrypted)


def _server_name(value: bytes) -> str:
    entries = _Reader(_Reader(value).block(2))
    if entries.number(1) != 0:
        raise NotTls
    name = entries.block(2)
    if entries.left:
        raise NotTls
    try:
        return parse_name(name.decode("ascii"))
    except (BadHost, UnicodeDecodeError):
        raise NotTls from None
