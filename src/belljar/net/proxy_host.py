"""The network of tiers that run real programs: listeners in a sandbox's own network namespace, behind the same gate.

Whoever makes the namespace redirects every TCP connection and DNS question to these sockets; they are the only way
out. Connections are decided by their true destination and the names that led there. Web requests with middleware are
looked into (TLS by a certificate of the sandbox's own authority); everything else that is accepted passes untouched.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Coroutine
from ipaddress import ip_address
from typing import Any, Final, TypeAlias, cast

import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.opcode
import dns.rcode
import dns.rdataclass
import dns.rdatatype
import dns.rrset
import h11

from belljar.net.addresses import Endpoint, canonical
from belljar.net.audit import Emit
from belljar.net.authority_host import SandboxAuthority
from belljar.net.broker_host import shared
from belljar.net.errors import NetError
from belljar.net.gate_host import Gate
from belljar.net.hello import HELLO_MAX, Hello, NotTls, is_http, parse_hello
from belljar.net.hosts import BadHost, parse_name
from belljar.net.http_host import Web
from belljar.net.network import Network
from belljar.net.policy import AcceptHttp, AcceptRaw, Denied, Verdict
from belljar.net.serve_host import Requests
from belljar.net.stream_host import Stream, dial, in_background

_SO_ORIGINAL_DST: Final = 80
_SOL_IPV6: Final = 41
_HELLO_SECONDS: Final = 10.0
_UDP_ROOM: Final = 1232
_DNS_AT_ONCE: Final = 64
Work: TypeAlias = Coroutine[Any, Any, None]


def original_destination(connection: socket.socket) -> tuple[str, int]:
    """Where a redirected connection was going; without a redirection, where it arrived."""
    try:
        if connection.family == socket.AF_INET6:
            raw = connection.getsockopt(_SOL_IPV6, _SO_ORIGINAL_DST, 28)
            return socket.inet_ntop(socket.AF_INET6, raw[8:24]), struct.unpack("!H", raw[2:4])[0]
        raw = connection.getsockopt(socket.SOL_IP, _SO_ORIGINAL_DST, 16)
        return socket.inet_ntoa(raw[4:8]), struct.unpack("!H", raw[2:4])[0]
    except OSError:
        address, port = connection.getsockname()[:2]
        return str(address), int(port)


class Proxy:
    """The listeners of one sandbox. Used on the broker's loop only."""

    def __init__(
        self, gate: Gate, destination: Callable[[socket.socket], tuple[str, int]] = original_destination
    ) -> None:
        self.gate = gate
        self.authority = SandboxAuthority(gate.sandbox)
        self._web = Web(gate)
        self._destination = destination
        self._tasks: set[asyncio.Task[None]] = set()
        self._sockets: list[socket.socket] = []
        self._transports: list[asyncio.BaseTransport] = []
        self._asked = 0

    def serve_tcp(self, listener: socket.socket) -> None:
        """Take every connection that was redirected to this socket."""
        self._accept(listener, self._connection)

    async def serve_dns(self, datagrams: socket.socket, listener: socket.socket | None = None) -> None:
        """Answer names on this socket, and over TCP on the other."""
        datagrams.setblocking(False)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(lambda: _Questions(self), sock=datagrams)
        self._transports.append(transport)
        if listener is not None:
            self._accept(listener, self._dns_connection)

    def _accept(self, listener: socket.socket, serve: Callable[[socket.socket], Work]) -> None:
        listener.setblocking(False)
        self._sockets.append(listener)

        async def accept() -> None:
            loop = asyncio.get_running_loop()
            while True:
                connection, _ = await loop.sock_accept(listener)
                connection.setblocking(False)
                self._start(serve(connection))

        self._start(accept())

    def _start(self, work: Work) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None and not isinstance(error, OSError):
            self.gate.tell({"action": "proxy-error", "error": type(error).__name__})

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for transport in self._transports:
            transport.close()
        for listener in self._sockets:
            listener.close()
        await self._web.close()

    # TCP.

    async def _connection(self, connection: socket.socket) -> None:
        gate = self.gate
        try:
            address, port = self._destination(connection)
            dst = Endpoint(canonical(ip_address(address)), port)
            gate.enter()
        except (OSError, ValueError, NetError):
            _refuse(connection)
            return
        try:
            names = gate.names.names(dst.address, gate.clock())
            match await gate.judge("tcp", dst, names):
                case Denied():
                    _refuse(connection)
                case AcceptRaw():
                    await self._pass(connection, dst)
                case AcceptHttp() as http:
                    await self._web_flow(connection, dst, names, http)
                case _:
                    _refuse(connection)
        except NetError as error:
            gate.tell({"action": "refused", "ip": dst.ip, "port": dst.port, "reason": error.text})
            _refuse(connection)
        finally:
            gate.leave()
            connection.close()

    async def _pass(self, connection: socket.socket, dst: Endpoint) -> None:
        """Bytes as they are, both ways."""
        upstream = await dial(dst.address, dst.port, self.gate.limits.connect_seconds)
        try:
            self.gate.traffic.connections += 1
            _, guest = await asyncio.get_running_loop().connect_accepted_socket(Stream, connection)
            try:
                await self._splice(guest, upstream)
            finally:
                guest.close()
        finally:
            upstream.close()

    async def _splice(self, guest: Stream, upstream: Stream) -> None:
        async def up() -> None:
            while data := await guest.read():
                self.gate.count_out(len(data))
                await upstream.write(data)
            upstream.write_eof()

        async def down() -> None:
            while data := await upstream.read():
                self.gate.count_in(len(data))
                await guest.write(data)
            guest.write_eof()

        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(up())
                group.create_task(down())
        except* (OSError, NetError):
            pass  # either side broke it off: both ends are closed by whoever called

    async def _web_flow(
        self, connection: socket.socket, dst: Endpoint, names: tuple[str, ...], http: AcceptHttp
    ) -> None:
        """Only web requests pass here. A name the client claims counts if this sandbox resolved it to this address."""
        hello = await _peek(connection)
        if hello is None:
            _, guest = await asyncio.get_running_loop().connect_accepted_socket(Stream, connection)
            await self._serve_http(guest, dst, "http", names)
            return
        if hello.encrypted:
            raise NetError("denied", "an encrypted TLS hello hides whom it is for")
        if names and hello.server_name not in names:
            raise NetError("denied", "the TLS server name is not one that led to this address")
        if not names and hello.server_name is not None:
            raise NetError("denied", "a TLS server name for an address that was not looked up")
        verdict: Verdict = http
        if hello.server_name is not None and http.hostname != hello.server_name:
            verdict = await self.gate.judge("tcp", dst, (hello.server_name,))
        if isinstance(verdict, AcceptHttp) and (verdict.middleware is not None or verdict.redact):
            context = self.authority.context(hello.server_name or dst.ip)
            loop = asyncio.get_running_loop()
            try:
                _, guest = await loop.connect_accepted_socket(Stream, connection, ssl=context)
            except OSError:
                return  # the client does not trust the sandbox's authority, or left
            await self._serve_http(guest, dst, "https", (hello.server_name,) if hello.server_name else ())
        elif isinstance(verdict, AcceptHttp | AcceptRaw):
            await self._pass(connection, dst)
        else:
            _refuse(connection)

    async def _serve_http(self, guest: Stream, dst: Endpoint, scheme: str, names: tuple[str, ...]) -> None:
        try:
            await Requests(self._web, guest, dst, scheme, names, answered=True).serve()
        except (h11.ProtocolError, OSError, NetError):
            return  # not HTTP, gone, or broken in the middle of a body: the client sees it cut short
        finally:
            guest.close()

    # Names.

    async def answer(self, data: bytes, room: int) -> bytes | None:
        """The reply to a DNS question; None for what is none."""
        if self._asked >= _DNS_AT_ONCE:
            return None
        self._asked += 1
        try:
            return await self._answer(data, room)
        finally:
            self._asked -= 1

    async def _answer(self, data: bytes, room: int) -> bytes | None:
        try:
            question = dns.message.from_wire(data)
            reply = dns.message.make_response(question, recursion_available=True)
        except (dns.exception.DNSException, ValueError):
            return None
        asked = question.question
        if question.opcode() != dns.opcode.QUERY or len(asked) != 1 or asked[0].rdclass != dns.rdataclass.IN:
            reply.set_rcode(dns.rcode.REFUSED)
            return reply.to_wire()
        try:
            name = parse_name(asked[0].name.to_text())
            lines, _ = await self.gate.resolve(name, dns.rdatatype.to_text(asked[0].rdtype))
        except BadHost:
            reply.set_rcode(dns.rcode.REFUSED)
        except NetError as error:
            missing = error.kind == "dns" and error.text.startswith("no such name")
            reply.set_rcode(
                dns.rcode.NXDOMAIN if missing else dns.rcode.REFUSED if error.kind == "denied" else dns.rcode.SERVFAIL
            )
        else:
            for line in lines:
                owner, ttl, kind, value = line.split(" ", 3)
                reply.answer.append(dns.rrset.from_text(dns.name.from_text(owner), int(ttl), "IN", kind, value))
        wire = reply.to_wire(max_size=65535)
        if len(wire) > room:
            reply.answer.clear()
            reply.flags |= dns.flags.TC
            wire = reply.to_wire()
        return wire

    async def _dns_connection(self, connection: socket.socket) -> None:
        _, stream = await asyncio.get_running_loop().connect_accepted_socket(Stream, connection)
        buffer = b""
        try:
            while True:
                while len(buffer) < 2 or len(buffer) < 2 + int.from_bytes(buffer[:2], "big"):
                    data = await stream.read(timeout=_HELLO_SECONDS)
                    if not data:
                        return
                    buffer += data
                size = int.from_bytes(buffer[:2], "big")
                reply = await self.answer(buffer[2 : 2 + size], 65535)
                buffer = buffer[2 + size :]
                if reply is None:
                    return
                await stream.write(len(reply).to_bytes(2, "big") + reply)
        except OSError:
            return  # gone, or silent
        finally:
            stream.close()


