"""The network of tiers that run real programs: listeners in a sandbox's own network namespace, behind the same gate.

Whoever makes the namespace redirects every TCP connection and DNS question to these sockets, and shows us the packets
of other UDP; there is no other way out. Connections are decided by their true destination and the names that led there.
Web requests with middleware are looked into (TLS by a certificate of the sandbox's own authority); everything else that
is accepted passes untouched.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from ipaddress import ip_address
from typing import Any, Final, TypeAlias, cast

import h11

from belljar.net.addresses import Endpoint, canonical, meant
from belljar.net.broker.authority_host import SandboxAuthority
from belljar.net.broker.front_host import Front
from belljar.net.broker.front_http1_host import serve_http1
from belljar.net.broker.front_http2_host import serve_http2
from belljar.net.broker.gate_host import Gate
from belljar.net.broker.http_host import Web
from belljar.net.broker.name_server_host import NameServer
from belljar.net.broker.stream_host import Meter, Stream, dial
from belljar.net.broker.udp_host import Packets, UdpRelay
from belljar.net.errors import NetError
from belljar.net.hello import HELLO_MAX, Hello, NotTls, hello_size, is_http, parse_hello
from belljar.net.policy import AcceptHttp, AcceptRaw, Denied, Verdict

_SO_ORIGINAL_DST: Final = 80
_SOL_IPV6: Final = 41
_HELLO_SECONDS: Final = 10.0
_GOODBYE_SECONDS: Final = 2.0
"""Time limit for a client to answer TLS's close_notify."""
_START_SECONDS: Final = 10.0
_ACCEPT_PAUSE: Final = 0.1
"""Seconds until a listener that could not accept tries again."""
Work: TypeAlias = Coroutine[Any, Any, None]


def original_destination(connection: socket.socket) -> tuple[str, int]:
    """Return a redirected connection's destination (SO_ORIGINAL_DST); without a redirection, its local address."""
    address, port = connection.getsockname()[:2]
    try:
        if ip_address(address).version == 6 and not address.startswith("::ffff:"):
            raw = connection.getsockopt(_SOL_IPV6, _SO_ORIGINAL_DST, 28)
            return socket.inet_ntop(socket.AF_INET6, raw[8:24]), struct.unpack("!H", raw[2:4])[0]
        raw = connection.getsockopt(socket.SOL_IP, _SO_ORIGINAL_DST, 16)
        return socket.inet_ntoa(raw[4:8]), struct.unpack("!H", raw[2:4])[0]
    except OSError:
        return str(address), int(port)


class Proxy:
    """The listeners of one sandbox. Used on the broker's loop only."""

    def __init__(
        self,
        gate: Gate,
        authority: SandboxAuthority | None = None,
        destination: Callable[[socket.socket], tuple[str, int]] = original_destination,
    ) -> None:
        self.gate = gate
        self.authority = authority or SandboxAuthority(gate.sandbox)
        self._web = Web(gate)
        self._names = NameServer(gate)
        self._destination = destination
        self._tasks: set[asyncio.Task[None]] = set()
        self._sockets: list[socket.socket] = []
        self._udp: UdpRelay | None = None

    def serve_udp(self, packets: Packets) -> None:
        """Carry the datagrams of these packets."""
        self._udp = UdpRelay(self.gate, packets)
        self._udp.start()

    def serve_tcp(self, listener: socket.socket) -> None:
        """Take every connection that was redirected to this socket."""
        self._accept(listener, self._connection)

    async def serve_dns(self, datagrams: Sequence[socket.socket], listeners: Sequence[socket.socket] = ()) -> None:
        """Answer names over UDP on these sockets, and over TCP on the others."""
        for unconnected in datagrams:
            await self._names.serve(unconnected)
        for listener in listeners:
            self._accept(listener, self._names.converse)

    def _accept(self, listener: socket.socket, serve: Callable[[socket.socket], Work]) -> None:
        listener.setblocking(False)
        self._sockets.append(listener)

        async def accept() -> None:
            loop = asyncio.get_running_loop()
            while listener.fileno() >= 0:
                try:
                    connection, _ = await loop.sock_accept(listener)
                except OSError as error:
                    # Out of descriptors or memory, or the client has gone: none of it is for ever.
                    self.gate.tell({"action": "proxy-error", "error": type(error).__name__, "errno": error.errno})
                    await asyncio.sleep(_ACCEPT_PAUSE)
                    continue
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
        self._names.close()
        if self._udp is not None:
            await self._udp.close()
        for listener in self._sockets:
            listener.close()
        await self._web.close()
        await asyncio.sleep(0)  # transports close in the loop's next turn, and it may be its last

    async def end(self) -> None:
        """Close it before its gate is closed."""
        await self.close()
        self.gate.thread.closers.discard(self.close)  # not before: a gate that is closed meanwhile cancels this

    # Connections.

    async def _connection(self, connection: socket.socket) -> None:
        arrived = _Arrived(connection, self.gate)
        try:
            address, port = self._destination(connection)
            dst = Endpoint(meant(canonical(ip_address(address))), port)
            with self.gate.attempt("connection", f"tcp {dst}"):
                await self._decided(arrived, dst)
            await arrived.shut_down()
        except (OSError, ValueError, NetError):
            pass  # the record has it
        finally:
            arrived.close()

    async def _decided(self, arrived: _Arrived, dst: Endpoint) -> None:
        gate = self.gate
        names = gate.names.names(dst.address, gate.clock())
        match await gate.judge("tcp", dst, names):
            case AcceptRaw():
                await self._pass(arrived, dst)
            case AcceptHttp() as http:
                await self._web_flow(arrived, dst, names, http)
            case verdict:
                raise NetError("denied", verdict.reason if isinstance(verdict, Denied) else "not open to this sandbox")

    async def _pass(self, arrived: _Arrived, dst: Endpoint) -> None:
        """Bytes as they are, both ways."""
        upstream = await dial(dst.address, dst.port, self.gate.limits.connect_seconds)
        upstream.memory = self.gate.memory
        meter = Meter()
        try:
            self.gate.traffic.connections += 1
            await self._splice(await arrived.adopt(), upstream, meter)
        finally:
            upstream.close()
            event = {"action": "closed", "ip": dst.ip, "port": dst.port}
            self.gate.tell(event | {"sent": meter.sent, "received": meter.received})

    async def _splice(self, guest: Stream, upstream: Stream, meter: Meter) -> None:
        async def up() -> None:
            while data := await guest.read():
                self.gate.count_out(len(data))
                meter.sent += len(data)
                await upstream.write(data)
            upstream.write_eof()

        async def down() -> None:
            while data := await upstream.read():
                self.gate.count_in(len(data))
                meter.received += len(data)
                await guest.write(data)
            guest.write_eof()

        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(up())
                group.create_task(down())
        except* (OSError, NetError):
            pass  # either side broke it off: both ends are closed by whoever called

    async def _web_flow(self, arrived: _Arrived, dst: Endpoint, names: tuple[str, ...], http: AcceptHttp) -> None:
        """Serve web requests only. A name the client claims counts if this sandbox resolved it to this address."""
        hello = await _peek(arrived.connection)
        if hello is None:
            await self._serve(Front(self._web, dst, "http", names), await arrived.adopt())
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
        if isinstance(verdict, Denied):
            raise NetError("denied", verdict.reason)
        if not (isinstance(verdict, AcceptHttp) and (verdict.middleware is not None or verdict.redact)):
            await self._pass(arrived, dst)
            return
        try:
            guest = await arrived.adopt(self.authority.context(hello.server_name or dst.ip))
        except OSError:
            raise NetError("tls", "the client does not trust the sandbox's authority, or left") from None
        await self._serve(Front(self._web, dst, "https", (hello.server_name,) if hello.server_name else ()), guest)

    async def _serve(self, front: Front, guest: Stream) -> None:
        tls = guest.info("ssl_object")
        if tls is not None and tls.selected_alpn_protocol() == "h2":
            await serve_http2(front, guest)
            return
        try:
            await serve_http1(front, guest)
        except (h11.ProtocolError, OSError, NetError):
            return  # not HTTP, gone, or broken in the middle of a body: the client sees it cut short


