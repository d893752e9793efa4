"""Ends every process that descends from this one."""

from __future__ import annotations

import os
import signal
import sys
import threading
from contextlib import suppress
from typing import Final

_ROUNDS_MAX: Final = 1000


class Children:
    """The children of a process with one thread that is their subreaper, so that orphans become its children.

    Made while there is a /proc: what is open stays so when the root is emptied. Without one, nobody is ended.
    """

    def __init__(self) -> None:
        try:
            self._file = os.open(f"/proc/self/task/{threading.get_native_id()}/children", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            self._file = -1

    def kill_all(self) -> None:
        """Kill and wait for them, and for the orphans that each leaves, until there are none."""
        if self._file < 0 or sys.platform != "linux":
            return
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # from now on a pid is a child's until it is waited for here
        for _ in range(_ROUNDS_MAX):
            pids = self._read()
            if not pids:
                return
            for pid in pids:
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
                    os.waitpid(pid, 0)

    def _read(self) -> list[int]:
        os.lseek(self._file, 0, os.SEEK_SET)
        text = b"".join(iter(lambda: os.read(self._file, 1 << 16), b""))
        return [int(pid) for pid in text.split()]
