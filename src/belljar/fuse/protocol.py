"""The FUSE kernel protocol, 7.31 and newer: numbers, records, and the checks of every request the kernel sends.

All numbers are in the machine's byte order, which is little-endian wherever belljar runs natively.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, NamedTuple

from belljar.abi.errno import EINVAL, EIO, ENAMETOOLONG
from belljar.abi.errors import SysError
from belljar.abi.flags import NAME_MAX, PATH_MAX
from belljar.abi.paths import fsdecode
from belljar.abi.records import NANO, Stat, StatFs

MAJOR: Final = 7
MINOR: Final = 38
"""The newest minor version spoken here; a newer kernel falls back to it."""
MINOR_LEAST: Final = 31
ROOT_ID: Final = 1
DATA_MAX: Final = 1 << 20
"""The most data of one READ or WRITE."""
MESSAGE_MAX: Final = DATA_MAX + 4096
"""The longest request: a WRITE, or two names with their header."""
PAGE: Final = 4096
FOREVER: Final = 1 << 32
"""Seconds for which the kernel may keep what only it can change."""

LOOKUP: Final = 1
FORGET: Final = 2
GETATTR: Final = 3
SETATTR: Final = 4
READLINK: Final = 5
SYMLINK: Final = 6
MKNOD: Final = 8
MKDIR: Final = 9
UNLINK: Final = 10
RMDIR: Final = 11
RENAME: Final = 12
LINK: Final = 13
OPEN: Final = 14
READ: Final = 15
WRITE: Final = 16
STATFS: Final = 17
RELEASE: Final = 18
FSYNC: Final = 20
FLUSH: Final = 25
INIT: Final = 26
OPENDIR: Final = 27
READDIR: Final = 28
RELEASEDIR: Final = 29
FSYNCDIR: Final = 30
INTERRUPT: Final = 36
DESTROY: Final = 38
BATCH_FORGET: Final = 42
FALLOCATE: Final = 43
READDIRPLUS: Final = 44
RENAME2: Final = 45
LSEEK: Final = 46

UNANSWERED: Final = frozenset({FORGET, BATCH_FORGET, INTERRUPT})
"""Requests to which the kernel takes no reply."""

# Flags of INIT.
ASYNC_READ: Final = 1 << 0
BIG_WRITES: Final = 1 << 5
AUTO_INVAL_DATA: Final = 1 << 12
DO_READDIRPLUS: Final = 1 << 13
READDIRPLUS_AUTO: Final = 1 << 14
PARALLEL_DIROPS: Final = 1 << 18
ABORT_ERROR: Final = 1 << 21
MAX_PAGES: Final = 1 << 22
CACHE_SYMLINKS: Final = 1 << 23
INIT_EXT: Final = 1 << 30
DIRECT_IO_ALLOW_MMAP: Final = 1 << 36
"""Of the flags from 32 on, which older kernels do not send."""

# Flags of the reply to OPEN and OPENDIR.
FOPEN_DIRECT_IO: Final = 1 << 0
FOPEN_KEEP_CACHE: Final = 1 << 1
FOPEN_NONSEEKABLE: Final = 1 << 2
FOPEN_CACHE_DIR: Final = 1 << 3

# Fields of SETATTR that are to be set.
FATTR_MODE: Final = 1 << 0
FATTR_UID: Final = 1 << 1
FATTR_GID: Final = 1 << 2
FATTR_SIZE: Final = 1 << 3
FATTR_ATIME: Final = 1 << 4
FATTR_MTIME: Final = 1 << 5
FATTR_FH: Final = 1 << 6
FATTR_ATIME_NOW: Final = 1 << 7
FATTR_MTIME_NOW: Final = 1 << 8

WRITE_CACHE: Final = 1 << 0
"""A WRITE of a mapped page: the handle may be any that is open for writing."""
FALLOC_KEEP_SIZE: Final = 1
FALLOC_PUNCH_HOLE: Final = 2

NOTIFY_INVAL_INODE: Final = 2
NOTIFY_INVAL_ENTRY: Final = 3
NOTIFY_INC_EPOCH: Final = 8
EPOCHS_MINOR: Final = 44
"""The first minor version in which a kernel can be told to look up all names anew."""

IN_HEADER: Final = Struct("<IIQQIIIHH")
OUT_HEADER: Final = Struct("<IiQ")
_NOTIFY_HEADER: Final = Struct("<IIQ")
_ENTRY: Final = Struct("<QQQQII")
_ATTR_VALID: Final = Struct("<QII")
_ATTR: Final = Struct("<QQQqqqIIIIIIIIII")
_DIRENT: Final = Struct("<QQII")
_KSTATFS: Final = Struct("<QQQQQIIII24x")
_INIT_OUT: Final = Struct("<IIIIHHIIHHI28x")
INIT_IN: Final = Struct("<IIII")
INIT_EXT_IN: Final = Struct("<16xI")
SETATTR_IN: Final = Struct("<I4xQQQqqqIIIIIII4x")
MKNOD_IN: Final = Struct("<II8x")
MKDIR_IN: Final = Struct("<II")
RENAME_IN: Final = Struct("<Q")
RENAME2_IN: Final = Struct("<QI4x")
LINK_IN: Final = Struct("<Q")
OPEN_IN: Final = Struct("<I4x")
CREATE_IN: Final = Struct("<II8x")
READ_IN: Final = Struct("<QQI20x")
WRITE_IN: Final = Struct("<QQII8xI4x")
HANDLE_IN: Final = Struct("<Q")
"""RELEASE, FSYNC and the like begin with the number of a handle; the rest of them is not needed."""
FALLOCATE_IN: Final = Struct("<QQQI4x")
LSEEK_IN: Final = Struct("<QQI4x")
FORGET_IN: Final = Struct("<Q")
BATCH_FORGET_IN: Final = Struct("<I4x")
FORGET_ONE: Final = Struct("<QQ")
OPEN_OUT: Final = Struct("<QI4x")
WRITE_OUT: Final = Struct("<I4x")
LSEEK_OUT: Final = Struct("<Q")
_INVAL_INODE: Final = Struct("<Qqq")
_INVAL_ENTRY: Final = Struct("<QII")


class Malformed(Exception):
    """A request that no kernel sends."""


class Request(NamedTuple):
    """One request. `body` is valid only until the next one is read."""

    opcode: int
    unique: int
    node: int
    uid: int
    gid: int
    body: memoryview

    def fields(self, record: Struct) -> tuple[int, ...]:
        """The numbers that the body begins with. Malformed."""
        if len(self.body) < record.size:
            raise Malformed
        return record.unpack_from(self.body)

    def names(self, start: int, count: int = 1) -> list[str]:
        """The file names after the first `start` bytes. Malformed, ENAMETOOLONG."""
        return [check_name(name) for name in self.texts(start, count)]

    def texts(self, start: int, count: int) -> list[bytes]:
        """Texts, each ended by a NUL, and nothing after them. Malformed."""
        parts = bytes(self.body[start:]).split(b"\0")
        if len(parts) != count + 1 or parts[-1]:
            raise Malformed
        return parts[:-1]


def parse_request(message: memoryview) -> Request:
    """Malformed."""
    if len(message) < IN_HEADER.size:
        raise Malformed
    length, opcode, unique, node, uid, gid, _, _, _ = IN_HEADER.unpack_from(message)
    if length != len(message):
        raise Malformed
    return Request(opcode, unique, node, uid, gid, message[IN_HEADER.size :])


def check_name(name: bytes) -> str:
    """Malformed, ENAMETOOLONG."""
    if not name or b"/" in name or name in (b".", b".."):
        raise Malformed
    if len(name) > NAME_MAX:
        raise SysError(ENAMETOOLONG)
    return fsdecode(name)


def check_target(target: bytes) -> str:
    """A symlink's target. EINVAL, ENAMETOOLONG."""
    if not target:
        raise SysError(EINVAL)
    if len(target) >= PATH_MAX:
        raise SysError(ENAMETOOLONG)
    return fsdecode(target)


