"""The owner's clock, shares of its time, and names for things."""

import threading
import time
import uuid
import weakref
from collections.abc import Callable
from typing import Final, TypeVar

from belljar.abi.errors import SandboxError

monotonic = time.monotonic
wall_time = time.time
wall_time_ns = time.time_ns


T = TypeVar("T")

SHARE: Final = 0.5
"""Processor time that one sandbox's questions about files may take of this process, for each second."""
BURST: Final = 2.0
"""Seconds of processor time that it may take at once, if it took none for a while."""
PAUSE_MAX: Final = 0.1
"""Seconds for which one answer is held back."""


class ProcessorShare:
    """Holds work back that takes more than its share of the processor: others of this process have theirs."""

    def __init__(self) -> None:
        self._credit = BURST
        self._since = monotonic()

    def charge(self, work: Callable[[], T]) -> T:
        """Do the work; then wait if the share is spent."""
        began = time.thread_time()
        try:
            return work()
        finally:
            now = monotonic()
            earned = (now - self._since) * SHARE
            self._credit = max(min(self._credit + earned, BURST) - (time.thread_time() - began), -BURST)
            self._since = now
            if self._credit < 0:
                time.sleep(min(-self._credit / SHARE, PAUSE_MAX))


def new_id() -> str:
    return uuid.uuid4().hex[:12]


def repeat(seconds: float, target: T, act: Callable[[T], object]) -> Callable[[], None]:
    """Do something to an object again and again, as long as others use it; gives what stops that.

    What goes wrong is logged, and tried again the next time.
    """
    known, stopped = weakref.ref(target), threading.Event()

    def run() -> None:
        while not stopped.wait(seconds):
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
