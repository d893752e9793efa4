"""Previews: web servers inside sandboxes, for browsers and programs elsewhere.

A preview has a host name of its own, `<port>-<id>.<domain>`, which keeps it apart from the console, the API and other
previews as browsers keep sites apart; or a path, `/p/<id>/<port>/`, of the server's own origin. There, its pages are
told to be of no origin (CSP `sandbox`), and no cookie passes either way.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import suppress
from typing import Any, Final
from urllib.parse import parse_qsl, urlencode

import h11
from msgspec import Struct
from starlette.requests import HTTPConnection

from belljar.api.errors import PortClosed, SandboxError
from belljar.server.access import CODE_PORT, ENVD_PORT, Access, note
from belljar.server.connect import until_gone
from belljar.server.errors import ApiError, RpcError, SandboxGone
from belljar.server.preview_socket_host import carry_socket
from belljar.server.records import Held
from belljar.server.service import Service

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

_HOST: Final = re.compile(r"(\d{1,5})-([a-z0-9]{1,40})\.[^/@]+")
_PATH: Final = re.compile(r"/p/([a-z0-9]{1,40})/(\d{1,5})(?:~([0-9A-Za-z._-]{1,200}))?(/.*)?", re.DOTALL)
_PIECE: Final = 256 << 10
_HEAD_MAX: Final = 64 << 10
_QUERY: Final = "belljar"
"""The parameter of a URL that a signature comes in."""
_COOKIE: Final = "__belljar_preview"
_OURS: Final = frozenset({b"x-api-key", b"x-access-token", b"e2b-traffic-access-token", b"e2b-sandbox-id",
                          b"e2b-sandbox-port", b"x-forwarded-host", b"x-forwarded-proto", b"x-forwarded-prefix",
                          b"forwarded", b"via"})  # fmt: skip
_HOP: Final = frozenset({b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authorization", b"te", b"trailer",
                         b"transfer-encoding", b"upgrade", b"proxy-connection", b"expect"})  # fmt: skip
_OF_THE_ORIGIN: Final = frozenset({b"set-cookie", b"service-worker-allowed", b"clear-site-data", b"alt-svc", b"nel",
                                   b"strict-transport-security", b"report-to", b"reporting-endpoints"})  # fmt: skip
"""Headers by which a page would act on the whole origin that it is at."""
_SEALED: Final = (
    b"sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads allow-popups-to-escape-sandbox"
)


class Target(Struct, frozen=True):
    """What a request for a preview is for."""

    sandbox: str
    port: int
    prefix: str
    """The part of the path that the server inside does not see; "": the preview has a host name of its own."""
    path: str
    token: str
    """As the path, the query or a cookie has it."""
    fresh: bool
    """Whether the token came in the query: browsers are told to go on without it."""


def parse_target(scope: Scope) -> Target | None:
    """The preview that a request is for; None: it is for something else."""
    request = HTTPConnection(scope)
    path = scope["raw_path"].decode("latin-1")
    given = dict(_query(scope)).get(_QUERY, "")
    if found := _PATH.fullmatch(path):
        number, port, token, rest = found.groups()
        prefix = f"/p/{number}/{port}" + (f"~{token}" if token else "")
        return Target(number, int(port), prefix, rest or "", token or given, bool(given and not token))
    host = request.headers.get("host", "").lower()
    named = _HOST.fullmatch(host)
    number, port = request.headers.get("e2b-sandbox-id", ""), request.headers.get("e2b-sandbox-port", "")
    if named is not None and not number:
        port, number = named[1], named[2]
    if not (port.isascii() and port.isdigit()) or int(port[:6]) in (ENVD_PORT, CODE_PORT):
        return None
    token = given or request.cookies.get(_COOKIE, "")
    return Target(number, int(port[:6]), "", path, token, bool(given))


class Previews:
    """ASGI middleware: answers what is for a preview, and leaves the rest to the app."""

    def __init__(self, app: Any, service: Service, access: Access) -> None:
        self._app = app
        self._service = service
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        target = parse_target(scope) if scope["type"] in ("http", "websocket") else None
        if target is None:
            await self._app(scope, receive, send)
            return
        scope["belljar.route"] = "/p/{id}/{port}"
        try:
            held = self._authorize(HTTPConnection(scope), target)
            if scope["type"] == "http" and (target.fresh or not target.path):
                await send(_redirect(scope, target))
                await send({"type": "http.response.body", "body": b""})
                return
            await self._open(scope, receive, send, target, held)
        except ApiError as error:
            if scope["type"] == "http":
                raise
            await send({"type": "websocket.close", "code": 1008, "reason": error.message[:100]})

    def _authorize(self, request: HTTPConnection, target: Target) -> Held:
        """The sandbox, if it is public, or by a token, a key or a signed link. ApiError."""
        held = self._service.held.get(target.sandbox)
        if held is None or not held.record.wanted.allow_public_traffic:
            until, _, signature = target.token.partition(".")
            expected = self._service.tokens.preview(target.sandbox, target.port, until)
            self._access.check_preview(request, target.sandbox, signature, expected, until)
        if held is None:
            raise SandboxGone(target.sandbox)
        note(request, tenant=held.record.tenant, sandbox=target.sandbox)
        return held

    async def _open(self, scope: Scope, receive: Receive, send: Send, target: Target, held: Held) -> None:
        try:
            self._service.check_streams(held)
            async with self._service.use(held, resume=held.record.auto_resume) as guest:
                stream = await guest.sandbox.port(target.port).socket()
        except RpcError as error:
            raise ApiError(429, error.message) from None
        except (PortClosed, ValueError):
            raise ApiError(502, f"The sandbox is running but port {target.port} is not open") from None
        except SandboxError:
            raise SandboxGone(target.sandbox) from None
        mask = (held.record.wanted.mask_request_host or "localhost:${PORT}").replace("${PORT}", str(target.port))
        headers = forwarded(scope, target, mask)
        if target.fresh:
            scope["query_string"] = urlencode([pair for pair in _query(scope) if pair[0] != _QUERY]).encode()
        with self._service.stream(held, guest):
            if scope["type"] == "websocket":
                await carry_socket(scope, receive, send, stream, target.path, headers)
                return
            reader, writer = await asyncio.open_connection(sock=stream)
            try:
                exchange = Exchange(scope, target, reader, writer)
                await exchange.run(headers, receive, send)
            finally:
                writer.close()
                self._service.count(held.record.tenant, "bytes_out", exchange.sent)
                self._service.count(held.record.tenant, "bytes_in", exchange.received)


def _redirect(scope: Scope, target: Target) -> dict[str, Any]:
    """To the same place without the token: kept in a cookie of the preview's own host, or in the path."""
    query = [pair for pair in _query(scope) if pair[0] != _QUERY]
    where, headers = target.path or "/", []
    if target.prefix:
        where = (target.prefix if not target.fresh else f"{target.prefix}~{target.token}") + where
    elif target.fresh:
        secure = "; Secure" if scope["scheme"] in ("https", "wss") else ""
        headers.append((b"set-cookie", f"{_COOKIE}={target.token}; Path=/; HttpOnly; SameSite=Lax{secure}".encode()))
    where += f"?{urlencode(query)}" if query else ""
    headers += [(b"location", where.encode("latin-1")), (b"content-length", b"0"), (b"referrer-policy", b"no-referrer")]
    return {"type": "http.response.start", "status": 303, "headers": headers}


