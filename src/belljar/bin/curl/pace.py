"""How fast a transfer may be, and how slow: --limit-rate, --speed-limit and --speed-time."""

from __future__ import annotations

from belljar.bin.curl.errors import TIMED_OUT, CurlError
from belljar.bin.curl.options import Operation
from belljar.kernel.process import Process


class Pace:
    """Limits the rate: called for every piece, it waits, or raises CurlError."""

    def __init__(self, process: Process, operation: Operation) -> None:
        self._process = process
        self._clock = process.kernel.hub.clock
        self._rate = operation.numbers.get("limit-rate", 0)
        self._least = operation.numbers.get("speed-limit", 1 if "speed-time" in operation.numbers else 0)
        self._window = operation.numbers.get("speed-time", 30)
        self._started = self._since = self._clock.monotonic()
        self._passed = self._in_window = 0

    def passed(self, size: int) -> None:
        self._passed += size
        now = self._clock.monotonic()
        if self._rate:
            ahead = self._passed / self._rate - (now - self._started)
            if ahead > 0:
                self._process.sleep(ahead)
        if self._least:
            self._in_window += size
            if now - self._since >= self._window:
                if self._in_window / (now - self._since) < self._least:
                    raise CurlError(
                        TIMED_OUT,
                        f"Operation too slow. Less than {self._least:.0f} bytes/sec transferred the last "
                        f"{self._window:.0f} seconds",
                    )
                self._since, self._in_window = now, 0
