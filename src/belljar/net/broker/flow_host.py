"""One stream of a sandbox at the broker: what its guest sent, what it was granted, and the task that carries it."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import Final, Protocol

from belljar.abi.wire import WireError
from belljar.net.errors import NetError
from belljar.net.memory import Memory
from belljar.net.wire import CHUNK, WINDOW, BrokerFrame, Data, End, Grant, Secure

_DATAGRAMS_MAX: Final = 256
"""Datagrams of one flow that wait to be sent."""


class Sender(Protocol):
    """The way to the sandbox."""

    def send(self, message: BrokerFrame) -> None: ...
    async def drained(self) -> None: ...
    @property
    def writable(self) -> bool: ...


class Flow:
    """Reads what the guest sends, in order; gives it things as fast as it takes them."""

    def __init__(self, line: Sender, number: int, memory: Memory, *, dialled: bool, datagrams: bool = False) -> None:
        self._line = line
        self.number = number
        self.task: asyncio.Task[None] | None = None
        self.failure: NetError | None = None
        """Why the task was cancelled, if not because its guest wanted that."""
        self._memory = memory
        self._dialled = dialled
        self._datagrams = datagrams
        self._arrived: deque[bytearray | Secure] = deque()
        self._buffered = 0
        self._consumed = 0
        self._ended = False
        self._closed = False
        self._news = asyncio.Event()
        self._room = WINDOW
        self._granted = asyncio.Event()

    # From the guest.

    def take(self, data: bytes) -> None:
        if not data or self._buffered + len(data) > WINDOW or self._ended:
            raise WireError("more data than was granted, or none")
        if self._datagrams and len(self._arrived) >= _DATAGRAMS_MAX:
            self._consumed += len(data)  # lost, as on a network that is not fast enough
            return
        try:
            self._memory.take(len(data))
        except NetError as error:
            self.failure = error
            self.cancel()
            return
        self._buffered += len(data)
        last = self._arrived[-1] if self._arrived and not self._datagrams else None
        if isinstance(last, bytearray):
            last += data  # many small pieces become one
        else:
            self._arrived.append(bytearray(data))
        self._news.set()

    def cancel(self) -> None:
        """End its task."""
        if self.task is not None:
            self.task.cancel()

    def discard(self) -> None:
        """Let go of what was not read: the stream is over."""
        self._memory.give(self._buffered)
        self._buffered = 0
        self._arrived.clear()

    def secure(self, message: Secure) -> None:
        if not self._dialled or any(isinstance(item, Secure) for item in self._arrived):
            raise WireError("TLS where it can't be")
        self._arrived.append(message)
        self._news.set()

    def end(self) -> None:
        self._ended = True
        self._news.set()

    def grant(self, count: int) -> None:
        if not 0 < count <= 2 * WINDOW:
            raise WireError(f"a grant of {count} bytes")
        self._room = min(WINDOW, self._room + count)
        self._granted.set()

    async def _arrival(self) -> bytearray | Secure | None:
        """Wait for the next item and return it without removing it; None at the end."""
        while not self._arrived:
            if self._ended or self._closed:
                return None
            self._news.clear()
            await self._news.wait()
        return self._arrived[0]

    async def begun(self) -> None:
        """Wait for the first data, or the end."""
        await self._arrival()

    @property
    def wish(self) -> Secure | None:
        """Return the guest's request for TLS, if that comes next."""
        item = self._arrived[0] if self._arrived else None
        return item if isinstance(item, Secure) else None

    def take_wish(self) -> Secure:
        item = self._arrived.popleft()
        assert isinstance(item, Secure)
        return item

    async def read(self, *, timeout: float | None = None) -> bytes:
        """Read the next piece; b"" at the end, and where the guest requests TLS. TimeoutError."""
        async with asyncio.timeout(timeout):
            item = await self._arrival()
        if item is None or isinstance(item, Secure):
            return b""
        data = bytes(item[:CHUNK])
        if len(item) > CHUNK:
            del item[:CHUNK]
        else:
            self._arrived.popleft()
        self._buffered -= len(data)
        self._memory.give(len(data))
        self._consumed += len(data)
        if self._consumed >= WINDOW // 2 or not self._arrived:
            count, self._consumed = self._consumed, 0
            self._line.send(Grant(self.number, count))
        return data

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the guest's data until EOF."""
        while piece := await self.read():
            yield piece

    # To the guest.

    async def write(self, data: bytes, timeout: float | None = None) -> None:
        """Send a piece of any size as fast as the guest takes it. TimeoutError."""
        async with asyncio.timeout(timeout):
            await self._write(data)

    async def _write(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            while self._room <= 0:
                self._granted.clear()
                await self._granted.wait()
            await self._line.drained()
            piece = view[: min(self._room, CHUNK)]
            self._room -= len(piece)
            self._line.send(Data(self.number, bytes(piece)))
            view = view[len(piece) :]

    def write_datagram(self, data: bytes) -> None:
        """Send it whole, or lose it."""
        if data and self._room >= len(data) and self._line.writable:
            self._room -= len(data)
            self._line.send(Data(self.number, data))

    def write_eof(self) -> None:
        self._line.send(End(self.number))

    def close(self) -> None:
        """Close both directions."""
        self._closed = True
        self._news.set()
