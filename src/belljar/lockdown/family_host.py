"""A sealed process and those forked from it, as the owner knows them: who they are, and that there is no other."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress


class Family:
    """The processes that descend from one worker or engine process.

    The kernel has them all in one session, whose number is the first one's pid and which a sealed process can't leave:
    so a process that one of them forked without telling us is found.
    """

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._lock = threading.Lock()
        self._members: set[int] = set()
        self._forked = False
        self._making = 0
        """Branches that are not known yet, because they are being made."""
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
        """A branch is to be made."""
        with self._lock:
            self._making += 1
            self._forked = True

    def settle(self, *, made: bool) -> None:
        """It was made, and added, or it was not."""
        with self._lock:
            self._making -= 1
            self._doubtful = self._doubtful or not made
            doubtful = self._doubtful
        if doubtful:
            self._end_strays()

    def has(self, pid: int) -> bool:
        """Whether a live process is one of the family, and not known as such yet."""
        return pid not in self._members and _session(pid) == self.pid

    def _end_strays(self) -> None:
        """Kill whoever is in the session and is not known; later, if one is just being made."""
        with self._lock:
            if not self._forked or self._making:
                self._doubtful = True
                return
            self._doubtful = False
        if sys.platform != "linux":
            raise NotImplementedError
        for pid in _processes():
            if not self.has(pid):
                continue
            with suppress(ProcessLookupError):
                pidfd = os.pidfd_open(pid)
                try:
                    if self.has(pid):  # now the descriptor means the process that was looked at
                        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
                finally:
                    os.close(pidfd)


def _processes() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _session(pid: int) -> int | None:
    if sys.platform != "linux":
        raise NotImplementedError
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
    return int(stat.rpartition(b")")[2].split()[3])
