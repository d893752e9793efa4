"""The broker: one thread and event loop of the owner's process that carries the network of all its sandboxes.

Each sandbox has a socket pair to it. What arrives there is hostile: names, connections and requests are put to that
sandbox's gate, and no stream is read faster than its guest takes it.
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import threading
from collections.abc import AsyncIterator
from typing import Final, Protocol, cast

from belljar.abi.wire import WireError
from belljar.net.errors import NetError
from belljar.net.gate_host import Gate
from belljar.net.stream_host import Datagrams, Stream, in_background
from belljar.net.wire import (
    CHUNK,
    DATAGRAM_MAX,
    WINDOW,
    BrokerFrame,
    Data,
    Dial,
    Drop,
    End,
    Failed,
    Fetch,
    Grant,
    GuestFrame,
    Opened,
    Resolve,
    Resolved,
    encode,
    guest_frames,
)

_log: Final = logging.getLogger("belljar")
_STREAMS_MAX: Final = 512
_SECONDS_MAX: Final = 86400.0


class Pipe(Protocol):
    """Bytes both ways."""

    async def read(self, size: int, /) -> bytes: ...
    async def write(self, data: bytes, /) -> None: ...


class Flow:
    """One stream of a sandbox: what the guest sent and was granted, and the task that carries it."""

    def __init__(self, line: Line, number: int) -> None:
        self._line = line
        self.number = number
        self.task: asyncio.Task[None] | None = None
        self._arrived: list[bytes] = []
        self._buffered = 0
        self._consumed = 0
        self._ended = False
        self._news = asyncio.Event()
        self._room = WINDOW
        self._granted = asyncio.Event()

    # From the guest.

    def take(self, data: bytes) -> None:
        self._buffered += len(data)
        if not data or self._buffered > WINDOW or self._ended:
            raise WireError("more data than was granted, or none")
        self._arrived.append(data)
        self._news.set()

    def end(self) -> None:
        self._ended = True
        self._news.set()

    def grant(self, count: int) -> None:
        if not 0 < count <= 2 * WINDOW:
            raise WireError(f"a grant of {count} bytes")
        self._room = min(WINDOW, self._room + count)
        self._granted.set()

    async def pieces(self) -> AsyncIterator[bytes]:
        """What the guest sends, to its end."""
        while True:
            while not self._arrived:
                if self._ended:
                    return
                self._news.clear()
                await self._news.wait()
            piece = self._arrived.pop(0)
            yield piece
            self._buffered -= len(piece)
            self._consumed += len(piece)
            if self._consumed >= WINDOW // 2 or not self._arrived:
                count, self._consumed = self._consumed, 0
                self._line.send(Grant(self.number, count))

    # To the guest.

    async def give(self, data: bytes) -> None:
        """Send a piece of any size as fast as the guest takes it."""
        view = memoryview(data)
        while view:
            while self._room <= 0:
                self._granted.clear()
                await self._granted.wait()
            piece = view[: min(self._room, CHUNK)]
            self._room -= len(piece)
            self._line.send(Data(self.number, bytes(piece)))
            view = view[len(piece) :]
            await self._line.drained()

    def give_datagram(self, data: bytes) -> None:
        """Send it whole, or lose it."""
        if self._room >= len(data):
            self._room -= len(data)
            self._line.send(Data(self.number, data))


class Line(asyncio.Protocol):
    """The broker's end of one sandbox's socket."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._web: object | None = None
        self._transport: asyncio.Transport | None = None
        self._frames = guest_frames()
        self._flows: dict[int, Flow] = {}
        self._writable = asyncio.Event()
        self._writable.set()

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        try:
            for message in self._frames.feed(data):
                self._take(message)
        except WireError as error:
            _log.warning("network of sandbox %s: its worker broke the protocol: %s", self._gate.sandbox, error)
            self._gate.tell({"action": "cut-off", "reason": str(error)})
            if self._transport is not None:
                self._transport.abort()

    def connection_lost(self, error: Exception | None) -> None:
        self._writable.set()
        for flow in self._flows.values():
            if flow.task is not None:
                flow.task.cancel()
        self._flows.clear()
        if self._web is not None:
            from belljar.net.http_host import Web

            assert isinstance(self._web, Web)
            in_background(self._web.close())

    def pause_writing(self) -> None:
        """The worker does not take what it asked for: it can wait for more until it does."""
        self._writable.clear()
        if self._transport is not None:
            self._transport.pause_reading()

    def resume_writing(self) -> None:
        self._writable.set()
        if self._transport is not None:
            self._transport.resume_reading()

    async def drained(self) -> None:
        await self._writable.wait()

    def send(self, message: BrokerFrame) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(encode(message))

    # Frames.

    def _take(self, message: GuestFrame) -> None:
        match message:
            case Data(id=number, data=data):
                if flow := self._flows.get(number):
                    flow.take(data)
            case Grant(id=number, count=count):
                if flow := self._flows.get(number):
                    flow.grant(count)
            case End(id=number):
                if flow := self._flows.get(number):
                    flow.end()
            case Drop(id=number):
                flow = self._flows.pop(number, None)
                if flow is not None and flow.task is not None:
                    flow.task.cancel()
            case Resolve() | Dial() | Fetch():
                self._open(message)

    def _open(self, message: Resolve | Dial | Fetch) -> None:
        if message.id in self._flows:
            raise WireError(f"stream {message.id} is in use")
        for seconds in [getattr(message, name, 0.0) for name in ("timeout", "connect_timeout")]:
            if not 0 <= seconds <= _SECONDS_MAX:  # neither is what is not a number, which no clock can wait for
                raise WireError(f"{seconds} seconds")
        if len(self._flows) >= _STREAMS_MAX:
            self.send(Failed(message.id, "denied", "too many streams"))
            return
        flow = self._flows[message.id] = Flow(self, message.id)
        flow.task = asyncio.get_running_loop().create_task(self._carry(flow, message))

    async def _carry(self, flow: Flow, message: Resolve | Dial | Fetch) -> None:
        """Run one stream to its end; whatever goes wrong is told to the guest, as a kind and a sentence."""
        try:
            match message:
                case Resolve():
                    self._gate.enter()
                    try:
                        lines, _ = await self._gate.resolve(message.name, message.kind)
                    finally:
                        self._gate.leave()
                    self.send(Resolved(flow.number, lines))
                case Dial():
                    await self._within(message.timeout, self._connect(flow, message), once=True)
                case Fetch():
                    await self._within(message.timeout, self._fetch(flow, message))
        except NetError as error:
            self.send(Failed(flow.number, error.kind, error.text))
        except ImportError as error:
            self.send(
                Failed(flow.number, "denied", f"the sandbox's owner must pip install 'belljar[net]' ({error.name})")
            )
        except Exception:  # noqa: BLE001 - our bug: it ends this stream, and the owner's log says where
            _log.exception("network of sandbox %s", self._gate.sandbox)
            self.send(Failed(flow.number, "reset", "an internal error of the broker"))
        finally:
            if self._flows.get(flow.number) is flow and flow.task is asyncio.current_task():
                del self._flows[flow.number]

    async def _within(self, timeout: float, work: object, *, once: bool = False) -> None:
        coroutine = cast("asyncio.Future[None]", work)
        if timeout <= 0 or once:
            await coroutine
            return
        try:
            async with asyncio.timeout(timeout):
                await coroutine
        except TimeoutError:
            raise NetError("timeout", f"not done within {timeout:g} s") from None

    async def _connect(self, flow: Flow, message: Dial) -> None:
        gate = self._gate
        if message.protocol not in ("tcp", "udp") or not 0 < message.port < 65536:
            raise NetError("protocol", "no such protocol or port")
        gate.enter()
        sent_before, received_before = gate.traffic.bytes_out, gate.traffic.bytes_in
        try:
            stream, place = await gate.dial(message.protocol, message.host, message.port, message.timeout)
            try:
                info = {"remote-ip": str(place.address), "remote-port": str(place.port)}
                self.send(Opened(flow.number, info))
                if isinstance(stream, Datagrams):
                    await self._pump_udp(flow, stream)
                else:
                    await self._pump(flow, stream)
            finally:
                stream.close()
                sent = gate.traffic.bytes_out - sent_before
                received = gate.traffic.bytes_in - received_before
                gate.tell(
                    {
                        "action": "closed",
                        "ip": str(place.address),
                        "port": place.port,
                        "sent": sent,
                        "received": received,
                    }
                )
        finally:
            gate.leave()

    async def _pump(self, flow: Flow, stream: Pipe) -> None:
        raw = stream if isinstance(stream, Stream) else None  # what was a web request counts for itself

        async def up() -> None:
            async for piece in flow.pieces():
                if raw is not None:
                    self._gate.count_out(len(piece))
                await stream.write(piece)
            if raw is not None:
                raw.write_eof()

        async def down() -> None:
            while data := await stream.read(CHUNK):
                if raw is not None:
                    self._gate.count_in(len(data))
                await flow.give(data)
            self.send(End(flow.number))

        await _both(up(), down())

    async def _pump_udp(self, flow: Flow, datagrams: Datagrams) -> None:
        async def up() -> None:
            async for piece in flow.pieces():
                if len(piece) <= DATAGRAM_MAX:
                    self._gate.count_out(len(piece))
                    datagrams.write(piece)

        async def down() -> None:
            while True:
                data = await datagrams.read()
                self._gate.count_in(len(data))
                flow.give_datagram(data)

        await _both(up(), down())

    async def _fetch(self, flow: Flow, message: Fetch) -> None:
        from belljar.net.http_host import Ask, Web

        if self._web is None:
            self._web = Web(self._gate)
        assert isinstance(self._web, Web)
        self._gate.enter()
        try:
            response = await self._web.fetch(
                Ask(
                    message.method,
                    message.url,
                    message.headers,
                    flow.pieces() if message.body else None,
                    message.redirects,
                    message.timeout,
                    message.connect_timeout,
                    message.http,
                )
            )
            try:
                self.send(Opened(flow.number, response.info, response.head))
                if response.stream is not None:
                    await self._pump(flow, response.stream)
                    return
                async for chunk in response.chunks:
                    await flow.give(chunk)
                self.send(End(flow.number))
            finally:
                await response.aclose()
        finally:
            self._gate.leave()


