"""A profiling timer that charges processor time to the running exec and stops it when there is none left.

Python runs signal handlers between bytecodes, and `re` asks for them while it matches: so an exception raised by
the handler also ends a pattern that would otherwise backtrack for hours. It is never raised inside the code of the
kernel or of the worker, whose data it could leave half changed: there the budget is only marked, and the next charge
raises. Nor for a process that is over, while those who wait for its end are told.

Windows has no such timer. There a thread looks at the processor time and has Python run the handler; but a thread has
no turn while `re` matches, so that such a pattern is ended by the sandbox's owner, with the sandbox.
"""

import signal
import sys
import time
from types import FrameType
from typing import Final

from belljar.kernel.budget import Budget
from belljar.kernel.fiber import Hub
from belljar.kernel.process import Process

TICK: Final = 0.02
_OURS: Final = ("belljar.kernel.", "belljar.worker.", "belljar.net.")
_LIBRARIES: Final = ("belljar.abi.", "belljar.libc.", "belljar.regex.")
if sys.platform != "win32":
    _PROF: Final = int(signal.ITIMER_PROF)


class CpuGuard:
    """Install with `start()`, on the main thread; timers do not survive fork(2): a branch calls `resume()`."""

    def __init__(self, hub: Hub, tick: float = TICK) -> None:
        self._hub = hub
        self._tick = tick
        self._last = 0.0

    def start(self) -> None:
        self.install()
        self.resume()

    if sys.platform == "win32":

        def install(self) -> None:
            signal.signal(signal.SIGINT, self._on_tick)

        def resume(self) -> None:
            from threading import Thread

            self._last = time.process_time()
            Thread(target=self._watch, daemon=True).start()

        def _watch(self) -> None:
            from _thread import interrupt_main

            while True:
                time.sleep(self._tick)
                interrupt_main(signal.SIGINT)

        def _used(self) -> float:
            now = time.process_time()
            used, self._last = now - self._last, now
            return used

    else:

        def install(self) -> None:
            """Be ready, without the timer yet."""
            signal.signal(signal.SIGPROF, self._on_tick)

        def resume(self) -> None:
            signal.setitimer(_PROF, self._tick, self._tick)

        def pause(self) -> None:
            """Until `resume()`."""
            signal.setitimer(_PROF, 0.0)

        def stop(self) -> None:
            self.pause()
            signal.signal(signal.SIGPROF, signal.SIG_IGN)

        def _used(self) -> float:
            """Processor time since the last tick."""
            return self._tick

    def _on_tick(self, _number: int, frame: FrameType | None) -> None:
        fiber = self._hub.current
        owner = fiber.owner if fiber is not None else None
        budget = getattr(owner, "budget", None)
        if not isinstance(budget, Budget):
            return
        used = self._used()
        if isinstance(owner, Process):
            owner.cpu += used
            owner.kernel.cpu += used
        if budget.charge_time(used) or ours(frame) or (isinstance(owner, Process) and owner.status is not None):
            return
        assert budget.spent is not None
        raise budget.spent


def ours(frame: FrameType | None) -> bool:
    """Whether the code that runs is not the guest's doing. Libraries, also those of ours, are whoever called them."""
    while frame is not None:
        name = str(frame.f_globals.get("__name__", ""))
        if name.startswith("belljar.") and not name.startswith(_LIBRARIES):
            return name.startswith(_OURS)
        frame = frame.f_back
    return True
