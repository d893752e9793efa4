"""An open file description: a handle with an offset and flags, shared by duplicated and inherited descriptors."""

from __future__ import annotations

from collections.abc import Callable

from belljar.abi.errno import EBADF, EINVAL, EISDIR, ENXIO
from belljar.abi.errors import SysError
from belljar.abi.flags import (
    O_ACCMODE,
    O_APPEND,
    O_NONBLOCK,
    O_PATH,
    O_RDONLY,
    O_WRONLY,
    SEEK_CUR,
    SEEK_END,
    SEEK_HOLE,
    SEEK_SET,
)
from belljar.abi.records import SetAttr, Stat
from belljar.kernel.vfs.credentials import Credentials
from belljar.kernel.vfs.namespace import Place
from belljar.kernel.vfs.server import Handle


class OpenFile:
    """An open file description. Reference-counted: the handle closes when the last descriptor does."""

    __slots__ = ("base", "flags", "handle", "name", "offset", "on_release", "place", "refs", "writer")

    def __init__(self, handle: Handle, flags: int, place: Place, name: str) -> None:
        self.handle = handle
        self.flags = flags
        self.place = place
        self.name = name
        """The path it was opened by, for /proc and messages."""
        self.base: Place | None = None
        """The directory that path is relative to, if it was relative."""
        self.offset = 0
        self.refs = 0
        self.on_release: Callable[[], None] | None = None
        self.writer: Credentials | None = None
        """Credentials of the opener for writing, if not root: a write then clears set-id bits."""
        handle.nonblocking = bool(flags & O_NONBLOCK)

    def retain(self) -> OpenFile:
        self.refs += 1
        return self

    def release(self) -> None:
        self.refs -= 1
        if self.refs == 0:
            self.handle.close()
            if self.on_release is not None:
                self.on_release()

    def read(self, size: int) -> bytes:
        """At most `size` bytes from the current offset, which moves on. EBADF, EISDIR, EAGAIN."""
        if self.flags & (O_ACCMODE | O_PATH) not in (O_RDONLY, 2):
            raise SysError(EBADF)
        data = self.handle.read(self.offset, size)
        self.offset += len(data)
        return data

    def write(self, data: bytes) -> int:
        """EBADF, EPIPE, ENOSPC, EAGAIN; may take fewer bytes than given."""
        flags = self.flags
        if flags & (O_ACCMODE | O_PATH) not in (O_WRONLY, 2):
            raise SysError(EBADF)
        handle = self.handle
        if not handle.seekable:
            return handle.write(0, data)
        if self.writer is not None and data:
            self._drop_set_id(self.writer)
        if flags & O_APPEND:
            count = handle.write(None, data)
            self.offset = handle.size()
        else:
            count = handle.write(self.offset, data)
            self.offset += count
        return count

    def pread(self, size: int, offset: int) -> bytes:
        self._check_positioned(offset)
        if self.flags & (O_ACCMODE | O_PATH) not in (O_RDONLY, 2):
            raise SysError(EBADF)
        return self.handle.read(offset, size)

    def pwrite(self, data: bytes, offset: int) -> int:
        self._check_positioned(offset)
        if self.flags & (O_ACCMODE | O_PATH) not in (O_WRONLY, 2):
            raise SysError(EBADF)
        if self.writer is not None and data:
            self._drop_set_id(self.writer)
        return self.handle.write(None if self.flags & O_APPEND else offset, data)

    def _drop_set_id(self, writer: Credentials) -> None:
        mount, node = self.place
        mode = writer.mode_after_write(node)
        if mode is not None:
            mount.server.setattr(node, SetAttr(mode=mode))

    def _check_positioned(self, offset: int) -> None:
        if not self.handle.seekable:
            self.handle.size()  # a stream answers with ESPIPE
        if offset < 0:
            raise SysError(EINVAL)

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        """The new offset. ESPIPE for streams, EINVAL before the start, ENXIO (no data after)."""
        handle = self.handle
        if self.flags & O_PATH:
            raise SysError(EBADF)
        if not SEEK_SET <= whence <= SEEK_HOLE:
            raise SysError(EINVAL)
        if not handle.seekable:
            handle.size()
        if whence == SEEK_SET:
            target = offset
        elif whence == SEEK_CUR:
            target = self.offset + offset
        elif whence == SEEK_END:
            target = handle.size() + offset
        else:
            if not 0 <= offset < handle.size():
                raise SysError(ENXIO)
            target = handle.seek_data(offset, hole=whence == SEEK_HOLE)
        if target < 0:
            raise SysError(EINVAL)
        self.offset = target
        return target

    def truncate(self, size: int) -> None:
        if size < 0:
            raise SysError(EINVAL)
        if self.flags & O_PATH:
            raise SysError(EBADF)
        if self.flags & O_ACCMODE == O_RDONLY:
            raise SysError(EINVAL)
        self.handle.truncate(size)
        if self.writer is not None:
            self._drop_set_id(self.writer)

    def stat(self) -> Stat:
        return self.place.mount.server.stat(self.place.node)

    def set_flags(self, flags: int) -> None:
        """F_SETFL: only O_APPEND and O_NONBLOCK can change."""
        changeable = O_APPEND | O_NONBLOCK
        self.flags = (self.flags & ~changeable) | (flags & changeable)
        self.handle.nonblocking = bool(self.flags & O_NONBLOCK)


class DirectoryHandle(Handle):
    """An open directory: it can be listed through its place and used as a starting point, not read."""

    __slots__ = ()

    def read(self, offset: int, size: int) -> bytes:
        raise SysError(EISDIR)

    def size(self) -> int:
        raise SysError(EINVAL)
