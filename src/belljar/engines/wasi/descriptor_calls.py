"""The functions of WASI that take a descriptor: fd_*."""

from __future__ import annotations

import struct
from typing import Final

from belljar.abi.flags import O_APPEND, O_NONBLOCK
from belljar.engines.wasi import numbers as n
from belljar.engines.wasi.descriptors import LOCAL_FIRST, Descriptor, LibraryFile
from belljar.engines.wasi.numbers import RIGHT
from belljar.engines.wasi.program import STDOUT, Program, Refused, unsigned
from belljar.engines.wire.calls import DATA_MAX
from belljar.engines.wire.wasi import ROOT

_FDSTAT: Final = struct.Struct("<BxH4xQQ")
_DIRENT: Final = struct.Struct("<QQIB3x")


class DescriptorCalls(Program):
    """Descriptors, and the files they lead to."""

    def fd_prestat_get(self, fd: int, result: int) -> int:
        if fd != ROOT:
            return n.EBADF
        self.memory.write(result, struct.pack("<II", 0, 1))
        return 0

    def fd_prestat_dir_name(self, fd: int, address: int, length: int) -> int:
        if fd != ROOT:
            return n.EBADF
        if length < 1:
            return n.FROM_LINUX[36]
        self.memory.write(address, b"/")
        return 0

    def fd_fdstat_get(self, fd: int, result: int) -> int:
        try:
            found = self.descriptor(fd)
        except Refused:
            if fd != ROOT:
                raise
            found = Descriptor(n.DIRECTORY, n.ALL_RIGHTS, n.ALL_RIGHTS, 0)
        self.memory.write(result, _FDSTAT.pack(found.kind, found.flags, found.rights, found.inheriting))
        return 0

    def fd_fdstat_set_flags(self, fd: int, flags: int) -> int:
        found = self.descriptor(fd, RIGHT["FD_FDSTAT_SET_FLAGS"])
        if self.local(fd) is None:
            append = O_APPEND if flags & n.FDFLAG_APPEND else 0
            nonblock = O_NONBLOCK if flags & n.FDFLAG_NONBLOCK else 0
            if append and found.offset is not None:
                self.share(fd)
            self.call("setfl", fd, append | nonblock)
        found.flags = flags & (n.FDFLAG_APPEND | n.FDFLAG_NONBLOCK)
        return 0

    def fd_fdstat_set_rights(self, fd: int, rights: int, inheriting: int) -> int:
        found = self.descriptor(fd)
        if rights & ~found.rights or inheriting & ~found.inheriting:
            return n.ENOTCAPABLE
        found.rights, found.inheriting = rights, inheriting
        return 0

    def fd_close(self, fd: int) -> int:
        if fd >= LOCAL_FIRST:
            if self._local.pop(fd, None) is None:
                return n.EBADF
            self._fds.pop(fd, None)
            return 0
        found = self._fds.pop(fd, None)
        if found is not None and found.kind == n.REGULAR_FILE:
            # It can't fail, and nobody waits for it.
            self.kernel.post("close", fd)
        else:
            self.call("close", fd)
        return 0

    def fd_renumber(self, source: int, target: int) -> int:
        if self.local(source) is not None or self.local(target) is not None:
            return n.ENOTSUP
        self.descriptor(source)
        self.descriptor(target)
        self.call("dup2", source, target, 1)
        self.call("close", source)
        self._fds[target] = self._fds.pop(source)
        return 0

    def fd_advise(self, fd: int, _offset: int, _length: int, advice: int) -> int:
        self.descriptor(fd, RIGHT["FD_ADVISE"])
        return 0 if advice <= 5 else n.EINVAL

    def fd_allocate(self, fd: int, offset: int, length: int) -> int:
        self.descriptor(fd, RIGHT["FD_ALLOCATE"])
        if offset < 0 or length <= 0 or offset + length > 1 << 62:
            return n.EINVAL
        if self.call("fstat", fd)[0][6] < offset + length:
            self.call("ftruncate", fd, offset + length)
        return 0

    def fd_sync(self, fd: int) -> int:
        self.descriptor(fd)
        if self.local(fd) is None:
            self.call("fsync", fd)
        return 0

    fd_datasync = fd_sync

    def fd_filestat_get(self, fd: int, result: int) -> int:
        if (held := self.local(fd)) is not None:
            self._write_held(held[1], held[0], result)
            return 0
        found = self.descriptor(fd, RIGHT["FD_FILESTAT_GET"])
        stat = found.stat
        if stat is None:
            (stat,) = self.call("fstat", fd)
        self._write_stat(stat, result)
        return 0

    def fd_filestat_set_size(self, fd: int, size: int) -> int:
        self.descriptor(fd, RIGHT["FD_FILESTAT_SET_SIZE"])
        self.call("ftruncate", fd, size)
        return 0

    def fd_filestat_set_times(self, fd: int, atime: int, mtime: int, which: int) -> int:
        self.descriptor(fd, RIGHT["FD_FILESTAT_SET_TIMES"])
        if n.has_both_times(which):
            return n.EINVAL
        self.call("futimens", fd, atime, mtime, which)
        return 0

    # Reading and writing.

    def fd_read(self, fd: int, vectors: int, count: int, result: int) -> int:
        found = self.descriptor(fd, RIGHT["FD_READ"])
        pieces = self.memory.vectors(vectors, count)
        self.memory.check(result, 4)
        size = min(sum(length for _, length in pieces), DATA_MAX)
        if (held := self.local(fd)) is not None:
            data = _read_held(held[1], found.offset or 0, size)
            found.offset = (found.offset or 0) + len(data)
        elif found.offset is None:
            (data,) = self.call("read", fd, size)
        elif found.end == found.offset and size:
            data = b""
        else:
            (data,) = self.call("pread", fd, size, found.offset)
            found.offset += len(data)
            if len(data) < size:
                found.end = found.offset
                self._fresh = found
        self.memory.scatter(pieces, data)
        self.memory.write_u32(result, len(data))
        return 0

    def fd_pread(self, fd: int, vectors: int, count: int, offset: int, result: int) -> int:
        self.descriptor(fd, RIGHT["FD_READ"])
        pieces = self.memory.vectors(vectors, count)
        self.memory.check(result, 4)
        size = min(sum(length for _, length in pieces), DATA_MAX)
        if (held := self.local(fd)) is not None:
            data = _read_held(held[1], max(0, offset), size)
        else:
            (data,) = self.call("pread", fd, size, offset)
        self.memory.scatter(pieces, data)
        self.memory.write_u32(result, len(data))
        return 0

    def fd_write(self, fd: int, vectors: int, count: int, result: int) -> int:
        found = self.descriptor(fd, RIGHT["FD_WRITE"])
        data = b"".join(self.memory.gather(self.memory.vectors(vectors, count), DATA_MAX))
        self.memory.check(result, 4)
        if found.offset is None:
            if self.final_output is not None and fd == STDOUT:
                self.final_output += data
                written = len(data)
            else:
                (written,) = self.call("write", fd, data)
        else:
            (written,) = self.call("pwrite", fd, data, found.offset)
            found.offset += written
        self.memory.write_u32(result, written)
        return 0

    def fd_pwrite(self, fd: int, vectors: int, count: int, offset: int, result: int) -> int:
        self.descriptor(fd, RIGHT["FD_WRITE"])
        data = b"".join(self.memory.gather(self.memory.vectors(vectors, count), DATA_MAX))
        self.memory.check(result, 4)
        (written,) = self.call("pwrite", fd, data, offset)
        self.memory.write_u32(result, written)
        return 0

    def fd_seek(self, fd: int, offset: int, whence: int, result: int) -> int:
        found = self.descriptor(fd)
        if not found.rights & RIGHT["FD_SEEK"]:
            return n.ESPIPE if found.kind in (n.UNKNOWN, n.CHARACTER_DEVICE) else n.ENOTCAPABLE
        if whence > 2:
            return n.EINVAL
        self.memory.check(result, 8)
        if found.offset is None:
            (place,) = self.call("seek", fd, offset, whence)
        else:
            base = (0, found.offset, 0)[whence]
            if whence == 2:
                base = self._size(fd, found)
            place = base + offset
            if not 0 <= place < 1 << 63:
                return n.EINVAL
            found.offset = place
        self.memory.write_u64(result, place)
        return 0

    def _size(self, fd: int, found: Descriptor) -> int:
        if (held := self.local(fd)) is not None:
            return 0 if isinstance(held[1], list) else held[1].size
        stat = found.stat
        if stat is None:
            (stat,) = self.call("fstat", fd)
        return int(stat[6])

    def fd_tell(self, fd: int, result: int) -> int:
        return self.fd_seek(fd, 0, 1, result)

    def fd_readdir(self, fd: int, buffer: int, length: int, cookie: int, result: int) -> int:
        found = self.descriptor(fd, RIGHT["FD_READDIR"])
        if found.kind != n.DIRECTORY:
            return n.ENOTDIR
        self.memory.check(buffer, length)
        if found.listing is None or cookie == 0:
            found.listing = self._listing(fd)
        parts: list[bytes] = []
        room = length
        for entry in found.listing[max(0, cookie) :]:
            parts.append(entry[:room])
            room -= len(parts[-1])
            if not room:
                break
        self.memory.write(buffer, b"".join(parts))
        self.memory.write_u32(result, length - room)
        return 0

    def _listing(self, fd: int) -> list[bytes]:
        entries: list[tuple[int, int, bytes]] = [(0, n.DIRECTORY, b"."), (0, n.DIRECTORY, b"..")]
        if (held := self.local(fd)) is not None:
            path, names = held
            for name in names if isinstance(names, list) else ():
                kind = n.DIRECTORY if isinstance(self.library.get(path + b"/" + name), list) else n.REGULAR_FILE
                entries.append((1, kind, name))
        else:
            entries += [(ino, n.file_type(mode), name) for ino, mode, name in self.call("readdir", fd, b"")[0]]
        return [
            _DIRENT.pack(index + 1, unsigned(ino), len(name), kind) + name
            for index, (ino, kind, name) in enumerate(entries)
        ]


def _read_held(held: LibraryFile | list[bytes], offset: int, size: int) -> bytes:
    if isinstance(held, list):
        raise Refused(n.EISDIR)
    return held.read(offset, size)
