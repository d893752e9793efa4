"""The bytes of one sandbox's network that its owner holds in memory, over all its streams and bodies."""

from __future__ import annotations

from belljar.net.errors import NetError


class Memory:
    """Counts bytes up to a limit. Whoever takes bytes must give them back."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0

    def take(self, size: int) -> None:
        """NetError when the sandbox would hold more than its limit."""
        if self.used + size > self.limit:
            raise NetError("too-large", f"this sandbox's network holds {self.limit} bytes that nobody takes")
        self.used += size

    def give(self, size: int) -> None:
        self.used -= size
