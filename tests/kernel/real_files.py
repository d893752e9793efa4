"""Linux itself as the oracle: a helper process chrooted into a temporary directory that makes the real calls."""

import ctypes
import os
import shutil
import socket
import stat
import struct
from pathlib import Path
from typing import Any

import msgspec

AT_FDCWD = -100
MARK = 1_600_000_000 * 10**9
"""The modification time that `mark` gives a file: whoever changes the file moves it away."""

Answer = Any


def can_chroot() -> bool:
    return os.geteuid() == 0


def leave_descriptors(*kept: int) -> None:
    """Let go of what a forked process has of its parent's descriptors: else nobody sees the parent close them.

    They lead to /dev/null then. If they were closed, files of ours would get their numbers, and objects of the parent
    close those when they are collected here.
    """
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd > 2 and fd not in (null, *kept):
            os.dup2(null, fd, inheritable=False)


class Real:
    """The calling side. `call` gives a value, or the name of an errno as `"!ENOENT"`."""

    def __init__(self, directory: Path, helper: "type[Helper] | None" = None) -> None:
        ours, theirs = socket.socketpair()
        self._pid = os.fork()
        if self._pid == 0:
            try:
                leave_descriptors(theirs.fileno())
                (helper or Helper)(directory).serve(theirs)
            finally:
                os._exit(0)
        theirs.close()
        self._socket = ours

    def call(self, operation: str, *arguments: object) -> Answer:
        send(self._socket, [operation, list(arguments)])
        return receive(self._socket)

    def close(self) -> None:
        self._socket.close()
        os.waitpid(self._pid, 0)


def send(connection: socket.socket, message: object) -> None:
    data = msgspec.msgpack.encode(message)
    connection.sendall(struct.pack("<I", len(data)) + data)


def receive(connection: socket.socket) -> Answer:
    (size,) = struct.unpack("<I", receive_exactly(connection, 4))
    return msgspec.msgpack.decode(receive_exactly(connection, size))


def receive_exactly(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size:
        more = connection.recv(size - len(data))
        if not more:
            raise EOFError
        data += more
    return data


class Helper:
    """The side that acts. Every example starts in a fresh directory that is its root."""

    def __init__(self, directory: Path) -> None:
        self._outside = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        self._count = 0
        self._files: dict[int, int] = {}
        self._libc = ctypes.CDLL(None, use_errno=True)

    def serve(self, connection: socket.socket) -> None:
        while True:
            try:
                operation, arguments = receive(connection)
            except EOFError:
                return
            try:
                answer = getattr(self, "do_" + operation)(*arguments)
            except OSError as error:
                answer = "!" + errno_name(error)
            send(connection, answer)

    def do_reset(self, mode: int) -> None:
        os.seteuid(0)
        os.setegid(0)
        os.setgroups([])
        for slot in list(self._files):
            self.do_close(slot)
        os.fchdir(self._outside)
        os.chroot(".")
        if self._count:
            shutil.rmtree(str(self._count))
        self._count += 1
        os.umask(0)
        os.mkdir(str(self._count), mode)
        os.chroot(str(self._count))
        os.chdir("/")

    def do_become(self, uid: int, gid: int) -> None:
        os.seteuid(0)
        os.setegid(gid)
        os.seteuid(uid)

    def do_umask(self, mask: int) -> None:
        os.umask(mask)

    def do_open(self, slot: int, path: str, flags: int, mode: int) -> None:
        self._files[slot] = os.open(path, flags | os.O_NONBLOCK, mode)

    def do_close(self, slot: int) -> None:
        os.close(self._files.pop(slot))

    def do_read(self, slot: int, size: int) -> bytes:
        return os.read(self._files[slot], size)

    def do_write(self, slot: int, data: bytes) -> int:
        return os.write(self._files[slot], data)

    def do_pread(self, slot: int, size: int, offset: int) -> bytes:
        return os.pread(self._files[slot], size, offset)

    def do_pwrite(self, slot: int, data: bytes, offset: int) -> int:
        return os.pwrite(self._files[slot], data, offset)

    def do_seek(self, slot: int, offset: int, whence: int) -> int:
        return os.lseek(self._files[slot], offset, whence)

    def do_ftruncate(self, slot: int, size: int) -> None:
        os.ftruncate(self._files[slot], size)

    def do_fstat(self, slot: int) -> Answer:
        return describe(os.fstat(self._files[slot]))

    def do_fchmod(self, slot: int, mode: int) -> None:
        os.fchmod(self._files[slot], mode)

    def do_stat(self, path: str) -> Answer:
        return describe(os.stat(path))

    def do_lstat(self, path: str) -> Answer:
        return describe(os.lstat(path))

    def do_same(self, one: str, two: str) -> bool:
        return os.lstat(one).st_ino == os.lstat(two).st_ino

    def do_readlink(self, path: str) -> str:
        return os.readlink(path)

    def do_readdir(self, path: str) -> Answer:
        with os.scandir(path) as entries:
            return sorted([e.name, stat.S_IFMT(e.stat(follow_symlinks=False).st_mode)] for e in entries)

    def do_mkdir(self, path: str, mode: int) -> None:
        os.mkdir(path, mode)

    def do_mknod(self, path: str, mode: int) -> None:
        os.mknod(path, mode)

    def do_rmdir(self, path: str) -> None:
        os.rmdir(path)

    def do_unlink(self, path: str) -> None:
        os.unlink(path)

    def do_symlink(self, target: str, path: str) -> None:
        os.symlink(target, path)

    def do_link(self, old: str, new: str, follow: bool) -> None:
        # Python's os.link ignores follow_symlinks=True.
        if self._libc.linkat(AT_FDCWD, os.fsencode(old), AT_FDCWD, os.fsencode(new), 0x400 if follow else 0):
            raise OSError(ctypes.get_errno(), "linkat")

    def do_rename(self, old: str, new: str, flags: int) -> None:
        if self._libc.renameat2(AT_FDCWD, os.fsencode(old), AT_FDCWD, os.fsencode(new), flags):
            raise OSError(ctypes.get_errno(), "renameat2")

    def do_chmod(self, path: str, mode: int) -> None:
        os.chmod(path, mode)

    def do_chown(self, path: str, uid: int, gid: int, follow: bool) -> None:
        os.chown(path, uid, gid, follow_symlinks=follow)

    def do_truncate(self, path: str, size: int) -> None:
        same = size >= 0 and os.stat(path).st_size == size
        os.truncate(path, size)
        if same:  # tmpfs leaves the time then; POSIX and ext4 do not
            os.utime(path)

    def do_mark(self, path: str, follow: bool) -> None:
        os.utime(path, ns=(MARK, MARK), follow_symlinks=follow)

    def do_touch(self, path: str) -> None:
        os.utime(path)

    def do_chdir(self, path: str) -> None:
        os.chdir(path)

    def do_getcwd(self) -> str:
        return os.getcwd()

    def do_access(self, path: str, mode: int) -> Answer:
        # os.access says only yes or no: the errno comes from the library's own call.
        if self._libc.faccessat(AT_FDCWD, os.fsencode(path), mode, 0x200):
            raise OSError(ctypes.get_errno(), "faccessat")


def errno_name(error: OSError) -> str:
    import errno

    return errno.errorcode[error.errno or 0]


def describe(found: os.stat_result) -> Answer:
    special = stat.S_ISFIFO(found.st_mode)  # whose times our pipes do not keep
    size = None if stat.S_ISDIR(found.st_mode) else found.st_size
    return [found.st_mode, found.st_nlink, found.st_uid, found.st_gid, size, found.st_mtime_ns == MARK and not special]
