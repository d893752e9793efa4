"""A connection that a guest dialled: raw bytes where those were accepted, web requests where only they were.

TLS is the broker's business either way: a guest says when it begins and for which name, servers are verified, and what
it sends and gets is plain. So web requests are looked into wherever they come from, and no key is ever in a guest.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Protocol

from belljar.net.addresses import Address, Endpoint
from belljar.net.broker.flow_host import Flow, Sender
from belljar.net.broker.gate_host import Gate, Reached
from belljar.net.broker.stream_host import Datagrams, Meter, Pipe, Stream, start_tls
from belljar.net.errors import NetError
from belljar.net.hosts import BadHost, parse_host
from belljar.net.policy import AcceptHttp, AcceptRaw
from belljar.net.wire import CHUNK, DATAGRAM_MAX, Dial, Opened, Secure, Secured

if TYPE_CHECKING:
    from belljar.net.broker.http_host import Web


class Connection:
    """One `Dial`, from the decision to the last byte."""

    def __init__(self, gate: Gate, web: Callable[[], Web], line: Sender, flow: Flow, message: Dial) -> None:
        self._gate = gate
        self._web = web
        self._line = line
        self._flow = flow
        self._message = message
        self._where = f"{message.host}:{message.port}"
        self._limit = min(message.timeout or gate.limits.connect_seconds, gate.limits.connect_seconds)

    async def carry(self) -> None:
        """Run the connection until both sides are done. NetError."""
        with self._gate.attempt("connection", f"{self._message.protocol[:8]} {self._where[:300]}"):
            await self._carry()

    async def _carry(self) -> None:
        message, gate = self._message, self._gate
        if message.protocol not in ("tcp", "udp") or not 0 < message.port < 65536:
            raise NetError("protocol", "no such protocol or port")
        reached = await gate.reach(message.protocol, message.host, message.port)
        raw = [place for place in reached if isinstance(place.accepted, AcceptRaw)]
        if raw:
            await self._raw_flow(raw)
        elif message.web:
            await self._web_flow(reached)
        else:
            raise NetError("denied", f"{self._where} is only open to web requests (curl, wget, /mnt/web)")

    async def _opened(self, place: Reached) -> None:
        await self._gate.record.written()
        self._line.send(Opened(self._flow.number, {"remote-ip": str(place.address), "remote-port": str(place.port)}))

    # Raw bytes.

    async def _raw_flow(self, places: list[Reached]) -> None:
        gate, flow = self._gate, self._flow
        meter = Meter()
        stream, place = await gate.open(self._message.protocol, places, self._limit)
        try:
            await self._opened(place)
            if isinstance(stream, Datagrams):
                await pump_datagrams(gate, flow, stream, meter)
                return
            await pump(gate, flow, stream, meter)
            while flow.wish is not None:
                wish = flow.take_wish()
                offered = tuple(protocol for protocol in ("h2", "http/1.1") if protocol in wish.protocols)
                server = _host(wish.name or self._message.host)
                stream = await start_tls(stream, gate.tls(offered), str(server), self._limit)
                self._line.send(Secured(flow.number, _tls_info(stream)))
                await pump(gate, flow, stream, meter)
        finally:
            stream.close()
            passed = {"sent": meter.sent, "received": meter.received}
            gate.tell({"action": "closed", "ip": str(place.address), "port": place.port, **passed})

    # Web requests.

    async def _web_flow(self, reached: list[Reached]) -> None:
        """Serve a guest that believes it is connected, and may speak of nothing but web requests."""
        gate, flow, place = self._gate, self._flow, reached[0]
        ahead: Stream | None = None
        if not any(isinstance(found.accepted, AcceptHttp) and found.accepted.middleware for found in reached):
            # A server that can't be reached is to be known now. Middleware may answer for one that does not exist.
            dialled, place = await gate.open("tcp", reached, self._limit)
            assert isinstance(dialled, Stream)
            ahead = dialled
        try:
            await self._opened(place)
            scheme, names = "http", self._names(place)
            await flow.begun()
            if flow.wish is not None:
                wish = flow.take_wish()
                server = _server(wish, place, names)
                scheme, names = "https", (server,) if isinstance(server, str) else ()
                info: dict[str, str] = {}
                if ahead is not None:
                    ahead = await start_tls(ahead, gate.tls(("http/1.1",)), str(server), self._limit)
                    info = _tls_info(ahead)
                info["protocol"] = "http/1.1" if "http/1.1" in wish.protocols else ""
                self._line.send(Secured(flow.number, info))
            lent, ahead = ahead, None
            await self._serve(Endpoint(place.address, place.port), scheme, names, lent)
        finally:
            if ahead is not None:
                ahead.close()

    def _names(self, place: Reached) -> tuple[str, ...]:
        """The names by which the guest may have come here."""
        if isinstance(parse_host(self._message.host), str):
            return (place.hostname,) if place.hostname else ()
        return self._gate.names.names(place.address, self._gate.clock())

    async def _serve(self, dst: Endpoint, scheme: str, names: tuple[str, ...], ahead: Stream | None) -> None:
        import h11

        from belljar.net.broker.front_host import Front
        from belljar.net.broker.front_http1_host import serve_http1

        front = Front(self._web(), dst, scheme, names, http="1.1", ahead=ahead)
        try:
            await serve_http1(front, self._flow, answered=False)
        except h11.ProtocolError:
            raise NetError("protocol", f"{self._where} is only open to web requests, and this is none") from None
        except TimeoutError:
            raise NetError("timeout", f"nothing came for {self._gate.limits.idle_seconds:g} s") from None
        except OSError:
            raise NetError("reset", f"the connection to {self._where} broke") from None
        if self._flow.wish is not None:
            raise NetError("protocol", f"{self._where} is only open to web requests: TLS comes first, and once")
        self._flow.write_eof()


def _host(name: str) -> str | Address:
    try:
        return parse_host(name)
    except BadHost as error:
        raise NetError("tls", str(error)) from None


def _server(wish: Secure, place: Reached, names: tuple[str, ...]) -> str | Address:
    """Return the host to verify a server's certificate for: a name that led here, or the address. NetError."""
    server = _host(wish.name) if wish.name else names[0] if names else place.address
    if server != place.address and server not in names:
        raise NetError("denied", "the TLS server name is not one that led to this address")
    return server


