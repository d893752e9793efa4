"""The clock that the owner's code is given: time arrives as an argument, so that a test can move it."""

from collections.abc import Awaitable
from contextlib import AbstractAsyncContextManager
from typing import Protocol


class Clock(Protocol):
    """Source of time, and ways to wait for it."""

    def monotonic(self) -> float:
        """Seconds since some moment. Never goes backwards."""

    def time(self) -> float:
        """Seconds since the epoch. Goes backwards when somebody sets the host's clock."""

    def sleep(self, seconds: float) -> Awaitable[None]:
        """Wait. Like asyncio.sleep, it lets other tasks run even for 0 seconds."""

    def timeout(self, seconds: float | None) -> AbstractAsyncContextManager[object]:
        """Like asyncio.timeout: what takes longer is cancelled, and TimeoutError raised. None: no limit."""
