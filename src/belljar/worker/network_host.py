"""The worker's socket to the broker: frames of the network's files out, the broker's in."""

from __future__ import annotations

import socket
from typing import Final

from belljar.abi.wire import WireError
from belljar.kernel.fiber import Hub, WaitQueue
from belljar.kernel.machine_host import EpollPoller
from belljar.net.uplink import Uplink
from belljar.net.wire import broker_frames

_BACKLOG: Final = 1 << 20
_READ: Final = 1 << 19


class NetworkChannel:
    """Carries an uplink's frames. When it ends, so do the streams on it; the sandbox lives on."""

    def __init__(self, fd: int, hub: Hub, poller: EpollPoller, uplink: Uplink) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fileno=fd)
        self._socket.setblocking(False)
        self._hub = hub
        self._poller = poller
        self._uplink = uplink
        self._frames = broker_frames()
        self._unsent = bytearray()
        self._drained = WaitQueue(hub)
        self._open = True
        poller.watch(self._socket.fileno(), self._ready)

    def send(self, frame: bytes, *, wait: bool = True) -> None:
        """Queue a frame; with `wait`, a fiber that is ahead of the broker waits here."""
        if not self._open:
            return
        if self._unsent:
            self._unsent += frame
        else:
            sent = self._try(frame)
            if sent < len(frame):
                self._unsent += memoryview(frame)[sent:]
                self._poller.watch(self._socket.fileno(), self._ready, writable=True)
        while wait and len(self._unsent) > _BACKLOG and self._hub.current is not None:
            self._drained.wait()

    def _try(self, data: bytes | bytearray | memoryview) -> int:
        try:
            return self._socket.send(data)
        except BlockingIOError:
            return 0
        except OSError:
            self.close()
            return len(data)

    def _ready(self) -> None:
        if self._unsent:
            with memoryview(self._unsent) as view:
                sent = self._try(view)
            if not self._open:
                return
            del self._unsent[:sent]
            if len(self._unsent) <= _BACKLOG:
                self._drained.wake_all()
            if not self._unsent:
                self._poller.watch(self._socket.fileno(), self._ready)
        try:
            data = self._socket.recv(_READ)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if not data:
            self.close()
            return
        try:
            for message in self._frames.feed(data):
                self._uplink.take(message)
        except WireError:
            self.close()

    def close(self) -> None:
        """Let go of it; every stream on it fails. Idempotent."""
        if self._open:
            self._open = False
            self._unsent.clear()
            self._poller.unwatch(self._socket.fileno())
            self._socket.close()
            self._drained.wake_all()
            self._uplink.lost()
