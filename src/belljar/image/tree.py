"""A tree of files that is being changed, in memory. Contents are digests of pieces: the bytes are the store's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from belljar.abi.errors import ImageError
from belljar.abi.flags import NAME_MAX, PATH_MAX
from belljar.store.objects import PIECE, PIECE_BYTES, Digest, digest_of
from belljar.store.snapshot import Tree
from belljar.store.store import Objects
from belljar.store.tree import Entry, Kind, decode_directory, encode_directory

ENTRIES_MAX: Final = 1_000_000
_DEPTH_MAX: Final = PATH_MAX // 2
_STEPS_MAX: Final = 50 * ENTRIES_MAX
"""Names on the ways to all entries: symbolic links can make each way a long one."""
_LINKS_MAX: Final = 40
"""Symbolic links on the way to one file, as in Linux."""


class Node(Struct, eq=False):
    """A file, directory, symbolic link or FIFO. Several names may lead to one, unless it is a directory."""

    kind: Kind
    mode: int = 0
    uid: int = 0
    gid: int = 0
    mtime_ns: int = 0
    size: int = 0
    target: bytes = b""
    parts: list[Digest] = []
    """The pieces of a file."""
    names: dict[bytes, Node] = {}
    """Of a directory."""

    @property
    def is_directory(self) -> bool:
        return self.kind is Kind.DIRECTORY or self.kind is Kind.MERGED

    def fill(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Make a file's contents those of the chunks; gives its pieces, to be stored."""
        self.parts, self.size = [], 0
        for digest, piece in pieces(self._count(chunks)):
            self.parts.append(digest)
            if digest:
                yield piece

    def _count(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self.size += len(chunk)
            yield chunk


class FileTree:
    """The root directory, and the ways to what is below it."""

    def __init__(self, root: Node | None = None) -> None:
        self.root = root or Node(Kind.DIRECTORY, 0o755)
        self._made = 0
        self._steps = 0

    @classmethod
    def load(cls, objects: Objects, tree: Tree, *, changes: bool = False) -> FileTree:
        """Read all directories of a stored tree. StoreError; ImageError if it has too many names, and if it has but the
        changes of another tree, unless these are wanted."""
        root = Node(Kind.DIRECTORY, tree.mode, tree.uid, tree.gid, tree.mtime_ns)
        groups: dict[int, Node] = {}
        waiting = [(root, tree.digest)]
        count = 0
        while waiting:
            some, waiting = waiting[:256], waiting[256:]
            found = objects.read([digest for _, digest in some])
            for (directory, _), data in zip(some, found, strict=True):
                for entry in decode_directory(data):
                    count += 1
                    check_count(count)
                    node = groups.get(entry.link_group) if entry.link_group else None
                    if node is None:
                        node = _node_of(entry, changes=changes)
                    if entry.link_group:
                        groups[entry.link_group] = node
                    directory.names[entry.name] = node
                    if node.is_directory:
                        waiting.append((node, entry.parts[0]))
        return cls(root)

    def save(self) -> tuple[Tree, list[bytes]]:
        """The tree as it is stored, and the objects of its directories. Hard links are numbered as they are met."""
        directories: list[Node] = []
        counts: dict[int, int] = {}
        for _, node in self.walk():
            if node.is_directory:
                directories.append(node)
            else:
                counts[id(node)] = counts.get(id(node), 0) + 1
        groups: dict[int, int] = {}
        hard_links: list[tuple[int, int]] = []
        for directory in directories:
            for name in sorted(directory.names):
                node = directory.names[name]
                if not node.is_directory and counts[id(node)] > 1 and id(node) not in groups:
                    groups[id(node)] = len(groups) + 1
                    hard_links.append((len(groups), counts[id(node)]))
        digests: dict[int, Digest] = {}
        objects: list[bytes] = []
        for directory in reversed(directories):
            entries = (
                _entry_of(name, node, groups.get(id(node), 0), digests.get(id(node)))
                for name, node in directory.names.items()
            )
            objects.append(encode_directory(entries))
            digests[id(directory)] = digest_of(objects[-1])
        root = self.root
        stored = Tree(b"/", "root", digests[id(root)], root.mode, root.uid, root.gid, root.mtime_ns, hard_links)
        return stored, objects

    def walk(self) -> Iterator[tuple[bytes, Node]]:
        """Every path with its node, a directory before what is in it, in the order of names. The root's is b""."""
        waiting = [(b"", self.root)]
        while waiting:
            path, node = waiting.pop()
            yield path, node
            if node.is_directory:
                below = path + b"/" if path else b""
                waiting += [(below + name, node.names[name]) for name in sorted(node.names, reverse=True)]

    def files(self) -> Iterator[Node]:
        """Every regular file, once."""
        seen: set[int] = set()
        for _, node in self.walk():
            if node.kind is Kind.FILE and id(node) not in seen:
                seen.add(id(node))
                yield node

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(node.size for node in self.files())

    def find(self, parts: Sequence[bytes], *, absolute_links: bool = True) -> Node | None:
        """The node at a path, whose last name is not followed if it is a link; None if there is none.

        ImageError for links that lead above the root or in circles, and, unless `absolute_links`, for absolute ones.
        """
        if not parts:
            return self.root
        directory = self.directory(parts[:-1], absolute_links=absolute_links)
        return None if directory is None else directory.names.get(parts[-1])

    def directory(self, parts: Sequence[bytes], *, absolute_links: bool = True) -> Node | None:
        """The directory at a path, by way of the symbolic links of this tree. None if there is none. ImageError."""
        way = self.way(parts, absolute_links=absolute_links)
        return None if way is None else way[-1][1]

    def way(
        self, parts: Sequence[bytes], *, absolute_links: bool = True, make: Node | None = None
    ) -> list[tuple[bytes, Node]] | None:
        """The directories from the root to the one at a path, by their names. None if there is no such directory.

        With `make`, directories that are missing are made like that one. ImageError as for `find`.
        """
        path = b"/".join(parts)
        way = [(b"", self.root)]
        left = list(reversed(parts))
        links = 0
        while left:
            name = left.pop()
            self._steps += 1
            if self._steps > _STEPS_MAX or len(way) > _DEPTH_MAX:
                raise ImageError(f"{show(path)}: the directories of the image are nested too deep")
            if name in (b"", b"."):
                continue
            if name == b"..":
                if len(way) == 1:
                    raise ImageError(f"{show(path)}: a symbolic link on the way leads out of the image")
                way.pop()
                continue
            node = way[-1][1].names.get(name)
            if node is None and make is not None:
                node = Node(Kind.DIRECTORY, make.mode, make.uid, make.gid, make.mtime_ns)
                way[-1][1].names[name] = node
                self._made += 1
                check_count(self._made)
            if node is None:
                return None
            if node.kind is Kind.SYMLINK:
                links += 1
                if links > _LINKS_MAX:
                    raise ImageError(f"{show(path)}: symbolic links on the way lead in circles")
                if node.target.startswith(b"/"):
                    if not absolute_links:
                        raise ImageError(f"{show(path)}: a symbolic link on the way leads to {show(node.target)}")
                    del way[1:]
                left += reversed(node.target.split(b"/"))
            elif node.is_directory:
                way.append((name, node))
            elif make is not None:
                raise ImageError(f"{show(path)}: {show(name)} on the way is no directory")
            else:
                return None
        return way

    def put(self, parts: Sequence[bytes], node: Node, like: Node) -> None:
        """Give a node a path, with the owner and time of `like`, as directories that are missing have. ImageError."""
        way = self.way(parts[:-1], make=like)
        assert way is not None
        names = way[-1][1].names
        before = names.get(parts[-1]) if parts else self.root
        if before is not None and before.is_directory:
            raise ImageError(f"/{show(b'/'.join(parts))} is a directory of the image: give the path of a file")
        node.uid, node.gid, node.mtime_ns = like.uid, like.gid, like.mtime_ns
        names[parts[-1]] = node


def check_count(count: int) -> None:
    if count > ENTRIES_MAX:
        raise ImageError(f"the image has more than {ENTRIES_MAX} files")


def split_path(path: bytes) -> list[bytes]:
    """The names of a relative path inside an image. ImageError for one that is absolute, has `..`, or is too long."""
    parts = [part for part in path.split(b"/") if part not in (b"", b".")]
    if path.startswith(b"/"):
        raise ImageError(f"{show(path)}: an absolute path")
    if b".." in parts:
        raise ImageError(f"{show(path)}: a path with '..'")
    if b"\0" in path or len(path) > PATH_MAX or any(len(part) > NAME_MAX for part in parts):
        raise ImageError(f"{show(path)}: no file can have this name")
    return parts


def show(path: bytes) -> str:
    """A path of an image, for a message."""
    text = path[:200].decode("utf-8", "backslashreplace")
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text) + ("..." if len(path) > 200 else "")


