"""The numbers of wasi_snapshot_preview1: errnos, rights, file types, flags, and the shapes of its functions."""

from __future__ import annotations

import errno as linux
from typing import Final

from belljar.abi.flags import S_IFBLK, S_IFCHR, S_IFDIR, S_IFLNK, S_IFMT, S_IFREG, S_IFSOCK

SUCCESS: Final = 0
_NAMES: Final = (
    "SUCCESS E2BIG EACCES EADDRINUSE EADDRNOTAVAIL EAFNOSUPPORT EAGAIN EALREADY EBADF EBADMSG EBUSY ECANCELED ECHILD "
    "ECONNABORTED ECONNREFUSED ECONNRESET EDEADLK EDESTADDRREQ EDOM EDQUOT EEXIST EFAULT EFBIG EHOSTUNREACH EIDRM "
    "EILSEQ EINPROGRESS EINTR EINVAL EIO EISCONN EISDIR ELOOP EMFILE EMLINK EMSGSIZE EMULTIHOP ENAMETOOLONG ENETDOWN "
    "ENETRESET ENETUNREACH ENFILE ENOBUFS ENODEV ENOENT ENOEXEC ENOLCK ENOLINK ENOMEM ENOMSG ENOPROTOOPT ENOSPC ENOSYS "
    "ENOTCONN ENOTDIR ENOTEMPTY ENOTRECOVERABLE ENOTSOCK ENOTSUP ENOTTY ENXIO EOVERFLOW EOWNERDEAD EPERM EPIPE EPROTO "
    "EPROTONOSUPPORT EPROTOTYPE ERANGE EROFS ESPIPE ESRCH ESTALE ETIMEDOUT ETXTBSY EXDEV ENOTCAPABLE"
).split()
"""Names in the order of their WASI numbers."""
_BY_NAME: Final = {name: number for number, name in enumerate(_NAMES)}
FROM_LINUX: Final = {
    number: _BY_NAME[name] for name, number in vars(linux).items() if name in _BY_NAME and isinstance(number, int)
}
"""WASI's number for each of Linux's."""

EACCES, EAGAIN, EBADF, EEXIST, EFAULT, EINTR, EINVAL, EIO, EISDIR, ENOENT, ENOSYS, ENOTDIR, ENOTSUP, EPERM = (
    _BY_NAME[name]
    for name in "EACCES EAGAIN EBADF EEXIST EFAULT EINTR EINVAL EIO EISDIR ENOENT ENOSYS ENOTDIR ENOTSUP EPERM".split()
)
EROFS, ESPIPE, ENOMEM, ENOTCAPABLE, EFBIG = (_BY_NAME[name] for name in "EROFS ESPIPE ENOMEM ENOTCAPABLE EFBIG".split())


def from_linux(errno: int) -> int:
    return FROM_LINUX.get(errno, EIO)


# File types.
UNKNOWN, BLOCK_DEVICE, CHARACTER_DEVICE, DIRECTORY, REGULAR_FILE, SOCKET_DGRAM, SOCKET_STREAM, SYMBOLIC_LINK = range(8)
_TYPES: Final = {
    S_IFBLK: BLOCK_DEVICE,
    S_IFCHR: CHARACTER_DEVICE,
    S_IFDIR: DIRECTORY,
    S_IFREG: REGULAR_FILE,
    S_IFSOCK: SOCKET_STREAM,
    S_IFLNK: SYMBOLIC_LINK,
}


def file_type(mode: int) -> int:
    """WASI's word for a kind of file. It has none for a pipe."""
    return _TYPES.get(mode & S_IFMT, UNKNOWN)


