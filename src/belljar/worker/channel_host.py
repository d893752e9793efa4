"""The worker's socket: frames in to the server, frames out without ever blocking the other fibers."""

from __future__ import annotations

import socket
import sys
from collections import deque
from collections.abc import Callable, Sequence
from typing import Final

from belljar.abi.wire import FDS_MAX, Answer, Call, HostMessage, WireError, WorkerMessage, encode, host_frames
from belljar.kernel.fiber import Hub, WaitQueue
from belljar.kernel.machine_host import DescriptorPoller
from belljar.lockdown.sockets_host import receive_descriptors
from belljar.worker.descriptor_host import Descriptor

_BACKLOG: Final = 1 << 20
"""Unsent bytes at which a sender waits for the host to read."""
_READ: Final = 16 << 10
_READ_MORE: Final = 1 << 18
"""Read size after a full read: a large buffer costs more to allocate than a short message to read."""
_CARRIERS: Final = (Call, Answer)
"""The messages that descriptors may come with."""

Handle = Callable[[HostMessage, Sequence[Descriptor]], None]
"""Takes a message and the descriptors that came with it."""


class Channel:
    """One connection to the host. When it ends, or the host breaks the rules, so does the worker."""

    def __init__(self, connection: socket.socket, hub: Hub, poller: DescriptorPoller) -> None:
        connection.setblocking(False)
        self._socket = connection
        self._hub = hub
        self._poller = poller
        self._frames = host_frames()
        self._unsent = bytearray()
        self._drained = WaitQueue(hub)
        self._read_size = _READ
        self._arrived: deque[Descriptor] = deque()
        """Descriptors whose message is not complete yet."""
        self._handle: Handle | None = None
        self.closed = False
        self.error: WireError | None = None

    def open(self, handle: Handle) -> None:
        """Start passing every message to `handle`."""
        self._handle = handle
        self._poller.watch(self._socket.fileno(), self._ready)

    def fileno(self) -> int:
        return self._socket.fileno()

    def send(self, message: WorkerMessage) -> None:
        """Queue a message; a fiber that sends faster than the host reads waits here."""
        frame = encode(message)
        if self._unsent:
            self._unsent += frame
        else:
            sent = self._try(frame)
            if sent < len(frame):
                self._unsent += memoryview(frame)[sent:]
                self._watch(writable=True)
        while len(self._unsent) > _BACKLOG and not self.closed and self._hub.current is not None:
            self._drained.wait()

    def reconnect(self, connection: socket.socket) -> None:
        """Switch to a branch's own connection. Buffered data is the origin's."""
        self._poller.unwatch(self._socket.fileno())
        self._socket.close()
        self._socket = connection
        self._frames = host_frames()
        self._arrived.clear()
        self._unsent.clear()
        self._drained.wake_all()
        self._watch(writable=False)

    def close(self) -> None:
        """Close the connection here: another process uses it."""
        self._socket.close()

    def flush(self) -> None:
        """Try once to send the rest of the buffer, outside the loop, before the worker exits."""
        if self._unsent:
            self._try(self._unsent)

    def _try(self, data: bytes | bytearray | memoryview) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            self.closed = True
            return len(data)

    def _watch(self, *, writable: bool) -> None:
        self._poller.watch(self._socket.fileno(), self._ready, writable=writable)

    def _ready(self) -> None:
        if self._unsent:
            with memoryview(self._unsent) as view:
                sent = self._try(view)
            del self._unsent[:sent]
            if len(self._unsent) <= _BACKLOG:
                self._drained.wake_all()
            if not self._unsent:
                self._watch(writable=False)
        try:
            data = self._receive()
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.closed = True
            return
        self._read_size = _READ if len(data) < self._read_size else _READ_MORE
        assert self._handle is not None
        try:
            for message in self._frames.feed(data):
                self._handle(message, self._claim(message))
        except WireError as error:
            self.error = error
            self.closed = True
        if self._arrived and not self._frames.partial:
            self._arrived.clear()

    def _receive(self) -> bytes:
        if sys.platform == "win32":
            return self._socket.recv(self._read_size)
        else:
            data, fds = receive_descriptors(self._socket, self._read_size, FDS_MAX)
            if fds:
                self._arrived += map(Descriptor, fds)
            return data

    def _claim(self, message: HostMessage) -> Sequence[Descriptor]:
        """The descriptors that came with a message, as many as it says."""
        if not isinstance(message, _CARRIERS) or not message.fds:
            return ()
        if not 0 < message.fds <= len(self._arrived):
            raise WireError(f"a message claims {message.fds} descriptors; {len(self._arrived)} came")
        return [self._arrived.popleft() for _ in range(message.fds)]
