"""The inside of a template process: answers requests for forks on its control socket until that ends."""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from belljar.engines.template_host import REQUEST_MAX
from belljar.lockdown.seal_host import die_with_parent


@dataclass(frozen=True, slots=True)
class Request:
    """What a new process is to be."""

    memory_bytes: int
    cpu_seconds: float
    options: dict[str, Any]


Body = Callable[[socket.socket, Request], int]
"""Runs in the new process, with its connection; gives the exit code. It seals itself before it reads a byte."""


def serve_forks(control: socket.socket, body: Body) -> None:
    """Until the owner goes away: a request in; a pid, a connection and a pidfd out. One thread only: this forks."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, _reap)
    while True:
        try:
            data = control.recv(REQUEST_MAX)
        except OSError:
            return
        if not data:
            return
        memory_bytes, cpu_seconds, options = msgspec.msgpack.decode(data, type=tuple[int, float, dict[str, Any]])
        try:
            _fork(control, body, Request(memory_bytes, cpu_seconds, options))
        except OSError as error:
            control.send(f"-fork failed: {error}".encode())


def _fork(control: socket.socket, body: Body, request: Request) -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        template = os.getpid()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                die_with_parent(template)
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                control.close()
                ours.close()
                status = body(theirs, request)
            finally:
                os._exit(status)
        pidfd = os.pidfd_open(pid)
        try:
            socket.send_fds(control, [b"+%d" % pid], [ours.fileno(), pidfd])
        finally:
            os.close(pidfd)


def _reap(_number: int, _frame: object) -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return