async def _both(up: object, down: object) -> None:
    """Run both directions until both ended, or one failed."""
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(up)  # type: ignore[arg-type]
            group.create_task(down)  # type: ignore[arg-type]
    except* OSError:
        raise NetError("reset", "the connection broke") from None
    except* NetError as errors:
        raise errors.exceptions[0] from None


class Broker:
    """The thread and its loop, started when the first sandbox uses the network."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        """The running loop. After a fork of the owner, a new one: threads do not survive that."""
        with self._lock:
            if self._loop is None or self._pid != os.getpid():
                self._loop = asyncio.new_event_loop()
                self._pid = os.getpid()
                threading.Thread(target=self._loop.run_forever, name="belljar-network", daemon=True).start()
            return self._loop

    def attach(self, gate: Gate) -> socket.socket:
        """A way to a sandbox's gate: the socket to hand to its worker. What came by it ends when that is closed."""
        ours, theirs = socket.socketpair()
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
            end.setblocking(False)  # the worker can't do that to its own
        loop = self.loop

        async def serve() -> None:
            if gate.hang_up is not None:
                gate.hang_up()  # its worker asked again: it has no use for the old one
            transport, _ = await loop.create_connection(lambda: Line(gate), sock=ours)
            gate.hang_up = transport.abort
            transport.set_write_buffer_limits(high=1 << 20)

        asyncio.run_coroutine_threadsafe(serve(), loop)
        return theirs


shared: Final = Broker()