def errno_of(number: object) -> int:
    """An errno that the kernel takes; EIO for any other."""
    return number if type(number) is int and 0 < number <= 133 else EIO


def pack_init(minor: int, flags: int) -> bytes:
    """How far the kernel reads ahead is left to it, up to what one answer may hold."""
    pages = DATA_MAX // PAGE
    low, high = flags & 0xFFFF_FFFF, flags >> 32
    return _INIT_OUT.pack(MAJOR, minor, DATA_MAX, low, 64, 48, DATA_MAX, 1, pages, 0, high)


def pack_attr(stat: Stat) -> bytes:
    """A file's metadata. struct.error for numbers that a kernel has no room for."""
    atime, atime_ns = divmod(stat.atime, NANO)
    mtime, mtime_ns = divmod(stat.mtime, NANO)
    ctime, ctime_ns = divmod(stat.ctime, NANO)
    return _ATTR.pack(
        stat.ino, stat.size, stat.blocks, atime, mtime, ctime, atime_ns, mtime_ns, ctime_ns,
        stat.mode, stat.nlink, stat.uid, stat.gid, stat.rdev, PAGE, 0,
    )  # fmt: skip


def pack_entry(node: int, stat: Stat, valid: float) -> bytes:
    """A name's node, for so many seconds. Numbers are used once, so their generation is always 0."""
    seconds = int(valid)
    fraction = int((valid - seconds) * NANO)
    return _ENTRY.pack(node, 0, seconds, seconds, fraction, fraction) + pack_attr(stat)


