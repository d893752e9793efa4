"""The kernel's side of the calls on files: arguments are checked here, for the process that sends them is hostile."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from belljar.abi.errno import EAGAIN, EBADF, EFBIG, EINVAL, EISDIR, ENOTDIR
from belljar.abi.errors import SysError
from belljar.abi.flags import O_CLOEXEC, O_CREAT, O_PATH, O_RDONLY, O_WRONLY, PERMISSIONS, POLLIN, R_OK, S_IFIFO
from belljar.abi.paths import fsdecode, fsencode
from belljar.abi.records import Stat
from belljar.abi.termios import WinSize
from belljar.engines.wire.calls import AT_FDCWD, ATIME_NOW, ATIME_SET, DATA_MAX, FILE_MAX, MTIME_NOW, MTIME_SET
from belljar.kernel.locks import lock_file, unlock_file
from belljar.kernel.process import Process
from belljar.kernel.vfs.namespace import Place
from belljar.kernel.vfs.view import View

LOCK_SH, LOCK_EX, LOCK_NB, LOCK_UN = 1, 2, 4, 8
ENTRIES_MAX: Final = 100_000
"""Directory entries in one answer."""


def at(process: Process, dirfd: int) -> View:
    """The process's view of the files, seen from a directory. EBADF, ENOTDIR."""
    if dirfd == AT_FDCWD:
        return process.fs
    place = process.fds[dirfd].place
    if not place.node.is_dir:
        raise SysError(ENOTDIR)
    return process.fs.at(place)


def _size(size: int) -> int:
    if size < 0:
        raise SysError(EINVAL)
    return min(size, DATA_MAX)


# By descriptor.


def open_(process: Process, dirfd: int, path: bytes, flags: int, mode: int) -> tuple[int, Stat]:
    name = fsdecode(path)
    file = at(process, dirfd).open(name, flags, mode & PERMISSIONS)
    if not name.startswith("/"):
        file.base = at(process, dirfd).cwd
    fd = process.fds.add(file, cloexec=bool(flags & O_CLOEXEC))
    return fd, file.stat()


def close(process: Process, fd: int) -> None:
    process.close(fd)


def read(process: Process, fd: int, size: int) -> tuple[bytes]:
    file = process.fds[fd]
    if not file.handle.seekable and not file.handle.nonblocking:
        process.poll({fd: POLLIN})  # a stream's own wait does not end with a signal
        if process.fds.get(fd) is not file:
            raise SysError(EBADF)  # it was closed meanwhile, and the number may be another's
    return (process.read(fd, _size(size)),)


def write(process: Process, fd: int, data: bytes) -> tuple[int]:
    return (process.write(fd, data),)


def converse(process: Process, target: int, data: bytes, source: int, size: int) -> tuple[int, bytes]:
    process.write_all(target, data)
    try:
        return 0, *read(process, source, size)
    except SysError as error:  # not of what was written: that must not be done again
        return error.errno, b""


def pread(process: Process, fd: int, size: int, offset: int) -> tuple[bytes]:
    return (process.fds[fd].pread(_size(size), offset),)


def pwrite(process: Process, fd: int, data: bytes, offset: int) -> tuple[int]:
    return (process.pwrite(fd, data, offset),)


def seek(process: Process, fd: int, offset: int, whence: int) -> tuple[int]:
    return (process.seek(fd, offset, whence),)


def fstat(process: Process, fd: int) -> tuple[Stat]:
    return (process.fstat(fd),)


def ftruncate(process: Process, fd: int, size: int) -> None:
    process.fds[fd].truncate(size)


def fchmod(process: Process, fd: int, mode: int) -> None:
    file = process.fds[fd]
    process.fs.set_mode(file.place, mode & PERMISSIONS, file.name)


def fchown(process: Process, fd: int, uid: int, gid: int) -> None:
    file = process.fds[fd]
    process.fs.set_owner(file.place, uid, gid, file.name)


def futimens(process: Process, fd: int, atime: int, mtime: int, which: int) -> None:
    file = process.fds[fd]
    _set_times(process, file.place, file.name, atime, mtime, which)


