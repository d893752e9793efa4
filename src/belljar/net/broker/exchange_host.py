"""One web request on its way: what was asked, what comes back, and what of it must not be shown."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import unquote_plus

import httpcore

from belljar.net.audit import shown_url
from belljar.net.broker.gate_host import Gate, Reached
from belljar.net.broker.pool_host import Held, Pool, explained
from belljar.net.broker.stream_host import Stream
from belljar.net.errors import NetError
from belljar.net.headers import CREDENTIALS, Headers
from belljar.net.hosts import Url
from belljar.net.message import Body, HttpRequest
from belljar.net.policy import AcceptHttp
from belljar.net.redact import Redactor, parts


@dataclass(slots=True)
class Ask:
    """A request of a guest (or `safe_fetch`), unparsed."""

    method: str
    url: str
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: AsyncIterator[bytes] | None = None
    redirects: int = 0
    timeout: float = 0.0
    connect_timeout: float = 0.0
    http: str = ""
    reached: list[Reached] | None = None
    """The destination, if decided already: intercepted connections have their address."""
    ahead: Stream | None = None
    """A connection to there that was made already, and verified if it is a secure one."""


@dataclass(slots=True)
class Response:
    """A response. The body is read from `chunks`; after `upgrade`, `stream` is a raw connection."""

    version: str
    status: int
    reason: str
    headers: Headers
    url: Url
    info: dict[str, str]
    chunks: AsyncIterator[bytes]
    stream: httpcore.AsyncNetworkStream | None = None
    incoming: Incoming | None = None
    bodies: tuple[Body, ...] = ()
    """Bodies that middleware may have read, of the request and the response."""

    async def aclose(self) -> None:
        """Release the connection, wherever the body is. Idempotent."""
        for body in self.bodies:
            body.release()
        if self.incoming is not None:
            await self.incoming.aclose()
        if self.stream is not None:
            await self.stream.aclose()

    @property
    def head(self) -> bytes:
        lines = [f"{self.version} {self.status}{' ' + self.reason if self.reason else ''}".encode("latin-1")]
        lines += [name + b": " + value for name, value in self.headers.raw()]
        return b"\r\n".join([*lines, b"", b""])


@dataclass(slots=True)
class Exchange:
    """One request on its way to one address."""

    request: HttpRequest
    url: Url
    """As the guest asked for it; middleware may have made another path of it, which is none of the guest's business."""
    redactor: Redactor
    info: dict[str, str]


class Source:
    """The guest's body as it comes, which can be read once."""

    def __init__(self, chunks: AsyncIterator[bytes]) -> None:
        self._chunks = chunks
        self.begun = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        self.begun = True
        return await anext(self._chunks)


class Incoming:
    """The body of a response as it comes; gives the connection back when it is through."""

    def __init__(self, gate: Gate, pool: Pool, raw: httpcore.Response, held: Held, exchange: Exchange) -> None:
        self._gate = gate
        self._pool = pool
        self._raw = raw
        self._held = held
        self._exchange = exchange
        self._chunks = raw.aiter_stream()
        self._size = 0
        self._closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        try:
            with explained(self._exchange.url, quote=not self._exchange.redactor):
                chunk = await anext(self._chunks)
        except BaseException:
            await self.aclose()
            raise
        self._size += len(chunk)
        return chunk

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            try:
                await self._raw.aclose()
            finally:
                self._pool.keep(self._held)
            self._gate.tell({"action": "done", "url": shown_url(self._exchange.url), "bytes": self._size})


class Socket(httpcore.AsyncNetworkStream):
    """A connection that has become a WebSocket; an echoed secret is hidden in what comes."""

    def __init__(self, stream: httpcore.AsyncNetworkStream, redactor: Redactor) -> None:
        self._stream = stream
        self._redactor = redactor

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        while data := await self._stream.read(max_bytes, timeout):
            if clean := self._redactor.feed(data):
                return clean
        return self._redactor.flush()

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._stream.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._stream.aclose()


async def outgoing(body: Body, size: int | None) -> AsyncIterator[bytes]:
    """The request's body: exactly as long as was announced. NetError."""
    sent = 0
    async for chunk in body.chunks():
        sent += len(chunk)
        if size is not None and sent > size:
            raise NetError("protocol", f"the body is longer than its Content-Length of {size}")
        yield chunk
    if size is not None and sent < size:
        raise NetError("protocol", f"the body ended after {sent} bytes of {size}")


def hidden(headers: Headers, redactor: Redactor) -> Headers:
    return Headers((name, redactor.whole(value)) for name, value in headers.raw())


def holds_secrets(http: AcceptHttp, request: HttpRequest, added: list[tuple[str, str]]) -> bool:
    """Whether a request may have what nobody on the way may read: `redact`, credentials, or a changed URL or body."""
    credentials = any(name.lower() in CREDENTIALS for name, _ in added)
    return bool(http.redact) or credentials or request.rewritten or request.body.changed


def secrets_of(http: AcceptHttp, added: list[tuple[str, str]], asked: Url, sent: Url) -> set[str]:
    """Strings to redact in responses. With `redact=True` all that middleware added: header values and URL parts."""
    if http.redact is not True:
        return {part for secret in http.redact or () for part in parts(secret)}
    known = set(_pieces(asked))
    new = {piece for piece in _pieces(sent) if piece not in known}
    return {part for _, value in added for part in parts(value)} | new | {unquote_plus(piece) for piece in new}


def _pieces(url: Url) -> list[str]:
    """The segments of a path and the values of a query."""
    path, _, query = url.target.partition("?")
    return [*path.split("/"), *(pair.partition("=")[2] or pair for pair in query.split("&"))]


def length_of(headers: Headers) -> int | None:
    value = headers.get("content-length")
    return int(value) if value is not None and value.isascii() and value.isdigit() and len(value) < 19 else None


async def pieces_of(stream: Socket) -> AsyncIterator[bytes]:
    while data := await stream.read(1 << 18):
        yield data
