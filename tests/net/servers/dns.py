"""A DNS server over UDP and TCP whose answers are functions of the test: honest, hostile or malformed."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from itertools import pairwise
from types import TracebackType
from typing import Self

import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdatatype
import dns.rrset

from tests.net.servers.listener import Listener, listen_for_both

Records = list[str]
"""Lines of a zone file: `NAME TTL TYPE DATA`, as `api.example.com 60 A 192.0.2.1`."""
Zone = Callable[[str, str], Records | bytes | None]
"""The name asked for (lower case, no final dot) and the type: records, a whole raw message (its first two bytes are
replaced by the question's id), or None for no such name. Silence is b""."""


class DnsServer:
    """`questions` are the (name, type) pairs that arrived, in order. `zone` may be a plain table of names to records;
    a table's values are addresses or `TYPE DATA`, with a TTL of 60."""

    def __init__(
        self, zone: Zone | Mapping[str, list[str]], *, address: str = "127.0.0.1", port: int = 0, wrong_id: bool = False
    ) -> None:
        self.zone: Zone = zone if callable(zone) else table(zone)
        self.questions: list[tuple[str, str]] = []
        self.wrong_id = wrong_id
        listening, self._socket = listen_for_both(address, port)
        self._over_tcp = _OverTcp(self, address, listening)
        self.address, self.port = address, self._over_tcp.port
        self._thread = threading.Thread(target=self._loop, daemon=True)

    @property
    def authority(self) -> str:
        """ADDRESS:PORT, for a policy's list of resolvers."""
        return self._over_tcp.authority

    def answer(self, data: bytes, *, room: int) -> bytes:
        question = dns.message.from_wire(data)
        asked = question.question[0]
        name, kind = asked.name.to_text(omit_final_dot=True).lower(), dns.rdatatype.to_text(asked.rdtype)
        self.questions.append((name, kind))
        given = self.zone(name, kind)
        identity = bytes(byte ^ 0xFF for byte in data[:2]) if self.wrong_id else data[:2]
        if isinstance(given, bytes):
            return identity + given[2:] if given else b""
        reply = dns.message.make_response(question)
        reply.flags |= dns.flags.RA
        if given is None:
            reply.set_rcode(dns.rcode.NXDOMAIN)
        for line in given or []:
            owner, ttl, type_name, rest = line.split(" ", 3)
            absolute = dns.name.from_text(owner)
            found = dns.rrset.from_text(absolute, int(ttl), "IN", type_name, rest)
            reply.answer.append(found)
        wire = reply.to_wire(max_size=65535)
        if len(wire) > room:
            reply.answer.clear()
            reply.flags |= dns.flags.TC
            wire = reply.to_wire()
        return identity + wire[2:]

    def _loop(self) -> None:
        while True:
            try:
                data, peer = self._socket.recvfrom(65535)
            except OSError:
                return
            if not data:
                return
            with suppress(dns.exception.DNSException, IndexError):
                if reply := self.answer(data, room=1232):
                    with suppress(OSError):
                        self._socket.sendto(reply, peer)

    def __enter__(self) -> Self:
        self._over_tcp.__enter__()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over_tcp.__exit__(kind, error, trace)
        with suppress(OSError):
            self._socket.sendto(b"", self._socket.getsockname())
        self._thread.join(5)
        self._socket.close()


class _OverTcp(Listener):
    """The same answers with a length before each."""

    def __init__(self, server: DnsServer, address: str, listening: socket.socket) -> None:
        super().__init__(address, listening=listening)
        self._server = server

    def serve(self, connection: socket.socket) -> None:
        stream = connection.makefile("rb")
        while len(head := stream.read(2)) == 2:
            try:
                reply = self._server.answer(stream.read(int.from_bytes(head, "big")), room=65535)
            except (dns.exception.DNSException, IndexError):
                return
            if reply:
                connection.sendall(len(reply).to_bytes(2, "big") + reply)


def table(names: Mapping[str, list[str]]) -> Zone:
    """A zone that is a table: `{"a.example": ["192.0.2.1", "::1", "CNAME b.example.", "TXT \\"x\\""]}`."""

    def zone(name: str, kind: str) -> Records | None:
        records: Records = []
        seen: set[str] = set()
        while name in names and name not in seen:
            seen.add(name)
            following = ""
            for value in names[name]:
                words = value.partition(" ")
                type_name, data = (words[0], words[2]) if words[2] else ("AAAA" if ":" in value else "A", value)
                if type_name in (kind, "CNAME"):
                    records.append(f"{name}. 60 {type_name} {data}")
                if type_name == "CNAME":
                    following = data.rstrip(".").lower()
            name = following
        return records if seen else None

    return zone


def rebinding(*addresses: str, ttl: int = 0) -> Zone:
    """Each question gets the next address, and the last one for ever after."""
    left = list(addresses)
    lock = threading.Lock()

    def zone(name: str, kind: str) -> Records:
        if kind != "A":
            return []
        with lock:
            address = left.pop(0) if len(left) > 1 else left[0]
        return [f"{name}. {ttl} A {address}"]

    return zone


def chain(length: int, last: str) -> Zone:
    """A chain of CNAMEs, and an address at its end."""

    def zone(name: str, kind: str) -> Records:
        names = [name, *(f"c{n}.{name}" for n in range(length))]
        records = [f"{a}. 60 CNAME {b}." for a, b in pairwise(names)]
        return [*records, f"{names[-1]}. 60 A {last}"] if kind == "A" else records

    return zone


def compression_loop(question_name: str = "x") -> bytes:
    """A reply whose answer's name points to itself."""
    label = question_name.encode()
    head = b"\0\0\x81\x80\0\x01\0\x01\0\0\0\0"
    question = bytes([len(label)]) + label + b"\0\0\x01\0\x01"
    at = len(head) + len(question)
    return head + question + bytes([0xC0 | at >> 8, at & 0xFF]) + b"\0\x01\0\x01\0\0\0\x3c\0\x04\x7f\0\0\x01"


def lying_counts() -> bytes:
    """A reply that claims 65535 answers and has none."""
    return b"\0\0\x81\x80\0\0\xff\xff\0\0\0\0"
