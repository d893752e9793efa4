"""Connections to web servers: dialled to exactly the checked address, verified, and kept for the same place only."""

from __future__ import annotations

import asyncio
from typing import Any, Final

import h2.exceptions
import h11
import httpcore

from belljar.net.broker.gate_host import Gate, Reached
from belljar.net.broker.stream_host import Stream, dial, in_background, start_tls
from belljar.net.errors import NetError
from belljar.net.hosts import Url

_KEEP_SECONDS: Final = 15.0
_KEEP_EACH: Final = 6
_KEEP_ALL: Final = 32
_HEAD_SLACK: Final = 1 << 20
"""Bytes of body that may arrive in one piece with the head."""

HttpConnection = httpcore.AsyncHTTP11Connection | httpcore.AsyncHTTP2Connection
_Key = tuple[str, str, int, str, str]


class Unreached(NetError):
    """No connection could be made: nothing was sent."""


class HttpStream(httpcore.AsyncNetworkStream):
    """A stream as httpcore wants it: counts what passes, and gives up on servers that are silent or never get to it."""

    def __init__(self, stream: Stream, gate: Gate) -> None:
        self._stream = stream
        self._gate = gate
        self._head_left: int | None = None

    def expect_head(self, *, done: bool = False) -> None:
        """Limit, or no longer limit, the bytes read: a head that never ends is cut off."""
        self._head_left = None if done else self._gate.limits.header_bytes + _HEAD_SLACK

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            data = await self._stream.read(timeout=timeout or self._gate.limits.idle_seconds)
        except TimeoutError:
            raise httpcore.ReadTimeout from None
        except OSError as error:
            raise httpcore.ReadError(str(error)) from None
        self._gate.count_in(len(data))
        if self._head_left is not None:
            self._head_left -= len(data)
            if self._head_left < 0:
                raise NetError("too-large", f"more than {self._gate.limits.header_bytes} bytes before the response")
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._gate.count_out(len(buffer))
        try:
            if buffer:
                await self._stream.write(buffer, timeout or self._gate.limits.idle_seconds)
        except TimeoutError:
            raise httpcore.WriteTimeout from None
        except OSError as error:
            raise httpcore.WriteError(str(error)) from None

    async def aclose(self) -> None:
        self._stream.close()

    def get_extra_info(self, info: str) -> Any:
        return self._stream.spoken if info == "is_readable" else self._stream.info(info)


class Held:
    """One connection, while a request has it to itself."""

    def __init__(self, key: _Key, stream: HttpStream, connection: HttpConnection) -> None:
        self.key = key
        self.stream = stream
        self.connection = connection
        self.pooled = False
        """Whether it was used before: its server may have closed it meanwhile."""

    async def ask(self, request: httpcore.Request) -> httpcore.Response:
        self.stream.expect_head()
        response = await self.connection.handle_async_request(request)
        self.stream.expect_head(done=True)
        return response

    @property
    def surplus(self) -> bool:
        """Whether more than the response was received: the connection can't be reused."""
        state = getattr(self.connection, "_h11_state", None)
        return self.stream.get_extra_info("is_readable") or (state is not None and bool(state.trailing_data[0]))

    async def aclose(self) -> None:
        await self.connection.aclose()


