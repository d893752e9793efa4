"""Trees that are computed when looked at rather than stored: what /proc and /dev are made of.

A tree is described by entries: `Text`, `Link`, `Device` and `Folder`. A folder answers with the entries it has now;
nodes are made when walked to and found again by path, so a node stays the same object while anyone holds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final
from weakref import WeakValueDictionary
from zlib import crc32

from msgspec import Struct

from belljar.abi.errno import EINVAL, ENOENT, ENOTDIR, EPERM
from belljar.abi.errors import SysError
from belljar.abi.flags import S_IFCHR, S_IFDIR, S_IFLNK, S_IFREG
from belljar.abi.paths import check_name, fsencode
from belljar.abi.records import Dirent, SetAttr, Stat
from belljar.kernel.vfs.namespace import Place
from belljar.kernel.vfs.server import FileServer, Handle, Node

ROOT_OWNED: Final = (0, 0)
WRITE_MAX: Final = 1 << 16


class Text(Struct, frozen=True):
    """A file whose bytes are made when it is first read; `write` takes what one write call brings."""

    render: Callable[[], bytes]
    mode: int = 0o444
    owner: tuple[int, int] = ROOT_OWNED
    write: Callable[[bytes], None] | None = None


class Link(Struct, frozen=True):
    """A symlink; with `jump`, a magic one that leads to a place whatever its text says."""

    target: Callable[[], str]
    jump: Callable[[], Place] | None = None
    mode: int = 0o777
    owner: tuple[int, int] = ROOT_OWNED


class Device(Struct, frozen=True):
    """A character device: each open makes a handle."""

    open: Callable[[int], Handle]
    rdev: int
    mode: int = 0o666
    owner: tuple[int, int] = ROOT_OWNED


class Folder(Struct, frozen=True):
    """A directory: all its names, and what one name means (None if nothing)."""

    names: Callable[[], Iterable[str]]
    find: Callable[[str], Entry | None]
    mode: int = 0o555
    owner: tuple[int, int] = ROOT_OWNED


Entry = Text | Link | Device | Folder

_KINDS: Final[dict[type, int]] = {Text: S_IFREG, Link: S_IFLNK, Device: S_IFCHR, Folder: S_IFDIR}


def folder(entries: Mapping[str, Entry], mode: int = 0o555, owner: tuple[int, int] = ROOT_OWNED) -> Folder:
    """A directory that always has the same entries."""
    return Folder(lambda: entries, entries.get, mode, owner)


def static_text(text: str, mode: int = 0o444) -> Text:
    data = fsencode(text)
    return Text(lambda: data, mode)


class SyntheticNode(Node):
    """One entry as reached by its path from the root of its server."""

    __slots__ = ("atime", "ctime", "entry", "ino", "mtime", "name", "parent", "path")

    def __init__(self, entry: Entry, parent: SyntheticNode | None, name: str, now: int) -> None:
        super().__init__(_KINDS[type(entry)] | entry.mode, *entry.owner)
        self.entry = entry
        self.parent = parent
        self.name = name
        self.path: str = name if parent is None or not parent.path else f"{parent.path}/{name}"
        self.ino = path_ino(self.path)
        self.atime = self.mtime = self.ctime = now


def path_ino(path: str) -> int:
    """The same number for the same path, without keeping anything."""
    return crc32(fsencode(path)) + 2 if path else 1


class SyntheticServer(FileServer):
    """Serves a tree of entries."""

    def __init__(self, root: Folder, now: Callable[[], int]) -> None:
        self._now = now
        self._root = SyntheticNode(root, None, "", now())
        self._nodes: WeakValueDictionary[str, SyntheticNode] = WeakValueDictionary()

    @property
    def root(self) -> Node:
        return self._root

    def walk(self, directory: Node, name: str) -> Node:
        entry = self._folder(directory).find(name)
        if entry is None:
            check_name(name)
            raise SysError(ENOENT)
        assert isinstance(directory, SyntheticNode)
        path = f"{directory.path}/{name}" if directory.path else name
        node = self._nodes.get(path)
        if node is None or type(node.entry) is not type(entry):
            node = self._nodes[path] = SyntheticNode(entry, directory, name, self._now())
        elif node.entry is not entry:
            node.entry = entry
            node.mode = _KINDS[type(entry)] | entry.mode
            node.uid, node.gid = entry.owner
        return node

    def _folder(self, directory: Node) -> Folder:
        assert isinstance(directory, SyntheticNode)
        if not isinstance(directory.entry, Folder):
            raise SysError(ENOTDIR)
        return directory.entry

    def locate(self, directory: Node) -> tuple[Node, str] | None:
        assert isinstance(directory, SyntheticNode)
        parent = directory.parent
        if parent is None:
            return None
        gone = self._folder(parent).find(directory.name) is None
        return parent, "" if gone else directory.name

    def readdir(self, directory: Node) -> Sequence[Dirent]:
        listed = self._folder(directory)
        assert isinstance(directory, SyntheticNode)
        prefix = f"{directory.path}/" if directory.path else ""
        found = ((name, listed.find(name)) for name in listed.names())
        return [
            Dirent(name, path_ino(prefix + name), _KINDS[type(entry)]) for name, entry in found if entry is not None
        ]

    def stat(self, node: Node) -> Stat:
        assert isinstance(node, SyntheticNode)
        entry = node.entry
        return Stat(
            node.mode, node.ino, self.dev, 2 if node.is_dir else 1, node.uid, node.gid, self.size(entry),
            node.atime, node.mtime, node.ctime, entry.rdev if isinstance(entry, Device) else 0,
        )  # fmt: skip

    def size(self, entry: Entry) -> int:
        """`st_size`: 0 for files generated on read, as in Linux's /proc."""
        return 64 if isinstance(entry, Link) and entry.jump is not None else 0

    def readlink(self, node: Node) -> str:
        assert isinstance(node, SyntheticNode)
        if not isinstance(node.entry, Link):
            raise SysError(EINVAL)
        return node.entry.target()

    def magic_link(self, node: Node) -> Place | None:
        assert isinstance(node, SyntheticNode)
        if not isinstance(node.entry, Link) or node.entry.jump is None:
            return None
        return node.entry.jump()

    def open(self, node: Node, flags: int) -> Handle:
        assert isinstance(node, SyntheticNode)
        match node.entry:
            case Text() as entry:
                return TextHandle(entry)
            case Device() as entry:
                return entry.open(flags)
            case _:
                raise SysError(EINVAL)

    # Nothing can be made here, whoever asks.

    def setattr(self, node: Node, change: SetAttr) -> None:
        """Accept and ignore a truncation before a write (`> /proc/sys/...`)."""
        if change != SetAttr(size=0):
            raise SysError(EPERM)


class TextHandle(Handle):
    """One reader's snapshot of a computed file."""

    __slots__ = ("_data", "_entry")

    def __init__(self, entry: Text) -> None:
        self.nonblocking = False
        self._entry = entry
        self._data: bytes | None = None

    def _text(self) -> bytes:
        if self._data is None:
            self._data = self._entry.render()
        return self._data

    def read(self, offset: int, size: int) -> bytes:
        if offset == 0:
            self._data = None  # rewinding shows the present, as top(1) relies on
        return self._text()[offset : offset + size]

    def write(self, offset: int | None, data: bytes) -> int:
        if self._entry.write is None or len(data) > WRITE_MAX:
            raise SysError(EINVAL)
        self._entry.write(data)
        return len(data)

    def truncate(self, size: int) -> None:
        """Nothing is stored, so there is nothing to cut."""

    def size(self) -> int:
        return len(self._text())
