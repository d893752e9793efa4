"""A rate that may burst: a bucket of tokens that fills with time."""

from __future__ import annotations


class Rate:
    """`take` succeeds `per_second` times a second on average, and `burst` seconds' worth at once."""

    def __init__(self, per_second: float, now: float, burst: float = 4.0) -> None:
        self.per_second = per_second
        self._size = max(1.0, per_second * burst)
        self._tokens = self._size
        self._at = now

    def give(self, count: float) -> None:
        """Add tokens, up to a full bucket."""
        self._tokens = min(self._size, self._tokens + count)

    def has(self, now: float) -> bool:
        """Whether `take` would succeed."""
        self._tokens = min(self._size, self._tokens + (now - self._at) * self.per_second)
        self._at = now
        return self._tokens >= 1.0

    def take(self, now: float) -> bool:
        if not self.has(now):
            return False
        self._tokens -= 1.0
        return True
