"""A tree of a store as a read-only file server: directories and pieces are read when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from hashlib import blake2b
from typing import Final
from weakref import WeakValueDictionary

from belljar.abi.errno import EFBIG, EINVAL, EIO, EISDIR, ENOENT, ENOTDIR, ENXIO, EROFS
from belljar.abi.errors import SysError
from belljar.abi.flags import O_ACCMODE, O_RDONLY, O_TRUNC, S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG
from belljar.abi.limits import MIB
from belljar.abi.paths import check_name, fsdecode
from belljar.abi.records import Dirent, Stat, StatFs
from belljar.kernel.vfs.server import FileServer, Handle, Node, Scan
from belljar.store.errors import StoreError
from belljar.store.objects import PIECE, PIECE_BYTES, Digest
from belljar.store.reader_host import DEADLINE_SECONDS, Kept, Reader
from belljar.store.snapshot import Tree
from belljar.store.store import Objects
from belljar.store.tree import Entry, Kind, decode_directory

BLOCK: Final = 4096
_SCAN_MAX: Final = 10_000
_SMALL: Final = 64 << 10
_AHEAD_BYTES: Final = 1 * MIB
_AHEAD_FILES: Final = 255
"""Small files of a directory that are read together with one of them."""
_AHEAD_PIECES: Final = 3
"""Pieces of a file that are read together with one that follows the last."""
_REPORTS_MAX: Final = 20
_INO_MAX: Final = (1 << 63) - 1
_DIRECTORIES: Final = (Kind.DIRECTORY, Kind.MERGED)
_TYPES: Final = {
    Kind.FILE: S_IFREG,
    Kind.DIRECTORY: S_IFDIR,
    Kind.MERGED: S_IFDIR,
    Kind.SYMLINK: S_IFLNK,
    Kind.FIFO: S_IFIFO,
}


class Listing(dict[str, Entry]):
    """The entries of a directory by name, and how many of them are directories."""

    __slots__ = ("directories",)

    def __init__(self, data: bytes) -> None:
        entries = decode_directory(data)
        super().__init__((fsdecode(entry.name), entry) for entry in entries)
        self.directories = sum(entry.kind in _DIRECTORIES for entry in entries)


def _piece(data: bytes) -> bytes:
    if data[:1] != PIECE:
        raise StoreError("an object of the store is no piece of a file")
    return data


LISTINGS: Final = Kept(Listing, 32 * MIB, 6)
PIECES: Final = Kept(_piece, 32 * MIB, 1)
"""Shared by every stored tree of this process."""


class StoredNode(Node):
    """A file of the tree. `entry` is what its directory says of it."""

    __slots__ = ("entry", "ino", "nlink", "parent")

    def __init__(self, entry: Entry, ino: int, parent: StoredNode | None) -> None:
        super().__init__(_TYPES[entry.kind] | entry.mode, entry.uid, entry.gid)
        self.entry = entry
        self.ino = ino
        self.parent = parent
        self.nlink = 0
        """0: of a directory, not counted yet."""


class StoredTree(FileServer):
    """One tree. A failure of the store is EIO, and `report` is told, of each failure once."""

    kind = "stored"

    def __init__(
        self,
        objects: Objects,
        tree: Tree,
        report: Callable[[StoreError], object] | None = None,
        seconds: float = DEADLINE_SECONDS,
    ) -> None:
        self.objects = objects
        self.tree = tree
        self._reader = Reader(objects, seconds)
        self._report = report
        self._reported: set[str] = set()
        self._hard_links = dict(tree.hard_links)
        root = Entry(b"/", Kind.DIRECTORY, tree.mode, tree.uid, tree.gid, tree.mtime_ns, parts=[tree.digest])
        self._root = StoredNode(root, 1, None)
        self._nodes: WeakValueDictionary[int, StoredNode] = WeakValueDictionary()
        self._soon: dict[Digest, None] = {}
        """Pieces of small files that are about to be read."""

    @property
    def root(self) -> StoredNode:
        return self._root

    def entries(self, directory: Node) -> Mapping[str, Entry]:
        """Everything that a directory object says, deleted names (`Kind.WHITEOUT`) too."""
        assert isinstance(directory, StoredNode)
        if not directory.is_dir:
            raise SysError(ENOTDIR)
        try:
            return self._reader.get(LISTINGS, directory.entry.parts[0])
        except StoreError as error:
            raise self._failed(error) from error

    def walk(self, directory: Node, name: str) -> StoredNode:
        assert isinstance(directory, StoredNode)
        entry = self.entries(directory).get(name)
        if entry is None or entry.kind is Kind.WHITEOUT:
            check_name(name)
            raise SysError(ENOENT)
        return self._node(directory, entry)

    def locate(self, directory: Node) -> tuple[Node, str] | None:
        assert isinstance(directory, StoredNode)
        return None if directory.parent is None else (directory.parent, fsdecode(directory.entry.name))

    def readdir(self, directory: Node) -> Sequence[Dirent]:
        assert isinstance(directory, StoredNode)
        return [
            Dirent(name, _number(directory, entry), _TYPES[entry.kind])
            for name, entry in self.entries(directory).items()
            if entry.kind is not Kind.WHITEOUT
        ]

    def scan(self, directory: Node) -> Scan | None:
        assert isinstance(directory, StoredNode)
        entries = self.entries(directory)
        if len(entries) > _SCAN_MAX:
            raise SysError(EFBIG)
        nodes = {
            name: self._node(directory, entry) for name, entry in entries.items() if entry.kind is not Kind.WHITEOUT
        }
        self._count_links(nodes.values())
        return Scan([(name, node, self._stat(node)) for name, node in nodes.items()], exact=True)

    def listing_version(self, directory: Node) -> int:
        assert isinstance(directory, StoredNode)
        return int.from_bytes(directory.entry.parts[0][:7], "big") if directory.is_dir else 0

    def settled(self, stat: Stat) -> bool:
        return True

    def stat(self, node: Node) -> Stat:
        assert isinstance(node, StoredNode)
        if not node.nlink:
            self._count_links([node])
        return self._stat(node)

    def readlink(self, node: Node) -> str:
        assert isinstance(node, StoredNode)
        if not node.is_symlink:
            raise SysError(EINVAL)
        return fsdecode(node.entry.target)

    def open(self, node: Node, flags: int) -> Handle:
        assert isinstance(node, StoredNode)
        if flags & O_ACCMODE != O_RDONLY or flags & O_TRUNC:
            raise SysError(EISDIR if node.is_dir else EROFS)
        if node.mode & S_IFMT != S_IFREG:
            raise SysError(ENXIO)
        return StoredHandle(self, node)

    def prefetch(self, nodes: Sequence[Node]) -> None:
        """Have small files read together: when the first of them is."""
        entries = (node.entry for node in nodes if isinstance(node, StoredNode))
        self._soon = dict.fromkeys(entry.parts[0] for entry in entries if _is_small(entry))

    def statfs(self) -> StatFs:
        return StatFs(self.kind, BLOCK, 0, 0, 0, 0)

    def piece(self, node: StoredNode, number: int, ahead: int) -> bytes:
        """The object of a piece, whose first byte is not the file's. Several are read at once, as far as is sensible:
        the next ones of this file (`ahead`), or other small files of the directory. EIO.
        """
        parts, size = node.entry.parts, node.entry.size

        def others() -> Iterable[Digest]:
            if size > _SMALL:
                return filter(None, parts[number + 1 : number + 1 + ahead])
            return self._soon if parts[0] in self._soon else self._small_files(node)

        try:
            data = self._reader.get(PIECES, parts[number], others)
            if len(data) - 1 != min(PIECE_BYTES, size - number * PIECE_BYTES):
                raise StoreError(f"object {parts[number].hex()} is not as long as the piece of a file should be")
        except StoreError as error:
            raise self._failed(error) from error
        return data

    def _small_files(self, node: StoredNode) -> list[Digest]:
        """Pieces of the small files that come after this one in its directory and were not read yet."""
        found: list[Digest] = []
        room = _AHEAD_BYTES
        for entry in () if node.parent is None else self.entries(node.parent).values():
            if entry.name <= node.entry.name or not _is_small(entry):
                continue
            room -= entry.size
            if room < 0 or len(found) == _AHEAD_FILES:
                break
            if entry.parts[0] not in PIECES:
                found.append(entry.parts[0])
        return found

    def _node(self, directory: StoredNode, entry: Entry) -> StoredNode:
        ino = _number(directory, entry)
        node = self._nodes.get(ino)
        if node is None:
            node = self._nodes[ino] = StoredNode(entry, ino, directory)
            if entry.kind not in _DIRECTORIES:
                node.nlink = self._hard_links.get(entry.link_group, 1)
        return node

    def _count_links(self, nodes: Iterable[StoredNode]) -> None:
        """Count the names of directories: they are in their objects, all of which are read by one read."""
        unknown: dict[Digest, list[StoredNode]] = {}
        for node in nodes:
            if not node.nlink:
                unknown.setdefault(node.entry.parts[0], []).append(node)
        try:
            for digest, listing in self._reader.load(LISTINGS, list(unknown)):
                for node in unknown[digest]:
                    node.nlink = 2 + listing.directories
        except StoreError as error:
            self._failed(error)

    def _stat(self, node: StoredNode) -> Stat:
        entry = node.entry
        size = room = entry.size
        if entry.kind in _DIRECTORIES:
            size = room = BLOCK
        elif entry.kind is Kind.SYMLINK:
            size, room = len(entry.target), 0
        elif b"" in entry.parts:
            room = sum(min(PIECE_BYTES, size - n * PIECE_BYTES) for n, part in enumerate(entry.parts) if part)
        time = entry.mtime_ns
        # One name is what file systems say of a directory whose names they don't count.
        return Stat(
            node.mode, node.ino, self.dev, node.nlink or 1, node.uid, node.gid, size,
            time, time, time, 0, -(-room // BLOCK) * (BLOCK // 512),
        )  # fmt: skip

    def _failed(self, error: StoreError) -> SysError:
        """Tell the owner, once; the error for the guest."""
        text = str(error)
        if self._report is not None and text not in self._reported and len(self._reported) < _REPORTS_MAX:
            self._reported.add(text)
            self._report(error)
        return SysError(EIO)


class StoredHandle(Handle):
    """An open file of a stored tree."""

    __slots__ = ("_last", "_node", "_tree")

    def __init__(self, tree: StoredTree, node: StoredNode) -> None:
        super().__init__()
        self._tree = tree
        self._node = node
        self._last = -1
        """The piece that was read last."""

    def read(self, offset: int, size: int) -> bytes:
        entry = self._node.entry
        end = min(offset + size, entry.size)
        found: list[bytes] = []
        while offset < end:
            number, start = divmod(offset, PIECE_BYTES)
            count = min(PIECE_BYTES - start, end - offset)
            if entry.parts[number]:
                try:
                    data = self._tree.piece(self._node, number, _AHEAD_PIECES if 0 < number == self._last + 1 else 0)
                except SysError:
                    if not found:
                        raise
                    break
                found.append(data[1 + start : 1 + start + count])
            else:
                found.append(bytes(count))
            self._last = number
            offset += count
        return found[0] if len(found) == 1 else b"".join(found)

    def size(self) -> int:
        return self._node.entry.size

    def seek_data(self, offset: int, *, hole: bool) -> int:
        parts, size = self._node.entry.parts, self._node.entry.size
        for number in range(offset // PIECE_BYTES, len(parts)):
            if hole != bool(parts[number]):
                return max(offset, number * PIECE_BYTES)
        if not hole:
            raise SysError(ENXIO)
        return size


def _is_small(entry: Entry) -> bool:
    return 0 < entry.size <= _SMALL and bool(entry.parts[0])


def _number(directory: StoredNode, entry: Entry) -> int:
    """An inode number, the same whenever it is asked for: by the path, or the group of hard links."""
    key = b"/%d" % entry.link_group if entry.link_group else b"%d/%s" % (directory.ino, entry.name)
    return int.from_bytes(blake2b(key, digest_size=8).digest(), "big") & _INO_MAX
