"""The owner's end of a fork server: asks it for processes, and takes those that it made ahead without waiting for it.

A request in, a process out; and now and then a process that nobody asked for, like the last that was: it waits in the
socket until it is wanted. Messages of the server: `+` and a pid, `-` and a reason, or AHEAD, a pid, a space and the
request that it would answer; with a pid go the connection and a descriptor of the process, and of one that can be asked
for copies of itself the control socket for that.
"""

from __future__ import annotations

import os
import select
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from belljar.lockdown.polling_host import readable
from belljar.lockdown.sockets_host import receive_descriptors

if TYPE_CHECKING:
    from belljar.engines.template_host import EngineProcess

REQUEST_MAX: Final = 64 << 10
"""The longest request, options included."""
AHEAD: Final = b"*"
TAKEN: Final = b"-"
"""What the owner says of each that it used, or gave up."""
AHEAD_MAX: Final = 2048
"""The longest request for which processes are made ahead."""
_MESSAGE_MAX: Final = 4096
_UNASKED_MAX: Final = 16
"""Messages looked at for one process."""

Make = Callable[[int, list[int]], "EngineProcess"]


class Refused(RuntimeError):
    """The server made none; says why."""


class Supply:
    """Processes from one server. `make` is given the pid and the descriptors of each. None is held here: they wait in
    the socket."""

    def __init__(self, control: socket.socket, make: Make) -> None:
        self._control = control
        self._make = make
        self._lock = threading.Lock()
        self._owed: list[bytes] = []
        """The requests that are not answered yet."""
        self._taken = 0
        """Of how many the server is still to be told that they were taken."""

    def at_hand(self, request: bytes) -> EngineProcess | None:
        """One that was made ahead for such a request; None if there is none, or somebody else is asking.

        The server makes another once it is told by `settle`. Raises Refused, OSError.
        """
        if not self._lock.acquire(blocking=False):
            return None
        try:
            found = self._take(request)
            if found is None:
                self._tell()
            return found
        finally:
            self._lock.release()

    def settle(self) -> None:
        """Tell the server of what was taken; now, or by the next that is asked for."""
        if self._lock.acquire(blocking=False):
            try:
                with suppress(OSError, ValueError):  # it has ended, as the next to ask will hear, or is closed
                    self._tell()
            finally:
                self._lock.release()

    def _tell(self) -> None:
        while self._taken and self._has_room():  # nobody is to be held up by one that does not listen
            self._taken -= 1
            self._control.send(TAKEN)

    def ask(self, request: bytes) -> EngineProcess:
        """A process; waits until it is made. Raises Refused, OSError."""
        with self._lock:
            found = self._take(request)
            if found is not None:
                return found
            self._tell()
            self._control.send(request)
            self._owed.append(request)
            for _ in range(_UNASKED_MAX):
                found = self._next(request)
                if found is not None:
                    return found
            raise Refused("it gives what nobody asked for")

    def _take(self, request: bytes) -> EngineProcess | None:
        for _ in range(_UNASKED_MAX):
            if not readable(self._control.fileno(), 0):
                return None
            found = self._next(request)
            if found is not None:
                return found
        return None

    def _next(self, request: bytes) -> EngineProcess | None:
        """The next process, if it is one for this request and lives; else it is given up."""
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
            raise Refused(message[1:].decode("utf-8", "replace") or "it ended")
        process = self._make(int(pid), fds)
        process.origin = self
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
