"""The owner's clock, shares of its time, and names for things."""

import threading
import time
import uuid
import weakref
from collections.abc import Callable
from typing import Final, TypeVar

from belljar.abi.clock import Clock
from belljar.abi.clock_host import HostClock
from belljar.abi.errors import SandboxError

HOST_CLOCK: Final = HostClock()
"""What sandboxes go by, unless a test gives them another clock."""

wall_time = time.time

T = TypeVar("T")

SHARE: Final = 0.5
"""Processor time that one sandbox's questions about files may take of this process, for each second."""
BURST: Final = 2.0
"""Seconds of processor time that it may take at once, if it took none for a while."""
PAUSE_MAX: Final = 0.1
"""Seconds for which one answer is held back."""


class ProcessorShare:
    """Holds work back that takes more than its share of the processor: others of this process have theirs."""

    def __init__(
        self,
        clock: Clock = HOST_CLOCK,
        thread_time: Callable[[], float] = time.thread_time,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self._clock = clock
        self._thread_time = thread_time
        self._pause = pause
        self._credit = BURST
        self._since = clock.monotonic()

    def charge(self, work: Callable[[], T]) -> T:
        """Do the work; then wait if the share is spent."""
        began = self._thread_time()
        try:
            return work()
        finally:
            now = self._clock.monotonic()
            earned = (now - self._since) * SHARE
            self._credit = max(min(self._credit + earned, BURST) - (self._thread_time() - began), -BURST)
            self._since = now
            if self._credit < 0:
                self._pause(min(-self._credit / SHARE, PAUSE_MAX))


def new_id() -> str:
    return uuid.uuid4().hex[:12]


def repeat(
    seconds: float,
    target: T,
    act: Callable[[T], object],
    wait: Callable[[threading.Event, float], bool] = threading.Event.wait,
) -> Callable[[], None]:
    """Do something to an object again and again, as long as others use it; gives what stops that.

    What goes wrong is logged, and tried again the next time. `wait` waits for an event, at most so many seconds.
    """
    known, stopped = weakref.ref(target), threading.Event()

    def run() -> None:
        while not wait(stopped, seconds):
            found = known()
            if found is None:
                return
            try:
                act(found)
            except SandboxError as error:
                if not stopped.is_set():
                    import logging  # only now: most programs never need it

                    logging.getLogger("belljar").error("a checkpoint failed: %s", error)
            del found

    threading.Thread(target=run, name="belljar-checkpoint", daemon=True).start()
    return stopped.set
