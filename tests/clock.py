"""A clock that a test moves by hand."""

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count


class ManualClock:
    """Stands still until `advance`, which wakes whoever waits until then, each at their own moment."""

    def __init__(self, monotonic: float = 1000.0, time: float = 1_700_000_000.0) -> None:
        self._now = monotonic
        self._offset = time - monotonic
        self._waiting: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = count()

    def monotonic(self) -> float:
        return self._now

    def time(self) -> float:
        return self._now + self._offset

    def set_time(self, time: float) -> None:
        """Set the wall clock, as an administrator does. The other one goes on as before."""
        self._offset = time - self._now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def wake() -> None:
            if not woken.done():
                woken.set_result(None)

        self._call_at(self._now + seconds, wake)
        await woken

    def timeout(self, seconds: float | None) -> AbstractAsyncContextManager[object]:
        return asyncio.timeout(None) if seconds is None else self._timeout(seconds)

    @asynccontextmanager
    async def _timeout(self, seconds: float) -> AsyncIterator[None]:
        inside = True

        def expire() -> None:
            if inside:
                limit.reschedule(asyncio.get_running_loop().time())

        try:
            async with asyncio.timeout(None) as limit:
                self._call_at(self._now + max(seconds, 0.0), expire)
                if seconds <= 0:
                    expire()
                yield
        finally:
            inside = False

    def _call_at(self, at: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._waiting, (at, next(self._numbers), act))

    async def advance(self, seconds: float) -> None:
        """Move the clock. Who waits again after being woken is woken again if that is due too."""
        end = self._now + seconds
        await let_run()
        while self._waiting and self._waiting[0][0] <= end:
            at, _, wake = heapq.heappop(self._waiting)
            self._now = max(self._now, at)
            wake()
            await let_run()
        self._now = end
        await let_run()


async def let_run() -> None:
    """Give other tasks turns. It does not wait for threads: poll for what those do."""
    for _turn in range(20):
        await asyncio.sleep(0)
