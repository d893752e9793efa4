"""Resources that a sandbox's processes use, as the system counts it: for `sandbox.stats()`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import Final

_TIMES: Final = slice(11, 15)
"""Its own, and those of children that it waited for: user and system time of each."""
_RESIDENT: Final = 21
"""Fields of /proc/PID/stat, counted from the one after the program's name."""


def usage(pids: Iterable[int]) -> dict[str, float]:
    """Processor seconds and resident bytes of processes together; nothing where the system does not tell."""
    if sys.platform != "linux":
        return {}
    ticks = pages = 0
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue  # it has ended
        ticks += sum(map(int, fields[_TIMES]))
        pages += int(fields[_RESIDENT])
    return {"cpu": ticks / os.sysconf("SC_CLK_TCK"), "memory": pages * os.sysconf("SC_PAGE_SIZE")}
