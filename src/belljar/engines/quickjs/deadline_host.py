"""A second thread that watches a run's processor time and its clock: no Python of ours runs while the guest computes.

At a limit it first asks: the engine looks up, every few thousand steps, whether it has to stop, and a session survives
that. What does not look up (one long step inside the engine) is ended with the process.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Final

CPU, WALL = 1, 2
"""The reasons' numbers of addon/guest.h."""
STOP_SECONDS: Final = 0.3
"""Seconds of processor time that the engine has to stop."""
STOP_SECONDS_MAX: Final = 10.0
_LEAST: Final = 0.001


class Deadline:
    """`stop` is called with the reason when a limit is reached, `end` if that does not help."""

    def __init__(self, stop: Callable[[int], None], end: Callable[[int], None]) -> None:
        self._stop = stop
        self._end = end
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._cpu = self._wall = 0.0

    def allow(self, cpu_ms: float, wall_ms: float) -> None:
        """Set the limits from now on; zero is no limit."""
        self.cancel()
        self._cpu = time.process_time() + cpu_ms / 1e3 if cpu_ms > 0 else 0.0
        self._wall = time.monotonic() + wall_ms / 1e3 if wall_ms > 0 else 0.0
        if self._cpu or self._wall:
            self._over = threading.Event()
            self._thread = threading.Thread(target=self._watch, args=(self._over,), daemon=True)
            self._thread.start()

    def cancel(self) -> None:
        """The run is over. Its thread is gone when this returns: a process with one thread can be forked."""
        if self._thread is not None:
            self._over.set()
            self._thread.join()
            self._thread = None
        self._cpu = self._wall = 0.0

    def wait_at_most(self, milliseconds: float) -> float:
        """Return the shorter of a wait and the time left until the wall-clock limit."""
        if not self._wall:
            return milliseconds
        return min(milliseconds, max((self._wall - time.monotonic()) * 1e3, 0.0) + 1.0)

    def _left(self) -> tuple[float, int]:
        """Seconds until the next limit can be reached, and which."""
        cpu = self._cpu - time.process_time() if self._cpu else float("inf")
        wall = self._wall - time.monotonic() if self._wall else float("inf")
        return (cpu, CPU) if cpu < wall else (wall, WALL)

    def _watch(self, over: threading.Event) -> None:
        while (left := self._left())[0] > 0:
            if over.wait(max(left[0], _LEAST)):
                return
        why = left[1]
        self._stop(why)
        enough, last = time.process_time() + STOP_SECONDS, time.monotonic() + STOP_SECONDS_MAX
        while time.process_time() < enough and time.monotonic() < last:
            if over.wait(STOP_SECONDS / 4):
                return
        self._end(why)
