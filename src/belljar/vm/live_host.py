"""A machine while it runs: saved in this process's memory as it is at one moment, for branches to be continued from."""

from __future__ import annotations

import fcntl
import os
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from belljar.abi.errors import SnapshotError
from belljar.abi.limits import MIB
from belljar.lockdown.polling_host import readable
from belljar.owner.handle_host import WorkerUnavailable
from belljar.vm.blockstore import BlockStoreError, Chunk
from belljar.vm.qmp_host import Monitor, MonitorError

SAVE_SECONDS: Final = 60.0
"""How long a machine may take to be saved."""
_DEVICES: Final = 64 * MIB
"""Bytes of a saved machine beside its memory, at most."""
_PIECE: Final = 1 << 20
_REST_MAX: Final = 2 * MIB
"""Bytes that are under way by one port, at most."""


class LiveState:
    """A saved machine."""

    def __init__(self, fd: int, chunks: list[Chunk]) -> None:
        self.fd = fd
        """Of a file without a name that has its memory and its devices."""
        self.chunks = chunks
        """The changed blocks of its disk, if it has one that is written to."""

    def close(self) -> None:
        os.close(self.fd)


def save_state(monitor: Monitor, memory_mib: int, copy: Callable[[], list[Chunk]]) -> LiveState:
    """Stop a machine, save it and have it go on. `copy` gives the blocks of its disk. SnapshotError; MonitorError if it
    can't go on."""
    monitor.call("stop")
    state = None
    try:
        state = _receive(monitor, memory_mib * MIB * 65 // 64 + _DEVICES)
        result = LiveState(state, copy())
    except BaseException as error:
        if state is not None:
            os.close(state)
        with suppress(MonitorError):
            monitor.cancel_saving()
        monitor.call("cont")
        if isinstance(error, MonitorError | BlockStoreError | OSError):
            raise SnapshotError(f"the machine could not be saved: {error}") from error
        raise
    try:
        monitor.call("cont")
    except MonitorError:
        result.close()
        raise
    return result


def _receive(monitor: Monitor, bytes_max: int) -> int:
    """What QEMU says is the state, by a pipe: it could fill a file of its own with anything. MonitorError, OSError."""
    deadline = time.monotonic() + SAVE_SECONDS
    state = os.memfd_create("belljar-state", os.MFD_CLOEXEC)
    source, theirs = os.pipe()
    try:
        try:
            fcntl.fcntl(source, fcntl.F_SETPIPE_SZ, _PIECE)
            monitor.begin_saving(theirs, without_memory=False)
        finally:
            os.close(theirs)
        while readable(source, max(0.0, deadline - time.monotonic())) and (count := os.splice(source, state, _PIECE)):
            bytes_max -= count
            if bytes_max < 0:
                raise MonitorError("QEMU says more than a machine has")
        monitor.finish_saving(max(1.0, deadline - time.monotonic()))
        return state
    except BaseException:
        os.close(state)
        raise
    finally:
        os.close(source)


def clear_ports(ports: Sequence[socket.socket]) -> None:
    """Drop what the machine's relays had begun to say when it was saved. WorkerUnavailable if that has no end."""
    for port in ports:
        port.setblocking(False)
        dropped = 0
        with suppress(BlockingIOError):
            while piece := port.recv(_PIECE):
                dropped += len(piece)
                if dropped > _REST_MAX:
                    raise WorkerUnavailable("the branch does not stop talking")
