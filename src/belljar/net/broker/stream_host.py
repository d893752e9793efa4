"""A connection of the host on its event loop, with back pressure both ways."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections import deque
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any, Final, Protocol, cast

from belljar.net.addresses import Address, Endpoint
from belljar.net.errors import NetError
from belljar.net.memory import Memory

_HIGH: Final = 256 << 10
"""Unread bytes at which we stop taking more from the network."""
_SMALL: Final = 16 << 10
"""Pieces up to this size become one: each costs as much to keep as some bytes more."""
_UNSENT_MAX: Final = 64 << 10
"""Bytes of datagrams that wait for the network; what is more is lost."""
_UNREAD_MAX: Final = 256 << 10
"""Bytes of datagrams that wait for their reader."""


_running: set[asyncio.Task[None]] = set()


def in_background(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine as a background task, and keep a reference to it."""
    task = asyncio.get_running_loop().create_task(work)
    _running.add(task)
    task.add_done_callback(_running.discard)


class Pipe(Protocol):
    """Bytes both ways."""

    async def read(self, size: int, /) -> bytes: ...
    async def write(self, data: bytes, /) -> None: ...


class Meter:
    """Byte counts of one connection."""

    def __init__(self) -> None:
        self.sent = 0
        self.received = 0


class Stream(asyncio.Protocol):
    """Reads pieces as they came, writes when the other side takes them."""

    def __init__(self, memory: Memory | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self.memory = memory
        """The budget that unread bytes count against."""
        self._unread: deque[bytes] = deque()
        self._size = 0
        self._counted = 0
        self._eof = False
        self._error: Exception | None = None
        self._paused = False
        self._secure = False
        self._news: asyncio.Future[None] | None = None
        self._drain: asyncio.Future[None] | None = None

    # What the loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._secure = transport.get_extra_info("sslcontext") is not None

    def data_received(self, data: bytes) -> None:
        try:
            self._count(len(data))
        except NetError as error:
            self._error = OSError(error.text)
            self.close()
            self._wake()
            return
        if self._unread and len(self._unread[-1]) + len(data) <= _SMALL:
            self._unread[-1] += data
        else:
            self._unread.append(data)
        self._size += len(data)
        if self._size >= _HIGH and not self._paused and self._transport is not None:
            self._paused = True
            self._transport.pause_reading()
        self._wake()

    def _count(self, size: int) -> None:
        if self.memory is not None:
            if size > 0:
                self.memory.take(size)
            else:
                size = max(size, -self._counted)  # what came before it was counted is not given back
                self.memory.give(-size)
            self._counted += size

    def eof_received(self) -> bool:
        self._eof = True
        self._wake()
        return not self._secure  # a plain connection may still be written to

    def connection_lost(self, error: Exception | None) -> None:
        self._eof = True
        self._error = self._error or error
        self._wake()
        self.resume_writing()

    def pause_writing(self) -> None:
        self._drain = self._drain or self._loop.create_future()

    def resume_writing(self) -> None:
        drain, self._drain = self._drain, None
        if drain is not None and not drain.done():
            drain.set_result(None)

    def _wake(self) -> None:
        news, self._news = self._news, None
        if news is not None and not news.done():
            news.set_result(None)

    # What we call.

    async def read(self, size: int | None = None, timeout: float | None = None) -> bytes:
        """The next piece, at most `size` bytes; b"" at the end. OSError if it broke, TimeoutError."""
        while not self._unread:
            if self._error is not None:
                raise ConnectionResetError(str(self._error))
            if self._eof:
                return b""
            self._news = self._news or self._loop.create_future()
            if timeout is None:
                await self._news
            else:
                async with asyncio.timeout(timeout):
                    await asyncio.shield(self._news)
        piece = self._unread.popleft()
        if size is not None and len(piece) > size:
            self._unread.appendleft(piece[size:])
            piece = piece[:size]
        self._size -= len(piece)
        self._count(-len(piece))
        if self._paused and self._size < _HIGH // 2 and self._transport is not None:
            self._paused = False
            self._transport.resume_reading()
        return piece

    async def write(self, data: bytes, timeout: float | None = None) -> None:
        """Returns when the other side keeps up. OSError, TimeoutError."""
        if self._transport is None or self._transport.is_closing():
            raise BrokenPipeError("the connection is closed")
        self._transport.write(data)
        if self._drain is not None:
            async with asyncio.timeout(timeout):
                await asyncio.shield(self._drain)
        if self._error is not None:
            raise ConnectionResetError(str(self._error))

    def write_eof(self) -> None:
        if self._transport is not None and not self._transport.is_closing() and self._transport.can_write_eof():
            self._transport.write_eof()

    async def shut_down(self, seconds: float) -> None:
        """Say that this is the end, where TLS is spoken (close_notify), and wait for the answer. Then close it."""
        if self._secure and self._transport is not None and not self._transport.is_closing():
            self._transport.close()
            with suppress(OSError, TimeoutError):
                while await self.read(timeout=seconds):
                    pass

    def close(self) -> None:
        """End it. What was written is sent; what was not read is lost."""
        self._count(-self._size)
        self._unread.clear()
        self._size = 0
        if self._transport is not None:
            if not self._transport.get_write_buffer_size():
                self._transport.abort()
            elif not self._transport.is_closing():
                self._transport.close()

    @property
    def spoken(self) -> bool:
        """Whether something arrived, or the end did: an idle connection is then no longer usable."""
        return bool(self._unread) or self._eof or self._transport is None or self._transport.is_closing()

    def info(self, name: str) -> Any:
        return None if self._transport is None else self._transport.get_extra_info(name)


async def dial(address: Address, port: int, timeout: float) -> Stream:
    """A TCP connection to exactly this address. NetError."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    loop = asyncio.get_running_loop()
    connection = socket.socket(family, socket.SOCK_STREAM)
    try:
        connection.setblocking(False)
        async with asyncio.timeout(timeout):
            await loop.sock_connect(connection, (str(address), port))
        _, stream = await loop.create_connection(Stream, sock=connection)
    except TimeoutError:
        connection.close()
        raise NetError("timeout", f"no answer from {Endpoint(address, port)} in {timeout:g} s") from None
    except OSError as error:
        connection.close()
        why = (error.strerror or "failed").lower()
        raise NetError("connect", f"could not connect to {Endpoint(address, port)}: {why}") from None
    except BaseException:
        connection.close()
        raise
    return stream


async def start_tls(stream: Stream, context: ssl.SSLContext, host: str, timeout: float) -> Stream:
    """The same connection, encrypted and verified to be `host`'s. NetError."""
    secure = Stream(stream.memory)
    transport = stream._transport
    assert transport is not None
    try:
        async with asyncio.timeout(timeout):
            replaced = await asyncio.get_running_loop().start_tls(
                transport, secure, context, server_hostname=host, ssl_handshake_timeout=timeout
            )
    except TimeoutError:
        stream.close()
        raise NetError("timeout", f"no TLS with {host} in {timeout:g} s") from None
    except ssl.SSLCertVerificationError as error:
        raise NetError("tls", f"the certificate of {host} is not valid: {error.verify_message}") from None
    except (OSError, ssl.SSLError) as error:
        what = error.reason if isinstance(error, ssl.SSLError) and error.reason else "the connection ended"
        raise NetError("tls", f"TLS with {host} failed: {what.lower().replace('_', ' ')}") from None
    except BaseException:
        stream.close()
        raise
    if replaced is None:
        raise NetError("tls", f"TLS with {host} failed: the connection ended")
    secure.connection_made(replaced)
    return secure


def is_own(address: Address) -> bool:
    """Whether an address is this machine's: the kernel would send from it to itself. Nothing is sent to find out."""
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((str(address), 9))
            return bool(probe.getsockname()[0] == str(address))
    except OSError:
        return False  # there is no way to it


class Datagrams(asyncio.DatagramProtocol):
    """A UDP socket connected to one address; what goes or comes too fast is dropped, as networks do."""

    _KEPT: Final = 256

    def __init__(self) -> None:
        self._arrived: deque[bytes] = deque()
        self._size = 0
        self._news = asyncio.Event()
        self._full = False
        self.transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)
        cast(asyncio.WriteTransport, transport).set_write_buffer_limits(high=_UNSENT_MAX)

    def datagram_received(self, data: bytes, address: object) -> None:
        if len(self._arrived) < self._KEPT and self._size + len(data) <= _UNREAD_MAX:
            self._arrived.append(data)
            self._size += len(data)
            self._news.set()

    def pause_writing(self) -> None:
        self._full = True

    def resume_writing(self) -> None:
        self._full = False

    def error_received(self, error: Exception) -> None:
        """A refused datagram is lost; the sender's own timeout deals with it."""

    async def read(self) -> bytes:
        while not self._arrived:
            self._news.clear()
            await self._news.wait()
        data = self._arrived.popleft()
        self._size -= len(data)
        return data

    def write(self, data: bytes) -> None:
        if self.transport is not None and not self._full:
            self.transport.sendto(data)

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()


async def dial_udp(address: Address, port: int) -> Datagrams:
    loop = asyncio.get_running_loop()
    try:
        _, datagrams = await loop.create_datagram_endpoint(Datagrams, remote_addr=(str(address), port))
    except OSError as error:
        why = (error.strerror or "failed").lower()
        raise NetError("connect", f"could not reach {Endpoint(address, port)}: {why}") from None
    return datagrams
