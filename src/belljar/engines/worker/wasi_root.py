"""Descriptor 3 of a process stands for the root of the sandbox before a WASI program runs in it."""

from __future__ import annotations

from belljar.abi.flags import O_DIRECTORY, O_PATH
from belljar.engines.wire.wasi import ROOT
from belljar.kernel.process import Process


def reserve_root(process: Process) -> None:
    """Keep the number from being given to a file that is opened later. One that was inherited stays."""
    if ROOT not in process.fds:
        process.fds.put(ROOT, process.fs.open("/", O_PATH | O_DIRECTORY), cloexec=True)
