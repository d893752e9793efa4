"""Fibers and the hub that runs them: the one place that knows how blocking works.

A fiber runs on a greenlet. It gives up the processor only in `Hub.park()`, and runs again after `Hub.unpark(fiber)`;
waiting for a pipe, a child, a timer or a socket is built from these two. Fibers run in the order they became
ready, so a run with the same inputs takes the same course. The hub keeps no kernel object of its own, so a process
that calls `os.fork()` continues with every parked fiber in both branches.

A browser build replaces this module alone.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from enum import IntEnum
from heapq import heapify, heappop, heappush
from typing import Final, Protocol

from greenlet import getcurrent, greenlet

IDLE_RUNNERS: Final = 64
"""Number of stacks of ended fibers kept for the next ones."""


class Clock(Protocol):
    """Source of time."""

    def monotonic(self) -> float: ...
    def time_ns(self) -> int:
        """Wall-clock time since the epoch."""


class Poller(Protocol):
    """Blocks when no fiber can run."""

    def wait(self, timeout: float | None) -> bool:
        """Wait until something outside happened (its watchers unpark fibers) or the timeout passed.

        Returns False if nothing is watched and there is no timeout: then nothing can ever happen.
        """


class State(IntEnum):
    READY = 0
    RUNNING = 1
    PARKED = 2
    DONE = 3


READY: Final = State.READY
RUNNING: Final = State.RUNNING
PARKED: Final = State.PARKED
DONE: Final = State.DONE


class FiberKilled(BaseException):
    """Unwinds a fiber that must end. Not an Exception: only the frame that owns the fiber catches it."""


class Timer:
    """One call at a later time; `cancel` makes it never happen."""

    __slots__ = ("callback", "when")

    def __init__(self, when: float, callback: Callable[[], None]) -> None:
        self.when = when
        self.callback: Callable[[], None] | None = callback

    def cancel(self) -> None:
        self.callback = None


class Runner(greenlet):
    """A stack that fibers run on, one after the other: a new greenlet costs more than all else in a short process."""

    def __init__(self, hub: Hub) -> None:
        super().__init__(self._serve, hub.loop)
        self.hub = hub
        self.fiber: Fiber | None = None

    def _serve(self) -> None:
        hub = self.hub
        while (fiber := self.fiber) is not None:
            fiber.main()
            fiber.runner = self.fiber = None
            del fiber  # an idle stack keeps nothing of the last process alive
            if len(hub.idle_runners) < IDLE_RUNNERS:
                hub.idle_runners.append(self)
                hub.loop.switch()


class Fiber:
    """One thread of control. `owner` is the process that started it, opaque to the hub."""

    __slots__ = ("body", "frozen", "hub", "kill_error", "owner", "pending", "runner", "started", "state", "thaw_ready")

    def __init__(self, hub: Hub, run: Callable[[], object], owner: object) -> None:
        self.runner: Runner | None = None
        self.hub = hub
        self.owner = owner
        self.body = run
        self.started = False
        self.state = READY
        self.frozen = False
        self.thaw_ready = False
        self.pending: BaseException | None = None
        self.kill_error: BaseException | None = None

    def main(self) -> None:
        """Run the body and report how it ended."""
        self.started = True
        try:
            if self.kill_error is None:
                self.pending = None
                self.body()
        except FiberKilled:
            pass
        except BaseException as error:  # noqa: BLE001 - this frame owns the fiber; the hub's owner decides
            self.hub.on_crash(self, error)
        finally:
            self.state = DONE
            # The body, and the traceback of the error that ended it, reference everything the fiber used.
            self.pending = self.kill_error = self.owner = None
            self.body = _nothing


def _nothing() -> None:
    """The body of an ended fiber."""


def _raise_crash(_fiber: Fiber, error: BaseException) -> None:
    raise error


class Hub:
    """The run queue, the timers, and the loop over both. Made and run on one and the same greenlet."""

    def __init__(self, clock: Clock, poller: Poller) -> None:
        self.clock = clock
        self.poller = poller
        self.loop = getcurrent()
        self.current: Fiber | None = None
        self.on_crash: Callable[[Fiber, BaseException], None] = _raise_crash
        self._ready: deque[Fiber] = deque()
        self._timers: list[tuple[float, int, Timer]] = []
        self._timers_sweep = 1000
        self._sequence = 0
        self.idle_runners: list[Runner] = []

    # What fibers call.

    def park(self) -> None:
        """Give up the processor until unparked. May wake without cause: callers loop on their condition.

        Raises what `interrupt` or `kill` sent. A killed fiber that parks again while it unwinds is killed again.
        """
        fiber = self.current
        if fiber is None:
            raise RuntimeError("park() outside a fiber: only code run by Hub.spawn may block")
        self._leave(fiber, PARKED)

    def pause(self) -> None:
        """Yield to every other ready fiber, due timer and socket."""
        fiber = self.current
        if fiber is None:
            raise RuntimeError("pause() outside a fiber")
        if fiber.kill_error is None:
            self._ready.append(fiber)
        self._leave(fiber, READY)

    def _leave(self, fiber: Fiber, state: State) -> None:
        if fiber.kill_error is not None:
            raise fiber.kill_error
        fiber.state = state
        self.loop.switch()
        if fiber.pending is not None:
            error, fiber.pending = fiber.pending, None
            try:
                raise error
            finally:
                del error  # else this frame and the traceback would keep each other, and all the fiber had, alive

    def unpark(self, fiber: Fiber) -> None:
        """Let a parked fiber run again, after those already ready. On any other fiber this does nothing."""
        if fiber.state is PARKED:
            if fiber.frozen:
                fiber.thaw_ready = True
                return
            fiber.state = READY
            self._ready.append(fiber)

    def sleep(self, seconds: float) -> None:
        """Park until `seconds` have passed."""
        fiber = self.current
        assert fiber is not None
        until = self.clock.monotonic() + seconds
        timer = self.call_at(until, lambda: self.unpark(fiber))
        try:
            while timer.callback is not None and self.clock.monotonic() < until:
                self.park()
        finally:
            timer.cancel()

    # What owners call.

    def spawn(self, run: Callable[[], object], owner: object = None) -> Fiber:
        """A new fiber, ready to run after those already ready."""
        fiber = Fiber(self, run, owner)
        self._ready.append(fiber)
        return fiber

    def interrupt(self, fiber: Fiber, error: BaseException) -> None:
        """Raise `error` in the fiber, at the park() where it waits."""
        if fiber.state is DONE:
            return
        fiber.pending = error
        self.unpark(fiber)

    def kill(self, fiber: Fiber) -> None:
        """End the fiber wherever it waits; frozen or not started ones too. The running fiber must raise itself."""
        if fiber.state is DONE:
            return
        fiber.kill_error = FiberKilled()
        self.thaw(fiber)
        if fiber.state is not RUNNING:
            self.interrupt(fiber, fiber.kill_error)

    def freeze(self, fiber: Fiber) -> None:
        """Suspend the fiber (SIGSTOP) until `thaw`; wake-ups that come meanwhile are kept."""
        fiber.frozen = True

    def thaw(self, fiber: Fiber) -> None:
        fiber.frozen = False
        if fiber.thaw_ready:
            fiber.thaw_ready = False
            self.unpark(fiber)

    def call_at(self, when: float, callback: Callable[[], None]) -> Timer:
        """Run `callback` on the loop at the monotonic time `when`; it must not block."""
        timer = Timer(when, callback)
        self._sequence += 1
        if len(self._timers) > self._timers_sweep:
            # Cancelled ones only leave the heap at their time: a million short polls must not pile up.
            self._timers[:] = [entry for entry in self._timers if entry[2].callback is not None]
            heapify(self._timers)
            self._timers_sweep = max(1000, 2 * len(self._timers))
        heappush(self._timers, (when, self._sequence, timer))
        return timer

    def call_later(self, delay: float, callback: Callable[[], None]) -> Timer:
        return self.call_at(self.clock.monotonic() + delay, callback)

    @property
    def idle(self) -> bool:
        """Whether no fiber is ready: only a timer or the outside can make one run."""
        return not self._ready

    def run(self, until: Callable[[], bool] | None = None) -> bool:
        """Run fibers until `until()` holds, or nothing can ever run again. Returns whether `until` held."""
        if getcurrent() is not self.loop:
            raise RuntimeError("Hub.run() must be called on the greenlet that made the hub")
        ready, timers = self._ready, self._timers
        while True:
            # One round runs only what is ready now, so that timers and sockets get their turn between rounds.
            for _ in range(len(ready)):
                fiber = ready.popleft()
                if fiber.frozen:
                    fiber.state = PARKED
                    fiber.thaw_ready = True
                    continue
                fiber.state = RUNNING
                self.current = fiber
                runner = fiber.runner
                if runner is None:
                    runner = self.idle_runners.pop() if self.idle_runners else Runner(self)
                    runner.fiber, fiber.runner = fiber, runner
                runner.switch()
                self.current = None
                if until is not None and until():
                    return True
            if until is not None and until():
                return True
            while timers and timers[0][2].callback is None:
                heappop(timers)
            if ready:
                timeout: float | None = 0.0
            elif timers:
                timeout = max(0.0, timers[0][0] - self.clock.monotonic())
            else:
                timeout = None
            if not self.poller.wait(timeout) and timeout is None:
                return False
            if timers:
                self._fire_timers()

    def _fire_timers(self) -> None:
        now = self.clock.monotonic()
        timers = self._timers
        due: list[Timer] = []
        while timers and timers[0][0] <= now:
            due.append(heappop(timers)[2])
        for timer in due:
            callback, timer.callback = timer.callback, None
            if callback is not None:
                callback()


class WaitQueue:
    """The fibers that wait for one condition. `wait` returns after a wake, a signal, or for no reason."""

    __slots__ = ("_fibers", "_hub")

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self._fibers: list[Fiber] = []

    def wait(self) -> None:
        fiber = self._hub.current
        if fiber is None:
            raise RuntimeError("wait() outside a fiber")
        self._fibers.append(fiber)
        try:
            self._hub.park()
        finally:
            if fiber in self._fibers:
                self._fibers.remove(fiber)

    def add(self, fiber: Fiber) -> None:
        """Register without parking, to wait on several queues at once; pair with `discard`."""
        self._fibers.append(fiber)

    def discard(self, fiber: Fiber) -> None:
        if fiber in self._fibers:
            self._fibers.remove(fiber)

    def wake_all(self) -> None:
        if self._fibers:
            fibers, self._fibers = self._fibers, []
            for fiber in fibers:
                self._hub.unpark(fiber)

    def __bool__(self) -> bool:
        return bool(self._fibers)
