"""An owner's handle of a worker, and the protocol of sources of workers."""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Protocol

from belljar.lockdown.family_host import Family
from belljar.lockdown.polling_host import readable
from belljar.lockdown.server_process_host import kill_process

if TYPE_CHECKING:
    from belljar.owner.cgroup_host import Cgroup


class WorkerUnavailable(RuntimeError):
    """No worker could be had; says why."""


class CgroupUnavailable(RuntimeError):
    """There is no control group that this process may divide."""


class Permits(Protocol):
    """Grants workers single forks."""

    def permit(self, family: int, pid: int) -> None:
        """Let a worker fork, once and soon. OSError if the zygote is gone."""


class WorkerHandle:
    """A sealed worker: its connection, and a descriptor that means its process whatever becomes of the pid.

    It keeps its zygote: that may be old, and give no more workers, but it is the one to say when this worker may fork.
    """

    __slots__ = ("_owner", "cgroup", "connection", "env", "family", "greeting", "pid", "pidfd", "zygote")

    def __init__(
        self,
        pid: int,
        pidfd: int,
        connection: socket.socket,
        zygote: Permits | None = None,
        family: Family | None = None,
    ) -> None:
        self.pid = pid
        self.pidfd = pidfd
        self.connection = connection
        self.zygote = zygote
        self.family = family if family is not None else Family(pid)
        self.family.add(pid)
        self.cgroup: Cgroup | None = None
        self.greeting = b""
        """Frames of its that were received already."""
        self.env: dict[str, str] | None = None
        """The whole environment of its commands, if it has none of its own."""
        self._owner = os.getpid()

    grace: float = 0.0
    """Seconds that it may take longer than others to answer: an emulated processor is slow."""
    open_relay: Callable[[int], socket.socket] | None = None
    """Where descriptors can't be handed over: gives our end of a connection, by a number."""

    def confine(self, memory_bytes: int) -> None:
        """Put it into a control group of its own, which bounds it and its engine processes. CgroupUnavailable."""
        if sys.platform != "linux":
            raise CgroupUnavailable("control groups are Linux's")
        from belljar.owner.cgroup_host import Cgroup  # hardly ever needed

        self.cgroup = Cgroup(memory_bytes)
        try:
            self.cgroup.add(self.pid)
        except OSError as error:
            raise CgroupUnavailable(f"can't put the worker into a control group: {error}") from error

    def pids(self) -> list[int]:
        """Its processes."""
        return [self.pid]

    @property
    def alive(self) -> bool:
        pidfd = self.pidfd  # another thread may end it meanwhile
        return pidfd >= 0 and not readable(pidfd, 0)

    def kill(self) -> None:
        """Kill it and close its descriptors. Idempotent. In a forked child of its owner, only close."""
        if os.getpid() != self._owner:
            self.release()
        else:
            self.end()
        self.connection.close()

    def end(self) -> None:
        """Kill it and shut the connection down, which wakes threads that wait for it. Idempotent."""
        pidfd, self.pidfd = self.pidfd, -1  # two threads may both come to end it
        if pidfd >= 0:
            kill_process(pidfd)
            self.family.remove(self.pid)
            if self.cgroup is not None:
                self.cgroup.remove()
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)

    def wait_ended(self) -> None:
        """Wait for another thread that is ending it."""

    def release(self) -> None:
        """Close its descriptors without killing it: it was handed on, or is another's."""
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1
        self.connection.close()


class SlowWorker(WorkerHandle):
    """A worker whose end takes a while, since much has to be cleared away. Whoever closes it waits for that."""

    __slots__ = ("_ended",)

    ENDING_SECONDS: ClassVar[float]
    """How long another thread may take to end it."""

    def __init__(self, pid: int, pidfd: int, connection: socket.socket) -> None:
        super().__init__(pid, pidfd, connection)
        self._ended = threading.Event()

    def end(self) -> None:
        pidfd, self.pidfd = self.pidfd, -1
        if pidfd >= 0:
            try:
                self.clear_away(pidfd)
            finally:
                self._ended.set()

    def clear_away(self, pidfd: int) -> None:
        """End its process, which is `pidfd`'s to be closed, and what it held."""
        raise NotImplementedError

    def wait_ended(self) -> None:
        if os.getpid() == self._owner:
            self._ended.wait(self.ENDING_SECONDS)

    def release(self) -> None:
        self._ended.set()
        super().release()


class Workers(Protocol):
    """Gives workers."""

    def take(self, memory_bytes: int) -> WorkerHandle:
        """A worker with this much memory. WorkerUnavailable."""
        ...
