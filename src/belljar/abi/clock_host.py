"""The host's own time."""

import time
from collections.abc import Awaitable


class HostClock:
    monotonic = staticmethod(time.monotonic)
    time = staticmethod(time.time)

    def sleep(self, seconds: float) -> Awaitable[None]:
        import asyncio  # only now: a program without async code never needs it

        return asyncio.sleep(seconds)
