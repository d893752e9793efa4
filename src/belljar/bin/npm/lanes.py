"""Several things under way at once inside one process: fibers that fetch while the others wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

from belljar.abi.errors import SysError
from belljar.bin.npm.problems import NpmError
from belljar.kernel.fiber import WaitQueue
from belljar.kernel.process import Process

WIDTH: Final = 10
"""Requests at one time."""

T = TypeVar("T")


class Later(Generic[T]):
    """A result on its way."""

    __slots__ = ("_error", "_process", "_queue", "_value", "done")

    def __init__(self, process: Process) -> None:
        self._process = process
        self._queue = WaitQueue(process.kernel.hub)
        self._value: T | None = None
        self._error: Exception | None = None
        self.done = False

    def run(self, work: Callable[[], T]) -> None:
        try:
            self._value = work()
        except (NpmError, SysError, MemoryError, RecursionError) as error:
            self._error = error
        finally:
            self.done = True
            self._queue.wake_all()

    def get(self) -> T:
        """Wait for it. Raises what the work raised."""
        while not self.done:
            self._queue.wait()
            self._process.check_fatal()
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]


class Lanes:
    """Starts work in the background, so many pieces at a time."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._waiting: deque[Callable[[], None]] = deque()
        self._running = 0

    def start(self, work: Callable[[], T]) -> Later[T]:
        later: Later[T] = Later(self._process)
        self._waiting.append(lambda: later.run(work))
        if self._running < WIDTH:
            self._running += 1
            self._process.add_fiber(self._run)
        return later

    def _run(self) -> None:
        try:
            while self._waiting:
                self._waiting.popleft()()
        finally:
            self._running -= 1

    def each(self, work: Iterable[Callable[[], T]]) -> list[Later[T]]:
        """Start all, and wait until every one has ended, well or not."""
        started = [self.start(one) for one in work]
        for later in started:
            while not later.done:
                later._queue.wait()
                self._process.check_fatal()
        return started
