"""A profiling timer that charges processor time to the running exec and stops it when there is none left.

Python runs signal handlers between bytecodes, and `re` asks for them while it matches: so an exception raised by
the handler also ends a pattern that would otherwise backtrack for hours. It is not raised for a process that is over,
while those who wait for its end are told.

Each top-level package that a worker loads says in its `__init__.py` what may happen inside its code (CPU_GUARD):

- "raise": it runs the guest's code; the exception may be raised anywhere.
- "defer": it has data that an exception could leave half changed. The budget is only marked; the next charge raises.
- "caller": it is a library, and as its caller says. So is all code that is not ours.

Windows has no such timer. There a thread looks at the processor time and has Python run the handler; but a thread has
no turn while `re` matches, so that such a pattern is ended by the sandbox's owner, with the sandbox.
"""

import signal
import sys
import time
from functools import cache
from types import FrameType
from typing import Final

from belljar.kernel.budget import Budget
from belljar.kernel.fiber import Hub
from belljar.kernel.process import Process

TICK: Final = 0.02
_ROOT: Final = "belljar"
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
            """Install the signal handler, without starting the timer."""
            signal.signal(signal.SIGPROF, self._on_tick)

        def resume(self) -> None:
            signal.setitimer(_PROF, self._tick, self._tick)

        def pause(self) -> None:
            """Stop the timer until `resume()`."""
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
        if budget.charge_time(used) or must_defer(frame) or (isinstance(owner, Process) and owner.status is not None):
            return
        assert budget.spent is not None
        raise budget.spent


def must_defer(frame: FrameType | None) -> bool:
    """Whether the code that runs must not be interrupted by an exception."""
    while frame is not None:
        marker = _marker(str(frame.f_globals.get("__name__", "")))
        if marker != "caller":
            return marker != "raise"
        frame = frame.f_back
    return True


@cache
def _marker(module: str) -> str:
    """Return the CPU_GUARD of a module's top-level package: "caller" if it is not ours, "defer" if it says nothing."""
    root, _, rest = module.partition(".")
    if root != _ROOT:
        return "caller"
    return str(getattr(sys.modules.get(f"{_ROOT}.{rest.partition('.')[0]}"), "CPU_GUARD", "defer"))
