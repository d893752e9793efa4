"""The rate of this machine's time-stamp counter: emulated processors have it too, and can't find it out by themselves.

It is measured once per boot of the machine, and kept, so that all agree about it.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final

_SECONDS: Final = 20.0


def tsc_khz(agent: Path, directory: str) -> int:
    """Measured by the agent, or as it was kept in the directory. OSError, subprocess.SubprocessError, ValueError."""
    path = os.path.join(directory, f"tsc-{hashlib.sha256(boot_id().encode()).hexdigest()[:16]}")
    with suppress(OSError, ValueError), open(path) as file:
        return int(file.read(20))
    words = [str(agent), "tsc"]
    measured = int(subprocess.run(words, capture_output=True, check=True, timeout=_SECONDS).stdout)  # noqa: S603 - by its path
    temporary = f"{path}.{os.getpid()}"
    with suppress(OSError):
        with open(temporary, "w") as file:
            file.write(f"{measured}\n")
        os.rename(temporary, path)
    return measured


def boot_id() -> str:
    """Differs after each start of this machine, whose devices and processors may be others then."""
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id") as file:
        return file.read().strip()
    return ""
