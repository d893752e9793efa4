"""poll(2) on one descriptor, or again and again on a fixed set of sockets."""

from __future__ import annotations

import select
import socket
import sys
from collections.abc import Callable, Sequence
from typing import Final

_LONGEST: Final = float((1 << 31) - 1)


def readable(fd: int, seconds: float | None) -> bool:
    """Wait until a descriptor is readable (a pidfd is when its process has ended); None: without a timeout."""
    if sys.platform == "win32":
        return bool(select.select([fd], [], [], seconds)[0])
    poll = select.poll()  # select(2) would refuse the high numbers that an owner with many files hands down
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(in_milliseconds(seconds)))


def writable(connection: socket.socket, seconds: float | None) -> bool:
    """Whether there is room to send within so many seconds."""
    if sys.platform == "win32":
        return bool(select.select([], [connection], [], seconds)[1])
    poll = select.poll()
    poll.register(connection, select.POLLOUT)
    return bool(poll.poll(in_milliseconds(seconds)))


def in_milliseconds(seconds: float | None) -> float | None:
    """A timeout as poll(2) takes it, which is at most 24 days: whoever waits longer looks again."""
    return None if seconds is None else min(seconds * 1e3, _LONGEST)


Look = Callable[[float | None], Sequence[object]]


class Readiness:
    """Tells whether one of some sockets is readable. For one thread at a time."""

    def __init__(self, *connections: socket.socket) -> None:
        if sys.platform == "win32":
            self.look: Look = lambda milliseconds: select.select(
                connections, [], [], None if milliseconds is None else milliseconds / 1e3
            )[0]
        else:
            poll = select.poll()
            for connection in connections:
                poll.register(connection, select.POLLIN)
            self.look: Look = poll.poll
        """Returns something that is true if one is readable within so many milliseconds; None: without a timeout."""

    def within(self, seconds: float | None) -> bool:
        return bool(self.look(in_milliseconds(seconds)))
