"""What a process needs before a WASI program runs in it: its number 3 stands for the root of the sandbox."""

from __future__ import annotations

from typing import Final

from belljar.abi.flags import O_DIRECTORY, O_PATH
from belljar.kernel.process import Process

ROOT: Final = 3
"""The descriptor from which a WASI program reaches its files; a C library looks for it from here on."""


def reserve_root(process: Process) -> None:
    """Keep the number from being given to a file that is opened later. One that was inherited stays."""
    if ROOT not in process.fds:
        process.fds.put(ROOT, process.fs.open("/", O_PATH | O_DIRECTORY), cloexec=True)
