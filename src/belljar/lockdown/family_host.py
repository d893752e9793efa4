"""A sealed process and those forked from it, as the owner knows them: who they are, and that there is no other."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Final

PERMIT_SECONDS: Final = 30.0
"""How long a permit to fork may wait for its fork."""
_CLOCK_TICKS: Final = os.sysconf("SC_CLK_TCK") if sys.platform == "linux" else 100


class Family:
    """The processes that descend from one worker or engine process.

    The kernel has them all in one session, whose number is the first one's pid and which a sealed process can't leave:
    so a process that one of them forked without telling us is found. Once the last of them has ended, the number may
    become another's: so a process is only taken for one of the family if it was started before the last permit to fork
    ran out, and if no new process has the first one's pid.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._started = _start_time(pid)
        self._lock = threading.Lock()
        self._members: set[int] = set()
        self._making = 0
        """Branches that are not known yet, because they are being made."""
        self._permitted_until: float | None = None
        """Until when (in seconds since boot) one of them could fork; None: never yet."""
        self._doubtful = False
        """Whether there may be processes that nobody knows."""

    def add(self, pid: int) -> None:
        with self._lock:
            self._members.add(pid)

    def remove(self, pid: int) -> None:
        with self._lock:
            self._members.discard(pid)
        if not self._members:
            self._end_strays()

    def expect(self) -> None:
        """Note that a branch is to be made."""
        with self._lock:
            self._making += 1
            self._permitted_until = _since_boot() + PERMIT_SECONDS

    def finish(self, *, made: bool) -> None:
        """Note that the branch was made, and added, or that it was not."""
        with self._lock:
            self._making -= 1
            self._doubtful = self._doubtful or not made
            doubtful = self._doubtful
        if doubtful:
            self._end_strays()

    def known(self, pids: Iterable[int]) -> set[int]:
        """Those of some pids that are members."""
        with self._lock:
            return self._members.intersection(pids)

    def kill_members(self, pids: Iterable[int]) -> None:
        """Kill some of those that are known. Each is removed by whoever holds it."""
        for pid in self.known(pids):
            _kill_if(pid, lambda pid: _session(pid) == self.pid and self._is_old_enough(pid))

    def has(self, pid: int) -> bool:
        """Whether a live process, of which the caller holds a pidfd, is in the session and not known yet."""
        return pid not in self._members and _session(pid) == self.pid

    def _end_strays(self) -> None:
        """Kill whoever is of the family and not known; later, if one is just being made."""
        with self._lock:
            if self._permitted_until is None or self._making:
                self._doubtful = True
                return
            self._doubtful = False
        for pid in _processes():
            _kill_if(pid, lambda pid: self.has(pid) and self._is_old_enough(pid))

    def _is_old_enough(self, pid: int) -> bool:
        """Whether a process of the session was started while one of the family could fork."""
        first, this = _start_time(self.pid), _start_time(pid)
        if this is None or (first is not None and first != self._started):
            return False
        return pid == self.pid or (self._permitted_until is not None and this <= self._permitted_until)


def _kill_if(pid: int, is_meant: Callable[[int], bool]) -> None:
    """Kill a process if it is the one that is meant: asked again when a pidfd holds on to it."""
    if sys.platform != "linux":
        raise NotImplementedError
    if not is_meant(pid):
        return
    with suppress(ProcessLookupError):
        pidfd = os.pidfd_open(pid)
        try:
            if is_meant(pid):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        finally:
            os.close(pidfd)


def _since_boot() -> float:
    """The clock of process start times."""
    if sys.platform != "linux":
        raise NotImplementedError
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def _processes() -> list[int]:
    """The pids that /proc shows; none where there is no /proc."""
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _session(pid: int) -> int | None:
    if sys.platform != "linux":
        raise NotImplementedError
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _start_time(pid: int) -> float | None:
    """When a process was started, in seconds since boot; None if it is gone, or /proc does not show it."""
    if sys.platform != "linux":
        return None
    # Not `open`, which is gone when a sandbox that nobody closed ends with its interpreter.
    try:
        file = os.open(f"/proc/{pid}/stat", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        stat = os.read(file, 4096)
    except OSError:
        return None
    finally:
        os.close(file)
    return int(stat.rpartition(b")")[2].split()[19]) / _CLOCK_TICKS
