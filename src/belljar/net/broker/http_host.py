"""Web requests to the world: decided, handed to middleware, sent over a verified connection to the checked address."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Final

import httpcore

from belljar.net.addresses import Scope, classify
from belljar.net.audit import failure, shown_url
from belljar.net.broker.callbacks_host import TooBusy
from belljar.net.broker.exchange_host import (
    Ask,
    Exchange,
    Incoming,
    Response,
    Socket,
    Source,
    hidden,
    holds_secrets,
    length_of,
    outgoing,
    pieces_of,
    secrets_of,
)
from belljar.net.broker.gate_host import Gate, Reached
from belljar.net.broker.pool_host import Held, Pool, Unreached, explained
from belljar.net.coding import decoded
from belljar.net.errors import NetError
from belljar.net.headers import CREDENTIALS, HOP_BY_HOP, BadMessage, Headers, check_method, check_request
from belljar.net.hosts import BadHost, Url, check_path, join_url, parse_url
from belljar.net.message import Body, HttpRequest, HttpResponse
from belljar.net.policy import AcceptHttp
from belljar.net.redact import Redactor
from belljar.net.websocket import check_accepted, check_upgrade

REDIRECTS_MAX: Final = 50
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_REPEATABLE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
"""Sent again if a kept connection turns out to be dead; anything else might be done twice."""
_OURS: Final = HOP_BY_HOP | {"host", "content-length"}
_NOT_IN_PART: Final = frozenset({"accept-encoding", "range", "if-range", "sec-websocket-extensions"})
"""Headers by which a guest could have a response cut or compressed so that redaction misses a secret."""


def _keep_logs_clean() -> None:
    """Turn off debug logs that contain whole headers, credentials too, unless an owner sets their level."""
    for name in ("httpcore", "hpack", "h2"):
        logger = logging.getLogger(name)
        if logger.level == logging.NOTSET:
            logger.setLevel(logging.INFO)


class Web:
    """The web requests of one gate, and its idle connections."""

    def __init__(self, gate: Gate) -> None:
        _keep_logs_clean()
        self.gate = gate
        self._pool = Pool(gate)
        self._home = asyncio.get_running_loop()
        gate.thread.closers.add(self.close)

    async def close(self) -> None:
        """Close what is idle, now and from now on."""
        self.gate.thread.closers.discard(self.close)
        await self._pool.close()

    async def fetch(self, ask: Ask) -> Response:
        """Decide, send, and give the head of the response. NetError."""
        try:
            url, method, headers = parse_url(ask.url), check_method(ask.method), Headers(ask.headers)
            check_request(headers, url.authority)
        except (BadHost, BadMessage) as error:
            raise NetError("protocol", str(error), recorded="a malformed request") from None
        body, seen = ask.body, 0
        while True:
            response = await self._once(ask, method, url, headers, body)
            if response.status not in _REDIRECTS or not ask.redirects or "location" not in response.headers:
                return response
            seen += 1
            await response.aclose()
            if seen > min(ask.redirects, REDIRECTS_MAX):
                raise NetError("protocol", f"more than {ask.redirects} redirects")
            try:
                target = join_url(url, response.headers["location"])
            except BadHost as error:
                raise NetError("denied", f"a redirect to {error}", recorded="a redirect to no web address") from None
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
        """One request, at the first of its addresses that can be reached."""
        reached = ask.reached or await self.gate.reach("tcp", str(url.host), url.port, web=True)
        source = None if body is None else Source(body)
        for place in reached:
            try:
                return await self._attempt(ask, place, method, url, given, source)
            except Unreached:
                if place is reached[-1] or (source is not None and source.begun):
                    raise
        raise AssertionError("there is always a place")

    async def _attempt(
        self, ask: Ask, place: Reached, method: str, url: Url, given: Headers, body: Source | None
    ) -> Response:
        """One request to one address, with what the policy grants for exactly that address."""
        gate = self.gate
        http = place.accepted if isinstance(place.accepted, AcceptHttp) else AcceptHttp(websocket=True)
        if http.hostname is not None and http.hostname != url.host:
            raise NetError("denied", f"{url.authority} is not the host that was accepted")
        if http.middleware is not None:
            try:
                url = check_path(url)
            except BadHost as error:
                raise NetError("denied", str(error)) from None
        socket_key = check_upgrade(method, given, granted=http.websocket)
        announced = given.get("content-length")
        headers = given.copy()
        for name in _OURS:
            headers.remove(name)
        before = {(name.lower(), value) for name, value in headers.items()}
        size = int(announced) if announced else None
        request = HttpRequest(method, url, headers, Body(body, size=size, places=self, memory=gate.memory))
        try:
            return await self._decided(ask, place, http, request, before, socket_key)
        except BaseException:
            request.body.release()
            raise

    async def _decided(
        self,
        ask: Ask,
        place: Reached,
        http: AcceptHttp,
        request: HttpRequest,
        before: set[tuple[str, str]],
        socket_key: str | None,
    ) -> Response:
        """Let middleware see it, then send it. `before` are the fields that the guest sent."""
        gate, url = self.gate, request.target
        answer = await self._middleware(http, request)
        added = [(name, value) for name, value in request.headers.items() if (name.lower(), value) not in before]
        redactor = Redactor(secrets_of(http, added, url, request.target))
        # The record has what the guest asked for: what middleware made of it may hold a secret.
        event: dict[str, Any] = {"action": "request", "method": request.method, "url": shown_url(url)}
        if rewrote := sorted({name.lower() for name, _ in added} | ({"url"} if request.target != url else set())):
            event["rewrote"] = rewrote
        gate.tell(event)
        gate.traffic.requests += 1
        exchange = Exchange(request, url, redactor, {"url": str(url)})
        if answer is not None:
            exchange.info["answered-by"] = "policy"
            return await self._finish(exchange, "HTTP/1.1", "", answer)
        if url.scheme == "http" and classify(place.address) is Scope.PUBLIC and holds_secrets(http, request, added):
            raise NetError("denied", f"what the policy adds for {url.authority} is only sent over https")
        return await self._send(ask, place, exchange, socket_key)

    async def _middleware(self, http: AcceptHttp, request: HttpRequest) -> HttpResponse | None:
        if http.middleware is None:
            return None
        url = request.target
        answer = await self._owners(http.middleware, request, url)
        if request.refusal is not None:
            self.gate.tell({"action": "refused", "url": shown_url(url), "reason": request.refusal})
            raise NetError("denied", request.refusal)
        if answer is not None and not isinstance(answer, HttpResponse):
            raise NetError("denied", "the policy gave no decision")
        return answer

    async def _owners(self, function: Callable[..., Any], argument: object, url: Url | None) -> Any:
        """Call the owner's code. Any exception is a denial."""
        gate = self.gate
        try:
            return await gate.callbacks.call(function, argument, gate.limits.policy_seconds)
        except TooBusy:
            raise NetError("denied", "too many decisions are still open") from None
        except NetError:
            raise  # from the network below it: the request's body broke off while it was read
        except Exception as error:  # noqa: BLE001 - the owner's code
            event = {"action": "policy-error", **failure(error)}
            gate.tell(event | ({} if url is None else {"url": shown_url(url)}))
            raise NetError("denied", "the policy failed") from None

    # Where bodies are read, and where the owner's functions look at them.

    async def on_network_loop(self, work: Coroutine[Any, Any, bytes]) -> bytes:
        if asyncio.get_running_loop() is self._home:
            return await work
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._home))

    async def call_owner(self, function: Callable[[bytes], bytes], data: bytes) -> bytes:
        changed: bytes = await self._owners(function, data, None)
        return changed

    async def _send(self, ask: Ask, place: Reached, exchange: Exchange, socket_key: str | None) -> Response:
        gate, request, info, redactor = self.gate, exchange.request, exchange.info, exchange.redactor
        url = request.target
        fields = [("Host", url.authority)] + [(n, v) for n, v in request.headers.items() if n.lower() not in _OURS]
        if socket_key is not None:
            fields += [("Connection", "Upgrade"), ("Upgrade", "websocket")]
        if redactor:
            fields = [(name, value) for name, value in fields if name.lower() not in _NOT_IN_PART]
            fields.append(("Accept-Encoding", "identity"))
        content: AsyncIterator[bytes] | None = None
        if not request.body.empty and socket_key is None:
            size = request.body.size
            fields.append(("Content-Length", str(size)) if size is not None else ("Transfer-Encoding", "chunked"))
            content = outgoing(request.body, size)
        if sum(len(name) + len(value) + 4 for name, value in fields) > gate.limits.header_bytes:
            raise NetError("too-large", f"more than {gate.limits.header_bytes} bytes of request headers")
        raw = httpcore.Request(
            request.method.encode(),
            httpcore.URL(scheme=url.scheme, host=str(url.host), port=url.port, target=url.target),
            headers=[(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields],
            content=content or b"",
        )
        began = gate.clock()
        held, answer = await self._ask(ask, place, exchange, raw, upgrade=socket_key is not None)
        version = answer.extensions["http_version"].decode()
        info |= {
            "http-version": version.removeprefix("HTTP/"),
            "time-firstbyte": f"{place.lookup_seconds + gate.clock() - began:.6f}",
        }
        incoming = Incoming(gate, self._pool, answer, held, exchange)
        try:
            headers = self._response_headers(answer, redactor)
            if answer.status == 101:
                return self._upgraded(answer, headers, exchange, socket_key)
            response = await self._finish(
                exchange,
                "HTTP/2" if version.startswith("HTTP/2") else version,
                answer.extensions.get("reason_phrase", b"").decode("latin-1"),
                HttpResponse(
                    answer.status,
                    headers,
                    Body(incoming, size=length_of(headers), places=self, memory=gate.memory),
                ),
            )
        except BaseException:
            await incoming.aclose()
            raise
        response.incoming = incoming
        return response

    async def _ask(
        self, ask: Ask, place: Reached, exchange: Exchange, raw: httpcore.Request, *, upgrade: bool
    ) -> tuple[Held, httpcore.Response]:
        """Send it, and wait for the head of the answer."""
        request, url = exchange.request, exchange.request.target
        http2 = url.scheme == "https" and ask.http in ("", "2") and not upgrade
        while True:
            if ask.ahead is not None:
                ahead, ask.ahead = ask.ahead, None
                held = self._pool.adopt(ahead, place, url)
            else:
                held = await self._pool.take(
                    place, url, exchange.info, http2=http2, fresh=upgrade, connect_seconds=ask.connect_timeout
                )
            try:
                with explained(url, quote=not exchange.redactor):
                    return held, await held.ask(raw)
            except BaseException as error:
                # Cancelled at the wrong moment, httpcore forgets to close it.
                await held.aclose()
                dead = isinstance(error, NetError) and error.kind in ("reset", "protocol") and held.pooled
                if not (dead and request.body.empty and request.method in _REPEATABLE):
                    raise

    def _response_headers(self, answer: httpcore.Response, redactor: Redactor) -> Headers:
        limit = self.gate.limits.header_bytes
        try:
            headers = Headers(answer.headers)
        except BadMessage as error:
            raise NetError("protocol", "a malformed header" if redactor else str(error)) from None
        if "transfer-encoding" in headers:
            headers.remove("content-length")  # chunks say how long it is (RFC 9112, 6.3); no reader may disagree
        if sum(len(n) + len(v) + 4 for n, v in headers.raw()) > limit:
            raise NetError("protocol", f"more than {limit} bytes of response headers")
        return headers

    async def _finish(self, exchange: Exchange, version: str, reason: str, answer: HttpResponse) -> Response:
        """Run response hooks, redact secrets, and return the response."""
        request, url, redactor = exchange.request, exchange.url, exchange.redactor
        status = answer.status
        try:
            for hook in request.hooks:
                await self._owners(hook, answer, url)
        except BaseException:
            answer.body.release()
            raise
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
            headers, chunks = hidden(headers, redactor), self._redacted(chunks, redactor)
        self.gate.tell({"action": "response", "status": status, "url": shown_url(url)})
        bodies = (request.body, answer.body)
        return Response(version, status, redactor.text(reason), headers, url, exchange.info, chunks, bodies=bodies)

    async def _redacted(self, chunks: AsyncIterator[bytes], redactor: Redactor) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            if clean := redactor.feed(chunk):
                yield clean
        if clean := redactor.flush():
            yield clean
        if redactor.count:
            self.gate.tell({"action": "redacted", "count": redactor.count})

    def _upgraded(self, raw: httpcore.Response, headers: Headers, exchange: Exchange, key: str | None) -> Response:
        if key is None:
            raise NetError("protocol", "the server changed the protocol unasked")
        check_accepted(key, headers)
        self.gate.tell({"action": "response", "status": 101, "url": shown_url(exchange.url)})
        stream = Socket(raw.extensions["network_stream"], exchange.redactor)
        exchange.info["upgraded"] = "1"
        headers = hidden(headers, exchange.redactor)
        return Response(
            "HTTP/1.1", 101, "Switching Protocols", headers, exchange.url, exchange.info, pieces_of(stream), stream
        )
