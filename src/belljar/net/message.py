"""A web request and its answer as middleware sees them: method, URL, headers and a body that streams."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, Final, Protocol, TypeAlias

from belljar.net.headers import BadMessage, Headers, check_method
from belljar.net.hosts import Url, parse_url
from belljar.net.memory import Memory

Chunks: TypeAlias = AsyncIterator[bytes]
READ_MAX: Final = 16 << 20


class Runner(Protocol):
    """Runs code on the network's loop, which the owner's functions must never block, or at the owner's."""

    async def on_network_loop(self, work: Coroutine[Any, Any, bytes]) -> bytes:
        """Run `work` on the network's loop, awaited on any; return its result."""

    async def call_owner(self, function: Callable[[bytes], bytes], data: bytes) -> bytes:
        """Call the owner's function with `data`, off the network's loop; return its result."""


class Body:
    """Bytes on their way. Leave it alone and it streams through; or read it, replace it, or change each piece."""

    def __init__(
        self,
        chunks: Chunks | None,
        *,
        size: int | None = None,
        places: Runner | None = None,
        memory: Memory | None = None,
    ) -> None:
        self._chunks = chunks
        self._places = places
        self._memory = memory
        """The budget that a body read as a whole counts against, until `release`."""
        self._counted = 0
        self.size = size
        """Length in bytes, if known."""
        self.changed = False

    @property
    def empty(self) -> bool:
        return self._chunks is None

    async def read(self, limit: int = READ_MAX) -> bytes:
        """All of it, to look at; it still goes on afterwards. BadMessage beyond `limit`."""
        reading = self._read(limit)
        return await (reading if self._places is None else self._places.on_network_loop(reading))

    async def _read(self, limit: int) -> bytes:
        parts: list[bytes] = []
        size = 0
        async for chunk in self.chunks():
            size += len(chunk)
            if size > limit:
                raise BadMessage(f"the body is larger than {limit} bytes")
            if self._memory is not None:
                self._memory.take(len(chunk))
                self._counted += len(chunk)
            parts.append(chunk)
        data = b"".join(parts)
        self._set(data)
        return data

    def replace(self, data: bytes) -> None:
        """Send this instead."""
        if not isinstance(data, bytes):
            raise BadMessage(f"a body is bytes, not {type(data).__name__}")
        self._set(data)
        self.changed = True

    def map(self, change: Callable[[bytes], bytes]) -> None:
        """Send what `change` makes of each piece."""
        if self._chunks is not None:
            self._chunks = _mapped(self._chunks, change, self._places)
            self.changed = True
            self.size = None

    def release(self) -> None:
        """The message is through: what was read is no longer held. Idempotent."""
        if self._memory is not None:
            self._memory.give(self._counted)
            self._counted = 0

    def _set(self, data: bytes) -> None:
        self.size = len(data)
        self._chunks = _single(data)

    async def chunks(self) -> Chunks:
        if self._chunks is not None:
            async for chunk in self._chunks:
                yield chunk


async def _single(data: bytes) -> Chunks:
    if data:
        yield data


async def _mapped(chunks: Chunks, change: Callable[[bytes], bytes], places: Runner | None) -> Chunks:
    async for chunk in chunks:
        changed = change(chunk) if places is None else await places.call_owner(change, chunk)
        if not isinstance(changed, bytes):
            raise BadMessage(f"map's function gives bytes, not {type(changed).__name__}")
        if changed:
            yield changed


class HttpResponse:
    """A response before the guest sees it. A middleware may also make one, to answer in the server's place."""

    def __init__(
        self, status: int, headers: Headers | dict[str, str] | None = None, body: bytes | str | Body = b""
    ) -> None:
        if not 100 <= status <= 999:
            raise BadMessage(f"{status} is not a status")
        self.status = status
        self.headers = headers if isinstance(headers, Headers) else Headers()
        for name, value in (headers or {}).items() if isinstance(headers, dict) else ():
            self.headers.set(name, value)
        if isinstance(body, Body):
            self.body = body
        else:
            data = body.encode() if isinstance(body, str) else body
            self.body = Body(_single(data), size=len(data))


ResponseHook: TypeAlias = Callable[[HttpResponse], Awaitable[None] | None]


class HttpRequest:
    """A guest's request. Headers, body, method and the URL's path may be changed; never its destination."""

    def __init__(self, method: str, url: Url, headers: Headers, body: Body) -> None:
        self._method = method
        self._url = url
        self._asked = url
        self.headers = headers
        self.body = body
        self.hooks: list[ResponseHook] = []
        self.refusal: str | None = None

    @property
    def method(self) -> str:
        return self._method

    @method.setter
    def method(self, value: str) -> None:
        self._method = check_method(value)

    @property
    def url(self) -> str:
        return str(self._url)

    @url.setter
    def url(self, value: str) -> None:
        url = parse_url(value)
        if url.origin != self._url.origin:
            raise BadMessage(f"middleware can't send a request for {self._url.authority} to {url.authority}")
        self._url = url

    @property
    def target(self) -> Url:
        return self._url

    @property
    def rewritten(self) -> bool:
        """Whether it goes to another URL than the guest asked for."""
        return self._url != self._asked

    @property
    def host(self) -> str:
        return str(self._url.host)

    @property
    def path(self) -> str:
        """The path that is sent: without dot segments, and nothing in it is escaped that need not be."""
        return self._url.target.partition("?")[0]

    def on_response(self, hook: ResponseHook) -> None:
        """Call `hook(response)` when the answer's headers are there; it may change them and the body."""
        self.hooks.append(hook)

    def respond(self, status: int, headers: dict[str, str] | None = None, body: bytes | str = b"") -> HttpResponse:
        """An answer to return from middleware instead of sending the request."""
        return HttpResponse(status, headers, body)

    def deny(self, reason: str = "refused by the policy") -> None:
        """Do not send it after all."""
        self.refusal = reason


Middleware: TypeAlias = Callable[[HttpRequest], HttpResponse | Awaitable[HttpResponse | None] | None]
"""Sees each request before it leaves. Returns None to send it, or an HttpResponse to answer in the server's place."""
