"""A clock that a test moves by hand."""

import asyncio
import heapq
from itertools import count


class ManualClock:
    """Stands still until `advance`, which wakes whoever sleeps until then, each at their own moment."""

    def __init__(self, monotonic: float = 1000.0, time: float = 1_700_000_000.0) -> None:
        self._now = monotonic
        self._offset = time - monotonic
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._numbers = count()

    def monotonic(self) -> float:
        return self._now

    def time(self) -> float:
        return self._now + self._offset

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self._now + seconds, next(self._numbers), woken))
        await woken

    @property
    def sleeping(self) -> int:
        """The number of tasks that wait for this clock."""
        return sum(not woken.done() for _at, _number, woken in self._sleepers)

    async def advance(self, seconds: float) -> None:
        """Move the clock. Who sleeps again after being woken is woken again if that is due too."""
        end = self._now + seconds
        await self.let_run()
        while self._sleepers and self._sleepers[0][0] <= end:
            at, _number, woken = heapq.heappop(self._sleepers)
            self._now = max(self._now, at)
            if not woken.done():
                woken.set_result(None)
                await self.let_run()
        self._now = end

    async def let_run(self) -> None:
        """Give other tasks turns. It does not wait for threads: ask those for what they did."""
        for _turn in range(20):
            await asyncio.sleep(0)