def forwarded(scope: Scope, target: Target, host: str) -> list[tuple[bytes, bytes]]:
    """The headers of a request as the server inside gets them: nothing that is for us, and the host that it is told.

    Names are spelled as browsers do over HTTP/1.1 (ASGI has them in small letters): not every program ignores case.
    """
    dropped = {name.strip().lower() for line in _values(scope, b"connection") for name in line.split(b",")}
    kept: list[tuple[bytes, bytes]] = []
    for name, value in scope["headers"]:
        if name in _HOP or name in _OURS or name in dropped or name == b"host" or name.startswith(b"sec-websocket-"):
            continue
        if name == b"authorization" and b"bj_" in value:
            continue
        if name == b"cookie":
            parts = [part.strip() for part in value.split(b";")]
            value = b"; ".join(part for part in parts if not part.startswith(_COOKIE.encode()))
            if target.prefix or not value:
                continue
        kept.append((name, value))
    scheme = "https" if scope["scheme"] in ("https", "wss") else "http"
    kept.append((b"host", host.encode()))
    kept += [(b"x-forwarded-host", value) for value in _values(scope, b"host")[:1]]
    kept.append((b"x-forwarded-proto", scheme.encode()))
    if target.prefix:
        kept.append((b"x-forwarded-prefix", target.prefix.encode()))
    return [(b"-".join(map(bytes.capitalize, name.split(b"-"))), value) for name, value in kept]


