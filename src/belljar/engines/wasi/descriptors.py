"""An engine process's cache of its descriptors: kind, rights and offset."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Protocol

from belljar.abi.flags import O_ACCMODE, O_APPEND, O_NONBLOCK, O_RDONLY, O_WRONLY
from belljar.engines.wasi.numbers import (
    ALL_RIGHTS,
    CHARACTER_DEVICE,
    DIRECTORY,
    FDFLAG_APPEND,
    FDFLAG_NONBLOCK,
    READING,
    REGULAR_FILE,
    RIGHT,
    SEEKING,
    WRITING,
)

LOCAL_FIRST: Final = 1 << 20
"""Descriptors from here on are of the library, which the engine process holds itself."""


class Descriptor:
    """One descriptor of the process."""

    __slots__ = ("end", "flags", "inheriting", "kind", "listing", "offset", "rights", "stat")

    def __init__(self, kind: int, rights: int, inheriting: int, flags: int) -> None:
        self.kind = kind
        self.rights = rights
        self.inheriting = inheriting
        self.flags = flags
        self.offset: int | None = None
        """The offset of a file that only we have open; None: the kernel keeps it."""
        self.stat: tuple[int, ...] | None = None
        """The stat that open returned: valid until the next call."""
        self.end = -1
        """An offset at which the file ended: valid until the next call."""
        self.listing: list[bytes] | None = None
        """A directory's entries, each as fd_readdir gives it."""


def rights_for(kind: int, flags: int, *, terminal: bool = False) -> int:
    """Everything that makes sense for a descriptor of a kind, opened with these flags."""
    rights = ALL_RIGHTS
    access = flags & O_ACCMODE
    if kind == DIRECTORY:
        return rights & ~(SEEKING | RIGHT["FD_READ"] | WRITING)
    if access == O_RDONLY:
        rights &= ~WRITING
    elif access == O_WRONLY:
        rights &= ~READING
    if kind != REGULAR_FILE and (kind != CHARACTER_DEVICE or terminal):
        # A C library takes a character device that can't seek for a terminal.
        rights &= ~SEEKING
    return rights


def wasi_flags(flags: int) -> int:
    return (FDFLAG_APPEND if flags & O_APPEND else 0) | (FDFLAG_NONBLOCK if flags & O_NONBLOCK else 0)


class LibraryFile(Protocol):
    """A read-only file that the engine process holds in its memory."""

    @property
    def size(self) -> int: ...
    def read(self, offset: int, size: int) -> bytes: ...


class FileBytes:
    """A library's file that is all in memory."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read(self, offset: int, size: int) -> bytes:
        return self._data[offset : offset + size]


Library = Mapping[bytes, "LibraryFile | list[bytes]"]
"""Absolute paths, without a slash at the end, of what programs find beside the sandbox's files: files, and
directories with the names in them. Read-only; a path that is not in it is the sandbox's."""

NO_LIBRARY: Final[Library] = {}
