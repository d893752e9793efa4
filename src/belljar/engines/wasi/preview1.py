"""Every function of wasi_snapshot_preview1, as calls on the sandbox's kernel. Errors are WASI's numbers.

Descriptors are the virtual process's own numbers. Number 3 is, for the functions that take paths, the root of the
sandbox (the one directory a program is given, from which everything it may reach is reached); for the others it is
whatever the process has there.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Any, Final, Protocol
from zlib import crc32

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
    POLLHUP,
    POLLIN,
    POLLOUT,
)
from belljar.engines.calls.protocol import AT_FDCWD, DATA_MAX
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
from belljar.engines.wasi.memory import Fault, Memory
from belljar.engines.wasi.numbers import RIGHT
from belljar.engines.wasi.root import ROOT

SUBSCRIPTIONS_MAX: Final = 4096
RANDOM_MAX: Final = 64 << 20
PATH_MAX: Final = 4096
_FILESTAT: Final = struct.Struct("<QQB7xQQQQQ")
_FDSTAT: Final = struct.Struct("<BxH4xQQ")
_DIRENT: Final = struct.Struct("<QQIB3x")
_EVENT: Final = struct.Struct("<QHB5xQH6x")
_SUBSCRIPTION: Final = struct.Struct("<QB7x")
_CLOCK: Final = struct.Struct("<I4xQQH")


class Refused(Exception):
    """Ends a function with a WASI error number."""

    def __init__(self, errno: int) -> None:
        super().__init__(errno)
        self.errno = errno


class Kernel(Protocol):
    """How calls are made (`calls.client_host.Client`); a refusal is raised as Refused."""

    def call(self, name: str, *arguments: Any) -> list[Any]: ...
    def post(self, name: str, *arguments: Any) -> None:
        """A call whose answer nobody needs."""


class World(Protocol):
    """Clock, entropy and end of the process that runs the guest."""

    def time_ns(self, clock: int) -> int: ...
    def random_bytes(self, size: int) -> bytes: ...
    def exit(self, code: int) -> int:
        """Ends the program; does not come back, or raises what unwinds the guest."""


class Preview1:
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

    def adopt(self, kernel: Kernel, world: World, stdio: Sequence[int] = (), terminals: int = 0) -> None:
        """Go on with another kernel: in a new process, whose descriptors are not those of the one it was made in.

        `stdio` and `terminals` say what the first few are, so that nobody need ask (see `calls.protocol`).
        """
        self.kernel = kernel
        self.world = world
        self._fds = {fd: found for fd, found in self._fds.items() if fd >= LOCAL_FIRST}
        self._fresh = None
        for fd in range(len(stdio) // 2):
            mode, flags = stdio[2 * fd : 2 * fd + 2]
            if mode:
                kind = n.file_type(mode)
                rights = rights_for(kind, flags, terminal=bool(terminals >> fd & 1))
                self._fds[fd] = Descriptor(kind, rights, n.ALL_RIGHTS, wasi_flags(flags))

    # Calling.

    def call(self, name: str, *arguments: Any) -> list[Any]:
        self.directory = None
        if self._fresh is not None:
            self._fresh.stat = None
            self._fresh.end = -1
            self._fresh = None
        return self.kernel.call(name, *arguments)

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
        """What of the library a path names, if it does."""
        dirfd, path = place
        if dirfd != AT_FDCWD:
            return None
        return self.library.get(path.rstrip(b"/"))

    def changeable(self, fd: int, path: bytes, right: str) -> tuple[int, bytes]:
        place = self.place(fd, path, right)
        if self.held(place) is not None:
            raise Refused(n.EROFS)
        return place

    # Arguments and environment.

    def args_get(self, pointers: int, data: int) -> int:
        return self._strings(self.args, pointers, data)

    def args_sizes_get(self, count: int, size: int) -> int:
        return self._sizes(self.args, count, size)

    def environ_get(self, pointers: int, data: int) -> int:
        return self._strings(self.environ, pointers, data)

    def environ_sizes_get(self, count: int, size: int) -> int:
        return self._sizes(self.environ, count, size)

    def _strings(self, strings: Sequence[bytes], pointers: int, data: int) -> int:
        for index, text in enumerate(strings):
            self.memory.write_u32(pointers + 4 * index, data)
            self.memory.write(data, text + b"\0")
            data += len(text) + 1
        return 0

    def _sizes(self, strings: Sequence[bytes], count: int, size: int) -> int:
        self.memory.write_u32(count, len(strings))
        self.memory.write_u32(size, sum(len(text) + 1 for text in strings))
        return 0

    # Clocks, entropy, the end.

    def clock_res_get(self, clock: int, result: int) -> int:
        if clock > n.CLOCK_THREAD:
            return n.EINVAL
        self.memory.write_u64(result, 1)
        return 0

    def clock_time_get(self, clock: int, _precision: int, result: int) -> int:
        if clock > n.CLOCK_THREAD:
            return n.EINVAL
        self.memory.write_u64(result, self.world.time_ns(clock))
        return 0

    def random_get(self, address: int, length: int) -> int:
        self.memory.check(address, length)
        if length > RANDOM_MAX:
            return n.EINVAL
        self.memory.write(address, self.world.random_bytes(length))
        return 0

    def sched_yield(self) -> int:
        return 0

    def proc_exit(self, code: int) -> int:
        return self.world.exit(code)

    def proc_raise(self, signal: int) -> int:
        pid = self.call("ids")[0][0]
        self.call("kill", pid, signal)
        return 0

    # Descriptors.

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

    def _write_stat(self, stat: Sequence[int], result: int) -> None:
        mode, ino, dev, nlink, _, _, size, atime, mtime, ctime, _, _ = stat
        self.memory.write(
            result,
            _FILESTAT.pack(dev, ino, n.file_type(mode), nlink, max(size, 0), *map(_unsigned, (atime, mtime, ctime))),
        )

    def _write_held(self, held: LibraryFile | list[bytes], path: bytes, result: int) -> None:
        is_directory = isinstance(held, list)
        kind, size = (n.DIRECTORY, 0) if is_directory else (n.REGULAR_FILE, held.size)  # type: ignore[union-attr]
        ino = LOCAL_FIRST + crc32(path)
        self.memory.write(result, _FILESTAT.pack(0, ino, kind, 1, size, 0, 0, 0))

    def fd_filestat_set_size(self, fd: int, size: int) -> int:
        self.descriptor(fd, RIGHT["FD_FILESTAT_SET_SIZE"])
        self.call("ftruncate", fd, size)
        return 0

    def fd_filestat_set_times(self, fd: int, atime: int, mtime: int, which: int) -> int:
        self.descriptor(fd, RIGHT["FD_FILESTAT_SET_TIMES"])
        if which & 3 == 3 or which & 12 == 12:
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
            _DIRENT.pack(index + 1, _unsigned(ino), len(name), kind) + name
            for index, (ino, kind, name) in enumerate(entries)
        ]

    # Files by path.

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
        if which & 3 == 3 or which & 12 == 12:
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

    # Waiting.

    def poll_oneoff(self, subscriptions: int, events: int, count: int, result: int) -> int:
        if not 0 < count <= SUBSCRIPTIONS_MAX:
            return n.EINVAL
        self.memory.check(events, 32 * count)
        self.memory.check(result, 4)
        raw = self.memory.read(subscriptions, 48 * count)
        clocks: list[tuple[int, int]] = []
        waits: list[tuple[int, int, int]] = []
        happened: list[bytes] = []
        for at in range(0, 48 * count, 48):
            userdata, tag = _SUBSCRIPTION.unpack_from(raw, at)
            if tag == n.SUBSCRIBE_CLOCK:
                clock, timeout, _, flags = _CLOCK.unpack_from(raw, at + 16)
                if clock > n.CLOCK_MONOTONIC:
                    happened.append(_EVENT.pack(userdata, n.ENOTSUP, tag, 0, 0))
                    continue
                if flags & n.CLOCK_ABSOLUTE:
                    timeout -= self.world.time_ns(clock)
                clocks.append((min(max(0, timeout), 1 << 62), userdata))
            elif tag in (n.SUBSCRIBE_READ, n.SUBSCRIBE_WRITE):
                (fd,) = struct.unpack_from("<I", raw, at + 16)
                if self.local(fd) is not None:
                    happened.append(_EVENT.pack(userdata, 0, tag, 1, 0))
                    continue
                try:
                    self.descriptor(fd)
                except Refused as error:
                    happened.append(_EVENT.pack(userdata, error.errno, tag, 0, 0))
                    continue
                waits.append((fd, tag, userdata))
            else:
                return n.EINVAL
        happened += self._wait(waits, clocks, ready=bool(happened))
        for index, event in enumerate(happened):
            self.memory.write(events + 32 * index, event)
        self.memory.write_u32(result, len(happened))
        return 0

    def _wait(self, waits: list[tuple[int, int, int]], clocks: list[tuple[int, int]], *, ready: bool) -> list[bytes]:
        first = min(clocks, default=None)
        if not waits:
            if first is None or ready:
                return []
            try:
                self.call("sleep", first[0])
            except Refused as refused:
                # A C library takes any error of a sleep for a bug; the guest sees the signal when it goes on.
                if refused.errno != n.EINTR:
                    raise
            return [_EVENT.pack(userdata, 0, n.SUBSCRIBE_CLOCK, 0, 0) for at, userdata in clocks if at <= first[0]]
        fds = [fd for fd, _, _ in waits]
        wanted = [POLLIN if tag == n.SUBSCRIBE_READ else POLLOUT for _, tag, _ in waits]
        timeout = 0 if ready else first[0] if first is not None else -1
        (found,) = self.call("poll", fds, wanted, timeout)
        events = [
            _EVENT.pack(
                userdata, 0, tag, 1 if tag == n.SUBSCRIBE_READ else 65536, n.EVENT_HANGUP if got & POLLHUP else 0
            )
            for (_, tag, userdata), got in zip(waits, found, strict=True)
            if got
        ]
        if not events and first is not None and not ready:
            events = [_EVENT.pack(userdata, 0, n.SUBSCRIBE_CLOCK, 0, 0) for at, userdata in clocks if at <= first[0]]
        return events

    # Sockets: there are none.

    def sock_accept(self, _fd: int, _flags: int, _result: int) -> int:
        return n.ENOTSUP

    def sock_recv(self, *_arguments: int) -> int:
        return n.ENOTSUP

    def sock_send(self, *_arguments: int) -> int:
        return n.ENOTSUP

    def sock_shutdown(self, _fd: int, _how: int) -> int:
        return n.ENOTSUP


def _unsigned(value: int) -> int:
    return value & 0xFFFFFFFFFFFFFFFF


def _read_held(held: LibraryFile | list[bytes], offset: int, size: int) -> bytes:
    if isinstance(held, list):
        raise Refused(n.EISDIR)
    return held.read(offset, size)


def functions(wasi: Preview1) -> dict[str, Callable[..., int]]:
    """Each function by name, such that it gives an errno and raises nothing but what ends the program."""
    return {name: guarded(getattr(wasi, name)) for name in n.SIGNATURES}


def guarded(function: Callable[..., int]) -> Callable[..., int]:
    def run(*arguments: int) -> int:
        try:
            return function(*arguments)
        except Fault:
            return n.EFAULT
        except Refused as refused:
            return refused.errno

    return run
