"""Results of the file calls (stat, readdir, statfs), and the argument of setattr."""

from typing import NamedTuple

from msgspec import Struct

from belljar.abi.flags import S_IFDIR, S_IFLNK, S_IFMT, S_IFREG

NANO = 1_000_000_000


class Stat(NamedTuple):
    """One file's metadata. A tuple, not a dataclass: `ls -R` and `find` make a great many. Times are in ns."""

    mode: int
    ino: int
    dev: int
    nlink: int
    uid: int
    gid: int
    size: int
    atime: int
    mtime: int
    ctime: int
    rdev: int = 0
    blocks: int = 0
    """Allocated units of 512 bytes (st_blocks); less than `size` for a sparse file."""

    @property
    def kind(self) -> int:
        return self.mode & S_IFMT

    @property
    def is_dir(self) -> bool:
        return self.mode & S_IFMT == S_IFDIR

    @property
    def is_regular(self) -> bool:
        return self.mode & S_IFMT == S_IFREG

    @property
    def is_symlink(self) -> bool:
        return self.mode & S_IFMT == S_IFLNK


class Dirent(NamedTuple):
    """A name in a directory. `kind` is the S_IFMT part of the mode."""

    name: str
    ino: int
    kind: int

    @property
    def is_dir(self) -> bool:
        return self.kind == S_IFDIR


class StatFs(NamedTuple):
    """A file system's size, as df shows it."""

    kind: str
    block_size: int
    blocks: int
    blocks_free: int
    files: int
    files_free: int
    name_max: int = 255


class SetAttr(Struct, frozen=True):
    """The attributes to change; None leaves one as it is. `mode` is the permission bits; times are in ns."""

    mode: int | None = None
    uid: int | None = None
    gid: int | None = None
    size: int | None = None
    atime: int | None = None
    mtime: int | None = None


class Owner(Struct, frozen=True):
    """Owner and group of a new file."""

    uid: int
    gid: int
