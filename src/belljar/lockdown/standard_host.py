"""Keeps the numbers 0, 1 and 2 for standard input, output and error."""

from __future__ import annotations

import os


def open_standard_descriptors() -> None:
    """Open /dev/null as each of the descriptors 0, 1 and 2 that is closed.

    A daemon may have closed them. The next socket would then get such a number, and whatever somebody prints would go
    to a process of ours; a child's own standard descriptors would take the place of a socket that it was to inherit.
    """
    for fd in range(3):
        try:
            os.fstat(fd)
        except OSError:
            if os.open(os.devnull, os.O_RDWR) != fd:
                raise OSError(f"descriptor {fd} is closed and could not be opened") from None
