"""Web requests of a client whose connection is looked into: each is for whom the connection leads to, or refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final, Protocol

from belljar.net.addresses import Endpoint, canonical
from belljar.net.audit import shown_target
from belljar.net.broker.exchange_host import Ask, Response
from belljar.net.broker.gate_host import Reached
from belljar.net.broker.http_host import Web
from belljar.net.broker.stream_host import Stream
from belljar.net.errors import NetError
from belljar.net.headers import Headers
from belljar.net.hosts import BadHost, parse_url
from belljar.net.policy import Denied

_OURS: Final = frozenset({b"transfer-encoding", b"connection", b"keep-alive", b"proxy-connection", b"upgrade"})
"""About the connection to the server, not about the one to the client."""
_LINGER_SECONDS: Final = 2.0
_LINGER_BYTES: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class GuestRequest:
    """A client's request, as its protocol has it."""

    method: str
    authority: str
    target: str
    fields: list[tuple[bytes, bytes]]
    body: AsyncIterator[bytes] | None


class Client(Protocol):
    """The client's end of its connection."""

    async def read(self, *, timeout: float | None = None) -> bytes:
        """The next piece; b"" at the end. OSError, TimeoutError."""

    async def write(self, data: bytes, timeout: float | None = None) -> None: ...
    def write_eof(self) -> None: ...
    def close(self) -> None: ...


class Front:
    """One connection of a client that went to `dst` by one of `names`."""

    def __init__(
        self,
        web: Web,
        dst: Endpoint,
        scheme: str,
        names: tuple[str, ...],
        *,
        http: str = "",
        ahead: Stream | None = None,
    ) -> None:
        """`http` is the version to speak to the server, if not the best; `ahead` a connection for the first request."""
        self.gate = web.gate
        self._web = web
        self._dst = dst
        self.scheme = scheme
        self._names = names
        self._http = http
        self._ahead = ahead

    @asynccontextmanager
    async def answer(self, request: GuestRequest) -> AsyncIterator[Response]:
        """Send it on, to the address the client dialled and for a name that led there. NetError."""
        with self.gate.attempt("request", shown_target(f"{self.scheme}://{request.authority}{request.target}")):
            response = await self._fetch(await self._ask(request))
            try:
                yield response
            finally:
                await response.aclose()

    async def _fetch(self, ask: Ask) -> Response:
        ask.ahead, self._ahead = self._ahead, None
        try:
            return await self._web.fetch(ask)
        finally:
            if ask.ahead is not None:
                ask.ahead.close()  # it came to nothing before it was needed

    def close(self) -> None:
        """Close the connection made ahead: no further requests follow."""
        if self._ahead is not None:
            self._ahead.close()

    async def _ask(self, request: GuestRequest) -> Ask:
        dst, gate = self._dst, self.gate
        if not request.target.startswith("/"):
            raise NetError("protocol", "a request has one Host header, and a path")
        try:
            url = parse_url(f"{self.scheme}://{request.authority}{request.target}")
        except BadHost as error:
            raise NetError("protocol", str(error)) from None
        known = url.host in self._names if isinstance(url.host, str) else canonical(url.host) == dst.address
        if not known or url.port != dst.port:
            raise NetError("denied", f"{url.authority} is not whom this connection leads to")
        hostnames = (url.host,) if isinstance(url.host, str) else ()
        verdict = await gate.judge("tcp", dst, hostnames)
        if isinstance(verdict, Denied):
            raise NetError("denied", verdict.shown or f"{url.authority} is not open to this sandbox")
        place = Reached(dst.address, dst.port, hostnames[0] if hostnames else None, verdict)
        return Ask(request.method, str(url), request.fields, request.body, http=self._http, reached=[place])


def passed_on(headers: Headers) -> list[tuple[bytes, bytes]]:
    """The fields of an answer that are the client's business."""
    return [(name, value) for name, value in headers.raw() if name.lower() not in _OURS]


def refusal(error: NetError) -> tuple[int, bytes]:
    """Return the status and body of an error response."""
    return 403 if error.kind == "denied" else 502, f"belljar: {error}\n".encode()


async def linger(guest: Client) -> None:
    """Read on for a while before closing: an early close would reset the connection and lose our response."""
    guest.write_eof()
    left = _LINGER_BYTES
    with suppress(OSError):  # TimeoutError is one
        async with asyncio.timeout(_LINGER_SECONDS):
            while left > 0 and (data := await guest.read()):
                left -= len(data)
