"""The file-server interface: the methods of anything that is mounted in a guest's namespace.

Errors are `SysError`. Each method lists the errnos it may raise beside ENOENT (the node is gone) and EIO. The
caller (`vfs/view.py`) has already resolved symlinks and mounts, checked permissions, names and read-only mounts; a
server checks what only it can know atomically: existence, kind, emptiness, space. `tests/contract/` is the contract
as tests; every server passes it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from belljar.abi.errno import EINVAL, ENOTTY, EROFS, ESPIPE
from belljar.abi.errors import SysError
from belljar.abi.flags import POLLIN, POLLOUT, S_IFDIR, S_IFLNK, S_IFMT
from belljar.abi.records import Dirent, Owner, SetAttr, Stat, StatFs

if TYPE_CHECKING:
    from belljar.kernel.fiber import WaitQueue
    from belljar.kernel.vfs.namespace import Place


class Node:
    """One file as its server knows it.

    A server gives the same object for the same file as long as anyone holds it (mounts and working directories are
    found by identity), and keeps mode, uid and gid current: path resolution reads them on every step.
    """

    __slots__ = ("__weakref__", "gid", "mode", "uid")

    def __init__(self, mode: int, uid: int, gid: int) -> None:
        self.mode = mode
        self.uid = uid
        self.gid = gid

    @property
    def is_dir(self) -> bool:
        return self.mode & S_IFMT == S_IFDIR

    @property
    def is_symlink(self) -> bool:
        return self.mode & S_IFMT == S_IFLNK


class Handle:
    """An open file at its server. One per open; shared by every descriptor that was duplicated from it.

    Offsets are given by the caller; a stream (pipe, tty, device) has `seekable = False` and ignores them.
    """

    __slots__ = ("nonblocking",)
    seekable = True
    may_be_terminal = True
    """False where `isatty` needs no asking."""

    @property
    def link_name(self) -> str | None:
        """The text of its link in /proc/PID/fd, where that is not its path."""
        return None

    def __init__(self) -> None:
        self.nonblocking = False

    def read(self, offset: int, size: int) -> bytes:
        """At most `size` bytes; b"" at the end. EISDIR, EAGAIN."""
        raise SysError(EINVAL)

    def peek(self) -> bytes | memoryview | None:
        """Of a stream: bytes that can be read at once, b"" if there are none yet; None if it can't tell."""
        return None

    def write(self, offset: int | None, data: bytes) -> int:
        """Write at `offset`, or at the end if it is None; returns how many bytes were taken. ENOSPC, EFBIG, EPIPE."""
        raise SysError(EINVAL)

    def truncate(self, size: int) -> None:
        """ENOSPC, EFBIG, EINVAL (not a regular file)."""
        raise SysError(EINVAL)

    def size(self) -> int:
        """The current end of the file. ESPIPE for streams."""
        raise SysError(ESPIPE)

    def seek_data(self, offset: int, *, hole: bool) -> int:
        """The next data (or hole) at or after `offset`, which lies before the end. Without holes: all is data."""
        return self.size() if hole else offset

    def sync(self) -> None:
        """Make it durable, where that means anything."""

    def ioctl(self, request: str, argument: object = None) -> object:
        """Device control by name, e.g. `winsize`. ENOTTY."""
        raise SysError(ENOTTY)

    def poll(self) -> int:
        """The current events among POLLIN, POLLOUT, POLLHUP, POLLERR."""
        return POLLIN | POLLOUT

    @property
    def waiters(self) -> WaitQueue | None:
        """Woken whenever `poll` may have changed; None if it never changes."""
        return None

    def close(self) -> None:
        """The last descriptor is gone. Called once; must not raise or block."""


class Changes:
    """Counts changes of all watched nodes: the same number means that nothing changed."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0


class Scan(NamedTuple):
    """A directory's entries with their stats."""

    entries: Sequence[tuple[str, Node | None, Stat]]
    """Without a node: `walk` says whether it may be used at all."""
    exact: bool
    """Whether a name that is not among them does not exist; a directory may fold the case of names."""