class Pool:
    """The connections of one gate."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._idle: dict[_Key, list[Held]] = {}
        self._closed = False

    async def take(
        self, place: Reached, url: Url, info: dict[str, str], *, http2: bool, fresh: bool, connect_seconds: float
    ) -> Held:
        """An idle connection to exactly this place, or a new one. Unreached; NetError of kind tls."""
        longest = self._gate.limits.connect_seconds
        limit = min(connect_seconds or longest, longest)
        key = _key(place, url, http2)
        lookup = place.lookup_seconds
        info |= {"remote-ip": str(place.address), "remote-port": str(place.port), "time-namelookup": f"{lookup:.6f}"}
        kept = [] if fresh else self._idle.get(key, [])
        while kept:
            held = self._forget(kept, kept[-1])
            if held.connection.is_available() and not held.connection.has_expired():
                info |= {"time-connect": f"{lookup:.6f}", "reused": "1"}
                held.pooled = True
                return held
            await held.aclose()
        stream, http2 = await self._dial(place, url, http2, limit, info)
        return self._hold(key, stream, url, http2)

    def adopt(self, stream: Stream, place: Reached, url: Url) -> Held:
        """Wrap a connection made elsewhere to exactly this place."""
        return self._hold(_key(place, url, http2=False), stream, url, http2=False)

    def _hold(self, key: _Key, stream: Stream, url: Url, http2: bool) -> Held:
        wrapped = HttpStream(stream, self._gate)
        origin = httpcore.Origin(url.scheme.encode(), str(url.host).encode(), url.port)
        kind = httpcore.AsyncHTTP2Connection if http2 else httpcore.AsyncHTTP11Connection
        return Held(key, wrapped, kind(origin, wrapped, keepalive_expiry=_KEEP_SECONDS))

    async def _dial(
        self, place: Reached, url: Url, http2: bool, limit: float, info: dict[str, str]
    ) -> tuple[Stream, bool]:
        """A connection, and whether HTTP/2 is spoken on it."""
        gate = self._gate
        began = gate.clock() - place.lookup_seconds
        gate.traffic.connections += 1
        try:
            stream = await dial(place.address, place.port, limit)
        except NetError as error:
            raise Unreached(error.kind, error.text) from None
        stream.memory = gate.memory
        info["time-connect"] = f"{gate.clock() - began:.6f}"
        if url.scheme != "https":
            return stream, False
        protocols = ("h2", "http/1.1") if http2 else ("http/1.1",)
        stream = await start_tls(stream, gate.tls(protocols), str(url.host), limit)
        info["time-tls"] = f"{gate.clock() - began:.6f}"
        return stream, stream.info("ssl_object").selected_alpn_protocol() == "h2"

    def keep(self, held: Held) -> None:
        """Return an idle connection to the pool, for the next request to the same place."""
        kept = self._idle.setdefault(held.key, [])
        room = len(kept) < _KEEP_EACH and sum(map(len, self._idle.values())) < _KEEP_ALL
        usable = held.connection.is_idle() and not held.surplus and room and not self._closed
        if usable and self._gate.descriptors.take():
            kept.append(held)
            asyncio.get_running_loop().call_later(_KEEP_SECONDS + 1, self._sweep, held.key)
        else:
            in_background(held.aclose())  # whatever httpcore made of it: it must not stay open

    def _sweep(self, key: _Key) -> None:
        """Close what has been idle for too long, or was closed by its server."""
        kept = self._idle.get(key, [])
        for held in [held for held in kept if held.connection.has_expired()]:
            in_background(self._forget(kept, held).aclose())
        if not kept:
            self._idle.pop(key, None)

    async def close(self) -> None:
        """Close what is idle, now and from now on."""
        self._closed = True
        idle, self._idle = self._idle, {}
        for kept in idle.values():
            for held in list(kept):
                await self._forget(kept, held).aclose()

    def _forget(self, kept: list[Held], held: Held) -> Held:
        """Take it out of the idle ones."""
        kept.remove(held)
        self._gate.descriptors.give()
        return held


def _key(place: Reached, url: Url, http2: bool) -> _Key:
    return (url.scheme, str(url.host), url.port, str(place.address), "2" if http2 else "1")


class explained:
    """Turns what can go wrong with a server into words for the guest.

    A server's own bytes are in some of them: not if it was given a secret that it might have put there.
    """

    def __init__(self, url: Url, *, quote: bool) -> None:
        self._host = url.authority
        self._quote = quote

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        match error:
            case httpcore.TimeoutException():
                raise NetError("timeout", f"{self._host} went silent") from None
            case httpcore.ProtocolError() | h11.ProtocolError() | h2.exceptions.ProtocolError():
                said = f"{self._host} broke the protocol"
                why = f": {error}" if self._quote else ""
                raise NetError("protocol", f"{said}{why}", recorded=said) from None
            case httpcore.NetworkError() | OSError():
                raise NetError("reset", f"the connection to {self._host} broke") from None