def returned(headers: list[tuple[bytes, bytes]], target: Target) -> list[tuple[bytes, bytes]]:
    """The headers of an answer as clients get them."""
    own = f"localhost:{target.port}".encode()
    kept: list[tuple[bytes, bytes]] = []
    for name, value in headers:
        if name in _HOP or (target.prefix and name in _OF_THE_ORIGIN) or name == b"x-request-id":
            continue
        if name in (b"strict-transport-security", b"alt-svc"):
            continue
        if name == b"set-cookie":
            parts = value.split(b";")
            if parts[0].strip().startswith(_COOKIE.encode()):
                continue
            value = b";".join(part for part in parts if not part.strip().lower().startswith(b"domain"))
        if name == b"location":
            for scheme in (b"http://", b"https://", b"//"):
                if value.startswith(scheme + own):
                    value = value[len(scheme + own) :] or b"/"
            if target.prefix and value.startswith(b"/") and not value.startswith(b"//"):
                value = target.prefix.encode() + value
        kept.append((name, value))
    if target.prefix:
        kept += [(b"content-security-policy", _SEALED), (b"referrer-policy", b"no-referrer")]
        if not any(name == b"access-control-allow-origin" for name, _ in kept):
            kept.append((b"access-control-allow-origin", b"*"))  # whoever knows the link may read it, without cookies
    return kept


def _query(scope: Scope) -> list[tuple[str, str]]:
    """ApiError 400."""
    try:
        return parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=1000)
    except ValueError:
        raise ApiError(400, "too many parameters") from None


def _values(scope: Scope, name: bytes) -> list[bytes]:
    return [value for each, value in scope["headers"] if each == name]


class Exchange:
    """One request to a server inside, and its answer."""

    def __init__(
        self, scope: Scope, target: Target, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._scope = scope
        self._target = target
        self._reader = reader
        self._writer = writer
        self._inside = h11.Connection(h11.CLIENT, max_incomplete_event_size=_HEAD_MAX)
        self._began = False
        self.sent = self.received = 0

    async def run(self, headers: list[tuple[bytes, bytes]], receive: Receive, send: Send) -> None:
        """ApiError if there is no answer that can be passed on."""
        try:
            await self._request(headers, receive, send)
        except (h11.ProtocolError, OSError, asyncio.IncompleteReadError):
            if self._began:
                raise ConnectionError("the server in the sandbox broke off") from None
            raise ApiError(502, f"What listens on port {self._target.port} of the sandbox speaks no HTTP") from None

    async def _request(self, headers: list[tuple[bytes, bytes]], receive: Receive, send: Send) -> None:
        query = self._scope["query_string"]
        path = (self._target.path or "/").encode("latin-1") + (b"?" + query if query else b"")
        framing = [(b"transfer-encoding", b"chunked")] if _values(self._scope, b"transfer-encoding") else []
        head = h11.Request(
            method=self._scope["method"], target=path, headers=[*headers, *framing, (b"connection", b"close")]
        )
        await self._write(head)
        body = asyncio.ensure_future(self._body(receive))
        try:
            await self._answer(send)
        finally:
            body.cancel()
            await asyncio.gather(body, return_exceptions=True)

    async def _body(self, receive: Receive) -> None:
        """Pass the request's body on, then see whether the client goes away."""
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                self._writer.close()
                return
            if piece := message.get("body", b""):
                self.received += len(piece)
                await self._write(h11.Data(data=piece))
            if not message.get("more_body"):
                break
        await self._write(h11.EndOfMessage())
        await until_gone(receive, asyncio.Event().wait())
        self._writer.close()

    async def _write(self, event: Any) -> None:
        if data := self._inside.send(event):
            self._writer.write(data)
            await self._writer.drain()

    async def _answer(self, send: Send) -> None:
        while True:
            event: Any = self._inside.next_event()
            if event is h11.NEED_DATA:
                self._inside.receive_data(await self._reader.read(_PIECE))
            elif isinstance(event, h11.Response):
                self._began = True
                headers = returned(list(event.headers), self._target)
                await send({"type": "http.response.start", "status": event.status_code, "headers": headers})
            elif isinstance(event, h11.Data):
                self.sent += len(event.data)
                await send({"type": "http.response.body", "body": bytes(event.data), "more_body": True})
            elif isinstance(event, h11.EndOfMessage):
                with suppress(OSError):
                    await send({"type": "http.response.body", "body": b""})
                return
            elif isinstance(event, h11.ConnectionClosed):
                raise h11.RemoteProtocolError("no answer")
