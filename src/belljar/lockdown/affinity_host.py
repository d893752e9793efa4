"""Moves another process off this thread's processor."""

from __future__ import annotations

import os
import sys
from contextlib import suppress


def move_to_other_cpu(pid: int) -> None:
    """If a process may run on another processor than this thread's, have it go on there; its allowed set is kept.

    Does nothing where setting the affinity of that process is not permitted.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            allowed = os.sched_getaffinity(pid)
            if len(allowed) > 1:
                os.sched_setaffinity(pid, allowed - {_current_cpu()})
                os.sched_setaffinity(pid, allowed)


def _current_cpu() -> int:
    import ctypes

    number: int = ctypes.CDLL(None).sched_getcpu()
    return number
