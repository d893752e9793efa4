"""A machine's memory as a file without a name (memfd): kept in the cache with its holes, sealed to be shared."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Final

_PIECE: Final = 4 << 20
_ADD_SEALS: Final = 1033
_SEALS: Final = 0x1 | 0x2 | 0x4 | 0x8
"""F_SEAL_SEAL, SHRINK, GROW, WRITE: a private mapping may still be written to, and is its process's own."""


def make_memory(size: int) -> int:
    """A descriptor of empty memory."""
    fd = os.memfd_create("belljar-memory", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    return fd


def seal(fd: int) -> None:
    """Have nobody change it any more, whoever has a descriptor."""
    fcntl.fcntl(fd, _ADD_SEALS, _SEALS)


def copy_memory(source: int, target: int) -> None:
    """Copy what is not zero; both are files."""
    size = os.fstat(source).st_size
    os.ftruncate(target, size)
    for start, end in _data(source, size):
        at = start
        while at < end:
            data = os.pread(source, min(_PIECE, end - at), at)
            if not data:
                return
            if data.count(0) != len(data):
                os.pwrite(target, data, at)
            at += len(data)


def _data(fd: int, size: int) -> Iterator[tuple[int, int]]:
    at = 0
    with suppress(OSError):  # ENXIO: nothing but a hole is left
        while at < size:
            start = os.lseek(fd, at, os.SEEK_DATA)
            at = os.lseek(fd, start, os.SEEK_HOLE)
            yield start, at


def keep(fd: int, path: str) -> None:
    """Write a descriptor's contents to a new file."""
    with open(path, "xb") as file:
        copy_memory(fd, file.fileno())
        os.fsync(file.fileno())
