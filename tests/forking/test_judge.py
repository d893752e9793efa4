"""The zygote's answers about forks: when a family is forgotten."""

from __future__ import annotations

import os
import select
import socket
import sys

import pytest

from belljar.lockdown.sockets_host import send_descriptors

if sys.platform != "linux":
    pytest.skip("Linux asks about forks", allow_module_level=True)

from belljar.forking.server.judge_host import ForkJudge
from belljar.forking.server.server_host import ForkServer
from belljar.forking.wire import encode_permit


def test_a_family_lives_until_its_last_process_is_gone() -> None:
    """A signal while a process is about to fork makes the kernel report EPOLLERR for a listener that is in use."""
    judge = ForkJudge()
    judge.expect(7)
    ours, theirs = socket.socketpair()
    with ours, judge.listeners, judge._inbox, judge._events:
        with theirs:
            send_descriptors(judge.listeners, b"7", [theirs.fileno()])
        judge.work(judge.waiting())
        (listener,) = judge._waiting
        for events, lives in ((select.EPOLLERR, True), (select.EPOLLHUP, False)):
            judge.work([(listener, events)])
            assert (7 in judge._families) == lives
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(listener)


class _LateFork:
    """Stands in for a judge: the permit is sent, and its fork begins to wait, just as the server looks for work."""

    def __init__(self, owner: socket.socket) -> None:
        self._owner = owner
        self._reader, writer = os.pipe()
        os.write(writer, b"x")
        self._permitted = False

    def fileno(self) -> int:
        return self._reader

    def waiting(self) -> list[tuple[int, int]]:
        if not self._permitted:
            self._owner.send(encode_permit(1, 2))
        return [(9, select.EPOLLIN)]

    def permit(self, family: int, pid: int) -> None:
        self._permitted = (family, pid) == (1, 2)

    def work(self, _waiting: list[tuple[int, int]]) -> None:
        os._exit(0 if self._permitted else 1)


def test_a_permit_is_read_before_its_fork_is_answered() -> None:
    owner, control = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        try:
            ForkServer(control, lambda _request, _ahead: os._exit(2), judge=_LateFork(owner)).run()  # type: ignore[arg-type]
        finally:
            os._exit(3)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    owner.close()
    control.close()
