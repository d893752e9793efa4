"""Copies a live engine process where it waits for an answer: the owner's side. `server/copied_host.py` is the other.

The owner makes the copy's sockets and sends one end of each over the control socket. The process forks; its filter
holds that call until the owner, who has just asked for it, lets it through. The copy says hello on its own control
socket, and the kernel tells the owner who that was. So an engine process can't fork unless it was asked to, and has no
right that a worker does not have.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from typing import TYPE_CHECKING, Final

from belljar.forking.owner.hello_host import NoHello, accept_hello, expect_hello
from belljar.forking.owner.socket_host import HandleSocket
from belljar.forking.timeout_host import set_receive_timeout
from belljar.forking.wire import COPY
from belljar.lockdown.family_host import Family
from belljar.lockdown.polling_host import readable
from belljar.lockdown.sockets_host import receive_descriptors, send_descriptors

if TYPE_CHECKING:
    from belljar.lockdown.forks_host import ForkListener

COPY_SECONDS: Final = 15.0
"""Time limit for a waiting process to fork a copy."""


class NoCopy(RuntimeError):
    """The process gave no copy of itself; says why."""


class EngineFamily(Family):
    """An engine process and its copies, which share one seccomp listener."""

    def __init__(self, pid: int) -> None:
        super().__init__(pid)
        self.making = threading.Lock()
        """Held while one of them is copied."""
        self.listener: ForkListener | None = None
        self.add(pid)

    def take_listener(self, control: socket.socket) -> bool:
        """Receive the seccomp listener that a process sent before it was sealed. False: nothing came.

        Soon, if possible: descriptors on their way are counted, for all processes of a user together.
        """
        if self.listener is None:
            if not readable(control.fileno(), 0):
                return False
            _data, fds = receive_descriptors(control, 32, 1)
            if len(fds) != 1:
                return False
            from belljar.lockdown.forks_host import ForkListener  # an owner hardly ever needs it

            self.listener = ForkListener(fds[0])
        return True

    def remove(self, pid: int) -> None:
        super().remove(pid)
        if not self._members and self.listener is not None:
            self.listener.close()
            self.listener = None


class Copying:
    """One copy in the making, of the process `pid`, which is asked for it over `control`.

    `kind` is a word for the copy on what it is to be. `looks_at_control`: while it waits on its connection it shall now
    and then look at its control socket too.
    """

    def __init__(
        self,
        pid: int,
        pidfd: int,
        control: socket.socket,
        family: EngineFamily,
        kind: bytes = b"",
        *,
        looks_at_control: bool = True,
    ) -> None:
        self._kind = kind
        self._pid = pid
        self._pidfd = pidfd
        self._asked = control
        self._family = family
        ours, self._their_connection = socket.socketpair()
        self.connection = HandleSocket(socket.AF_UNIX, socket.SOCK_STREAM, 0, ours.detach())
        for end in (self.connection, self._their_connection):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        if looks_at_control:
            set_receive_timeout(self._their_connection)
        ours, self._their_control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control = HandleSocket(socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, ours.detach())
        expect_hello(self.control)

    def make(self) -> tuple[int, int]:
        """The copy's pid and a descriptor of it. Raises NoCopy, or OSError."""
        listener = self._listener()
        with self._their_connection, self._their_control:
            theirs = [self._their_connection.fileno(), self._their_control.fileno()]
            send_descriptors(self._asked, COPY + self._kind, theirs)
        events = select.poll()
        for fd in (listener.fd, self.control.fileno(), self._asked.fileno(), self._pidfd):
            events.register(fd, select.POLLIN)
        deadline = time.monotonic() + COPY_SECONDS
        while True:
            ready = dict(events.poll(max(0.0, deadline - time.monotonic()) * 1e3))
            if self.control.fileno() in ready:
                return self._accept()
            asked = ready.pop(listener.fd, 0)
            if asked & select.POLLIN:  # anything else means nothing here: see `ForkListener`
                listener.answer(lambda pid: pid == self._pid)
            elif self._asked.fileno() in ready:
                said = self._asked.recv(4096)
                raise NoCopy(said[1:].decode("utf-8", "replace") or "it ended")
            elif ready:
                raise NoCopy("it ended")
            elif time.monotonic() >= deadline:
                raise TimeoutError(f"it did not answer for {COPY_SECONDS:.0f} s")

    def _listener(self) -> ForkListener:
        if not self._family.take_listener(self._asked):
            raise NoCopy("it has ended, or this kernel does not ask about forks")
        assert self._family.listener is not None
        return self._family.listener

    def _accept(self) -> tuple[int, int]:
        try:
            pid, pidfd = accept_hello(self.control, self._family)
        except NoHello as error:
            raise NoCopy(f"the copy: {error}") from error
        self._family.add(pid)
        return pid, pidfd

    def abandon(self) -> None:
        """Abort: close the sockets of both ends."""
        for end in (self.connection, self._their_connection, self.control, self._their_control):
            end.close()
