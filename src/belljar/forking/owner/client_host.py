"""The owner's end of a fork server's control socket: asks for processes, and takes spares without waiting."""

from __future__ import annotations

import os
import select
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final, Generic, Protocol, TypeVar

from belljar.forking.wire import AHEAD, TAKEN
from belljar.lockdown.polling_host import readable
from belljar.lockdown.sockets_host import receive_descriptors

_MESSAGE_MAX: Final = 4096
_UNASKED_MAX: Final = 16
"""Messages looked at for one process."""


class Forked(Protocol):
    """A process that a server forked."""

    @property
    def alive(self) -> bool: ...

    def kill(self) -> None: ...


P = TypeVar("P", bound=Forked)
Make = Callable[[int, list[int]], P]
"""Makes a handle from a pid and the descriptors that came with it: connection, pidfd, and perhaps a control socket."""


class Refused(RuntimeError):
    """The server made no process; says why."""


class ServerEnded(Refused):
    """The server has ended."""


class ForkClient(Generic[P]):
    """Processes from one server. Spares are not held here: they wait in the socket."""

    def __init__(self, control: socket.socket, make: Make[P]) -> None:
        self._control = control
        self._make = make
        self._lock = threading.Lock()
        self._owed: list[bytes] = []
        """The requests that are not answered yet."""
        self._taken = 0
        """Spares taken, not yet reported to the server."""

    def take_spare(self, request: bytes) -> P | None:
        """Return a spare that was made for such a request; None if there is none, or another thread is asking.

        Raises Refused, OSError.
        """
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return self._take_spare(request)
        finally:
            self._lock.release()

    def take(self, request: bytes) -> P:
        """Return a process; wait until it is made if there is no spare. Raises Refused, OSError."""
        with self._lock:
            found = self._take_spare(request)
            if found is not None:
                return found
            self._control.send(request)
            self._owed.append(request)
            for _ in range(_UNASKED_MAX):
                found = self._receive(request)
                if found is not None:
                    return found
            raise Refused("it gives what nobody asked for")

    def _take_spare(self, request: bytes) -> P | None:
        found = None
        for _ in range(_UNASKED_MAX):
            if found is not None or not readable(self._control.fileno(), 0):
                break
            found = self._receive(request)
        with suppress(OSError):  # the server ended, as the next to ask will hear
            self._report_taken()
        return found

    def _report_taken(self) -> None:
        while self._taken and self._has_room():  # nobody is to be held up by a server that does not listen
            self._taken -= 1
            self._control.send(TAKEN)

    def _receive(self, request: bytes) -> P | None:
        """Return the next process if it is alive and for this request; else discard it."""
        if sys.platform == "win32":
            raise NotImplementedError
        message, fds = receive_descriptors(self._control, _MESSAGE_MAX, 3)
        head = message[:1]
        pid, _, made_for = message[1:].partition(b" ")
        if head == AHEAD:
            self._taken += 1
        elif self._owed and head == b"+":
            made_for = self._owed.pop(0)
        else:
            head = b""
        if not head or len(fds) not in (2, 3) or not pid.isdigit():
            for fd in fds:
                os.close(fd)
            self._owed.clear()
            if not message:
                raise ServerEnded("it ended")
            raise Refused(message[1:].decode("utf-8", "replace") or "it gives no reason")
        process = self._make(int(pid), fds)
        if made_for == request and process.alive:
            return process
        process.kill()
        return None

    def _has_room(self) -> bool:
        """Whether the server takes another message."""
        if sys.platform == "win32":
            raise NotImplementedError
        room = select.poll()
        room.register(self._control, select.POLLOUT)
        return bool(room.poll(0))