def fsync(process: Process, fd: int) -> None:
    process.fds[fd].handle.sync()


def dup(process: Process, fd: int, lowest: int, cloexec: int) -> tuple[int]:
    return (process.dup(fd, lowest, cloexec=bool(cloexec)),)


def dup2(process: Process, fd: int, target: int, cloexec: int) -> None:
    if fd == target:
        process.fds[fd]
        return
    process.dup2(fd, target, cloexec=bool(cloexec))


def pipe(process: Process, cloexec: int) -> tuple[int, int]:
    return process.pipe(cloexec=bool(cloexec))


def getfl(process: Process, fd: int) -> tuple[int, int]:
    return process.fds[fd].flags, int(fd in process.fds.cloexec)


def setfl(process: Process, fd: int, flags: int) -> None:
    process.fds[fd].set_flags(flags)


def setcloexec(process: Process, fd: int, cloexec: int) -> None:
    process.fds.put(fd, process.fds[fd], cloexec=bool(cloexec))


# By path.


def stat(process: Process, dirfd: int, path: bytes, nofollow: int) -> tuple[Stat]:
    return (at(process, dirfd).stat(fsdecode(path), follow=not nofollow),)


def access(process: Process, dirfd: int, path: bytes, mode: int) -> None:
    if mode & ~7:
        raise SysError(EINVAL)
    at(process, dirfd).access(fsdecode(path), mode)


def readlink(process: Process, dirfd: int, path: bytes) -> tuple[bytes]:
    return (fsencode(at(process, dirfd).readlink(fsdecode(path))),)


def _directory(process: Process, dirfd: int, path: bytes) -> tuple[View, Place]:
    if path:
        view = at(process, dirfd)
        place = view.resolve(fsdecode(path))
    else:
        view = process.fs
        place = process.fds[dirfd].place
    if not place.node.is_dir:
        raise SysError(ENOTDIR)
    if path and not view.credentials.may(place.node, R_OK):
        raise SysError(13)
    return view, place