def _tls_info(stream: Stream) -> dict[str, str]:
    tls = stream.info("ssl_object")
    return {
        "version": tls.version() or "",
        "cipher": json.dumps(tls.cipher()),
        "protocol": tls.selected_alpn_protocol() or "",
        "certificate": base64.b64encode(tls.getpeercert(binary_form=True) or b"").decode(),
        "peer": json.dumps(tls.getpeercert()),
    }


async def pump(gate: Gate, flow: Flow, stream: Pipe, meter: Meter | None) -> None:
    """Copy bytes both ways until both sides are done, or the guest requests TLS. NetError.

    Without a meter it is a WebSocket: the request it was counts for it.
    """

    async def down() -> None:
        while data := await stream.read(CHUNK):
            if meter is not None:
                gate.count_in(len(data))
                meter.received += len(data)
            await flow.write(data)
        flow.write_eof()

    try:
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(down())
            async for piece in flow.pieces():
                if meter is not None:
                    gate.count_out(len(piece))
                    meter.sent += len(piece)
                await stream.write(piece)
            if flow.wish is not None:
                reading.cancel()
            elif isinstance(stream, Stream):
                stream.write_eof()
    except BaseExceptionGroup as errors:
        raise _sole_error(errors) from None


class DatagramFlow(Protocol):
    """A guest's end of a flow of datagrams."""

    def pieces(self) -> AsyncIterator[bytes]: ...
    def write_datagram(self, data: bytes, /) -> None: ...


async def pump_datagrams(gate: Gate, flow: DatagramFlow, datagrams: Datagrams, meter: Meter) -> None:
    """Carry datagrams both ways until the guest is done. NetError."""

    async def down() -> None:
        while True:
            data = await datagrams.read()
            gate.count_in(len(data))
            meter.received += len(data)
            flow.write_datagram(data)

    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(down())
            async for piece in flow.pieces():
                if len(piece) <= DATAGRAM_MAX:
                    gate.count_out(len(piece))
                    meter.sent += len(piece)
                    datagrams.write(piece)
    except BaseExceptionGroup as errors:
        raise _sole_error(errors) from None


def _sole_error(errors: BaseExceptionGroup[BaseException]) -> BaseException:
    """The NetError for a task group in which the network failed, and nothing else; or the group itself.

    Not by `except*`: until Python 3.11.3 what is raised in its body arrives in a group.
    """
    failed, others = errors.split((OSError, NetError))
    if failed is None or others is not None:
        return errors
    first = failed.exceptions[0]
    return first if isinstance(first, NetError) else NetError("reset", "the connection broke")
