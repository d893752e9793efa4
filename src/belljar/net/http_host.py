"""Web requests to the world: decided, handed to middleware, sent over a verified connection to the checked address."""

from __future__ import annotations

import asyncio
import logging
import zlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any, Final, Self

import h2.exceptions
import h11
import httpcore

from belljar.net.audit import shown_url
from belljar.net.callbacks_host import TooBusy
from belljar.net.errors import NetError
from belljar.net.gate_host import Gate, Reached
from belljar.net.headers import CREDENTIALS, HOP_BY_HOP, BadMessage, Headers, check_method, check_request
from belljar.net.hosts import BadHost, Url, join_url, parse_url
from belljar.net.message import Body, HttpRequest, HttpResponse
from belljar.net.policy import AcceptHttp
from belljar.net.redact import Redactor, parts
from belljar.net.stream_host import Stream, dial, in_background, start_tls

_KEEP_SECONDS: Final = 15.0
_KEEP_EACH: Final = 6
_KEEP_ALL: Final = 32
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_BOMB_RATIO: Final = 200
_BOMB_LEAST: Final = 1 << 20
_DECODED_MAX: Final = 256 << 20

Connection = httpcore.AsyncHTTP11Connection | httpcore.AsyncHTTP2Connection
Key = tuple[str, str, int, str, str]


class HttpStream(httpcore.AsyncNetworkStream):
    """A stream as httpcore wants it, that gives up when nothing moves."""

    def __init__(self, stream: Stream, idle_seconds: float) -> None:
        self._stream = stream
        self._idle = idle_seconds

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            return await self._stream.read(timeout=timeout or self._idle)
        except TimeoutError:
            raise httpcore.ReadTimeout from None
        except OSError as error:
            raise httpcore.ReadError(str(error)) from None

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        try:
            if buffer:
                await self._stream.write(buffer, timeout or self._idle)
        except TimeoutError:
            raise httpcore.WriteTimeout from None
        except OSError as error:
            raise httpcore.WriteError(str(error)) from None

    async def aclose(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.spoken if info == "is_readable" else self._stream.info(info)


@dataclass(slots=True)
class Ask:
    """What a guest (or `safe_fetch`) wants, as it came."""

    method: str
    url: str
    headers: list[tuple[bytes, bytes]] = field(default_factory=list)
    body: AsyncIterator[bytes] | None = None
    redirects: int = 0
    timeout: float = 0.0
    connect_timeout: float = 0.0
    http: str = ""
    reached: list[Reached] | None = None
    """Where it goes, if that was decided already: the proxy's flows have their address."""


@dataclass(slots=True)
class Response:
    """What came back. The body is read from `chunks`; after `upgrade`, `stream` is a raw connection."""

    version: str
    status: int
    reason: str
    headers: Headers
    url: Url
    info: dict[str, str]
    chunks: AsyncIterator[bytes]
    stream: httpcore.AsyncNetworkStream | None = None
    incoming: Incoming | None = None

    async def aclose(self) -> None:
        """Let go of the connection, wherever the body is. Idempotent."""
        if self.incoming is not None:
            await self.incoming.aclose()
        if self.stream is not None:
            await self.stream.aclose()

    @property
    def head(self) -> bytes:
        lines = [f"{self.version} {self.status}{' ' + self.reason if self.reason else ''}".encode("latin-1")]
        lines += [name + b": " + value for name, value in self.headers.raw()]
        return b"\r\n".join([*lines, b"", b""])


def _keep_logs_clean() -> None:
    """The debug lines of these have whole headers in them, credentials too: off, unless an owner sets their level."""
    for name in ("httpcore", "hpack", "h2"):
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.INFO)


