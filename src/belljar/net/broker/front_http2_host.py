"""HTTP/2 as a client of an intercepted connection speaks it, by h2: each stream is a request of its own."""

from __future__ import annotations

import asyncio
from typing import Final, Self

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    RemoteSettingsChanged,
    RequestReceived,
    StreamEnded,
    StreamReset,
    WindowUpdated,
)
from h2.exceptions import H2Error
from h2.settings import SettingCodes

from belljar.net.broker.front_host import Client, Front, GuestRequest, linger, passed_on, refusal
from belljar.net.errors import NetError
from belljar.net.rate import Rate

_STREAMS_MAX: Final = 100
_WINDOW: Final = 1 << 18
_RESETS_MAX: Final = 200
"""Requests that a client may take back before we believe that it only wants to keep us busy."""
_CONTROL_PER_SECOND: Final = 10.0
_CONTROL_BURST: Final = 100.0
"""Frames that carry nothing (PING, SETTINGS, PRIORITY, empty DATA ...): so many a second, on average over this time."""
_BYTES_PER_CONTROL: Final = 512
"""Bytes transferred that allow one more control frame: windows are opened as data flows."""
_SLICE: Final = 4096
"""Bytes that are parsed before the frames in them are counted."""


async def serve_http2(front: Front, guest: Client) -> None:
    """Requests at the same time, until the client goes or breaks the protocol."""
    await _Conversation(front, guest).hold()


class _Inbox:
    """A request's body as it comes. The client may send more when it was taken."""

    def __init__(self, conversation: _Conversation, number: int) -> None:
        self._conversation = conversation
        self._number = number
        self._data = bytearray()
        self._size = 0
        """Bytes of the client's flow-control window in use, padding included."""
        self._ended = False
        self._news = asyncio.Event()

    def take(self, data: bytes, size: int) -> None:
        self._data += data
        self._size += size
        self._news.set()

    def end(self) -> None:
        self._ended = True
        self._news.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        while not self._data:
            if self._ended:
                raise StopAsyncIteration
            self._news.clear()
            await self._news.wait()
        data, size = bytes(self._data), self._size
        self._data.clear()
        self._size = 0
        await self._conversation.taken(self._number, size)
        return data


