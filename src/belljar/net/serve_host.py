"""Web requests of a client that speaks HTTP/1.1 to us: each is decided, handed to middleware and sent on.

The client's connection leads to one address that was decided; a Host header only ever picks among the names that led
there. What is no web request does not pass.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Final, Protocol

import h11

from belljar.net.addresses import Endpoint, canonical
from belljar.net.errors import NetError
from belljar.net.gate_host import Reached
from belljar.net.hosts import BadHost, Url, parse_url
from belljar.net.http_host import Ask, Response, Web
from belljar.net.policy import Denied
from belljar.net.stream_host import Stream

_OURS: Final = frozenset({"transfer-encoding", "connection", "keep-alive"})


class Client(Protocol):
    """The client's end of its connection."""

    async def read(self, *, timeout: float | None = None) -> bytes:
        """The next piece; b"" at the end. OSError, TimeoutError."""

    async def write(self, data: bytes, timeout: float | None = None) -> None: ...
    def close(self) -> None: ...


class Requests:
    """The requests of one connection, from a client that went to `dst` by one of `names`."""

    def __init__(
        self,
        web: Web,
        client: Client,
        dst: Endpoint,
        scheme: str,
        names: tuple[str, ...],
        *,
        answered: bool = False,
        ahead: Stream | None = None,
    ) -> None:
        """`answered`: a request that comes to nothing is answered with 403 or 502; else `serve` raises NetError.

        `ahead` is a connection to `dst` for the first request.
        """
        self._web = web
        self._gate = web.gate
        self._client = client
        self._dst = dst
        self._scheme = scheme
        self._names = names
        self._answered = answered
        self._ahead = ahead
        self._peer = h11.Connection(h11.SERVER, max_incomplete_event_size=self._gate.limits.header_bytes)

    async def serve(self) -> None:
        """Until the client is done. OSError when it is gone; h11.RemoteProtocolError for what is not HTTP."""
        try:
            while isinstance(event := await self._next(), h11.Request):
                if not await self._exchange(event):
                    return
                self._peer.start_next_cycle()
        finally:
            if self._ahead is not None:
                self._ahead.close()

    async def _next(self) -> object:
        while (event := self._peer.next_event()) is h11.NEED_DATA:
            if self._peer.they_are_waiting_for_100_continue:
                await self._say(h11.InformationalResponse(status_code=100, headers=[]))
            self._peer.receive_data(await self._client.read(timeout=self._gate.limits.idle_seconds))
        return event

    async def _say(self, event: h11.Event, timeout: float | None = None) -> None:
        await self._client.write(self._peer.send(event) or b"", timeout)

    async def _exchange(self, event: h11.Request) -> bool:
        """One request and its answer; whether another may follow."""
        response: Response | None = None
        try:
            try:
                response = await self._fetch(event)
            except NetError as error:
                if not self._answered:
                    raise
                await self._refuse(error)
                return False
            if response.stream is not None:
                await self._upgrade(response)
                return False
            fields = [(name, value) for name, value in response.headers.raw() if name.decode().lower() not in _OURS]
            reason = response.reason.encode("latin-1")
            await self._say(h11.Response(status_code=response.status, headers=fields, reason=reason))
            async for chunk in response.chunks:
                await self._say(h11.Data(data=chunk), self._gate.limits.idle_seconds)
            await self._say(h11.EndOfMessage())
            return self._peer.our_state is h11.DONE and self._peer.their_state is h11.DONE
        finally:
            if response is not None:
                await response.aclose()

    async def _fetch(self, event: h11.Request) -> Response:
        ask = await self._ask(event)
        ask.ahead, self._ahead = self._ahead, None
        try:
            return await self._web.fetch(ask)
        finally:
            if ask.ahead is not None:
                ask.ahead.close()  # it came to nothing before it was needed

    async def _refuse(self, error: NetError) -> None:
        status = 403 if error.kind == "denied" else 502
        fields = [("Content-Type", "text/plain"), ("Connection", "close")]
        await self._say(h11.Response(status_code=status, headers=fields))
        await self._say(h11.Data(data=f"belljar: {error}\n".encode()))
        await self._say(h11.EndOfMessage())

    async def _ask(self, event: h11.Request) -> Ask:
        """The request as we send it: to the address the client dialled, for a name that led there."""
        hosts = [value for name, value in event.headers if name == b"host"]
        target = event.target.decode("latin-1")
        if len(hosts) != 1 or not target.startswith("/"):
            raise NetError("protocol", "a request has one Host header, and a path")
        try:
            url: Url = parse_url(f"{self._scheme}://{hosts[0].decode('latin-1')}{target}")
        except BadHost as error:
            raise NetError("protocol", str(error)) from None
        dst = self._dst
        known = url.host in self._names if isinstance(url.host, str) else canonical(url.host) == dst.address
        if not known or url.port != dst.port:
            raise NetError("denied", f"{url.authority} is not whom this connection leads to")
        hostnames = (url.host,) if isinstance(url.host, str) else ()
        verdict = await self._gate.judge("tcp", dst, hostnames)
        if isinstance(verdict, Denied):
            raise NetError("denied", f"{url.authority} is not open to this sandbox")
        place = Reached(dst.address, dst.port, hostnames[0] if hostnames else None, verdict)
        framed = {name for name, _ in event.headers} & {b"content-length", b"transfer-encoding"}
        body = self._body() if framed else None
        if body is None:
            await self._next()  # its end, so that another can follow
        fields = [(bytes(name), bytes(value)) for name, value in event.headers.raw_items()]
        return Ask(event.method.decode(), str(url), fields, body, http="1.1", reached=[place])

    async def _body(self) -> AsyncIterator[bytes]:
        while isinstance(event := await self._next(), h11.Data):
            yield bytes(event.data)

    async def _upgrade(self, response: Response) -> None:
        assert response.stream is not None
        stream, client = response.stream, self._client
        if self._peer.their_state is h11.SEND_BODY:
            await self._next()  # the end of the request
        headers = response.headers.raw()
        await self._say(h11.InformationalResponse(status_code=101, headers=headers, reason=b"Switching Protocols"))
        early, _ = self._peer.trailing_data
        if early:
            await stream.write(early)

        async def up() -> None:
            while data := await client.read():
                await stream.write(data)
            await stream.aclose()

        async def down() -> None:
            while data := await stream.read(1 << 18):
                await client.write(data)
            client.close()

        await asyncio.gather(up(), down(), return_exceptions=True)
