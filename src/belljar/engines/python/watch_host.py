"""Ends a program that has used its processor time: a thread that sleeps for as long as the program could not have."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

LEAST = 0.001


class CpuWatch:
    """`exceeded` is called, on the thread, when the time that was allowed is used up.

    A thread, because nothing of this process's own Python runs while the guest's code does, signal handlers included.
    """

    def __init__(self, exceeded: Callable[[], None]) -> None:
        self._exceeded = exceeded
        self._limit = 0
        self._changed = threading.Event()
        self._thread: threading.Thread | None = None

    def allow(self, cpu_ns: int) -> None:
        """This much from now on."""
        self._limit = time.process_time_ns() + cpu_ns
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        else:
            self._changed.set()

    def _watch(self) -> None:
        while (left := self._limit - time.process_time_ns()) > 0:
            if self._changed.wait(max(left / 1e9, LEAST)):
                self._changed.clear()
        self._exceeded()
