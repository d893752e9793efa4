"""Open flags, access modes, file-type bits and the other small numbers of Linux's file calls (x86_64 values)."""

from typing import Final

O_RDONLY: Final = 0
O_WRONLY: Final = 1
O_RDWR: Final = 2
O_ACCMODE: Final = 3
O_CREAT: Final = 0o100
O_EXCL: Final = 0o200
O_NOCTTY: Final = 0o400
O_TRUNC: Final = 0o1000
O_APPEND: Final = 0o2000
O_NONBLOCK: Final = 0o4000
O_DIRECTORY: Final = 0o200000
O_NOFOLLOW: Final = 0o400000
O_CLOEXEC: Final = 0o2000000
O_PATH: Final = 0o10000000

SEEK_SET: Final = 0
SEEK_CUR: Final = 1
SEEK_END: Final = 2
SEEK_DATA: Final = 3
SEEK_HOLE: Final = 4

S_IFMT: Final = 0o170000
S_IFSOCK: Final = 0o140000
S_IFLNK: Final = 0o120000
S_IFREG: Final = 0o100000
S_IFBLK: Final = 0o060000
S_IFDIR: Final = 0o040000
S_IFCHR: Final = 0o020000
S_IFIFO: Final = 0o010000
S_ISUID: Final = 0o4000
S_ISGID: Final = 0o2000
S_ISVTX: Final = 0o1000
S_IXGRP: Final = 0o010
S_IXUGO: Final = 0o111
PERMISSIONS: Final = 0o7777

R_OK: Final = 4
W_OK: Final = 2
X_OK: Final = 1
F_OK: Final = 0

RENAME_NOREPLACE: Final = 1
RENAME_EXCHANGE: Final = 2

POLLIN: Final = 1
POLLOUT: Final = 4
POLLERR: Final = 8
POLLHUP: Final = 16

WNOHANG: Final = 1
WUNTRACED: Final = 2
WCONTINUED: Final = 8

NAME_MAX: Final = 255
PATH_MAX: Final = 4096
SYMLINK_MAX: Final = 40
FILE_MAX: Final = (1 << 63) - 1
ARG_MAX: Final = 8 << 20
