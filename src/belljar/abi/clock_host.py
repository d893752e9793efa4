"""The host's own time."""

import time
from collections.abc import Awaitable
from contextlib import AbstractAsyncContextManager


class HostClock:
    monotonic = staticmethod(time.monotonic)
    time = staticmethod(time.time)

    # asyncio is imported by those who wait: a program without async code never needs it.

    def sleep(self, seconds: float) -> Awaitable[None]:
        import asyncio

        return asyncio.sleep(seconds)

    def timeout(self, seconds: float | None) -> AbstractAsyncContextManager[object]:
        import asyncio

        return asyncio.timeout(seconds)
