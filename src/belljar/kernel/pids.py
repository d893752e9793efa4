"""Pid spaces, process groups and sessions: the numbers processes are known by."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from belljar.abi.errno import ESRCH
from belljar.abi.errors import SysError

if TYPE_CHECKING:
    from belljar.kernel.containers import Containers
    from belljar.kernel.fs.proc_net import TcpSocket
    from belljar.kernel.process import Process
    from belljar.kernel.services.supervisor import Supervisor
    from belljar.kernel.tty import Terminal


class PidSpace:
    """The processes a container can see and signal, numbered from 1; each has a pid in every space above too."""

    def __init__(self, parent: PidSpace | None = None) -> None:
        self.parent = parent
        self.table: dict[int, Process] = {}
        self.hostname: str | None = None
        """The name a container goes by; None: that of the space above, in the end the kernel's."""
        self.address = ""
        """The network address a container has; "": that of the space above."""
        self.tcp_sockets: Callable[[], list[TcpSocket]] | None = None
        """The sockets of a container with a network of its own."""
        self.containers: Containers | None = None
        self.services: Supervisor | None = None
        """What looks after its services, where it has an init that can."""
        self.last_pid = 0
        self._next = 1

    def enroll(self, process: Process) -> int:
        """Number a new process here and above; returns its pid here."""
        space: PidSpace | None = self
        while space is not None:
            while space._next in space.table:
                space._next += 1
            process.pids[space] = space._next
            space.table[space._next] = process
            space.last_pid = space._next
            # Like Linux: pids rise, and start again low only after a long way.
            space._next = space._next + 1 if space._next < 4_194_303 else 300
            space = space.parent
        return process.pids[self]

    def restart(self) -> None:
        """Number processes from the start again: no others than the first are there."""
        self.last_pid, self._next = 1, 2

    def remove(self, process: Process) -> None:
        """Free the numbers of a process; nothing if they are another's already."""
        for space, pid in process.pids.items():
            if space.table.get(pid) is process:
                del space.table[pid]

    def find(self, pid: int) -> Process:
        """ESRCH."""
        try:
            return self.table[pid]
        except KeyError:
            raise SysError(ESRCH) from None

    def select(self, sender: Process, pid: int) -> list[Process]:
        """The targets of kill(pid): one, a group, or everybody but the sender and init."""
        if pid > 0:
            return [self.find(pid)]
        everyone = list(self.table.values())
        if pid == -1:
            return [p for p in everyone if p is not sender and p.pids[self] != 1]
        group = sender.pgid if pid == 0 else -pid
        return [p for p in everyone if self._group_number(p) == group]

    def _group_number(self, process: Process) -> int:
        """A group's number as this space knows it: its leader's; 0 if the leader of one from below is gone."""
        if process.space is self:
            return process.pgid
        leader = process.space.table.get(process.pgid)
        return leader.pids.get(self, 0) if leader is not None else 0


class Session:
    """Process groups that share a controlling terminal."""

    def __init__(self, leader: int) -> None:
        self.leader = leader
        self.tty: Terminal | None = None
        self.foreground = leader
        self.space: PidSpace | None = None
        """The pid space of `leader` and `foreground`; set when a terminal is acquired."""