class _Questions(asyncio.DatagramProtocol):
    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, address: object) -> None:
        in_background(self._reply(data, address))

    async def _reply(self, data: bytes, address: object) -> None:
        reply = await self._proxy.answer(data, _UDP_ROOM)
        if reply is not None and self._transport is not None and not self._transport.is_closing():
            self._transport.sendto(reply, address)  # type: ignore[arg-type]


async def _peek(connection: socket.socket) -> Hello | None:
    """How a connection begins, with nothing taken from it; None for plain HTTP. NetError for anything else."""
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(_HELLO_SECONDS):
            while True:
                ready = asyncio.Event()
                loop.add_reader(connection, ready.set)
                try:
                    await ready.wait()
                finally:
                    loop.remove_reader(connection)
                data = connection.recv(HELLO_MAX + 1024, socket.MSG_PEEK)
                if not data:
                    raise NetError("denied", "the connection ended before a web request")
                plain = is_http(data)
                if plain:
                    return None
                if plain is False and (hello := parse_hello(data)) is not None:
                    return hello
                await asyncio.sleep(0.01)  # what is there stays readable: look again when more may have come
    except (NotTls, TimeoutError, OSError):
        raise NetError("denied", "this destination is only open to web requests") from None


def _refuse(connection: socket.socket) -> None:
    """End it with a reset, as a closed port does."""
    try:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    except OSError:
        return  # it is closed already, or belongs to a transport that will
    connection.close()


class RunningProxy:
    """A proxy on the broker's loop, as the maker of a namespace holds it."""

    def __init__(self, proxy: Proxy) -> None:
        self._proxy = proxy

    @property
    def certificate(self) -> bytes:
        """The sandbox's authority, in PEM, to be trusted inside."""
        return self._proxy.authority.certificate

    def close(self) -> None:
        asyncio.run_coroutine_threadsafe(self._proxy.close(), shared.loop).result(10)


def start_proxy(
    network: Network,
    *,
    tcp: list[socket.socket],
    dns_datagrams: socket.socket,
    dns_listener: socket.socket | None = None,
    sandbox: str = "",
    emit: Emit | None = None,
    owner: asyncio.AbstractEventLoop | None = None,
) -> RunningProxy:
    """Serve sockets that were made in a sandbox's network namespace. They are ours from now on."""

    async def start() -> Proxy:
        proxy = Proxy(Gate(network, sandbox=sandbox, emit=emit, owner=owner))
        for listener in tcp:
            proxy.serve_tcp(listener)
        await proxy.serve_dns(dns_datagrams, dns_listener)
        return proxy

    return RunningProxy(asyncio.run_coroutine_threadsafe(start(), shared.loop).result(10))