class Web:
    """The web requests of one gate, and its idle connections."""

    def __init__(self, gate: Gate) -> None:
        _keep_logs_clean()
        self.gate = gate
        self._idle: dict[Key, list[Connection]] = {}
        self._closed = False

    async def fetch(self, ask: Ask) -> Response:
        """Decide, send, and give the head of the response. NetError."""
        try:
            url, method, headers = parse_url(ask.url), check_method(ask.method), Headers(ask.headers)
            check_request(headers, url.authority)
        except (BadHost, BadMessage) as error:
            raise NetError("protocol", str(error)) from None
        body, seen = ask.body, 0
        while True:
            response = await self._once(ask, method, url, headers, body)
            if response.status not in _REDIRECTS or not ask.redirects or "location" not in response.headers:
                return response
            seen += 1
            await response.aclose()
            if seen > ask.redirects:
                raise NetError("protocol", f"more than {ask.redirects} redirects")
            try:
                target = join_url(url, response.headers["location"])
            except BadHost as error:
                raise NetError("denied", f"a redirect to {error}") from None
            if response.status == 303 or (response.status in (301, 302) and method == "POST"):
                method, body = ("HEAD" if method == "HEAD" else "GET"), None
                for name in ("content-length", "content-type", "content-encoding"):
                    headers.remove(name)
            elif body is not None:
                raise NetError("protocol", "a redirect asks to send the body again, and it is gone")
            if target.origin != url.origin:
                for name in (*CREDENTIALS, "host"):
                    headers.remove(name)
            url = target

    async def _once(
        self, ask: Ask, method: str, url: Url, given: Headers, body: AsyncIterator[bytes] | None
    ) -> Response:
        gate = self.gate
        reached = ask.reached or await gate.reach("tcp", str(url.host), url.port)
        grant = reached[0].accepted
        http = grant if isinstance(grant, AcceptHttp) else AcceptHttp(websocket=True)
        upgrade = _check_upgrade(given, http)
        announced = given.get("content-length")
        headers = given.copy()
        for name in (*HOP_BY_HOP, "host", "content-length"):
            headers.remove(name)
        # Header values that middleware sets are secrets from then on.
        before = {(name.lower(), value) for name, value in headers.items()}
        request = HttpRequest(method, url, headers, Body(body, size=int(announced) if announced else None))
        answer = await self._middleware(http, request)
        added = [(name, value) for name, value in request.headers.items() if (name.lower(), value) not in before]
        redactor = Redactor(_secrets(http, added))
        event: dict[str, Any] = {"action": "request", "method": request.method, "url": shown_url(request.target)}
        if added:
            event["rewrote"] = sorted({name.lower() for name, _ in added})
        gate.tell(event)
        gate.traffic.requests += 1
        if answer is not None:
            return await self._finish(
                request, "HTTP/1.1", "", answer, {"url": str(url), "answered-by": "policy"}, redactor
            )
        return await self._send(ask, reached, request, upgrade, redactor)

    async def _middleware(self, http: AcceptHttp, request: HttpRequest) -> HttpResponse | None:
        if http.middleware is None:
            return None
        gate = self.gate
        try:
            answer = await gate.callbacks.call(http.middleware, request, gate.limits.policy_seconds)
        except TooBusy:
            raise NetError("denied", "too many decisions are still open") from None
        except Exception as error:  # noqa: BLE001 - the owner's code: whatever it raises is a no
            gate.tell(
                {
                    "action": "policy-error",
                    "error": f"{type(error).__name__}: {error}",
                    "url": shown_url(request.target),
                }
            )
            raise NetError("denied", "the policy failed") from None
        if request.refusal is not None:
            gate.tell({"action": "refused", "url": shown_url(request.target), "reason": request.refusal})
            raise NetError("denied", request.refusal)
        if answer is not None and not isinstance(answer, HttpResponse):
            raise NetError("denied", "the policy gave no decision")
        return answer

    async def _send(
        self, ask: Ask, reached: list[Reached], request: HttpRequest, upgrade: str | None, redactor: Redactor
    ) -> Response:
        gate, url = self.gate, request.target
        fields = [("Host", url.authority)] + [(n, v) for n, v in request.headers.items() if n.lower() not in _OURS]
        if upgrade:
            fields += [("Connection", "Upgrade"), ("Upgrade", upgrade)]
        if redactor:
            fields = [(name, value) for name, value in fields if name.lower() != "accept-encoding"]
            fields.append(("Accept-Encoding", "identity"))
        content: AsyncIterator[bytes] | None = None
        if not request.body.empty and not upgrade:
            size = request.body.size
            fields.append(("Content-Length", str(size)) if size is not None else ("Transfer-Encoding", "chunked"))
            content = self._outgoing(request.body, size)
        if sum(len(name) + len(value) + 4 for name, value in fields) > gate.limits.header_bytes:
            raise NetError("too-large", f"more than {gate.limits.header_bytes} bytes of request headers")
        info: dict[str, str] = {}
        began = gate.clock()
        retry = content is None
        while True:
            connection, key, pooled = await self._connection(ask, reached, url, info, upgrade is not None)
            raw = httpcore.Request(
                request.method.encode(),
                httpcore.URL(scheme=url.scheme, host=str(url.host), port=url.port, target=url.target),
                headers=[(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields],
                content=content or b"",
            )
            try:
                with _errors(url):
                    raw_response = await connection.handle_async_request(raw)
                break
            except BaseException as error:
                # Cancelled at the wrong moment, httpcore forgets to close it.
                await connection.aclose()
                if not (pooled and retry and isinstance(error, NetError)):
                    raise
        version = raw_response.extensions["http_version"].decode()
        info |= {
            "url": str(url),
            "http-version": version.removeprefix("HTTP/"),
            "time-firstbyte": f"{reached[0].lookup_seconds + gate.clock() - began:.6f}",
        }
        try:
            headers = Headers(raw_response.headers)
            if "transfer-encoding" in headers:
                headers.remove("content-length")  # chunks say how long it is (RFC 9112, 6.3); no reader may disagree
            if sum(len(n) + len(v) + 4 for n, v in headers.raw()) > gate.limits.header_bytes:
                raise BadMessage(f"more than {gate.limits.header_bytes} bytes of response headers")
        except BadMessage as error:
            await raw_response.aclose()
            raise NetError("protocol", str(error)) from None
        if raw_response.status == 101:
            if not upgrade:
                await raw_response.aclose()
                raise NetError("protocol", "the server changed the protocol unasked")
            return self._upgraded(raw_response, headers, url, info)
        incoming = Incoming(self, raw_response, connection, key, url)
        answer = HttpResponse(raw_response.status, headers, Body(incoming, size=_length(headers)))
        version = "HTTP/2" if version.startswith("HTTP/2") else version
        reason = raw_response.extensions.get("reason_phrase", b"").decode("latin-1")
        try:
            response = await self._finish(request, version, reason, answer, info, redactor)
        except BaseException:
            await incoming.aclose()
            raise
        response.incoming = incoming
        return response

    async def _finish(
        self,
        request: HttpRequest,
        version: str,
        reason: str,
        answer: HttpResponse,
        info: dict[str, str],
        redactor: Redactor,
    ) -> Response:
        """Let hooks see the answer, hide secrets, and hand it on."""
        gate, status = self.gate, answer.status
        for hook in request.hooks:
            try:
                await gate.callbacks.call(hook, answer, gate.limits.policy_seconds)
            except Exception as error:  # noqa: BLE001 - the owner's code: whatever it raises is a no
                gate.tell(
                    {
                        "action": "policy-error",
                        "error": f"{type(error).__name__}: {error}",
                        "url": shown_url(request.target),
                    }
                )
                raise NetError("denied", "the policy failed") from None
        headers, chunks = answer.headers, answer.body.chunks()
        if answer.body.changed:
            headers.remove("content-length")
            headers.remove("transfer-encoding")
            if answer.body.size is not None:
                headers.set("content-length", str(answer.body.size))
        if redactor:
            coding = headers.get("content-encoding", "identity") or "identity"
            if coding != "identity" and request.method != "HEAD":
                chunks = decoded(chunks, coding)
                for name in ("content-encoding", "content-length"):
                    headers.remove(name)
            hidden = Headers((name, redactor.whole(value)) for name, value in headers.raw())
            headers, chunks = hidden, self._redacted(chunks, redactor)
        gate.tell({"action": "response", "status": status, "url": shown_url(request.target)})
        return Response(version, status, reason, headers, request.target, info, chunks)

    async def _redacted(self, chunks: AsyncIterator[bytes], redactor: Redactor) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            if clean := redactor.feed(chunk):
                yield clean
        if clean := redactor.flush():
            yield clean
        if redactor.count:
            self.gate.tell({"action": "redacted", "count": redactor.count})

    def _upgraded(self, raw: httpcore.Response, headers: Headers, url: Url, info: dict[str, str]) -> Response:
        stream = raw.extensions["network_stream"]
        info["upgraded"] = "1"
        return Response("HTTP/1.1", 101, "Switching Protocols", headers, url, info, _raw(stream), stream)

    # Bodies.

    async def _outgoing(self, body: Body, size: int | None) -> AsyncIterator[bytes]:
        sent = 0
        async for chunk in body.chunks():
            sent += len(chunk)
            if size is not None and sent > size:
                raise NetError("protocol", f"the body is longer than its Content-Length of {size}")
            self.gate.count_out(len(chunk))
            yield chunk
        if size is not None and sent < size:
            raise NetError("protocol", f"the body ended after {sent} bytes of {size}")

    # Connections.

    async def _connection(
        self, ask: Ask, reached: list[Reached], url: Url, info: dict[str, str], fresh: bool
    ) -> tuple[Connection, Key, bool]:
        """An idle connection to exactly this place, or a new one."""
        gate = self.gate
        http2 = url.scheme == "https" and ask.http in ("", "2") and not fresh
        limit = min(ask.connect_timeout or gate.limits.connect_seconds, gate.limits.connect_seconds)
        lookup = reached[0].lookup_seconds
        failure: NetError | None = None
        for place in reached:
            key = (url.scheme, str(url.host), url.port, str(place.address), "2" if http2 else "1")
            info |= {
                "remote-ip": str(place.address),
                "remote-port": str(place.port),
                "time-namelookup": f"{lookup:.6f}",
            }
            kept = self._idle.get(key, [])
            while kept:
                connection = kept.pop()
                if connection.is_available() and not connection.has_expired():
                    info |= {"time-connect": f"{lookup:.6f}", "reused": "1"}
                    return connection, key, True
                await connection.aclose()
            try:
                return await self._dial(place, url, http2, limit, info, lookup), key, False
            except NetError as error:
                failure = error
                if error.kind == "tls":
                    break
        assert failure is not None
        raise failure

    async def _dial(
        self, place: Reached, url: Url, http2: bool, limit: float, info: dict[str, str], lookup: float
    ) -> Connection:
        gate = self.gate
        began = gate.clock()
        gate.traffic.connections += 1
        stream = await dial(place.address, place.port, limit)
        info["time-connect"] = f"{lookup + gate.clock() - began:.6f}"
        protocol: str | None = None
        if url.scheme == "https":
            stream = await start_tls(stream, gate.tls(http2=http2), str(url.host), limit)
            info["time-tls"] = f"{lookup + gate.clock() - began:.6f}"
            protocol = stream.info("ssl_object").selected_alpn_protocol()
        wrapped = HttpStream(stream, gate.limits.idle_seconds)
        origin = httpcore.Origin(url.scheme.encode(), str(url.host).encode(), url.port)
        if protocol == "h2":
            return httpcore.AsyncHTTP2Connection(origin, wrapped, keepalive_expiry=_KEEP_SECONDS)
        return httpcore.AsyncHTTP11Connection(origin, wrapped, keepalive_expiry=_KEEP_SECONDS)

    def keep(self, key: Key, connection: Connection) -> None:
        if not connection.is_idle():
            in_background(connection.aclose())  # whatever httpcore made of it: it must not stay open
            return
        kept = self._idle.setdefault(key, [])
        if not self._closed and len(kept) < _KEEP_EACH and sum(map(len, self._idle.values())) < _KEEP_ALL:
            kept.append(connection)
            asyncio.get_running_loop().call_later(_KEEP_SECONDS + 1, self._sweep, key)
        else:
            in_background(connection.aclose())

    def _sweep(self, key: Key) -> None:
        """Close what has been idle for too long, or was closed by its server."""
        kept = self._idle.get(key, [])
        for connection in [connection for connection in kept if connection.has_expired()]:
            kept.remove(connection)
            in_background(connection.aclose())
        if not kept:
            self._idle.pop(key, None)

    async def close(self) -> None:
        """Close what is idle, now and from now on."""
        self._closed = True
        idle, self._idle = self._idle, {}
        for kept in idle.values():
            for connection in kept:
                await connection.aclose()


class Incoming:
    """The body of a response as it comes; counts it, and gives the connection back when it is through."""

    def __init__(self, web: Web, raw: httpcore.Response, connection: Connection, key: Key, url: Url) -> None:
        self._web = web
        self._raw = raw
        self._connection = connection
        self._key = key
        self._url = url
        self._chunks = raw.aiter_stream()
        self._size = 0
        self._closed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        try:
            with _errors(self._url):
                chunk = await anext(self._chunks)
            self._size += len(chunk)
            self._web.gate.count_in(len(chunk))
        except BaseException:
            await self.aclose()
            raise
        return chunk

    async def aclose(self) -> None:
        if not self._closed:
            self._closed = True
            try:
                await self._raw.aclose()
            finally:
                self._web.keep(self._key, self._connection)
            self._web.gate.tell({"action": "done", "url": shown_url(self._url), "bytes": self._size})


_OURS: Final = HOP_BY_HOP | {"host", "content-length"}


def _check_upgrade(headers: Headers, http: AcceptHttp) -> str | None:
    """The protocol a request wants to change to. NetError unless that is a WebSocket, and one is granted."""
    wanted = headers.get("upgrade")
    if wanted is None:
        return None
    if wanted.lower() != "websocket" or not http.websocket:
        raise NetError("denied", f"this sandbox may not change the protocol to {wanted[:40]!a} here")
    return wanted


def _secrets(http: AcceptHttp, added: list[tuple[str, str]]) -> set[str]:
    if http.redact is True:
        return {part for _, value in added for part in parts(value)}
    return {part for secret in http.redact or () for part in parts(secret)}


def _length(headers: Headers) -> int | None:
    value = headers.get("content-length")
    return int(value) if value is not None and value.isascii() and value.isdigit() and len(value) < 19 else None


async def _raw(stream: Any) -> AsyncIterator[bytes]:
    while data := await stream.read(1 << 18):
        yield data


async def decoded(chunks: AsyncIterator[bytes], coding: str) -> AsyncIterator[bytes]:
    """A compressed body, to be looked into. NetError for codings we can't read, and for bombs."""
    if coding not in ("gzip", "x-gzip", "deflate"):
        raise NetError("protocol", f"the server sent {coding[:20]!a} although asked not to compress")
    decoder = zlib.decompressobj(47)
    size_in = size_out = 0
    async for chunk in chunks:
        size_in += len(chunk)
        while chunk:
            try:
                data = decoder.decompress(chunk, 1 << 18)
            except zlib.error:
                raise NetError("protocol", "the compressed body is broken") from None
            size_out += len(data)
            if size_out > min(_DECODED_MAX, max(_BOMB_LEAST, _BOMB_RATIO * size_in)):
                raise NetError("too-large", "the compressed body grows too large")
            chunk = decoder.unconsumed_tail
            if data:
                yield data
    if data := decoder.flush():
        yield data


class _errors:
    """Turns what can go wrong below into words for the guest."""

    def __init__(self, url: Url) -> None:
        self._host = url.authority

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        match error:
            case httpcore.TimeoutException():
                raise NetError("timeout", f"{self._host} went silent") from None
            case httpcore.ProtocolError() | h11.ProtocolError() | h2.exceptions.ProtocolError():
                raise NetError("protocol", f"{self._host} broke the protocol: {error}") from None
            case httpcore.NetworkError() | OSError():
                raise NetError("reset", f"the connection to {self._host} broke") from None
