"""The functions of WASI that take a path: path_*."""

from __future__ import annotations

from belljar.abi.flags import (
    O_APPEND,
    O_CLOEXEC,
    O_CREAT,
    O_DIRECTORY,
    O_EXCL,
    O_NOFOLLOW,
    O_NONBLOCK,
    O_RDONLY,
    O_RDWR,
    O_TRUNC,
    O_WRONLY,
)
from belljar.engines.wasi import numbers as n
from belljar.engines.wasi.descriptors import Descriptor, LibraryFile, rights_for, wasi_flags
from belljar.engines.wasi.numbers import RIGHT
from belljar.engines.wasi.program import Program
from belljar.engines.wire.calls import AT_FDCWD
from belljar.engines.wire.wasi import ROOT


class PathCalls(Program):
    """Files by path."""

    def path_open(
        self,
        fd: int,
        lookup: int,
        address: int,
        length: int,
        oflags: int,
        rights: int,
        inheriting: int,
        fdflags: int,
        result: int,
    ) -> int:
        place = self.place(fd, self.path(address, length), "PATH_OPEN")
        self.memory.check(result, 4)
        if fd != ROOT and (rights | inheriting) & ~self.descriptor(fd).inheriting & n.ALL_RIGHTS:
            return n.ENOTCAPABLE
        reads, writes = rights & n.READING, rights & (RIGHT["FD_WRITE"] | RIGHT["FD_ALLOCATE"])
        held = self.held(place)
        if held is not None:
            return self._open_held(place[1], held, oflags, bool(writes), rights, result)
        flags = O_CLOEXEC | (0 if lookup & n.LOOKUP_FOLLOW else O_NOFOLLOW)
        if oflags & n.OFLAG_DIRECTORY:
            flags |= O_DIRECTORY | O_RDONLY
        else:
            flags |= O_RDWR if reads and writes else O_WRONLY if writes else O_RDONLY
        flags |= (O_CREAT if oflags & n.OFLAG_CREAT else 0) | (O_EXCL if oflags & n.OFLAG_EXCL else 0)
        flags |= (O_TRUNC if oflags & n.OFLAG_TRUNC else 0) | (O_APPEND if fdflags & n.FDFLAG_APPEND else 0)
        flags |= O_NONBLOCK if fdflags & n.FDFLAG_NONBLOCK else 0
        opened, stat = self.call("open", *place, flags, 0o666)
        kind = n.file_type(stat[0])
        terminal = kind == n.CHARACTER_DEVICE and bool(self.call("isatty", opened)[0])
        allowed = rights_for(kind, flags, terminal=terminal)
        found = Descriptor(kind, allowed & (rights | n.SEEKING), inheriting & n.ALL_RIGHTS, wasi_flags(flags))
        if kind == n.REGULAR_FILE and not flags & O_APPEND:
            found.offset = 0
        found.stat = stat
        self._fresh = found
        self._fds[opened] = found
        self.memory.write_u32(result, opened)
        return 0

    def _open_held(
        self, path: bytes, held: LibraryFile | list[bytes], oflags: int, writes: bool, rights: int, result: int
    ) -> int:
        if oflags & n.OFLAG_EXCL and oflags & n.OFLAG_CREAT:
            return n.EEXIST
        if writes or oflags & n.OFLAG_TRUNC:
            return n.EROFS
        if oflags & n.OFLAG_DIRECTORY and not isinstance(held, list):
            return n.ENOTDIR
        opened, self._next_local = self._next_local, self._next_local + 1
        kind = n.DIRECTORY if isinstance(held, list) else n.REGULAR_FILE
        found = Descriptor(kind, rights_for(kind, O_RDONLY), n.ALL_RIGHTS, 0)
        found.offset = 0
        self._fds[opened] = found
        self._local[opened] = (path.rstrip(b"/"), held)
        self.memory.write_u32(result, opened)
        return 0

    def path_filestat_get(self, fd: int, lookup: int, address: int, length: int, result: int) -> int:
        place = self.place(fd, self.path(address, length), "PATH_FILESTAT_GET")
        held = self.held(place)
        if held is not None:
            self._write_held(held, place[1].rstrip(b"/"), result)
            return 0
        if self.directory is not None and place == (AT_FDCWD, self.directory[0]):
            stat, self.directory = self.directory[1], None
        else:
            (stat,) = self.call("stat", *place, int(not lookup & n.LOOKUP_FOLLOW))
        self._write_stat(stat, result)
        return 0

    def path_filestat_set_times(
        self, fd: int, lookup: int, address: int, length: int, atime: int, mtime: int, which: int
    ) -> int:
        if n.has_both_times(which):
            return n.EINVAL
        place = self.changeable(fd, self.path(address, length), "PATH_FILESTAT_SET_TIMES")
        self.call("utimens", *place, atime, mtime, which, int(not lookup & n.LOOKUP_FOLLOW))
        return 0

    def path_create_directory(self, fd: int, address: int, length: int) -> int:
        place = self.place(fd, self.path(address, length), "PATH_CREATE_DIRECTORY")
        if self.held(place) is not None:
            return n.EEXIST
        self.call("mkdir", *place, 0o777)
        return 0

    def path_remove_directory(self, fd: int, address: int, length: int) -> int:
        self.call("rmdir", *self.changeable(fd, self.path(address, length), "PATH_REMOVE_DIRECTORY"))
        return 0

    def path_unlink_file(self, fd: int, address: int, length: int) -> int:
        self.call("unlink", *self.changeable(fd, self.path(address, length), "PATH_UNLINK_FILE"))
        return 0

    def path_link(self, fd: int, lookup: int, old: int, old_length: int, new_fd: int, new: int, new_length: int) -> int:
        source = self.changeable(fd, self.path(old, old_length), "PATH_LINK_SOURCE")
        target = self.changeable(new_fd, self.path(new, new_length), "PATH_LINK_TARGET")
        self.call("link", *source, *target, lookup & n.LOOKUP_FOLLOW)
        return 0

    def path_rename(self, fd: int, old: int, old_length: int, new_fd: int, new: int, new_length: int) -> int:
        source = self.changeable(fd, self.path(old, old_length), "PATH_RENAME_SOURCE")
        target = self.changeable(new_fd, self.path(new, new_length), "PATH_RENAME_TARGET")
        self.call("rename", *source, *target, 0)
        return 0

    def path_symlink(self, target: int, target_length: int, fd: int, address: int, length: int) -> int:
        text = self.path(target, target_length)
        self.call("symlink", text, *self.changeable(fd, self.path(address, length), "PATH_SYMLINK"))
        return 0

    def path_readlink(self, fd: int, address: int, length: int, buffer: int, size: int, result: int) -> int:
        place = self.place(fd, self.path(address, length), "PATH_READLINK")
        if self.held(place) is not None:
            return n.EINVAL
        (text,) = self.call("readlink", *place)
        self.memory.write(buffer, text[:size])
        self.memory.write_u32(result, min(size, len(text)))
        return 0
