"""The worker's socket to the broker: frames of the network's files out, the broker's in. The owner hands it over."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final

from belljar.abi.errno import EACCES
from belljar.abi.errors import SysError
from belljar.abi.wire import WireError
from belljar.kernel.fiber import Hub, WaitQueue
from belljar.kernel.machine_host import DescriptorPoller
from belljar.net.guest.uplink import Uplink
from belljar.net.wire import broker_frames
from belljar.worker.hosted import Hosted

_BACKLOG: Final = 1 << 20
_READ: Final = 1 << 19


def network_dialer(hosted: Hosted, hub: Hub, poller: DescriptorPoller) -> Callable[[Uplink], NetworkChannel]:
    """Asks the owner for a way to its broker. EACCES if no network was granted."""

    def connect(uplink: Uplink) -> NetworkChannel:
        answer, descriptors = hosted.question(b"net", "open", [])
        if answer.errno or not descriptors:
            raise SysError(answer.errno or EACCES)
        return NetworkChannel(descriptors[0].take(), hub, poller, uplink)

    return connect


class NetworkChannel:
    """Carries an uplink's frames. When it ends, so do the streams on it; the sandbox lives on."""

    def __init__(self, fd: int, hub: Hub, poller: DescriptorPoller, uplink: Uplink) -> None:
        self._fd = fd
        self._hub = hub
        self._poller = poller
        self._uplink = uplink
        self._frames = broker_frames()
        self._unsent = bytearray()
        self._drained = WaitQueue(hub)
        self._open = True
        poller.watch(self._fd, self._ready)

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
                self._poller.watch(self._fd, self._ready, writable=True)
        while wait and len(self._unsent) > _BACKLOG and self._hub.current is not None:
            self._drained.wait()

    def _try(self, data: bytes | bytearray | memoryview) -> int:
        try:
            return os.write(self._fd, data)
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
                self._poller.watch(self._fd, self._ready)
        try:
            data = os.read(self._fd, _READ)
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
            self._poller.unwatch(self._fd)
            os.close(self._fd)
            self._drained.wake_all()
            self._uplink.lost()
