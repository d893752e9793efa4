"""The inside of a fork server: answers requests for forks on its control socket until the owner goes away."""

from __future__ import annotations

import os
import select
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

from belljar.abi.dataclass import dataclass
from belljar.forking.server.judge_host import ForkJudge
from belljar.forking.wire import (
    AHEAD,
    PERMIT,
    REQUEST_MAX,
    SPARE_REQUEST_MAX,
    TAKEN,
    Request,
    decode_permit,
    decode_request,
)
from belljar.lockdown.children_host import Children
from belljar.lockdown.forks_host import fork_alone
from belljar.lockdown.polling_host import readable
from belljar.lockdown.seal_host import adopt_orphans, allow_descriptors, die_with_parent, set_signal
from belljar.lockdown.sockets_host import send_descriptors

_DONE: Final = object()
QUIET: Final = 0.003
"""Seconds without a request before a spare is made: the process just handed over needs the processor first."""


@dataclass(frozen=True, slots=True)
class Child:
    """Arguments of a new process: its connection, the request, and whether it is a spare."""

    connection: socket.socket
    request: Request
    ahead: bool
    control: socket.socket | None
    """Socket for requests to copy it, if the options say `forkable` or `copied`."""


@dataclass(frozen=True, slots=True)
class Made:
    """A new process, to be given to the owner."""

    pid: int
    pidfd: int
    connection: socket.socket
    control: socket.socket | None = None

    def descriptors(self) -> list[int]:
        own = [self.control.fileno()] if self.control is not None else []
        return [self.connection.fileno(), self.pidfd, *own]

    def close(self) -> None:
        self.connection.close()
        os.close(self.pidfd)
        if self.control is not None:
            self.control.close()


Fork = Callable[[Request, bool], Made | Child]
"""Forks, given a request and whether this is a spare. Returns Made in the server and Child, if at all, in the child."""


class ForkServer:
    """Serves one control socket. Single-threaded, since it forks.

    `judge` answers for the forks of the processes that come from here. `children`: whoever is left when the owner goes
    away is killed; what they do does not matter. `later` is work that is done once a process was asked for, in steps
    between requests, and before any spare is made.
    """

    def __init__(
        self,
        control: socket.socket,
        fork: Fork,
        *,
        spares: int = 0,
        quiet: float = QUIET,
        judge: ForkJudge | None = None,
        children: Children | None = None,
        later: Iterator[None] | None = None,
    ) -> None:
        self._control = control
        self._fork = fork
        self._spares = spares
        self._quiet = quiet
        self._judge = judge
        self._children = children
        self._later = later
        self._events = select.poll()
        self._events.register(control, select.POLLIN)
        if judge is not None:
            self._events.register(judge.fileno(), select.POLLIN)
        self._last = b""
        """The last request, for which spares are made."""
        self._given = 0
        """Spares at the owner that it has not taken yet."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        adopt_orphans()  # copies whose origin has ended
        allow_descriptors()
        signal.signal(signal.SIGCHLD, _reap)

    def run(self) -> Child | None:
        """Serve until the owner goes away, and return None; in a child, return what it was given."""
        while True:
            message = self._next_message()
            if message == b"":
                if self._children is not None:
                    self._children.kill_all()
                return None
            if message == TAKEN:
                self._given -= 1
            elif message is not None and message[:1] == PERMIT:
                if self._judge is not None:
                    self._judge.permit(*decode_permit(message))
            elif message is None and self._later is not None:
                if next(self._later, _DONE) is _DONE:
                    self._later = None
            else:
                child = self._make_spare() if message is None else self._answer(message)
                if child is not None:
                    return child

    def _next_message(self) -> bytes | None:
        """Return the owner's next message, b"" if it is gone, or None when it is time for other work or a spare."""
        lacking = 0 < len(self._last) <= SPARE_REQUEST_MAX and self._given < self._spares
        pause = self._quiet * 1e3 if lacking else None
        if self._later is not None and self._last:
            pause = 0
        while True:
            ready = self._events.poll(pause)
            if not ready:
                return None
            # A permit is sent before its fork is asked for: the permits of those that wait now are read first. A fork
            # that comes later is not answered in this turn.
            waiting = self._judge.waiting() if self._judge is not None else []
            if readable(self._control.fileno(), 0):
                try:
                    return self._control.recv(REQUEST_MAX)
                except OSError:
                    return b""
            if self._judge is not None:
                self._judge.work(waiting)

    def _answer(self, data: bytes) -> Child | None:
        self._last = data
        try:
            made = self._fork(decode_request(data), False)
        except OSError as error:
            self._control.send(f"-fork failed: {error}".encode())
            return None
        if isinstance(made, Child):
            return made
        try:
            send_descriptors(self._control, b"+%d" % made.pid, made.descriptors())
        except OSError as error:
            self._last = b""
            with suppress(OSError):  # the owner is gone, as the next look at its socket will tell
                self._control.send(f"-can't hand a process over: {error}".encode())
        finally:
            made.close()
        return None

    def _make_spare(self) -> Child | None:
        try:
            made = self._fork(decode_request(self._last), True)
        except OSError:
            self._last = b""  # no more until one is asked for
            return None
        if isinstance(made, Child):
            return made
        try:
            send_descriptors(self._control, AHEAD + b"%d " % made.pid + self._last, made.descriptors())
            self._given += 1
        except OSError:
            self._last = b""
        finally:
            made.close()
        return None


def become_child(control: socket.socket, spares: int = 0, *, children: Children | None = None) -> Child | None:
    """Serve forks of this process; return in each child, with what it was given, and in the server at its end, None.

    Up to `spares` processes like the last one asked for are given to the owner ahead: they must wait for word on their
    connection. A child seals itself before it reads a byte.
    """

    def fork(request: Request, ahead: bool) -> Made | Child:
        return fork_child(control, request, ahead=ahead)

    return ForkServer(control, fork, spares=spares, children=children).run()


def fork_child(control: socket.socket, request: Request, *, ahead: bool = False) -> Made | Child:
    """Fork this process with a connection, and a control socket if the options ask for one, to the child."""
    ours, theirs = socket.socketpair()
    for end in (ours, theirs):
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    own: tuple[socket.socket, socket.socket] | None = None
    if request.options.get("forkable") or request.options.get("copied"):
        own = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server = os.getpid()
    pid = fork_alone()
    if pid == 0:
        die_with_parent(server)
        set_signal(signal.SIGCHLD, ignored=False)
        control.close()
        ours.close()
        if own is not None:
            own[0].close()
        return Child(theirs, request, ahead, own[1] if own is not None else None)
    theirs.close()
    if own is not None:
        own[1].close()
    return Made(pid, os.pidfd_open(pid), ours, own[0] if own is not None else None)


def _reap(_number: int, _frame: object) -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return
