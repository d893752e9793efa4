"""A connection of the owner's to a server inside: bytes between a socket that was handed in and a local stream."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from belljar.abi.errors import SysError
from belljar.kernel.fiber import Hub, WaitQueue
from belljar.kernel.machine_host import DescriptorPoller
from belljar.net.guest.local import LocalStream

_READ: Final = 64 << 10


class PortConnections:
    """The port connections of one worker."""

    def __init__(self, hub: Hub, poller: DescriptorPoller) -> None:
        self._hub = hub
        self._poller = poller
        self._live: set[PortConnection] = set()

    def join(self, fd: int, stream: LocalStream) -> None:
        """Carry bytes between a socket, which is ours from now on, and a connection inside."""
        self._live.add(PortConnection(fd, stream, self._hub, self._poller, self._live.discard))

    def hang_up(self) -> None:
        """Close the sockets, in a branch: they are the origin's."""
        for connection in list(self._live):
            connection.close()


class PortConnection:
    """Carries bytes both ways, a fiber for each, until both sides are done."""

    def __init__(
        self,
        fd: int,
        stream: LocalStream,
        hub: Hub,
        poller: DescriptorPoller,
        on_close: Callable[[PortConnection], None],
    ) -> None:
        self._on_close = on_close
        self._fd = fd
        self._stream = stream
        self._poller = poller
        self._news = WaitQueue(hub)
        self._open = True
        self._watch(writable=False)
        hub.spawn(self._carry_in)
        hub.spawn(self._carry_out)

    def _watch(self, *, writable: bool) -> None:
        self._poller.watch(self._fd, self._news.wake_all, writable=writable, edge=True)

    def _carry_in(self) -> None:
        """Copy from the owner to the server."""
        try:
            while self._open:
                try:
                    data = os.read(self._fd, _READ)
                except BlockingIOError:
                    self._news.wait()
                    continue
                except OSError:
                    data = b""
                if not data:
                    break
                while data:
                    data = data[self._stream.write(data) :]
        except SysError:
            return  # the server takes no more; what it still says is carried on
        finally:
            self._stream.end()

    def _carry_out(self) -> None:
        """Copy from the server to the owner; its end closes the connection."""
        with suppress(SysError, OSError):
            while data := self._stream.read(_READ):
                while data:
                    try:
                        data = data[os.write(self._fd, data) :]
                    except BlockingIOError:
                        self._watch(writable=True)
                        self._news.wait()
                        self._watch(writable=False)
        self.close()

    def close(self) -> None:
        if self._open:
            self._open = False
            self._poller.unwatch(self._fd)
            os.close(self._fd)
            self._stream.drop()
            self._news.wake_all()
            self._on_close(self)
