"""HTTP/1.1 as a client of an intercepted connection speaks it, read by h11."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import h11

from belljar.net.broker.exchange_host import Response
from belljar.net.broker.front_host import Client, Front, GuestRequest, linger, passed_on, refusal
from belljar.net.errors import NetError


async def serve_http1(front: Front, guest: Client, *, answered: bool = True) -> None:
    """Requests one after the other, until the client is done.

    OSError when it is gone or silent, h11.ProtocolError for what is not HTTP, NetError when an answer breaks off. With
    `answered` a request that comes to nothing is answered with 403 or 502; else that is a NetError too.
    """
    try:
        await _Conversation(front, guest, answered).hold()
    finally:
        front.close()


class _Conversation:
    def __init__(self, front: Front, guest: Client, answered: bool) -> None:
        self._front = front
        self._guest = guest
        self._answered = answered
        self._idle = front.gate.limits.idle_seconds
        self._peer = h11.Connection(h11.SERVER, max_incomplete_event_size=front.gate.limits.header_bytes)

    async def hold(self) -> None:
        while isinstance(event := await self._next(), h11.Request):
            if not await self._exchange(event):
                return
            self._peer.start_next_cycle()

    async def _say(self, *events: h11.Event) -> None:
        await self._guest.write(b"".join(self._peer.send(event) or b"" for event in events), self._idle)

    async def _next(self) -> object:
        while (event := self._peer.next_event()) is h11.NEED_DATA:
            if self._peer.they_are_waiting_for_100_continue:
                await self._say(h11.InformationalResponse(status_code=100, headers=[]))
            self._peer.receive_data(await self._guest.read(timeout=self._idle))
        return event

    async def _exchange(self, event: h11.Request) -> bool:
        """One request and its answer; whether another may follow."""
        begun = False
        try:
            request = self._request(event)
            if request.body is None:
                await self._next()  # the end of it, which is here already
            async with self._front.answer(request) as response:
                begun = True
                if response.stream is not None:
                    await self._upgrade(response)
                    return False
                head = h11.Response(
                    status_code=response.status,
                    headers=passed_on(response.headers),
                    reason=response.reason.encode("latin-1"),
                )
                await self._say(head)
                async for chunk in response.chunks:
                    await self._say(h11.Data(data=chunk))
                await self._say(h11.EndOfMessage())
        except NetError as error:
            if begun or not self._answered:
                raise  # what is cut short, the client sees
            await self._refuse(error)
            return False
        return self._peer.our_state is h11.DONE and self._peer.their_state is h11.DONE

    async def _refuse(self, error: NetError) -> None:
        status, text = refusal(error)
        fields = [("Content-Type", "text/plain"), ("Content-Length", str(len(text))), ("Connection", "close")]
        await self._say(h11.Response(status_code=status, headers=fields), h11.Data(data=text), h11.EndOfMessage())
        await linger(self._guest)

    def _request(self, event: h11.Request) -> GuestRequest:
        hosts = [value for name, value in event.headers if name == b"host"]
        if len(hosts) != 1:
            raise NetError("protocol", "a request has one Host header, and a path")
        framed = {name for name, _ in event.headers} & {b"content-length", b"transfer-encoding"}
        return GuestRequest(
            event.method.decode(),
            hosts[0].decode("latin-1"),
            event.target.decode("latin-1"),
            [(bytes(name), bytes(value)) for name, value in event.headers.raw_items()],
            self._body() if framed else None,
        )

    async def _body(self) -> AsyncIterator[bytes]:
        while isinstance(event := await self._next(), h11.Data):
            yield bytes(event.data)

    async def _upgrade(self, response: Response) -> None:
        assert response.stream is not None
        stream, guest = response.stream, self._guest
        await self._say(
            h11.InformationalResponse(status_code=101, headers=response.headers.raw(), reason=b"Switching Protocols")
        )
        early, _ = self._peer.trailing_data
        if early:
            await stream.write(early)

        async def up() -> None:
            while data := await guest.read():
                await stream.write(data)
            await stream.aclose()

        async def down() -> None:
            while data := await stream.read(1 << 18):
                await guest.write(data, self._idle)
            guest.close()

        await asyncio.gather(up(), down(), return_exceptions=True)
