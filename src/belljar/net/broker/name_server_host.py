"""The resolver of a sandbox that runs real programs: DNS questions from its namespace, answered as the gate decides."""

from __future__ import annotations

import asyncio
import socket
from ipaddress import ip_address
from typing import Final, cast

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rrset

from belljar.net.addresses import shown
from belljar.net.broker.dns_host import load_types
from belljar.net.broker.gate_host import Gate
from belljar.net.broker.stream_host import Stream, in_background
from belljar.net.errors import NetError

_UDP_ROOM: Final = 1232
_TCP_ROOM: Final = 65535
_AT_ONCE: Final = 64
_SILENCE_SECONDS: Final = 10.0
_CONNECTIONS_MAX: Final = 32
_SHOWN: Final = 253


class NameServer:
    """Answers over UDP and TCP. Used on the broker's loop only."""

    def __init__(self, gate: Gate) -> None:
        load_types()
        self._gate = gate
        self._asked = 0
        self._connections = 0
        self._transports: list[asyncio.BaseTransport] = []

    async def serve(self, datagrams: socket.socket) -> None:
        datagrams.setblocking(False)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(lambda: _Questions(self), sock=datagrams)
        self._transports.append(transport)

    def close(self) -> None:
        for transport in self._transports:
            transport.close()

    @property
    def busy(self) -> bool:
        """Whether as many questions are open as may be."""
        return self._asked >= _AT_ONCE

    async def answer(self, data: bytes, room: int) -> bytes | None:
        """The reply to a DNS question; None for what is none."""
        if self.busy:
            return None
        self._asked += 1
        try:
            return await self._answer(data, room)
        finally:
            self._asked -= 1

    async def _answer(self, data: bytes, room: int) -> bytes | None:
        try:
            question = dns.message.from_wire(data, question_only=True)
            reply = dns.message.make_response(question, recursion_available=True)
        except (dns.exception.DNSException, ValueError):
            return None
        asked = question.question
        if question.opcode() != dns.opcode.QUERY or len(asked) != 1 or asked[0].rdclass != dns.rdataclass.IN:
            reply.set_rcode(dns.rcode.REFUSED)
            return reply.to_wire()
        kind = dns.rdatatype.to_text(asked[0].rdtype)
        try:
            name = asked[0].name.to_text()
            with self._gate.attempt("dns", name[:_SHOWN]):
                lines, _ = await self._gate.resolve(name, kind)
        except NetError as error:
            reply.set_rcode(_code_of(error, kind))
        else:
            for line in lines:
                owner, ttl, kind, value = line.split(" ", 3)
                if kind in ("A", "AAAA"):
                    value = str(shown(ip_address(value)))
                reply.answer.append(dns.rrset.from_text(dns.name.from_text(owner), int(ttl), "IN", kind, value))
        wire = reply.to_wire(max_size=_TCP_ROOM)
        if len(wire) > room:
            reply.answer.clear()
            reply.flags |= dns.flags.TC
            wire = reply.to_wire()
        return wire

    async def converse(self, connection: socket.socket) -> None:
        """Questions over TCP, one after the other."""
        share = self._gate.descriptors
        if self._connections >= _CONNECTIONS_MAX or not share.take():
            connection.close()
            return
        self._connections += 1
        stream = Stream(self._gate.memory)
        try:
            await asyncio.get_running_loop().connect_accepted_socket(lambda: stream, connection)
            buffer = b""
            while True:
                async with asyncio.timeout(_SILENCE_SECONDS):  # for all of a question, however slowly it comes
                    while len(buffer) < 2 or len(buffer) < 2 + int.from_bytes(buffer[:2], "big"):
                        data = await stream.read()
                        if not data:
                            return
                        buffer += data
                size = int.from_bytes(buffer[:2], "big")
                reply = await self.answer(buffer[2 : 2 + size], _TCP_ROOM)
                buffer = buffer[2 + size :]
                if reply is None:
                    return
                await stream.write(len(reply).to_bytes(2, "big") + reply, _SILENCE_SECONDS)
        except OSError:
            return  # gone, or silent
        finally:
            stream.close()
            self._connections -= 1
            share.give()


def _code_of(error: NetError, kind: str) -> dns.rcode.Rcode:
    if error.kind == "denied" and not error.temporary:
        # C libraries take REFUSED for a server's trouble: they ask again, and some wait for seconds.
        return dns.rcode.NXDOMAIN if kind in ("A", "AAAA") else dns.rcode.REFUSED
    missing = error.kind == "dns" and error.text.startswith("no such name")
    return dns.rcode.NXDOMAIN if missing else dns.rcode.SERVFAIL


class _Questions(asyncio.DatagramProtocol):
    def __init__(self, server: NameServer) -> None:
        self._server = server
        self._transport: asyncio.DatagramTransport | None = None
        self._full = False

    def pause_writing(self) -> None:
        self._full = True  # who does not take its answers loses them

    def resume_writing(self) -> None:
        self._full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, address: object) -> None:
        if not self._server.busy:
            in_background(self._reply(data, address))

    async def _reply(self, data: bytes, address: object) -> None:
        reply = await self._server.answer(data, _UDP_ROOM)
        if reply is not None and self._transport is not None and not (self._full or self._transport.is_closing()):
            self._transport.sendto(reply, address)  # type: ignore[arg-type]
