"""The base of the WASI functions: one program's descriptors, memory, and paths as the kernel takes them.

Descriptors are the virtual process's own numbers. Number 3 is, for the functions that take paths, the root of the
sandbox (the one directory a program is given, from which everything it may reach is reached); for the others it is
whatever the process has there.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, Final, Protocol
from zlib import crc32

from belljar.engines.wasi import numbers as n
from belljar.engines.wasi.descriptors import (
    LOCAL_FIRST,
    NO_LIBRARY,
    Descriptor,
    Library,
    LibraryFile,
    rights_for,
    wasi_flags,
)
from belljar.engines.wasi.memory import Memory
from belljar.engines.wasi.numbers import RIGHT
from belljar.engines.wire.calls import AT_FDCWD
from belljar.engines.wire.wasi import ROOT

PATH_MAX: Final = 4096
_FILESTAT: Final = struct.Struct("<QQB7xQQQQQ")


class Refused(Exception):
    """Ends a function with a WASI error number."""

    def __init__(self, errno: int) -> None:
        super().__init__(errno)
        self.errno = errno


class Kernel(Protocol):
    """Makes calls (`calls.client_host.Client`); an error is raised as Refused."""

    def call(self, name: str, *arguments: Any) -> list[Any]: ...
    def post(self, name: str, *arguments: Any) -> None:
        """Make a call without waiting for its answer."""


class World(Protocol):
    """Clock, entropy and end of the process that runs the guest."""

    def time_ns(self, clock: int) -> int: ...
    def random_bytes(self, size: int) -> bytes: ...
    def exit(self, code: int) -> int:
        """End the program: do not return, or raise to unwind the guest."""


STDOUT: Final = 1


class Program:
    """One program's WASI. `memory` is set once the program's memory exists."""

    memory: Memory

    def __init__(self, kernel: Kernel, world: World, library: Library = NO_LIBRARY) -> None:
        self.kernel = kernel
        self.world = world
        self.library = library
        self.args: Sequence[bytes] = ()
        self.environ: Sequence[bytes] = ()
        self._fds: dict[int, Descriptor] = {}
        self._local: dict[int, tuple[bytes, LibraryFile | list[bytes]]] = {}
        self._next_local = LOCAL_FIRST
        self._fresh: Descriptor | None = None
        """The one descriptor whose `stat` or `end` is still true: nothing was called since."""
        self.directory: tuple[bytes, Sequence[int]] | None = None
        """The path of the working directory and its stat: what the next call is answered with, if it asks for that."""
        self.final_output: bytearray | None = None
        """Standard output of a program at its end, still to be written."""

    def adopt(self, kernel: Kernel, world: World, stdio: Sequence[int] = (), terminals: int = 0) -> None:
        """Go on with another kernel: in a new process, whose descriptors are not those of the one it was made in.

        `stdio` and `terminals` say what the first few are, so that nobody need ask (see `calls.protocol`).
        """
        self.kernel = kernel
        self.world = world
        self._fds = {fd: found for fd, found in self._fds.items() if fd >= LOCAL_FIRST}
        self._fresh = None
        self.final_output = None
        for fd in range(len(stdio) // 2):
            mode, flags = stdio[2 * fd : 2 * fd + 2]
            if mode:
                kind = n.file_type(mode)
                rights = rights_for(kind, flags, terminal=bool(terminals >> fd & 1))
                self._fds[fd] = Descriptor(kind, rights, n.ALL_RIGHTS, wasi_flags(flags))

    # Calling.

    def call(self, name: str, *arguments: Any) -> list[Any]:
        self.directory = None
        if self.final_output is not None:
            self._write_final_output()
        if self._fresh is not None:
            self._fresh.stat = None
            self._fresh.end = -1
            self._fresh = None
        return self.kernel.call(name, *arguments)

    def _write_final_output(self) -> None:
        """Write the buffered output: it was not the end."""
        words, self.final_output = self.final_output, None
        while words:
            (written,) = self.kernel.call("write", STDOUT, bytes(words))
            del words[:written]

    def descriptor(self, fd: int, right: int = 0) -> Descriptor:
        """EBADF, ENOTCAPABLE."""
        found = self._fds.get(fd)
        if found is None:
            found = self._fds[fd] = self._inherited(fd)
        if right & ~found.rights:
            raise Refused(n.ENOTCAPABLE)
        return found

    def _inherited(self, fd: int) -> Descriptor:
        if fd >= LOCAL_FIRST:
            raise Refused(n.EBADF)
        (stat,) = self.call("fstat", fd)
        flags, _ = self.call("getfl", fd)
        kind = n.file_type(stat[0])
        terminal = kind == n.CHARACTER_DEVICE and bool(self.call("isatty", fd)[0])
        return Descriptor(kind, rights_for(kind, flags, terminal=terminal), n.ALL_RIGHTS, wasi_flags(flags))

    def local(self, fd: int) -> tuple[bytes, LibraryFile | list[bytes]] | None:
        return self._local.get(fd) if fd >= LOCAL_FIRST else None

    def share(self, fd: int) -> None:
        """Another process is going to use this descriptor too: from now on the kernel keeps its place."""
        found = self._fds.get(fd)
        if found is not None and found.offset is not None:
            self.call("seek", fd, found.offset, 0)
            found.offset = None

    def forget(self, fd: int) -> None:
        """The descriptor means something else now."""
        self._fds.pop(fd, None)

    # Paths.

    def path(self, address: int, length: int) -> bytes:
        if length > PATH_MAX:
            raise Refused(n.FROM_LINUX[36])
        return self.memory.read(address, length)

    def place(self, fd: int, path: bytes, right: str = "") -> tuple[int, bytes]:
        """A directory and a path from it, as the kernel takes them. A path may not leave its directory."""
        if path.startswith(b"/"):
            raise Refused(n.ENOTCAPABLE)
        if fd == ROOT:
            return AT_FDCWD, b"/" + path
        found = self.descriptor(fd, RIGHT[right] if right else 0)
        if found.kind != n.DIRECTORY:
            raise Refused(n.ENOTDIR)
        depth = 0
        for part in path.split(b"/"):
            depth += -1 if part == b".." else 0 if part in (b"", b".") else 1
            if depth < 0:
                raise Refused(n.ENOTCAPABLE)
        if (held := self.local(fd)) is not None:
            return AT_FDCWD, held[0] + b"/" + path
        if not path:
            raise Refused(n.ENOENT)
        return fd, path

    def held(self, place: tuple[int, bytes]) -> LibraryFile | list[bytes] | None:
        """Return the library entry at a path, if there is one."""
        dirfd, path = place
        if dirfd != AT_FDCWD:
            return None
        return self.library.get(path.rstrip(b"/"))

    def changeable(self, fd: int, path: bytes, right: str) -> tuple[int, bytes]:
        place = self.place(fd, path, right)
        if self.held(place) is not None:
            raise Refused(n.EROFS)
        return place

    # Results.

    def _write_stat(self, stat: Sequence[int], result: int) -> None:
        mode, ino, dev, nlink, _, _, size, atime, mtime, ctime, _, _ = stat
        self.memory.write(
            result,
            _FILESTAT.pack(dev, ino, n.file_type(mode), nlink, max(size, 0), *map(unsigned, (atime, mtime, ctime))),
        )

    def _write_held(self, held: LibraryFile | list[bytes], path: bytes, result: int) -> None:
        is_directory = isinstance(held, list)
        kind, size = (n.DIRECTORY, 0) if is_directory else (n.REGULAR_FILE, held.size)  # type: ignore[union-attr]
        ino = LOCAL_FIRST + crc32(path)
        self.memory.write(result, _FILESTAT.pack(0, ino, kind, 1, size, 0, 0, 0))


def unsigned(value: int) -> int:
    return value & 0xFFFFFFFFFFFFFFFF
