"""Staying awake for a moment instead of sleeping, as long as nobody else wants the processor.

An answer often comes within 100 us, and a process that slept is slow for longer than that: its processor was halted,
and what it had at hand is gone. So whoever expects one looks again and again, and lets others have the processor each
time. If that takes a while, somebody else needed it: then it sleeps as usual, for the next while too, and longer each
time that happens again.

Often the somebody is who is waited for: two who talk are put on one processor, since each usually sleeps while the
other works. They stay there for long if neither does.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final, TypeVar

if sys.platform == "linux":
    import resource

T = TypeVar("T")

MOMENT: Final = 300e-6
"""Seconds to stay awake."""
_TURN: Final = 15e-6
"""A look that took longer was interrupted, perhaps by somebody's turn."""
_TAKEN: Final = 0.001
"""A turn that took longer was somebody else's: interrupts are shorter, other programs' turns longer."""
_OFTEN: Final = 3
"""How many times in a row tell that the two are on one processor, and not for a moment only."""
_SHORTEST, _LONGEST = 0.005, 0.2
"""For how many seconds not to stay awake after that."""
_MEMORY: Final = 4
"""If that happens again before so many such times have passed, it will be longer."""


class Awake:
    """One waiter's way of waiting. `part` has the one waited for go on where the waiter is not."""

    __slots__ = ("_asleep_until", "_part", "_parted", "_pause", "_seen", "_together")

    def __init__(self, part: Callable[[], None] | None = None) -> None:
        self._part = part
        self._parted = False
        """Whether the two were parted just now: the next time tells whether that was good."""
        self._together = 0
        """How many times in a row they had turns on one processor, or so it seemed."""
        self._seen = 0
        self._asleep_until = 0.0
        self._pause = 0.0

    def find(self, look: Callable[[float], Sequence[T]]) -> Sequence[T]:
        """What `look(0)` finds within a moment; nothing if it would keep others from the processor."""
        if sys.platform == "win32":
            return ()
        now = time.monotonic()
        if now < self._asleep_until:
            return ()
        until = now + MOMENT
        turn = longest = 0.0
        while not (found := look(0)) and turn < _TAKEN and now < until:
            os.sched_yield()
            before, now = now, time.monotonic()
            turn = now - before
            longest = max(turn, longest)
        if turn > _TAKEN or (self._parted and not found):
            self._give_up(now)
        self._parted = False
        if self._part is not None:
            self._together = self._together + 1 if longest > _TURN and self._gave_way() else 0
            if self._together == _OFTEN:
                self._together = 0
                self._parted = True
                self._part()
        return found

    def _give_up(self, now: float) -> None:
        """Sleep for a while whenever there is something to wait for; longer if that was so not long ago."""
        again = now < self._asleep_until + _MEMORY * self._pause
        self._pause = min(2 * self._pause, _LONGEST) if again else _SHORTEST
        self._asleep_until = now + self._pause

    def _gave_way(self) -> bool:
        """Whether another had the processor since this was last asked."""
        before, self._seen = self._seen, _switches()
        return self._seen != before


def _switches() -> int:
    """How often this thread lost its processor to another."""
    if sys.platform == "linux":
        return resource.getrusage(resource.RUSAGE_THREAD).ru_nivcsw
    else:
        return 0
