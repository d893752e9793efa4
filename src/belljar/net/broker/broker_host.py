"""The broker: carries the network of the owner's sandboxes, each on a thread and event loop of its own.

A sandbox has a socket pair to it. What arrives there is hostile: names, connections and requests are put to that
sandbox's gate, and no stream is read faster than its guest takes it.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, Final, cast

from belljar.abi.install import install_hint
from belljar.abi.wire import WireError
from belljar.net.audit import shown_target
from belljar.net.broker.flow_host import Flow
from belljar.net.broker.gate_host import Gate
from belljar.net.broker.stream_host import in_background
from belljar.net.errors import NetError
from belljar.net.wire import (
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
    Secure,
    encode,
    guest_frames,
)

if TYPE_CHECKING:
    from belljar.net.broker.http_host import Web

_log: Final = logging.getLogger("belljar")
_STREAMS_MAX: Final = 512
_SECONDS_MAX: Final = 86400.0
_SHOWN: Final = 253
"""Characters of a name that stand in the record."""


class Line(asyncio.Protocol):
    """The broker's end of one sandbox's socket."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._web: Web | None = None
        self._transport: asyncio.Transport | None = None
        self._frames = guest_frames()
        self._flows: dict[int, Flow] = {}
        self._writable = asyncio.Event()
        self._writable.set()

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._gate.thread.closers.add(self.close)

    async def close(self) -> None:
        if self._transport is not None:
            self._transport.abort()

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
        self._gate.thread.closers.discard(self.close)
        for flow in self._flows.values():
            flow.cancel()
        self._flows.clear()
        if self._web is not None:
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
        while not self._writable.is_set():  # of all that wait, the first to go on may fill it again
            await self._writable.wait()

    @property
    def writable(self) -> bool:
        return self._writable.is_set()

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
                if (dropped := self._flows.pop(number, None)) is not None:
                    dropped.cancel()
            case Secure(id=number):
                if flow := self._flows.get(number):
                    flow.secure(message)
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
        datagrams = isinstance(message, Dial) and message.protocol == "udp"
        flow = self._flows[message.id] = Flow(
            self, message.id, self._gate.memory, dialled=isinstance(message, Dial), datagrams=datagrams
        )
        flow.task = asyncio.get_running_loop().create_task(self._carry(flow, message))
        flow.task.add_done_callback(lambda _: self._ended(flow))

    async def _carry(self, flow: Flow, message: Resolve | Dial | Fetch) -> None:
        """Run one stream to its end; errors are sent to the guest, as a kind and a sentence."""
        try:
            match message:
                case Resolve():
                    with self._gate.attempt("dns", message.name[:_SHOWN]):
                        lines, _ = await self._gate.resolve(message.name, message.kind)
                    await self._gate.record.written()
                    self.send(Resolved(flow.number, lines))
                case Dial():
                    from belljar.net.broker.connect_host import Connection

                    await Connection(self._gate, self._requests, self, flow, message).carry()
                case Fetch():
                    await self._within(message.timeout, self._fetch(flow, message))
        except NetError as error:
            await self._fail(flow, error)
        except ImportError as error:
            self.send(
                Failed(flow.number, "denied", f"{error.name} is not installed on the host; {install_hint('net')}")
            )
        except Exception:  # noqa: BLE001 - our bug: it ends this stream, and the owner's log says where
            _log.exception("network of sandbox %s", self._gate.sandbox)
            self.send(Failed(flow.number, "reset", "an internal error of the broker"))

    def _ended(self, flow: Flow) -> None:
        """Clean up after a stream's task, which may have ended before it began."""
        flow.discard()
        if self._flows.get(flow.number) is flow:
            del self._flows[flow.number]
            if flow.failure is not None:
                self.send(Failed(flow.number, flow.failure.kind, flow.failure.text))

    async def _fail(self, flow: Flow, error: NetError) -> None:
        await self._gate.record.written()
        self.send(Failed(flow.number, error.kind, error.text))

    async def _within(self, timeout: float, work: Coroutine[Any, Any, None]) -> None:
        try:
            async with asyncio.timeout(timeout if timeout > 0 else None):
                await work
        except TimeoutError:
            raise NetError("timeout", f"not done within {timeout:g} s") from None

    def _requests(self) -> Web:
        from belljar.net.broker.http_host import Web

        if self._web is None:
            self._web = Web(self._gate)
        return self._web

    async def _fetch(self, flow: Flow, message: Fetch) -> None:
        from belljar.net.broker.connect_host import pump
        from belljar.net.broker.exchange_host import Ask

        with self._gate.attempt("request", shown_target(message.url)):
            response = await self._requests().fetch(
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
                await self._gate.record.written()
                self.send(Opened(flow.number, response.info, response.head))
                if response.stream is not None:
                    await pump(self._gate, flow, response.stream, None)
                    return
                async for chunk in response.chunks:
                    await flow.write(chunk)
                flow.write_eof()
            finally:
                await response.aclose()


def attach(gate: Gate) -> socket.socket:
    """A way to a sandbox's gate: the socket to hand to its worker. What came by it ends when that is closed."""
    ours, theirs = socket.socketpair()
    for end in (ours, theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        end.setblocking(False)  # the worker can't do that to its own

    async def serve() -> None:
        if gate.hang_up is not None:
            gate.hang_up()  # its worker asked again: it has no use for the old one
        transport, _ = await asyncio.get_running_loop().create_connection(lambda: Line(gate), sock=ours)
        gate.hang_up = transport.abort
        transport.set_write_buffer_limits(high=1 << 20)

    try:
        gate.thread.submit(serve())
    except RuntimeError:
        ours.close()  # the sandbox was closed: its worker sees the end
    return theirs
