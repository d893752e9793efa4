"""Runs a compiler, and tells somebody meanwhile how long it has taken."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

Progress = Callable[[str, float], None]
"""Called during a compilation with its name and the seconds so far."""
ROUND: Final = 0.25
"""Seconds between two looks at a compiler that is at work."""


def run_compiler(
    words: Sequence[str], title: str, progress: Progress | None, *, seconds: float | None = None, **options: Any
) -> subprocess.CompletedProcess[bytes]:
    """Run it to its end. `options` are Popen's. Raises OSError, and subprocess.TimeoutExpired after `seconds`."""
    start = time.monotonic()
    compiler = subprocess.Popen(  # noqa: S603 - the owner's own, as the owner would run it
        words, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, **options
    )
    try:
        while True:
            with suppress(subprocess.TimeoutExpired):
                out, said = compiler.communicate(timeout=ROUND)
                return subprocess.CompletedProcess(words, compiler.returncode, out, said)
            taken = time.monotonic() - start
            if seconds is not None and taken > seconds:
                raise subprocess.TimeoutExpired(words, seconds)
            if progress is not None:
                progress(title, taken)
    except BaseException:
        compiler.kill()
        compiler.wait()
        raise
