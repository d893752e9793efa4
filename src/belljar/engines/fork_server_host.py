"""The inside of a template process: answers requests for forks on its control socket until that ends."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import msgspec

from belljar.abi.dataclass import dataclass
from belljar.engines.supply_host import AHEAD, AHEAD_MAX, REQUEST_MAX, TAKEN
from belljar.lockdown.forks_host import fork_alone
from belljar.lockdown.polling_host import readable
from belljar.lockdown.seal_host import adopt_orphans, allow_descriptors, die_with_parent, set_signal
from belljar.lockdown.sockets_host import send_descriptors

QUIET: Final = 0.003
"""Seconds without a request before a spare is made: the process just handed over needs the processor first."""


@dataclass(frozen=True, slots=True)
class Request:
    """What a new process is to be."""

    memory_bytes: int
    cpu_seconds: float
    options: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Child:
    """What a new process is given: its connection, what it is to be, and whether it is made ahead of its need."""

    connection: socket.socket
    request: Request
    ahead: bool
    control: socket.socket | None
    """By which it can be asked for copies of itself, if the options say `forkable` or `copied`."""


@dataclass(frozen=True, slots=True)
class Made:
    """A new process, to be given to the owner."""

    pid: int
    pidfd: int
    connection: socket.socket
    control: socket.socket | None

    def descriptors(self) -> list[int]:
        own = [self.control.fileno()] if self.control is not None else []
        return [self.connection.fileno(), self.pidfd, *own]

    def close(self) -> None:
        self.connection.close()
        os.close(self.pidfd)
        if self.control is not None:
            self.control.close()


Body = Callable[[socket.socket, Request], int]
"""Runs in the new process, with its connection; gives the exit code. It seals itself before it reads a byte."""


def serve_forks(control: socket.socket, body: Body) -> None:
    """Until the owner goes away: a request in; a pid, a connection and a pidfd out. One thread only: this forks."""
    child = become_child(control)
    if child is not None:
        status = 1
        try:
            status = body(child.connection, child.request)
        finally:
            os._exit(status)


def become_child(control: socket.socket, spares: int = 0, *, sealed: bool = False) -> Child | None:
    """As `serve_forks`, but comes back in each new process, with what it is; in the template at its end, with None.

    Up to `spares` processes like the last one asked for are made ahead and given to the owner unasked: they must wait
    for word on their connection. `sealed`: this process is locked already, and may only do what a filter with `forks`
    allows.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if not sealed:
        adopt_orphans()  # copies whose origin has ended
        allow_descriptors()
    # A sealed process may not wait for its children: ignoring their ends has the kernel forget them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN if sealed else _reap)
    given_ahead = 0
    last = b""
    while True:
        try:
            ahead = 0 < len(last) <= AHEAD_MAX and given_ahead < spares and not readable(control.fileno(), QUIET)
            data = last if ahead else control.recv(REQUEST_MAX)
        except OSError:
            return None
        if not data:
            return None
        if data == TAKEN:
            given_ahead -= 1
            continue
        memory_bytes, cpu_seconds, options = msgspec.msgpack.decode(data, type=tuple[int, float, dict[str, Any]])
        last = data
        try:
            made = fork_child(control, Request(memory_bytes, cpu_seconds, options), sealed=sealed, ahead=ahead)
        except OSError as error:
            if ahead:
                last = b""  # until one is asked for
            else:
                control.send(f"-fork failed: {error}".encode())
            continue
        if isinstance(made, Child):
            return made
        message = AHEAD + b"%d " % made.pid + data if ahead else b"+%d" % made.pid
        try:
            send_descriptors(control, message, made.descriptors())
            given_ahead += ahead
        except OSError as error:
            last = b""
            if not ahead:
                with suppress(OSError):  # the owner is gone, as the next look at its socket will tell
                    control.send(f"-can't hand a process over: {error}".encode())
        finally:
            made.close()


def fork_child(control: socket.socket, request: Request, *, sealed: bool, ahead: bool = False) -> Made | Child:
    ours, theirs = socket.socketpair()
    if not sealed:
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    own: tuple[socket.socket, socket.socket] | None = None
    if request.options.get("forkable") or request.options.get("copied"):
        own = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    template = os.getpid()
    # A sealed one has a second thread: what that held has to be put in order.
    pid = os.fork() if sealed else fork_alone()
    if pid == 0:
        die_with_parent(template)
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