def pieces(chunks: Iterable[bytes]) -> Iterator[tuple[Digest, bytes]]:
    """Cut the contents of a file into piece objects, with their digests: b"" for both if all of it is zeros."""
    held: list[bytes] = []
    size = 0
    for chunk in chunks:
        held.append(chunk)
        size += len(chunk)
        if size >= PIECE_BYTES:
            data = b"".join(held)
            while len(data) >= PIECE_BYTES:
                yield _piece(data[:PIECE_BYTES])
                data = data[PIECE_BYTES:]
            held, size = [data], len(data)
    if size:
        yield _piece(b"".join(held))


def _piece(data: bytes) -> tuple[Digest, bytes]:
    if data.count(0) == len(data):
        return b"", b""
    made = PIECE + data
    return digest_of(made), made


def _node_of(entry: Entry, *, changes: bool) -> Node:
    if entry.kind in (Kind.WHITEOUT, Kind.MERGED) and not changes:
        raise ImageError("an image can't be made of the differences from another tree")
    parts = entry.parts if entry.kind is Kind.FILE else []
    return Node(entry.kind, entry.mode, entry.uid, entry.gid, entry.mtime_ns, entry.size, entry.target, parts)


def _entry_of(name: bytes, node: Node, group: int, digest: Digest | None) -> Entry:
    parts = node.parts if digest is None else [digest]
    return Entry(name, node.kind, node.mode, node.uid, node.gid, node.mtime_ns, node.size, group, node.target, parts)