def readdir(process: Process, dirfd: int, path: bytes) -> tuple[Sequence[tuple[int, int, bytes]]]:
    view, place = _directory(process, dirfd, path)
    entries = view.list_place(place)
    process.budget.charge(len(entries) // 8)
    if len(entries) > ENTRIES_MAX:
        raise SysError(EFBIG)
    return ([(entry.ino, entry.kind, fsencode(entry.name)) for entry in entries],)


def scandir(process: Process, dirfd: int, path: bytes) -> tuple[Sequence[tuple[Stat, bytes]]]:
    view, place = _directory(process, dirfd, path)
    entries = view.list_place(place)
    process.budget.charge(len(entries))
    if len(entries) > ENTRIES_MAX:
        raise SysError(EFBIG)
    found: list[tuple[Stat, bytes]] = []
    for entry in entries:
        with suppress(SysError):
            found.append((view.stat(entry.name, follow=False, start=place), fsencode(entry.name)))
    return (found,)


def mkdir(process: Process, dirfd: int, path: bytes, mode: int) -> None:
    at(process, dirfd).mkdir(fsdecode(path), mode & PERMISSIONS)


def rmdir(process: Process, dirfd: int, path: bytes) -> None:
    at(process, dirfd).rmdir(fsdecode(path))


def unlink(process: Process, dirfd: int, path: bytes) -> None:
    at(process, dirfd).unlink(fsdecode(path))


def rename(process: Process, old_dir: int, old: bytes, new_dir: int, new: bytes, flags: int) -> None:
    view, new_name = _both(process, old_dir, new_dir, new)
    view.rename(fsdecode(old), new_name, flags)


def link(process: Process, old_dir: int, old: bytes, new_dir: int, new: bytes, follow: int) -> None:
    view, new_name = _both(process, old_dir, new_dir, new)
    view.link(fsdecode(old), new_name, follow=bool(follow))


def _both(process: Process, old_dir: int, new_dir: int, new: bytes) -> tuple[View, str]:
    """One view for two paths: the second is made absolute if it is seen from another directory."""
    name = fsdecode(new)
    if not name.startswith("/") and new_dir != old_dir:
        name = f"{at(process, new_dir).getcwd()}/{name}"
    return at(process, old_dir), name


def symlink(process: Process, target: bytes, dirfd: int, path: bytes) -> None:
    at(process, dirfd).symlink(fsdecode(target), fsdecode(path))


def chmod(process: Process, dirfd: int, path: bytes, mode: int, nofollow: int) -> None:
    at(process, dirfd).chmod(fsdecode(path), mode & PERMISSIONS, follow=not nofollow)


def chown(process: Process, dirfd: int, path: bytes, uid: int, gid: int, nofollow: int) -> None:
    at(process, dirfd).chown(fsdecode(path), uid, gid, follow=not nofollow)


def utimens(process: Process, dirfd: int, path: bytes, atime: int, mtime: int, which: int, nofollow: int) -> None:
    name = fsdecode(path)
    place = at(process, dirfd).resolve(name, follow=not nofollow)
    _set_times(process, place, name, atime, mtime, which)


def _set_times(process: Process, place: Place, name: str, atime: int, mtime: int, which: int) -> None:
    now = process.kernel.now()
    process.fs.set_times(
        place,
        atime if which & ATIME_SET else now if which & ATIME_NOW else None,
        mtime if which & MTIME_SET else now if which & MTIME_NOW else None,
        name,
        now=which == ATIME_NOW | MTIME_NOW,
    )


def truncate(process: Process, dirfd: int, path: bytes, size: int) -> None:
    at(process, dirfd).truncate(fsdecode(path), size)


def mkfifo(process: Process, dirfd: int, path: bytes, mode: int) -> None:
    at(process, dirfd).mknod(fsdecode(path), S_IFIFO | mode & PERMISSIONS)


def read_file(process: Process, dirfd: int, path: bytes) -> tuple[bytes]:
    name = fsdecode(path)
    file = at(process, dirfd).open(name, O_RDONLY).retain()
    try:
        if file.place.node.is_dir:
            raise SysError(EISDIR, name)
        process.budget.charge()
        parts: list[bytes] = []
        total = 0
        while data := file.read(DATA_MAX):
            total += len(data)
            if total > FILE_MAX:
                raise SysError(EFBIG, name)
            parts.append(data)
    finally:
        file.release()
    return (b"".join(parts),)


def write_file(process: Process, dirfd: int, path: bytes, flags: int, mode: int, data: bytes) -> tuple[int]:
    if flags & O_PATH:
        raise SysError(EINVAL)
    file = at(process, dirfd).open(fsdecode(path), flags | O_WRONLY | O_CREAT, mode & PERMISSIONS)
    fd = process.fds.add(file, cloexec=True)
    try:
        process.write_all(fd, data)
    finally:
        process.close(fd)
    return (len(data),)


def statfs(process: Process, dirfd: int, path: bytes) -> tuple[list[int]]:
    figures = at(process, dirfd).statfs(fsdecode(path))
    return (
        [
            figures.block_size,
            figures.blocks,
            figures.blocks_free,
            figures.files,
            figures.files_free,
            figures.name_max,
        ],
    )


# Terminals.


def isatty(process: Process, fd: int) -> tuple[int]:
    process.fds[fd]
    return (int(process.isatty(fd)),)


def winsize(process: Process, fd: int) -> tuple[int, int]:
    size = process.ioctl(fd, "winsize")
    assert isinstance(size, WinSize)
    return size.rows, size.columns


def flock(process: Process, fd: int, operation: int) -> None:
    """EAGAIN: it is locked, and the operation is not to wait. EINTR."""
    file = process.fds[fd]
    kind, wait = operation & ~LOCK_NB, not operation & LOCK_NB
    if kind == LOCK_UN:
        unlock_file(file)
    elif kind not in (LOCK_SH, LOCK_EX):
        raise SysError(EINVAL)
    elif not lock_file(process, file, exclusive=kind == LOCK_EX, timeout=None if wait else 0.0):
        raise SysError(EAGAIN)
