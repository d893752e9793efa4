"""The owner's way to servers inside a sandbox: raw connections, HTTP requests, and listeners on loopback."""

from __future__ import annotations

import asyncio
import http.client
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from typing import Final, TypeAlias

from belljar.abi.clock import Clock
from belljar.abi.dataclass import dataclass
from belljar.abi.errno import ECONNREFUSED
from belljar.abi.errors import SandboxError
from belljar.abi.wire import Failure
from belljar.api.core import Pending
from belljar.api.errors import PortClosed
from belljar.api.request import raise_failure
from belljar.api.stepper import Link, Waits

LOOPBACK: Final = "127.0.0.1"
_READ: Final = 64 << 10
_LOOK: Final = 0.02
"""Seconds between two tries to reach a server that is not up yet."""

Connection: TypeAlias = socket.socket
"""A stream of bytes to a server inside."""
Open = Callable[[int], Connection]
"""Gives a connection to a port. PortClosed."""


@dataclass(frozen=True, slots=True)
class PortResponse:
    """The answer of a web server inside."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")


def check_port(port: object) -> int:
    """TypeError, ValueError for what is no port."""
    if not isinstance(port, int) or isinstance(port, bool):
        raise TypeError(f"a port is an int, not {port!r}")
    if not 0 < port < 65536:
        raise ValueError(f"{port} is no port: 1 to 65535")
    return port


def socket_pair() -> tuple[socket.socket, int]:
    """Our end of a new connection, and the descriptor of the sandbox's."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    return ours, theirs.detach()


def open_port(link: Link, port: int) -> Waits[socket.socket]:
    """A connection to a port of a sandbox. PortClosed, SandboxError."""
    if link.worker.open_relay is not None:  # no descriptor gets into a machine
        pending, frame = link.conversation.call("port", port)
        link.send(frame)
        yield link.expect(lambda: pending.done)
        check_opened(pending, port)
        if not isinstance(pending.value, int):
            raise SandboxError("the sandbox broke the protocol: no number of a port")
        return link.worker.open_relay(pending.value)
    ours, theirs = socket_pair()
    try:
        pending, frame = link.conversation.call("port", port, fds=1)
        link.send(frame, [theirs])
        yield link.expect(lambda: pending.done)
        check_opened(pending, port)
    except BaseException:
        ours.close()
        raise
    return ours


def check_opened(pending: Pending, port: int) -> None:
    """Raises what kept a connection from being made. PortClosed, SandboxError."""
    if isinstance(pending.error, Failure) and pending.error.errno == ECONNREFUSED:
        raise PortClosed(f"nothing listens on port {port} in the sandbox; `port({port}).wait()` waits until it does")
    raise_failure(pending)


class Port:
    """A port of the sandbox, as its owner reaches it: `sandbox.port(8000)`."""

    def __init__(self, open_port: Open, number: int, clock: Clock) -> None:
        self._open = open_port
        self._clock = clock
        self.number = number

    def connect(self) -> socket.socket:
        """A connected stream socket, yours to close. PortClosed if nothing listens."""
        return self._open(self.number)

    def wait(self, timeout: float = 30.0) -> Port:
        """Wait until something listens. TimeoutError."""
        deadline = self._clock.monotonic() + timeout
        while True:
            try:
                self.connect().close()
            except PortClosed:
                if self._clock.monotonic() > deadline:
                    raise TimeoutError(f"nothing listened on port {self.number} within {timeout:g} s") from None
                time.sleep(_LOOK)
            else:
                return self

    def request(
        self,
        method: str,
        path: str = "/",
        *,
        headers: Mapping[str, str] | None = None,
        body: str | bytes | None = None,
        timeout: float = 30.0,
    ) -> PortResponse:
        """Make an HTTP request. PortClosed, TimeoutError, http.client.HTTPException."""
        return _request(self.connect(), self.number, method, path, headers, body, timeout)

    def get(self, path: str = "/", *, headers: Mapping[str, str] | None = None, timeout: float = 30.0) -> PortResponse:
        return self.request("GET", path, headers=headers, timeout=timeout)

    def post(
        self,
        path: str = "/",
        body: str | bytes = b"",
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float = 30.0,
    ) -> PortResponse:
        return self.request("POST", path, headers=headers, body=body, timeout=timeout)


