"""Tells a person who waits at a terminal what is being prepared."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from math import exp
from typing import Final

from belljar.engines.compiler_host import Progress

QUIET_SECONDS: Final = 1.0
"""Seconds before anything is said."""
_BAR: Final = 24


@contextmanager
def progress(expected: float = 30.0, doing: str = "preparing {} for first use") -> Iterator[Progress]:
    """Yield a function that shows progress, fastest up to the usual duration; it prints nothing without a terminal."""
    shown = False
    stream = sys.stderr

    def show(title: str, seconds: float) -> None:
        nonlocal shown
        if seconds < QUIET_SECONDS or stream is None or not stream.isatty():
            return
        done = int(_BAR * (1 - exp(-seconds / expected)))  # slower and slower: it moves however long it takes
        bar = "#" * done + "." * (_BAR - done)
        stream.write(f"\r\x1b[Kbelljar: {doing.format(title)} [{bar}] {seconds:.0f} s")
        stream.flush()
        shown = True

    try:
        yield show
    finally:
        if shown:
            stream.write("\r\x1b[K")
            stream.flush()
