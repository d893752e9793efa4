"""The first bytes of a connection: TLS hellos cut into records, with extensions of every kind."""

from __future__ import annotations

import random
import re
from collections.abc import Hashable

from belljar.net.hello import HELLO_MAX, Hello, NotTls, hello_size, is_http, parse_hello
from tests.fuzz.driver import Target


def block(data: bytes, size: int) -> bytes:
    return len(data).to_bytes(size, "big") + data


class HelloTarget(Target):
    def piece(self, rng: random.Random) -> bytes:
        name = rng.choice((b"api.test", b"", b"\xff", b"a" * 300, b"127.0.0.1", b"API.test."))
        entry = bytes([rng.choice((0, 0, 0, 1))]) + block(name, 2)
        server_name = b"\0\0" + block(block(entry * rng.choice((1, 1, 2)), 2), 2)
        others = [b"\xfe\x0d" + block(bytes(8), 2), b"\0\x10" + block(b"\0\3\2h2", 2), b"\0\0" + block(b"", 2)]
        extensions = b"".join(rng.choices([server_name, server_name, *others], k=rng.randrange(4)))
        body = b"\3\3" + bytes(32) + block(bytes(rng.randrange(33)), 1) + block(b"\x13\1", 2) + block(b"\0", 1)
        message = bytes([rng.choice((1, 1, 1, 2))]) + block(body + block(extensions, 2), 3)
        size = rng.choice((1, 20, 1 << 14))
        records = [message[at : at + size] for at in range(0, len(message), size)]
        return b"".join(b"\x16\3\1" + block(record, 2) for record in records)

    def split(self, data: bytes) -> list[bytes]:
        return re.findall(rb"(?s)\x16?.[^\x16]*", data)

    def run(self, data: bytes) -> Hashable:
        is_http(data)
        try:
            found = parse_hello(data)
        except NotTls:
            return "not TLS"
        if found is None:
            assert len(data) < hello_size(data) <= HELLO_MAX + 1, "waiting makes progress, and has an end"
            return "incomplete", len(data) // 100
        assert parse_hello(data + b"more") == found, "what follows changes nothing"
        for at in (0, 1, len(data) // 3):
            part: Hello | None = None
            try:
                part = parse_hello(data[:at])
            except NotTls as error:
                raise AssertionError("the beginning of a hello is one") from error
            assert part in (None, found)
        return found.encrypted, found.server_name is None

    def check(self) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing is open."""


def target() -> Target:
    return HelloTarget()
