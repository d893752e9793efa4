"""Sockets whose far end may be hostile: nothing that it does can make the owner block."""

from __future__ import annotations

import select
import socket
import sys
from collections.abc import Sequence

from belljar.lockdown.polling_host import in_milliseconds
from belljar.lockdown.sockets_host import send_descriptors


def receive_without_blocking(connection: socket.socket) -> None:
    """Make receiving never block.

    Out-of-band bytes arrive among the others, where they break the protocol; elsewhere poll(2) would tell of one for
    ever, and recv(2) would wait for what follows it.
    """
    connection.setblocking(False)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_OOBINLINE, 1)


def send_some(connection: socket.socket, views: Sequence[memoryview], fds: Sequence[int]) -> int:
    """Send as much as there is room for, 0 if there is none; descriptors go with the first byte. Raises OSError."""
    try:
        if fds:
            return send_descriptors(connection, views[0], fds)
        if len(views) == 1 or sys.platform == "win32":
            return connection.send(views[0])
        return connection.sendmsg(views)
    except BlockingIOError:
        return 0


def unread_bytes(connection: socket.socket) -> int:
    """At most so many of the bytes that were sent were not received yet: SIOCOUTQ, which counts their overhead too."""
    if sys.platform != "linux":
        return 0  # no descriptors are sent there
    from fcntl import ioctl
    from termios import TIOCOUTQ

    try:
        return int.from_bytes(ioctl(connection, TIOCOUTQ, bytes(4)), sys.byteorder)
    except (OSError, ValueError):
        return 0  # it is closed


class Poller:
    """Waits for a connection, and to receive from other sockets. For one thread at a time."""

    def __init__(self, connection: socket.socket, *others: socket.socket) -> None:
        self._connection = connection
        self._fd = connection.fileno()
        self._others = others
        if sys.platform != "win32":
            self._poll = select.poll()
            for each in (connection, *others):
                self._poll.register(each, select.POLLIN)

    def look(self, milliseconds: float | None) -> Sequence[object]:
        """Poll for at most so many milliseconds (None: without a timeout). Gives what is ready."""
        if sys.platform == "win32":
            seconds = None if milliseconds is None else milliseconds / 1e3
            return select.select([self._connection, *self._others], [], [], seconds)[0]
        return self._poll.poll(milliseconds)

    def wait(self, seconds: float | None, *, sending: bool = False, receiving: bool = True) -> bool:
        """Whether something is to be received within so many seconds.

        `sending` ends the wait when the connection has room to send, too; without `receiving`, nothing that comes over
        the connection ends it.
        """
        milliseconds = in_milliseconds(seconds)
        if not sending and receiving:
            return bool(self.look(milliseconds))
        if sys.platform == "win32":
            reading = [*([self._connection] if receiving else []), *self._others]
            return bool(select.select(reading, [self._connection] if sending else [], [], seconds)[0])
        events = (select.POLLOUT if sending else 0) | (select.POLLIN if receiving else 0)
        self._poll.modify(self._fd, events)
        try:
            return any(event & ~select.POLLOUT for _fd, event in self._poll.poll(milliseconds))
        finally:
            self._poll.modify(self._fd, select.POLLIN)
