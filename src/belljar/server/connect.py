"""The Connect protocol with JSON: unary calls, streams to the client, streams from the client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Any, Final, TypeVar

import msgspec
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response

from belljar.server.errors import HTTP_STATUS, ApiError, RpcError

JSON_MAX: Final = 16 << 20
"""Bytes of a unary call's message, and of one message of a stream."""
_COMPRESSED: Final = 1
_END: Final = 2
_STREAM_TYPE: Final = "application/connect+json"
T = TypeVar("T")


def decode(data: bytes, shape: type[T]) -> T:
    """ValueError for what is no JSON of that shape; unknown fields are ignored, as newer clients may have some."""
    try:
        return msgspec.json.decode(data, type=shape)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise ValueError(str(error)) from None


async def read_body(request: Request, most: int) -> bytes:
    """The whole body. ApiError 413 for a larger one."""
    parts: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > most:
            raise ApiError(413, f"the request's body is larger than {most} bytes", {"Connection": "close"})
        parts.append(chunk)
    return b"".join(parts)


async def read_message(request: Request, shape: type[T]) -> T:
    """The message of a unary call. RpcError."""
    try:
        return decode(await read_body(request, JSON_MAX) or b"{}", shape)
    except ValueError as error:
        raise RpcError("invalid_argument", f"unmarshal message: {error}") from None


async def read_single(request: Request, shape: type[T]) -> T:
    """The one message of a call that is answered by a stream. RpcError."""
    async for message in read_stream(request, shape):
        return message
    raise RpcError("invalid_argument", "the request has no message")


async def read_stream(request: Request, shape: type[T]) -> AsyncIterator[T]:
    """Messages of the client, as they come. RpcError; ClientDisconnect."""
    held = bytearray()
    async for chunk in request.stream():
        held += chunk
        while len(held) >= 5:
            flags, size = held[0], int.from_bytes(held[1:5], "big")
            if flags & _COMPRESSED:
                raise RpcError("unimplemented", "compressed messages are not supported")
            if size > JSON_MAX:
                raise RpcError("resource_exhausted", f"a message is larger than {JSON_MAX} bytes")
            if len(held) < 5 + size:
                break
            data = bytes(held[5 : 5 + size])
            del held[: 5 + size]
            if flags & _END:
                return
            try:
                message = decode(data, shape)
            except ValueError as error:
                raise RpcError("invalid_argument", f"unmarshal message: {error}") from None
            yield message
    if held:
        raise RpcError("invalid_argument", "the request ends within a message")


def is_stream(request: Request) -> bool:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower() == _STREAM_TYPE


def unary(message: Any) -> Response:
    return Response(msgspec.json.encode(message), media_type="application/json")


def error_response(error: RpcError, *, stream: bool) -> Response:
    """An error as the client of a unary call or of a stream expects it."""
    if stream:
        return Response(_envelope({"error": error.body}, _END), media_type=_STREAM_TYPE)
    return Response(msgspec.json.encode(error.body), HTTP_STATUS.get(error.code, 500), media_type="application/json")


def single(message: Any) -> Response:
    """The answer to a stream of the client's."""
    return Response(_envelope(message) + _envelope({}, _END), media_type=_STREAM_TYPE)


class EventStream(Response):
    """A stream to the client. It ends with the events, with an error of theirs, or when the client has gone.

    Nothing is read from `events` before the client's connection took what came before: a slow reader slows the
    sandbox down and fills no memory. Only what comes in the first two milliseconds is gathered: the answer of a short
    command is one piece, and its client wakes up once. `finish` is called at the end, even if nothing was ever read.
    """

    media_type = _STREAM_TYPE
    gathers = 0.002

    def __init__(self, events: AsyncGenerator[Any, None], finish: Callable[[], object] = lambda: None) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._events = events
        self._finish = finish

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        try:
            await until_gone(receive, self._send(send))
        finally:
            self._finish()

    async def _send(self, send: Any) -> None:
        gathered, begun = b"", not self.gathers
        last: bytes | None = None
        if begun:
            await self._begin(send)
        loop = asyncio.get_running_loop()
        until = loop.time() + self.gathers
        step: asyncio.Future[Any] | None = None
        try:
            while last is None:
                if begun:
                    event = await anext(self._events, None)
                else:
                    step = asyncio.ensure_future(anext(self._events, None))
                    await asyncio.wait((step,), timeout=until - loop.time())
                    if not step.done():
                        begun = True
                        await self._begin(send)
                        await send({"type": "http.response.body", "body": gathered, "more_body": True})
                        gathered = b""
                    event = await step
                if event is None:
                    last = self.end()
                elif self.is_last(event):  # with the end of the stream in one piece
                    last = self.encode(event) + self.end()
                elif begun:
                    await send({"type": "http.response.body", "body": self.encode(event), "more_body": True})
                else:
                    gathered += self.encode(event)
        except RpcError as error:
            last = self.end(error)
        finally:
            if step is not None and not step.done():
                step.cancel()
                await asyncio.gather(step, return_exceptions=True)
            await self._events.aclose()
        if not begun:
            await self._begin(send, (b"content-length", b"%d" % len(gathered + last)))
        await send({"type": "http.response.body", "body": gathered + last})

    async def _begin(self, send: Any, *headers: tuple[bytes, bytes]) -> None:
        headers = (*self.raw_headers, *headers)
        await send({"type": "http.response.start", "status": self.status_code, "headers": headers})

    def is_last(self, event: Any) -> bool:
        """Whether nothing can follow it."""
        return "end" in event.get("event", ())

    def encode(self, event: Any) -> bytes:
        return _envelope(event)

    def end(self, error: RpcError | None = None) -> bytes:
        return _envelope({} if error is None else {"error": error.body}, _END)


class LineStream(EventStream):
    """The same as lines of JSON."""

    media_type = "application/x-ndjson"

    def is_last(self, event: Any) -> bool:
        return bool(event.get("type") == "end_of_execution")

    def encode(self, event: Any) -> bytes:
        return msgspec.json.encode(event) + b"\n"

    def end(self, error: RpcError | None = None) -> bytes:
        return (
            b""
            if error is None
            else self.encode({"type": "error", "name": error.code, "value": error.message, "traceback": ""})
        )


class ByteStream(EventStream):
    """The same as the bytes of a file: what goes wrong cuts the connection, so that the client sees it."""

    gathers = 0.0

    def __init__(self, pieces: AsyncGenerator[bytes, None], headers: Mapping[str, str], status: int) -> None:
        super().__init__(pieces)
        self.raw_headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in headers.items()]
        self.status_code = status

    def is_last(self, event: Any) -> bool:
        return False

    def encode(self, event: Any) -> bytes:
        return bytes(event)

    def end(self, error: RpcError | None = None) -> bytes:
        return b""


async def until_gone(receive: Any, work: Any) -> None:
    """Do the work, or as much of it as is done when the client goes away; it is cancelled then."""

    async def gone() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    working = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(gone())
    try:
        await asyncio.wait((working, watching), return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            working.result()
    except (OSError, ClientDisconnect):
        pass  # it has gone while something was sent
    finally:
        for task in (working, watching):
            task.cancel()
        await asyncio.gather(working, watching, return_exceptions=True)


def _envelope(message: Any, flags: int = 0) -> bytes:
    data = msgspec.json.encode(message)
    return bytes((flags,)) + len(data).to_bytes(4, "big") + data