class _Conversation:
    def __init__(self, front: Front, guest: Client) -> None:
        self._front = front
        self._guest = guest
        self._idle = front.gate.limits.idle_seconds
        self._peer = peer = H2Connection(H2Configuration(client_side=False, header_encoding=None))
        peer.local_settings[SettingCodes.MAX_CONCURRENT_STREAMS] = _STREAMS_MAX
        peer.local_settings[SettingCodes.INITIAL_WINDOW_SIZE] = _WINDOW
        peer.local_settings[SettingCodes.MAX_HEADER_LIST_SIZE] = front.gate.limits.header_bytes
        peer.local_settings.acknowledge()
        peer.decoder.max_header_list_size = front.gate.limits.header_bytes
        self._bodies: dict[int, _Inbox] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._room = asyncio.Event()
        self._resets = 0
        self._control = Rate(_CONTROL_PER_SECOND, front.gate.clock(), _CONTROL_BURST)

    async def hold(self) -> None:
        try:
            self._peer.initiate_connection()
            await self._flush()
            while data := await self._guest.read(timeout=None if self._tasks else self._idle):
                if not self._feed(data):
                    self._peer.close_connection(ErrorCodes.ENHANCE_YOUR_CALM)
                    break
                await self._flush()
        except (H2Error, OSError):
            pass  # not HTTP/2, silent, or gone; h2 has said so to the other side
        finally:
            for task in list(self._tasks.values()):
                task.cancel()
            await asyncio.gather(*self._tasks.values(), return_exceptions=True)
            await self._flush_and_linger()

    def _feed(self, data: bytes) -> bool:
        """Take what came; False if the client sends more that carries nothing than any honest one."""
        clock = self._front.gate.clock
        for at in range(0, len(data), _SLICE):
            for event in self._peer.receive_data(data[at : at + _SLICE]):
                if isinstance(event, DataReceived) and event.data:
                    self._control.give(len(event.data) / _BYTES_PER_CONTROL)
                elif not (isinstance(event, RequestReceived | StreamEnded) or self._control.take(clock())):
                    return False
                self._take(event)
            if self._resets > _RESETS_MAX:
                return False
        return True

    async def _flush_and_linger(self) -> None:
        try:
            await self._flush()
        except OSError:
            return
        await linger(self._guest)

    def _take(self, event: Event) -> None:
        match event:
            case RequestReceived(stream_id=int(number), headers=list(headers)):
                body = self._bodies[number] = _Inbox(self, number)
                fields = [(bytes(name), bytes(value)) for name, value in headers]
                ended = event.stream_ended is not None
                work = self._exchange(number, fields, None if ended else body)
                self._tasks[number] = asyncio.get_running_loop().create_task(work)
                self._tasks[number].add_done_callback(lambda _: self._forget(number))
            case DataReceived(stream_id=int(number), data=data):
                size = event.flow_controlled_length or 0
                if inbox := self._bodies.get(number):
                    inbox.take(bytes(data or b""), size)
                elif size:
                    self._peer.acknowledge_received_data(size, number)  # nobody reads it any more
            case StreamEnded(stream_id=int(number)):
                if inbox := self._bodies.get(number):
                    inbox.end()
            case StreamReset(stream_id=int(number)):
                if task := self._tasks.get(number):
                    self._resets += 1
                    task.cancel()
                self._room.set()
            case WindowUpdated() | RemoteSettingsChanged():
                self._room.set()
            case ConnectionTerminated():
                raise ConnectionAbortedError

    def _forget(self, number: int) -> None:
        self._tasks.pop(number, None)
        self._bodies.pop(number, None)

    async def taken(self, number: int, size: int) -> None:
        if size:
            self._peer.acknowledge_received_data(size, number)
            await self._flush()

    async def _flush(self) -> None:
        if data := self._peer.data_to_send():
            await self._guest.write(data, self._idle)

    async def _exchange(self, number: int, fields: list[tuple[bytes, bytes]], body: _Inbox | None) -> None:
        begun = False
        try:
            try:
                async with self._front.answer(self._request(fields, body)) as response:
                    if response.stream is not None:
                        raise NetError("protocol", "HTTP/2 does not change its protocol")
                    head = [(name.lower(), value) for name, value in passed_on(response.headers)]
                    self._peer.send_headers(number, [(b":status", str(response.status).encode()), *head])
                    begun = True
                    await self._flush()
                    async for chunk in response.chunks:
                        await self._send(number, chunk)
                    self._peer.end_stream(number)
            except NetError as error:
                if begun:
                    self._peer.reset_stream(number, ErrorCodes.INTERNAL_ERROR)
                else:
                    await self._refuse(number, error)
            await self._flush()
        except (H2Error, OSError):
            return  # the stream was reset, or the client is gone

    async def _refuse(self, number: int, error: NetError) -> None:
        status, text = refusal(error)
        fields = [(b":status", str(status).encode()), (b"content-type", b"text/plain")]
        self._peer.send_headers(number, fields)
        await self._send(number, text)
        self._peer.end_stream(number)

    async def _send(self, number: int, data: bytes) -> None:
        """Send data within the client's flow-control window."""
        view = memoryview(data)
        while view:
            room = min(self._peer.local_flow_control_window(number), self._peer.max_outbound_frame_size)
            if room <= 0:
                self._room.clear()
                await self._room.wait()
                continue
            self._peer.send_data(number, bytes(view[:room]))
            self._control.give(min(room, len(view)) / _BYTES_PER_CONTROL)
            view = view[room:]
            await self._flush()

    def _request(self, fields: list[tuple[bytes, bytes]], body: _Inbox | None) -> GuestRequest:
        """h2 has checked that pseudo-headers are there once and first; whom they are for is checked here."""
        special = {name: value.decode("latin-1") for name, value in fields if name.startswith(b":")}
        plain = [(name, value) for name, value in fields if not name.startswith(b":")]
        hosts = {value.decode("latin-1") for name, value in plain if name == b"host"}
        authority = special.get(b":authority", "")
        if (
            set(special) != {b":method", b":scheme", b":authority", b":path"}
            or special[b":scheme"] != self._front.scheme
        ):
            raise NetError("protocol", "a request has a method, the connection's scheme, an authority and a path")
        if hosts - {authority}:
            raise NetError("protocol", "the Host header is not the authority")
        return GuestRequest(special[b":method"], authority, special[b":path"], plain, body)