class _Arrived:
    """A client's connection: refused unless somebody takes it on."""

    def __init__(self, connection: socket.socket, gate: Gate) -> None:
        self.connection = connection
        self._gate = gate
        self._stream: Stream | None = None

    async def adopt(self, context: ssl.SSLContext | None = None) -> Stream:
        """Talk to the client from now on; with a context, by TLS. OSError."""
        self._stream = Stream(self._gate.memory)
        await asyncio.get_running_loop().connect_accepted_socket(
            lambda: cast(Stream, self._stream),
            self.connection,
            ssl=context,
            ssl_handshake_timeout=None if context is None else _HELLO_SECONDS,
        )
        return self._stream

    async def shut_down(self) -> None:
        if self._stream is not None:
            await self._stream.shut_down(_GOODBYE_SECONDS)

    def close(self) -> None:
        if self._stream is None:
            _refuse(self.connection)
        else:
            self._stream.close()  # what it has still to send is sent


async def _peek(connection: socket.socket) -> Hello | None:
    """Peek at a connection's TLS hello (MSG_PEEK); None for plain HTTP. NetError for anything else."""
    loop = asyncio.get_running_loop()
    seen = 0
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
                if len(data) <= seen:
                    raise NetError("denied", "the connection ended before a web request")
                seen = len(data)
                plain = is_http(data)
                if plain:
                    return None
                if plain is False and (hello := parse_hello(data)) is not None:
                    return hello
                # What is there stays readable: be woken when there is as much as it takes to know more.
                more = seen + 1 if plain is None else hello_size(data)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, more)
    except (NotTls, TimeoutError, OSError):
        raise NetError("denied", "this destination is only open to web requests") from None
    finally:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, 1)


def _refuse(connection: socket.socket) -> None:
    """End it with a reset, as a closed port does."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def start_proxy(
    gate: Gate,
    *,
    tcp: Sequence[socket.socket],
    dns_datagrams: Sequence[socket.socket],
    dns_listeners: Sequence[socket.socket] = (),
    udp: Packets | None = None,
    authority: SandboxAuthority | None = None,
) -> Callable[[], None]:
    """Serve sockets that were made in a sandbox's network namespace. They are the gate's from now on: it closes them.

    `authority` is one whose certificate is trusted inside. Gives a function that ends it before the gate does, without
    waiting.
    """

    async def start() -> Proxy:
        proxy = Proxy(gate, authority)
        gate.thread.closers.add(proxy.close)
        for listener in tcp:
            proxy.serve_tcp(listener)
        await proxy.serve_dns(dns_datagrams, dns_listeners)
        if udp is not None:
            proxy.serve_udp(udp)
        return proxy

    def end() -> None:
        with suppress(RuntimeError):  # the gate was closed meanwhile, and with it the proxy
            gate.thread.submit(proxy.end())

    proxy = gate.thread.submit(start()).result(_START_SECONDS)
    return end
