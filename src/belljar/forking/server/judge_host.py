"""The zygote's decisions on its workers' forks: one fork for each permit of the owner."""

from __future__ import annotations

import os
import select
import socket
import time

from belljar.lockdown.family_host import PERMIT_SECONDS
from belljar.lockdown.forks_host import ForkListener
from belljar.lockdown.sockets_host import receive_descriptors


class _Family:
    """A worker and its branches: they share one listener, which comes when the worker is sealed."""

    def __init__(self) -> None:
        self.listener: ForkListener | None = None
        self.permits: list[tuple[int, float]] = []
        """Pids that may fork once, each until a (monotonic) time."""
        self._proved = False
        """Whether it has tried to fork, to prove that it can't, before it took its first request."""

    def answer(self) -> None:
        """Answer the waiting fork. A permit is used up when its fork was allowed."""
        assert self.listener is not None
        now = time.monotonic()
        self.permits = [permit for permit in self.permits if permit[1] > now]
        permits = dict(self.permits) if self._proved else {}
        self._proved = True
        pid = self.listener.answer(lambda pid: pid in permits)
        if pid is not None:
            self.permits.remove((pid, permits[pid]))


class ForkJudge:
    """Answers for new workers, which send their seccomp listeners to `listeners`. Readable while there is work."""

    def __init__(self) -> None:
        self._inbox, self.listeners = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._inbox.setblocking(False)
        self._events = select.epoll()
        self._events.register(self._inbox.fileno(), select.EPOLLIN)
        self._families: dict[int, _Family] = {}
        """Families by the pid of their first process."""
        self._waiting: dict[int, int] = {}
        """The pids by the descriptors of their listeners."""

    def fileno(self) -> int:
        return self._events.fileno()

    def expect(self, pid: int) -> None:
        """Register a forked worker, which will send its listener."""
        self._families[pid] = _Family()

    def permit(self, family: int, pid: int) -> None:
        """Let a member of a family fork once."""
        if family in self._families:
            self._families[family].permits.append((pid, time.monotonic() + PERMIT_SECONDS))

    def waiting(self) -> list[tuple[int, int]]:
        """Poll for work: descriptors and their events. What is sent for a fork before it waits has arrived by then."""
        return self._events.poll(0)

    def work(self, waiting: list[tuple[int, int]]) -> None:
        """Receive new listeners, and answer forks that were found waiting."""
        for fd, events in waiting:
            if fd == self._inbox.fileno():
                self._take_in()
            elif events & select.EPOLLIN:
                self._families[self._waiting[fd]].answer()
            elif events & select.EPOLLHUP:
                self._forget(fd)

    def _take_in(self) -> None:
        while True:
            try:
                data, fds = receive_descriptors(self._inbox, 32, 1)
            except BlockingIOError:
                return
            if len(fds) != 1:
                for fd in fds:
                    os.close(fd)
                continue
            pid = int(data)
            self._families[pid].listener = ForkListener(fds[0])
            self._waiting[fds[0]] = pid
            self._events.register(fds[0], select.EPOLLIN)

    def _forget(self, fd: int) -> None:
        """Drop a family whose last process is gone."""
        family = self._families.pop(self._waiting.pop(fd))
        assert family.listener is not None
        self._events.unregister(fd)
        family.listener.close()
