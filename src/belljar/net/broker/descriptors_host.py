"""The sockets that the networks of all sandboxes may have open together: the owner keeps descriptors for itself."""

from __future__ import annotations

import sys
import threading
from functools import cache
from typing import Final

_MOST: Final = 1 << 16


def _half_of_the_limit() -> int:
    if sys.platform == "win32":  # which has no such limit
        return _MOST
    import resource

    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _MOST if soft == resource.RLIM_INFINITY else max(8, min(_MOST, soft // 2))


class Descriptors:
    """The number of sockets left for all."""

    def __init__(self, size: int | None = None) -> None:
        self.free = _half_of_the_limit() if size is None else size
        self.lock = threading.Lock()


class Share:
    """One sandbox's part of them: never more than are left for the others."""

    def __init__(self, pool: Descriptors) -> None:
        self._pool = pool
        self.held = 0

    def take(self) -> bool:
        """One more, if there is one for this sandbox."""
        with self._pool.lock:
            if self.held >= self._pool.free:
                return False
            self.held += 1
            self._pool.free -= 1
            return True

    def give(self) -> None:
        with self._pool.lock:
            self.held -= 1
            self._pool.free += 1


@cache
def of_process() -> Descriptors:
    """The ones of this process."""
    return Descriptors()
