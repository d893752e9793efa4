"""Staying awake for a moment instead of sleeping, as long as nobody else wants the processor.

An answer often comes within 100 us, and a process that slept is slow for longer than that: its processor was halted,
and what it had at hand is gone. So whoever expects one looks again and again, and lets others have the processor each
time. If that takes a while, somebody else needed it: then it sleeps as usual, for the next while too, and longer each
time that happens again.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

T = TypeVar("T")

MOMENT: Final = 300e-6
"""Seconds to stay awake."""
_TAKEN: Final = 0.0005
"""A turn that took longer was somebody else's: interrupts are shorter, other programs' turns longer."""
_SHORTEST, _LONGEST = 0.005, 0.2
"""For how many seconds not to stay awake after that."""


class Awake:
    """One waiter's way of waiting."""

    __slots__ = ("_asleep_until", "_pause")

    def __init__(self) -> None:
        self._asleep_until = 0.0
        self._pause = _SHORTEST

    def find(self, look: Callable[[float], Sequence[T]]) -> Sequence[T]:
        """What `look(0)` finds within a moment; nothing if it would keep others from the processor."""
        if sys.platform == "win32":
            return ()
        now = time.monotonic()
        if now < self._asleep_until:
            return ()
        until = now + MOMENT
        while now < until:
            found = look(0)
            if found:
                self._pause = _SHORTEST
                return found
            os.sched_yield()
            before, now = now, time.monotonic()
            if now - before > _TAKEN:
                self._asleep_until = now + self._pause
                self._pause = min(2 * self._pause, _LONGEST)
                break
        return ()
