"""Tells a person who waits at a terminal what is being prepared."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
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


@contextmanager
def steps() -> Iterator[Callable[[str], None]]:
    """Yield a function that shows what is being done: on a terminal one line that changes, else a line for each thing
    that is begun."""
    stream = sys.stderr
    began = time.monotonic()
    last = ""

    def show(step: str) -> None:
        nonlocal last
        title = step.partition(":")[0] if ":" in step else step
        if stream is None:
            return
        if stream.isatty():
            stream.write(f"\r\x1b[Kbelljar: preparing {step} ({time.monotonic() - began:.0f} s)")
        elif title != last:
            stream.write(f"belljar: preparing {title}\n")
        stream.flush()
        last = title

    try:
        yield show
    finally:
        if last and stream is not None and stream.isatty():
            stream.write("\r\x1b[K")
            stream.flush()