class FileServer(ABC):
    """A tree of nodes. The defaults make a read-only server: EROFS for every change."""

    kind: str = "server"
    """The type that /proc/mounts and df show."""
    dev: int = 0
    """Device number (st_dev), unique per mounted server; the kernel sets it at mount time."""
    changes: Changes | None = None
    """Counter of changes of watched nodes; the kernel sets it at mount time."""

    def watch(self, node: Node) -> bool:
        """Count changes of this node (entries, contents, attributes) from now on; False if this server can't."""
        return False

    def changed(self) -> None:
        """A watched node changed."""
        if self.changes is not None:
            self.changes.count += 1

    @property
    @abstractmethod
    def root(self) -> Node:
        """The directory (or file) that appears at the mount point."""

    @abstractmethod
    def walk(self, directory: Node, name: str) -> Node:
        """The entry `name`; never "", "." or "..". ENOENT, ENOTDIR, ENAMETOOLONG."""

    @abstractmethod
    def locate(self, directory: Node) -> tuple[Node, str] | None:
        """The parent of a directory and its name there; None for the root.

        A removed directory still has the parent it was removed from, and "" as its name.
        """

    @abstractmethod
    def stat(self, node: Node) -> Stat: ...

    @abstractmethod
    def readdir(self, directory: Node) -> Sequence[Dirent]:
        """Every entry but "." and "..", in a stable order. ENOTDIR."""

    def scan(self, directory: Node) -> Scan | None:
        """Every entry with its node and stat, of one moment; None if this server can't tell what changes. EFBIG."""
        return None

    def listing_version(self, directory: Node) -> int:
        """A number that changes with what `scan` would say; 0 if it takes a scan to tell."""
        return 0

    def settled(self, stat: Stat) -> bool:
        """Whether every later change of the file will show in its stat: a reader may keep what it reads till then."""
        return False

    def prefetch(self, nodes: Sequence[Node]) -> None:  # noqa: B027 - most servers need not know
        """These files are about to be read."""

    @abstractmethod
    def open(self, node: Node, flags: int) -> Handle:
        """Open for the access in `flags`; O_TRUNC is applied here. ENXIO, EISDIR, ETXTBSY."""

    def hold(self, node: Node) -> Handle:
        """Open with O_PATH: keeps the file in existence; the handle can't be read or written."""
        return Handle()

    def readlink(self, node: Node) -> str:
        """EINVAL if it is no symlink."""
        raise SysError(EINVAL)

    def magic_link(self, node: Node) -> Place | None:
        """The target of a magic link (/proc/self/fd/3), whatever its text; None for an ordinary symlink."""
        return None

    def create(self, directory: Node, name: str, mode: int, owner: Owner) -> Node:
        """A new regular file, FIFO or socket (by the type bits of `mode`). EEXIST, ENOSPC, EPERM (device)."""
        raise SysError(EROFS)

    def mkdir(self, directory: Node, name: str, mode: int, owner: Owner) -> Node:
        """EEXIST, ENOSPC."""
        raise SysError(EROFS)

    def symlink(self, directory: Node, name: str, target: str, owner: Owner) -> Node:
        """EEXIST, ENOSPC."""
        raise SysError(EROFS)

    def link(self, node: Node, directory: Node, name: str) -> None:
        """Another name for a file that is not a directory. EEXIST, EMLINK, EPERM (directory), EXDEV."""
        raise SysError(EROFS)

    def unlink(self, directory: Node, name: str) -> None:
        """Remove a name that is not a directory; open files live on. EISDIR."""
        raise SysError(EROFS)

    def rmdir(self, directory: Node, name: str) -> None:
        """ENOTDIR, ENOTEMPTY, EBUSY."""
        raise SysError(EROFS)

    def rename(self, source: Node, old: str, target: Node, new: str, flags: int) -> None:
        """Atomically move, replacing what is there. EISDIR, ENOTDIR, ENOTEMPTY, EINVAL (into itself), EEXIST."""
        raise SysError(EROFS)

    def setattr(self, node: Node, change: SetAttr) -> None:
        """Change what is not None. ENOSPC, EFBIG, EPERM."""
        raise SysError(EROFS)

    def statfs(self) -> StatFs:
        return StatFs(self.kind, 4096, 0, 0, 0, 0)

    def close(self) -> None:  # noqa: B027 - most servers hold nothing
        """Release resources outside the kernel, which is shutting down."""
