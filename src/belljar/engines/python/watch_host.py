"""A second thread, for what the guest's own can't see while it computes: that its time is used up, that a signal came.

Nothing of this process's own Python runs while the guest's code does, signal handlers included. While a call is under
way the kernel answers for signals. The thread only peeks at the connection: the bytes are the guest's thread's.
"""

from __future__ import annotations

import _thread
import os
import time
from collections.abc import Callable
from typing import Final

from belljar.engines.calls.client_host import Client, ConnectionEnded

LEAST: Final = 0.001
FOREVER: Final = float("inf")
PERIOD, PERIOD_MAX = 0.1, 1.0
"""Seconds between two looks for signals, while the guest computes and while it waits."""


class Watch:
    """`exceeded` is called when the time that was allowed is used up, `interrupt` with the number of each signal."""

    def __init__(self, client: Client, interrupt: Callable[[int], None], exceeded: Callable[[], None]) -> None:
        self._client = client
        self._interrupt = interrupt
        self._exceeded = exceeded
        self._limit = 0
        self._looks_at = FOREVER
        """Time of the next check."""
        self._period = PERIOD
        self._calls = -1
        # Not `threading`, whose threads and events are a hundred objects: each program pays for what they write to.
        self._changed = _thread.allocate_lock()
        self._changed.acquire()

    def start(self) -> None:
        """Start the thread; it waits for `allow`."""
        _thread.start_new_thread(self._watch, ())

    def allow(self, cpu_ns: int) -> None:
        """Set the processor time allowed from now on."""
        self._limit = time.process_time_ns() + cpu_ns
        if self._looks_at > time.monotonic() + min(cpu_ns / 1e9, PERIOD) and self._changed.locked():
            self._changed.release()  # it would look too late; else leave it alone, there may be thousands of runs

    @property
    def left(self) -> int:
        """Remaining processor time in nanoseconds."""
        return max(self._limit - time.process_time_ns(), 0)

    def _watch(self) -> None:
        if not self._limit:
            self._changed.acquire()
        while (left := self._limit - time.process_time_ns()) > 0:
            wait = min(max(left / 1e9, LEAST), self._period)
            self._looks_at = time.monotonic() + wait
            self._changed.acquire(timeout=wait)
            self._look()
        self._exceeded()

    def _look(self) -> None:
        client = self._client
        if client.busy:
            self._period = min(self._period * 1.5, PERIOD_MAX)
            return
        self._period = PERIOD
        if self._calls == client.calls:
            try:
                for number in client.peek_signals():
                    self._interrupt(number)
            except ConnectionEnded:
                os._exit(0)  # nobody else may be left to end it
        self._calls = client.calls
