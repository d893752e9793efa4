"""DNS questions from a network namespace, as bytes: the name server's parser, the gate's reading, and the reply."""

from __future__ import annotations

import asyncio
import random
import re
import struct
from collections.abc import Hashable
from typing import Self

import dns.message
import dns.rcode

from belljar.net.broker.gate_host import Gate
from belljar.net.broker.name_server_host import NameServer
from belljar.net.network import Network, NetworkLimits
from tests.fuzz.driver import Target


class Names(Target):
    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        limits = NetworkLimits(dns_per_second=1e9, requests_per_second=1e9)
        hosts = {"a.test": ["93.184.215.14", "2606:4700::1"], "b.test": [f"93.184.216.{n}" for n in range(200)]}
        self._gate = Gate(Network.allow("*.test", hosts=hosts, resolvers=["127.0.0.1:1"], limits=limits))
        self._server = NameServer(self._gate)
        return self

    def close(self) -> None:
        self._loop.close()

    def piece(self, rng: random.Random) -> bytes:
        labels = [rng.choice((b"a", b"b", b"x" * 63, b"\xff", b"*", b"", b"A", b".")), rng.choice((b"test", b"org"))]
        name = b"".join(bytes([len(label)]) + label for label in labels) + rng.choice((b"\0", b"\0", b"\xc0\x0c", b""))
        question = name + struct.pack("!HH", rng.choice((1, 28, 15, 255, 65, 41)), rng.choice((1, 1, 255)))
        flags = rng.choice((0x0100, 0x0100, 0x8180, 0x2800, 0))
        counts = rng.choice(((1, 0, 0, 0), (1, 0, 0, 0), (0, 0, 0, 0), (2, 0, 0, 0), (1, 0, 0, 1), (65535, 1, 1, 1)))
        edns = rng.choice((b"", b"", b"\0\0\x29\x10\0\0\0\0\0\0\0"))
        return struct.pack("!HHHHHH", rng.randrange(65536), flags, *counts) + question + edns

    def split(self, data: bytes) -> list[bytes]:
        return re.findall(rb"(?s).{1,12}", data)

    def run(self, data: bytes) -> Hashable:
        room = 1232 if len(data) % 2 else 65535

        async def ask() -> bytes | None:
            async with asyncio.timeout(15):
                return await self._server.answer(data[:65535], room)

        reply = self._loop.run_until_complete(ask())
        if reply is None:
            return "no question"
        assert reply[:2] == data[:2]
        assert len(reply) <= room
        message = dns.message.from_wire(reply)
        return dns.rcode.to_text(message.rcode()), len(message.answer)

    def check(self) -> None:
        assert (self._gate._open, self._gate.memory.used) == (0, 0)
        assert not self._server.busy


def target() -> Target:
    return Names()
