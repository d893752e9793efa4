"""A descriptor received from the host: closed on deletion unless it was taken."""

from __future__ import annotations

import os


class Descriptor:
    """Owns one file descriptor until it is taken."""

    __slots__ = ("_fd",)

    def __init__(self, fd: int) -> None:
        self._fd = fd

    def take(self) -> int:
        """The number; from now on it is the caller's to close."""
        fd, self._fd = self._fd, -1
        return fd

    def close(self) -> None:
        if self._fd >= 0:
            os.close(self.take())

    __del__ = close