class AsyncPort:
    """A port of the sandbox, for asyncio. See `Port`."""

    def __init__(self, open_port: Callable[[int], Awaitable[socket.socket]], number: int) -> None:
        self._open = open_port
        self.number = number

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection as asyncio's streams. PortClosed if nothing listens."""
        return await asyncio.open_connection(sock=await self.socket())

    async def socket(self) -> socket.socket:
        """A connected stream socket, yours to close. PortClosed if nothing listens."""
        return await self._open(self.number)

    async def wait(self, timeout: float = 30.0) -> AsyncPort:
        """Wait until something listens. TimeoutError."""
        try:
            async with asyncio.timeout(timeout):
                while True:
                    try:
                        (await self._open(self.number)).close()
                    except PortClosed:
                        await asyncio.sleep(_LOOK)
                    else:
                        return self
        except TimeoutError:
            raise TimeoutError(f"nothing listened on port {self.number} within {timeout:g} s") from None

    async def request(
        self,
        method: str,
        path: str = "/",
        *,
        headers: Mapping[str, str] | None = None,
        body: str | bytes | None = None,
        timeout: float = 30.0,
    ) -> PortResponse:
        """Make an HTTP request. PortClosed, TimeoutError, http.client.HTTPException."""
        stream = await self._open(self.number)
        return await asyncio.to_thread(_request, stream, self.number, method, path, headers, body, timeout)

    async def get(
        self, path: str = "/", *, headers: Mapping[str, str] | None = None, timeout: float = 30.0
    ) -> PortResponse:
        return await self.request("GET", path, headers=headers, timeout=timeout)

    async def post(
        self,
        path: str = "/",
        body: str | bytes = b"",
        *,
        headers: Mapping[str, str] | None = None,
        timeout: float = 30.0,
    ) -> PortResponse:
        return await self.request("POST", path, headers=headers, body=body, timeout=timeout)


def _request(
    stream: socket.socket,
    port: int,
    method: str,
    path: str,
    headers: Mapping[str, str] | None,
    body: str | bytes | None,
    timeout: float,
) -> PortResponse:
    stream.settimeout(timeout)
    connection = http.client.HTTPConnection("localhost", port, timeout=timeout)
    connection.sock = stream
    try:
        data = body.encode() if isinstance(body, str) else body
        with suppress(BrokenPipeError):  # a server may answer and close before it has read the body
            connection.request(method, path, data, {"Connection": "close", **(headers or {})})
        answer = connection.getresponse()
        return PortResponse(answer.status, dict(answer.getheaders()), answer.read())
    finally:
        connection.close()


class LoopbackListener:
    """A listener on this machine's loopback whose connections lead to a port of a sandbox."""

    def __init__(self, open_port: Callable[[], Awaitable[socket.socket]]) -> None:
        self._open = open_port
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    async def start(self, host_port: int) -> tuple[str, int]:
        """Give its host and port. OSError if that is taken."""
        self._server = await asyncio.start_server(self._accept, LOOPBACK, host_port)
        host, port = self._server.sockets[0].getsockname()[:2]
        return host, port

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        ends = [writer]
        try:
            inside_reader, inside = await asyncio.open_connection(sock=await self._open())
            ends.append(inside)
            await asyncio.gather(_carry(reader, inside), _carry(inside_reader, writer))
        except (SandboxError, OSError):
            return  # nothing listens, or the sandbox is gone
        finally:
            for end in ends:
                end.close()

    async def close(self) -> None:
        """Close it and its connections."""
        if self._server is not None:
            self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0)  # transports close in the loop's next turn


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(_READ):
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


class Exposed:
    """A listener of the synchronous front: an event loop on a thread of its own, until it is closed."""

    def __init__(self, host_port: int, open_port: Callable[[], socket.socket]) -> None:
        """OSError if the port is taken."""
        self._started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event, tuple[str, int]]] = Future()
        work = self._serve(host_port, lambda: asyncio.to_thread(open_port))
        self._thread = threading.Thread(target=asyncio.run, args=(work,), name="belljar-expose", daemon=True)
        self._thread.start()
        self._loop, self._over, self.address = self._started.result()

    async def _serve(self, host_port: int, open_port: Callable[[], Awaitable[socket.socket]]) -> None:
        listener = LoopbackListener(open_port)
        try:
            address = await listener.start(host_port)
        except OSError as error:
            self._started.set_exception(error)
            return
        over = asyncio.Event()
        self._started.set_result((asyncio.get_running_loop(), over, address))
        await over.wait()
        await listener.close()

    def close(self) -> None:
        """Close the listener and its connections. Idempotent."""
        with suppress(RuntimeError):  # the loop is over
            self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join()
