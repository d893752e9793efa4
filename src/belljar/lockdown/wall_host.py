"""The outer wall around a worker, as much of it as this system has: all of it on Linux, none of it elsewhere."""

from __future__ import annotations

import signal
import socket
import sys
from typing import Final

if sys.platform == "linux":
    from belljar.lockdown.forks_host import fork_alone
    from belljar.lockdown.seal_host import LockdownFailed, die_with_parent, enter_namespaces, prove, seal, set_signal

    _SIGCHLD: Final = int(signal.SIGCHLD)
    SEALS: Final = True
    """Whether a worker is shut in at all: one that is can neither open files nor import."""

    def shut_in(keep: set[int], memory_bytes: int, cpu_seconds: int, fork_judge: socket.socket | None) -> list[str]:
        """Irrevocably; gives the layers that hold. Raises LockdownFailed, or OSError. See `seal`."""
        set_signal(_SIGCHLD, ignored=True)  # branches that end are nobody's to wait for
        held = seal(keep, memory_bytes, cpu_seconds, fork_judge)
        prove()
        return held

else:
    SEALS: Final = False

    class LockdownFailed(RuntimeError):
        """Where there is no lock, it can't fail."""

    def shut_in(keep: set[int], memory_bytes: int, cpu_seconds: int, fork_judge: socket.socket | None) -> list[str]:
        return []

    def enter_namespaces() -> list[str]:
        return []

    def die_with_parent(parent: int) -> None:
        """Elsewhere a worker ends with its connection only."""

    def fork_alone() -> int:
        raise NotImplementedError


__all__ = ["SEALS", "LockdownFailed", "die_with_parent", "enter_namespaces", "fork_alone", "shut_in"]
