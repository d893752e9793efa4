"""File descriptors: small numbers for open files, with close-on-exec."""

from __future__ import annotations

from collections.abc import Mapping

from belljar.abi.errno import EBADF, EINVAL, EMFILE
from belljar.abi.errors import SysError
from belljar.kernel.vfs.openfile import OpenFile


class FdTable:
    """The descriptors of one process."""

    __slots__ = ("_files", "_limit", "cloexec")

    def __init__(self, limit: int) -> None:
        self._files: dict[int, OpenFile] = {}
        self._limit = limit
        self.cloexec: set[int] = set()

    def set_limit(self, limit: int) -> None:
        """Refuse descriptors from `limit` on."""
        self._limit = limit

    def fork(self) -> FdTable:
        child = FdTable(self._limit)
        child._files = self._files.copy()
        child.cloexec = self.cloexec.copy()
        for file in self._files.values():
            file.refs += 1
        return child

    def __getitem__(self, fd: int) -> OpenFile:
        """EBADF."""
        try:
            return self._files[fd]
        except KeyError:
            raise SysError(EBADF) from None

    def get(self, fd: int) -> OpenFile | None:
        return self._files.get(fd)

    def __contains__(self, fd: int) -> bool:
        return fd in self._files

    def fds(self) -> list[int]:
        return sorted(self._files)

    def add(self, file: OpenFile, *, lowest: int = 0, cloexec: bool = False) -> int:
        """The lowest free descriptor from `lowest` on. EMFILE, EINVAL; a file nobody else holds is then closed."""
        fd = lowest
        files = self._files
        while fd in files:
            fd += 1
        if not 0 <= fd < self._limit:
            file.retain().release()
            raise SysError(EMFILE if 0 <= lowest < self._limit else EINVAL)
        files[fd] = file.retain()
        if cloexec:
            self.cloexec.add(fd)
        return fd

    def put(self, fd: int, file: OpenFile, *, cloexec: bool = False) -> None:
        """dup2: make `fd` refer to `file`, closing the file it referred to. EBADF past the limit."""
        if not 0 <= fd < self._limit:
            raise SysError(EBADF)
        old = self._files.get(fd)
        if old is not file:
            self._files[fd] = file.retain()
            if old is not None:
                old.release()
        self.cloexec.discard(fd)
        if cloexec:
            self.cloexec.add(fd)

    def fill(self, files: Mapping[int, OpenFile]) -> None:
        """The first descriptors of an empty table. EBADF past the limit."""
        for fd, file in files.items():
            if not 0 <= fd < self._limit:
                raise SysError(EBADF)
            self._files[fd] = file
            file.refs += 1

    def close(self, fd: int) -> None:
        """EBADF."""
        file = self._files.pop(fd, None)
        if file is None:
            raise SysError(EBADF)
        self.cloexec.discard(fd)
        file.release()

    def close_on_exec(self) -> None:
        for fd in sorted(self.cloexec):
            self.close(fd)

    def close_all(self) -> None:
        files, self._files = self._files, {}
        self.cloexec.clear()
        for file in files.values():
            file.release()
