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
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from belljar.lockdown.processes_host import readable

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
_HELD_MAX: Final = 8

Make = Callable[[int, list[int]], "EngineProcess"]


class Refused(RuntimeError):
    """The server made none; says why."""


class Supply:
    """Processes from one server. `make` is given the pid and the descriptors of each."""

    def __init__(self, control: socket.socket, make: Make) -> None:
        self._control = control
        self._make = make
        self._lock = threading.Lock()
        self._held: list[tuple[bytes, EngineProcess]] = []

    def at_hand(self, request: bytes) -> EngineProcess | None:
        """One that was made ahead for such a request; None if there is none, or somebody else is asking.

        Raises Refused, OSError.
        """
        if not self._lock.acquire(blocking=False):
            return None
        try:
            return self._take(request)
        finally:
            self._lock.release()

    def ask(self, request: bytes) -> EngineProcess:
        """A process; waits until it is made. Raises Refused, OSError."""
        with self._lock:
            found = self._take(request)
            if found is not None:
                return found
            self._control.send(request)
            while True:
                process = self._receive()
                if process is not None:
                    return process

    def _take(self, request: bytes) -> EngineProcess | None:
        while len(self._held) < _HELD_MAX and readable(self._control.fileno(), 0):
            unasked = self._receive()
            if unasked is not None:
                unasked.kill()
                raise Refused("it answered what nobody asked")
        while self._held:
            made_for, process = self._held.pop(0)
            self._tell_taken(process)
            if made_for == request and process.alive:
                return process
            process.kill()
        return None

    def _tell_taken(self, process: EngineProcess) -> None:
        """Without waiting: a server that does not listen is not to hold anybody up."""
        room = select.poll()
        room.register(self._control, select.POLLOUT)
        if not room.poll(0):
            process.kill()
            raise Refused("it does not listen")
        self._control.send(TAKEN)

    def _receive(self) -> EngineProcess | None:
        """The next message: the process that was asked for; None if it is one that was not."""
        message, fds, _flags, _address = socket.recv_fds(self._control, _MESSAGE_MAX, 3)
        head = message[:1]
        pid, _, made_for = message[1:].partition(b" ")
        if head not in (b"+", AHEAD) or len(fds) not in (2, 3) or not pid.isdigit():
            for fd in fds:
                os.close(fd)
            raise Refused(message[1:].decode("utf-8", "replace") or "it ended")
        process = self._make(int(pid), fds)
        if head == AHEAD:
            self._held.append((made_for, process))
            return None
        return process

    def close(self) -> None:
        """Give up those that are held. The control socket is closed already."""
        held, self._held = self._held, []
        for _, process in held:
            process.kill()
