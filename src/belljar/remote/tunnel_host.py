"""Descriptors at both ends of a session's streams: bytes are carried as far as they were granted."""

from __future__ import annotations

import asyncio
import os
import socket
from collections import deque
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Final, Protocol

from belljar.abi.wire import FDS_MAX, WireError
from belljar.remote.session import Session
from belljar.remote.wire import (
    CHUNK,
    STREAMS_MAX,
    WINDOW,
    Data,
    End,
    Grant,
    Message,
    Over,
    Request,
    Reset,
    Response,
)

_ANCILLARY: Final = socket.CMSG_SPACE(4 * FDS_MAX)
_CLOSED_ON_EXEC: Final[int] = getattr(socket, "MSG_CMSG_CLOEXEC", 0)  # macOS has no such flag


class Stream(Protocol):
    """One end of a stream."""

    def take(self, data: bytes, opens: list[int]) -> None:
        """Bytes of the other side's. WireError if they are more than was granted."""

    def granted(self, count: int) -> None: ...

    def ended(self) -> None:
        """The other side sends no more."""

    def reset(self) -> None:
        """The other side takes nothing any more."""

    def close(self) -> None: ...


class Mux:
    """The streams of a session, and its messages on their way to whichever connection there is."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.streams: dict[int, Stream] = {}
        self.changed = asyncio.Event()
        """Set when there is something to send."""
        self._connection: object = None
        """Stands for the one there is."""

    def put(self, message: Message) -> None:
        self.session.put(message)
        self.changed.set()

    def take(self, data: bytes) -> Request | Response | Over | None:
        """Act on a message; gives one that is not about a stream. WireError."""
        message = self.session.take(data)
        self.changed.set()  # it may be time to acknowledge
        match message:
            case Data():
                if (stream := self.streams.get(message.stream)) is not None:
                    stream.take(message.data, message.opens)
            case Grant():
                if message.count <= 0:
                    raise WireError("a grant of nothing")
                if (stream := self.streams.get(message.stream)) is not None:
                    stream.granted(message.count)
            case End():
                if (stream := self.streams.get(message.stream)) is not None:
                    stream.ended()
            case Reset():
                if (stream := self.streams.get(message.stream)) is not None:
                    stream.reset()
            case Request() | Response() | Over():
                return message
        return None

    def add(self, number: int, stream: Stream) -> None:
        """WireError if there is such a stream, or there are too many."""
        if number in self.streams or len(self.streams) >= STREAMS_MAX:
            raise WireError(f"stream {number} is in use, or there are more than {STREAMS_MAX}")
        self.streams[number] = stream

    def forget(self, number: int) -> None:
        self.streams.pop(number, None)

    def close(self) -> None:
        for stream in list(self.streams.values()):
            stream.close()
        self.streams.clear()

    async def pump(
        self,
        send: Callable[[bytes], Awaitable[object]],
        receive: Callable[[], Awaitable[bytes]],
        act: Callable[[Request | Response | Over], None],
    ) -> None:
        """Move messages over a connection until it ends, by whatever `send` and `receive` raise. WireError.

        Of two, the earlier moves nothing any more: what it took would be lost with it.
        """
        me = self._connection = object()

        async def send_all() -> None:
            while True:
                while self._connection is me and (data := self.session.next()) is not None:
                    await send(data)
                self.changed.clear()
                await self.changed.wait()

        sending = asyncio.ensure_future(send_all())  # if it fails, so does receiving
        self.changed.set()
        try:
            while True:
                data = await receive()
                if self._connection is not me:
                    return
                if (message := self.take(data)) is not None:
                    act(message)
        finally:
            sending.cancel()
            with suppress(asyncio.CancelledError, Exception):
                await sending


class Tunnel:
    """A socket here, as a stream. With `opens`, descriptors that come out of it become streams of their own."""

    def __init__(
        self,
        mux: Mux,
        number: int,
        sock: socket.socket,
        window: int = WINDOW,
        opens: Callable[[int], int] | None = None,
    ) -> None:
        self._mux = mux
        self._number = number
        self._sock = sock
        self._window = window
        self._opens = opens
        self._loop = asyncio.get_running_loop()
        self._credit = self._room = window
        """Bytes that we may send, and that may come."""
        self._unwritten: deque[memoryview] = deque()
        self._taken = 0
        """Bytes that were written here since the last grant."""
        self._reading = self._writing = False
        self._sent_end = self._got_end = False
        self.on_end: Callable[[], None] | None = None
        """Called when nothing more comes out of the socket."""
        sock.setblocking(False)
        mux.add(number, self)
        self._watch()

    # From the socket.

    def _watch(self) -> None:
        wanted = self._credit > 0 and not self._sent_end
        if wanted != self._reading:
            self._reading = wanted
            if wanted:
                self._loop.add_reader(self._sock, self._readable)
            else:
                self._loop.remove_reader(self._sock)

    def _readable(self) -> None:
        size = min(CHUNK, self._credit)
        opens: list[int] = []
        try:
            if self._opens is None:
                data = self._sock.recv(size)
            else:
                data, ancillary, _, _ = self._sock.recvmsg(size, _ANCILLARY, _CLOSED_ON_EXEC)
                opens = [self._opens(fd) for fd in _descriptors(ancillary)]
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._credit -= len(data)
            self._mux.put(Data(self._number, data, opens))
        else:
            self._sent_end = True
            self._mux.put(End(self._number))
        self._watch()
        if self._sent_end:
            if self.on_end is not None:
                self.on_end()
            self._close_if_over()

    def granted(self, count: int) -> None:
        self._credit += count
        if self._credit > self._window:
            raise WireError("more was granted than was sent")
        self._watch()

    # To the socket.

    def take(self, data: bytes, opens: list[int]) -> None:
        self._room -= len(data)
        if self._room < 0 or not data or opens or self._got_end:
            raise WireError("bytes of a stream that were not granted")
        self._unwritten.append(memoryview(data))
        if not self._writing:
            self._write()

    def ended(self) -> None:
        self._got_end = True
        if not self._unwritten:
            self._write()

    def _write(self) -> None:
        try:
            while self._unwritten:
                count = self._sock.send(self._unwritten[0])
                self._taken += count
                if count == len(self._unwritten[0]):
                    self._unwritten.popleft()
                else:
                    self._unwritten[0] = self._unwritten[0][count:]
        except BlockingIOError:
            pass
        except OSError:
            self._mux.put(Reset(self._number))
            self.close()
            return
        if self._taken >= self._window // 2 and not self._got_end:
            self._mux.put(Grant(self._number, self._taken))
            self._room += self._taken
            self._taken = 0
        waits = bool(self._unwritten)
        if waits != self._writing:
            self._writing = waits
            if waits:
                self._loop.add_writer(self._sock, self._write)
            else:
                self._loop.remove_writer(self._sock)
        if self._got_end and not waits:
            with suppress(OSError):
                self._sock.shutdown(socket.SHUT_WR)
            self._close_if_over()

    def _close_if_over(self) -> None:
        if self._sent_end and self._got_end and not self._unwritten:
            self.close()

    def reset(self) -> None:
        self.close()

    def close(self) -> None:
        """Idempotent."""
        if self._sock.fileno() >= 0:
            self._loop.remove_reader(self._sock)
            self._loop.remove_writer(self._sock)
            self._sock.close()
        self._mux.forget(self._number)


def open_pair() -> tuple[socket.socket, int]:
    """Our end of a new connection, and a descriptor of the other."""
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    return ours, theirs.detach()


def close_descriptors(descriptors: Iterable[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _descriptors(ancillary: list[tuple[int, int, bytes]]) -> list[int]:
    found: list[int] = []
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found += memoryview(data[: len(data) - len(data) % 4]).cast("i").tolist()
    return found
