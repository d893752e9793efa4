"""All of pip behind one name; None where the packages it is built on are not installed."""

from __future__ import annotations

from collections.abc import Callable

from belljar.kernel.process import Process

run: Callable[[Process, list[str], str], int] | None
try:
    from belljar.bin.pip.run import run
except ImportError as error:
    if (error.name or "").partition(".")[0] not in ("packaging", "resolvelib"):
        raise
    run = None