def pack_missing(valid: float) -> bytes:
    """That a name does not exist, for so long."""
    seconds = int(valid)
    return _ENTRY.pack(0, 0, seconds, 0, int((valid - seconds) * NANO), 0) + bytes(_ATTR.size)


def pack_attributes(stat: Stat, valid: float) -> bytes:
    seconds = int(valid)
    return _ATTR_VALID.pack(seconds, int((valid - seconds) * NANO), 0) + pack_attr(stat)


def pack_dirent(name: bytes, ino: int, offset: int, kind: int) -> bytes:
    """One entry of READDIR; `offset` is where the next one begins, `kind` the S_IFMT part of the mode."""
    return _DIRENT.pack(ino, offset, len(name), kind >> 12) + name + bytes(-len(name) % 8)


def dirent_size(name: bytes, *, plus: bool) -> int:
    return (_ENTRY.size + _ATTR.size if plus else 0) + _DIRENT.size + len(name) + -len(name) % 8


def pack_statfs(found: StatFs) -> bytes:
    _, block, blocks, free, files, files_free, name_max = found
    return _KSTATFS.pack(blocks, free, free, files, files_free, block, name_max, block, 0)


def pack_reply(unique: int, body: bytes) -> bytes:
    """The header of a reply with this body."""
    return OUT_HEADER.pack(OUT_HEADER.size + len(body), 0, unique)


def pack_error(unique: int, errno: int) -> bytes:
    return OUT_HEADER.pack(OUT_HEADER.size, -errno, unique)


def pack_inval_inode(node: int) -> bytes:
    """Tell the kernel that attributes and contents of a file have changed."""
    return _NOTIFY_HEADER.pack(_NOTIFY_HEADER.size + _INVAL_INODE.size, NOTIFY_INVAL_INODE, 0) + _INVAL_INODE.pack(
        node, 0, 0
    )


def pack_inc_epoch() -> bytes:
    """Tell the kernel to look up all names anew."""
    return _NOTIFY_HEADER.pack(_NOTIFY_HEADER.size, NOTIFY_INC_EPOCH, 0)


def pack_inval_entry(directory: int, name: bytes) -> bytes:
    """Tell the kernel that a name now means something else, or nothing."""
    body = _INVAL_ENTRY.pack(directory, len(name), 0) + name + b"\0"
    return _NOTIFY_HEADER.pack(_NOTIFY_HEADER.size + len(body), NOTIFY_INVAL_ENTRY, 0) + body