# Rights, as bits.
_RIGHTS: Final = (
    "FD_DATASYNC FD_READ FD_SEEK FD_FDSTAT_SET_FLAGS FD_SYNC FD_TELL FD_WRITE FD_ADVISE FD_ALLOCATE "
    "PATH_CREATE_DIRECTORY PATH_CREATE_FILE PATH_LINK_SOURCE PATH_LINK_TARGET PATH_OPEN FD_READDIR PATH_READLINK "
    "PATH_RENAME_SOURCE PATH_RENAME_TARGET PATH_FILESTAT_GET PATH_FILESTAT_SET_SIZE PATH_FILESTAT_SET_TIMES "
    "FD_FILESTAT_GET FD_FILESTAT_SET_SIZE FD_FILESTAT_SET_TIMES PATH_SYMLINK PATH_REMOVE_DIRECTORY PATH_UNLINK_FILE "
    "POLL_FD_READWRITE SOCK_SHUTDOWN SOCK_ACCEPT"
).split()
RIGHT: Final = {name: 1 << bit for bit, name in enumerate(_RIGHTS)}
ALL_RIGHTS: Final = (1 << len(_RIGHTS)) - 1
SEEKING: Final = RIGHT["FD_SEEK"] | RIGHT["FD_TELL"]
READING: Final = RIGHT["FD_READ"] | RIGHT["FD_READDIR"]
WRITING: Final = RIGHT["FD_WRITE"] | RIGHT["FD_ALLOCATE"] | RIGHT["FD_DATASYNC"] | RIGHT["FD_FILESTAT_SET_SIZE"]

# Flags.
FDFLAG_APPEND, FDFLAG_DSYNC, FDFLAG_NONBLOCK, FDFLAG_RSYNC, FDFLAG_SYNC = 1, 2, 4, 8, 16
OFLAG_CREAT, OFLAG_DIRECTORY, OFLAG_EXCL, OFLAG_TRUNC = 1, 2, 4, 8
FSTFLAG_ATIM, FSTFLAG_ATIM_NOW, FSTFLAG_MTIM, FSTFLAG_MTIM_NOW = 1, 2, 4, 8
LOOKUP_FOLLOW: Final = 1
SUBSCRIBE_CLOCK, SUBSCRIBE_READ, SUBSCRIBE_WRITE = 0, 1, 2
CLOCK_REALTIME, CLOCK_MONOTONIC, CLOCK_PROCESS, CLOCK_THREAD = range(4)
CLOCK_ABSOLUTE: Final = 1
EVENT_HANGUP: Final = 1


def has_both_times(flags: int) -> bool:
    """Whether fstflags ask for a given time and the current one at once, which is EINVAL."""
    atime, mtime = FSTFLAG_ATIM | FSTFLAG_ATIM_NOW, FSTFLAG_MTIM | FSTFLAG_MTIM_NOW
    return flags & atime == atime or flags & mtime == mtime


SIGNATURES: Final[dict[str, str]] = {
    "args_get": "ii",
    "args_sizes_get": "ii",
    "environ_get": "ii",
    "environ_sizes_get": "ii",
    "clock_res_get": "ii",
    "clock_time_get": "iIi",
    "fd_advise": "iIIi",
    "fd_allocate": "iII",
    "fd_close": "i",
    "fd_datasync": "i",
    "fd_fdstat_get": "ii",
    "fd_fdstat_set_flags": "ii",
    "fd_fdstat_set_rights": "iII",
    "fd_filestat_get": "ii",
    "fd_filestat_set_size": "iI",
    "fd_filestat_set_times": "iIIi",
    "fd_pread": "iiiIi",
    "fd_prestat_get": "ii",
    "fd_prestat_dir_name": "iii",
    "fd_pwrite": "iiiIi",
    "fd_read": "iiii",
    "fd_readdir": "iiiIi",
    "fd_renumber": "ii",
    "fd_seek": "iIii",
    "fd_sync": "i",
    "fd_tell": "ii",
    "fd_write": "iiii",
    "path_create_directory": "iii",
    "path_filestat_get": "iiiii",
    "path_filestat_set_times": "iiiiIIi",
    "path_link": "iiiiiii",
    "path_open": "iiiiiIIii",
    "path_readlink": "iiiiii",
    "path_remove_directory": "iii",
    "path_rename": "iiiiii",
    "path_symlink": "iiiii",
    "path_unlink_file": "iii",
    "poll_oneoff": "iiii",
    "proc_exit": "i",
    "proc_raise": "i",
    "random_get": "ii",
    "sched_yield": "",
    "sock_accept": "iii",
    "sock_recv": "iiiiii",
    "sock_send": "iiiii",
    "sock_shutdown": "ii",
}
"""Parameters of each function: `i` is an unsigned i32, `I` a signed i64. All but proc_exit return an errno."""
