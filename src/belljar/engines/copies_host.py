"""A live engine process copied where it waits for an answer: the owner's side of it, and the process's own.

The owner makes the copy's sockets and sends one end of each over the control socket. The process forks; its filter
holds that call until the owner, who has just asked for it, lets it through. The copy says hello on its own control
socket, and the kernel tells the owner who that was. So an engine process can't fork unless it was asked to, and has no
right that a worker does not have.
"""

from __future__ import annotations

import os
import select
import socket
import struct
import threading
import time
from typing import TYPE_CHECKING, Final

from belljar.abi.wire import HELLO
from belljar.lockdown.family_host import Family
from belljar.lockdown.polling_host import readable
from belljar.lockdown.sockets_host import receive_descriptors, send_descriptors

if TYPE_CHECKING:
    from belljar.lockdown.forks_host import ForkListener

COPY: Final = b"copy"
COPY_SECONDS: Final = 15.0
"""How long a process that waits may take to give a copy of itself."""
_CREDENTIALS: Final = struct.Struct("=iII")
"""struct ucred: pid, uid, gid."""
_FDS: Final = struct.Struct("=ii")
_HURRY: Final = struct.pack("@ll", 0, 5000)
"""struct timeval: how long an answer is waited for before requests for copies are looked at. Most come sooner.

More than a tick of the kernel's clock, which is mostly 4 ms: what is not may be over at once.
"""


class NoCopy(RuntimeError):
    """The process gave no copy of itself; says why."""


class OwnerGone(Exception):
    """Nobody is left to ask for a copy."""


class Kin(Family):
    """An engine process and its copies: one listener tells of all their forks."""

    def __init__(self, pid: int) -> None:
        super().__init__(pid)
        self.making = threading.Lock()
        """Held while one of them is copied."""
        self.listener: ForkListener | None = None
        self.add(pid)

    def take_listener(self, control: socket.socket) -> bool:
        """Have what a process sent before it was sealed: where the kernel asks about its forks. False: nothing came.

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
    """One copy in the making, of the process `pid`, which is asked for it over `control`."""

    def __init__(self, pid: int, pidfd: int, control: socket.socket, kin: Kin) -> None:
        self._pid = pid
        self._pidfd = pidfd
        self._asked = control
        self._kin = kin
        self.connection, self._their_connection = socket.socketpair()
        for end in (self.connection, self._their_connection):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        hurries(self._their_connection)
        self.control, self._their_control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.control.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)

    def make(self) -> tuple[int, int]:
        """The copy's pid and a descriptor of it. Raises NoCopy, or OSError."""
        listener = self._listener()
        with self._their_connection, self._their_control:
            theirs = [self._their_connection.fileno(), self._their_control.fileno()]
            send_descriptors(self._asked, COPY, theirs)
        events = select.poll()
        for fd in (listener.fd, self.control.fileno(), self._asked.fileno(), self._pidfd):
            events.register(fd, select.POLLIN)
        deadline = time.monotonic() + COPY_SECONDS
        while True:
            ready = [fd for fd, _ in events.poll(max(0.0, deadline - time.monotonic()) * 1e3)]
            if self.control.fileno() in ready:
                return self._accept()
            if listener.fd in ready:
                listener.answer(lambda pid: pid == self._pid)
            elif self._asked.fileno() in ready:
                said = self._asked.recv(4096)
                raise NoCopy(said[1:].decode("utf-8", "replace") or "it ended")
            elif ready:
                raise NoCopy("it ended")
            elif time.monotonic() >= deadline:
                raise TimeoutError(f"it did not answer for {COPY_SECONDS:.0f} s")

    def _listener(self) -> ForkListener:
        if not self._kin.take_listener(self._asked):
            raise NoCopy("it has ended, or this kernel does not ask about forks")
        assert self._kin.listener is not None
        return self._kin.listener

    def _accept(self) -> tuple[int, int]:
        data, notes, _flags, _address = self.control.recvmsg(8, socket.CMSG_SPACE(_CREDENTIALS.size))
        if data != HELLO or not notes or notes[0][1] != socket.SCM_CREDENTIALS:
            raise NoCopy("the copy ended at once; is there memory for it?")
        pid: int = _CREDENTIALS.unpack(notes[0][2])[0]
        pidfd = os.pidfd_open(pid)
        if not self._kin.has(pid):
            os.close(pidfd)
            raise NoCopy(f"process {pid} says it is the copy, and is not")
        self._kin.add(pid)
        self.control.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
        return pid, pidfd

    def abandon(self) -> None:
        """It did not work."""
        for end in (self.connection, self._their_connection, self.control, self._their_control):
            end.close()


def hurries(connection: socket.socket) -> None:
    """Have receiving on a connection give up now and then; what is sealed can no longer say so."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, _HURRY)


def _take_request(control: socket.socket) -> tuple[socket.socket, socket.socket] | None:
    """In the process, when its control socket is readable: the copy's connection and control socket. None: the owner
    let go, or what came makes no sense. OSError."""
    data, notes, _flags, _address = control.recvmsg(64, socket.CMSG_SPACE(_FDS.size))
    fds = _FDS.unpack(notes[0][2]) if notes and len(notes[0][2]) == _FDS.size else ()
    if data != COPY or not fds:
        return None
    return socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, fds[0]), socket.socket(
        socket.AF_UNIX, socket.SOCK_SEQPACKET, 0, fds[1]
    )


def split(control: socket.socket) -> tuple[socket.socket, socket.socket] | None:
    """In a process that was asked for a copy: forks. In the copy, its connection and its control; None in the origin.

    Raises OwnerGone.
    """
    try:
        ends = _take_request(control)
    except OSError:
        ends = None
    if ends is None:
        raise OwnerGone
    try:
        pid = os.fork()
    except OSError as error:
        control.send(f"-{os.strerror(error.errno or 0)}".encode())
        pid = -1
    if pid == 0:
        return ends
    for end in ends:
        end.close()
    return None
