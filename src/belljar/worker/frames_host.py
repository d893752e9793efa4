"""Frames over a socket that the owner handed over: out without blocking other fibers, in to whoever takes them."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Final, Generic, TypeVar

from belljar.abi.wire import FrameReader, WireError
from belljar.kernel.fiber import Hub, WaitQueue
from belljar.kernel.machine_host import DescriptorPoller

_BACKLOG: Final = 1 << 20
_READ: Final = 1 << 19
T = TypeVar("T")


class FrameChannel(Generic[T]):
    """Carries frames until either side closes it, or the other one breaks the rules; `lost` is called then."""

    def __init__(
        self,
        fd: int,
        hub: Hub,
        poller: DescriptorPoller,
        frames: FrameReader[T],
        take: Callable[[T], object],
        lost: Callable[[], object],
    ) -> None:
        self._fd = fd
        self._hub = hub
        self._poller = poller
        self._frames = frames
        self._take = take
        self._lost = lost
        self._unsent = bytearray()
        self._drained = WaitQueue(hub)
        self._open = True
        poller.watch(self._fd, self._ready)

    def send(self, frame: bytes, *, wait: bool = True) -> None:
        """Queue a frame; with `wait`, a fiber that is ahead of the other side waits here."""
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
                self._take(message)
        except WireError:
            self.close()

    def close(self) -> None:
        """Let go of it; whoever uses it is told. Idempotent."""
        if self._open:
            self._open = False
            self._unsent.clear()
            self._poller.unwatch(self._fd)
            os.close(self._fd)
            self._drained.wake_all()
            self._lost()
