"""The owner's files below a sandbox's overlays, as a snapshot refers to them: by their entries, or by copies."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final

from msgspec.structs import replace

from belljar.abi.errors import SnapshotError, SysError
from belljar.abi.flags import O_RDONLY, PERMISSIONS, S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG
from belljar.abi.paths import fsencode
from belljar.api.captured_tree import Shown, nonsense
from belljar.kernel.fs.remote import Export
from belljar.kernel.vfs.server import FileServer, Node
from belljar.store.layered import LayeredNode
from belljar.store.objects import PIECE, PIECE_BYTES, Digest
from belljar.store.store import Objects
from belljar.store.stored_tree import StoredNode
from belljar.store.tree import Entry, Kind, encode_directory

_KINDS: Final = {S_IFREG: Kind.FILE, S_IFDIR: Kind.DIRECTORY, S_IFLNK: Kind.SYMLINK, S_IFIFO: Kind.FIFO}
_NAMELESS: Final = b"?"


class Lower:
    """One tree that was given to a sandbox. `guard` is held while its server is at work."""

    def __init__(self, export: Export | None, guard: AbstractContextManager[object], objects: Objects) -> None:
        self._export = export
        self._guard = guard
        self._objects = objects
        self._copies: dict[Node, Entry] = {}
        """What was read already: a worker may name a file as often as it likes."""

    def _node(self, number: int) -> Node:
        node = None if self._export is None else self._export.node(number)
        if node is None:
            raise nonsense("a file that it was never given")
        return node

    @property
    def _server(self) -> FileServer:
        assert self._export is not None
        return self._export.server

    def entry(self, number: int) -> Entry:
        """A file as it is kept; one that is only the owner's is read and stored whole. SnapshotError, StoreError."""
        node = self._node(number)
        stored = node.upper if isinstance(node, LayeredNode) else node
        if isinstance(stored, StoredNode):
            kind = Kind.DIRECTORY if stored.is_dir else stored.entry.kind
            return replace(stored.entry, kind=kind)
        with self._guard:
            try:
                return self._attributes(node) if node.is_dir else self._copy(node, b"")
            except SysError as error:
                raise _unreadable(error) from None

    def shown(self, number: int) -> Shown:
        """How a directory shows through."""
        node = self._node(number)
        if isinstance(node, StoredNode):
            return Shown(node.entry.parts[0])
        if isinstance(node, LayeredNode) and node.lower is None and node.upper is not None:
            return Shown(node.upper.entry.parts[0])
        above = node.upper.entry.parts[0] if isinstance(node, LayeredNode) and node.upper is not None else b""
        names: list[bytes] = []
        with self._guard:
            try:
                place = self._server.locate(node)
                while place is not None:
                    names.append(fsencode(place[1]))
                    place = self._server.locate(place[0])
            except SysError as error:
                raise _unreadable(error) from None
        return Shown(above, tuple(reversed(names)))

    def copy(self, number: int) -> Digest:
        """The object of a directory with all that is seen in it. SnapshotError, StoreError."""
        with self._guard:
            try:
                return self._copy(self._node(number), b"").parts[0]
            except SysError as error:
                raise _unreadable(error) from None

    def _attributes(self, node: Node) -> Entry:
        stat = self._server.stat(node)
        kind = _KINDS.get(stat.mode & S_IFMT)
        if kind is None:
            raise SnapshotError("no snapshot was made: a moved directory of yours has devices or sockets in it")
        return Entry(_NAMELESS, kind, stat.mode & PERMISSIONS, stat.uid, stat.gid, stat.mtime)

    def _copy(self, node: Node, name: bytes) -> Entry:
        """Store a file, or a directory with all below it; each once."""
        if node not in self._copies:
            self._copies[node] = self._read(node)
        return replace(self._copies[node], name=name or _NAMELESS)

    def _read(self, node: Node) -> Entry:
        if isinstance(node, LayeredNode) and node.upper is not None and node.lower is None:
            return node.upper.entry
        entry = self._attributes(node)
        server = self._server
        match entry.kind:
            case Kind.SYMLINK:
                return replace(entry, target=fsencode(server.readlink(node)))
            case Kind.FILE:
                return self._copy_contents(node, entry)
            case Kind.DIRECTORY:
                names = [each.name for each in server.readdir(node)]
                entries = [self._copy(server.walk(node, each), fsencode(each)) for each in names]
                return replace(entry, parts=self._objects.write([encode_directory(entries)]))
        return entry

    def _copy_contents(self, node: Node, entry: Entry) -> Entry:
        parts: list[Digest] = []
        size = 0
        handle = self._server.open(node, O_RDONLY)
        try:
            while data := _read_piece(handle.read, size):
                size += len(data)
                parts += [b""] if data.count(0) == len(data) else self._objects.write([PIECE + data])
                if len(data) < PIECE_BYTES:
                    break
        finally:
            handle.close()
        return replace(entry, size=size, parts=parts)


def _read_piece(read: Callable[[int, int], bytes], offset: int) -> bytes:
    found = bytearray()
    while len(found) < PIECE_BYTES and (data := read(offset + len(found), PIECE_BYTES - len(found))):
        found += data
    return bytes(found)


def _unreadable(error: SysError) -> SnapshotError:
    return SnapshotError(f"no snapshot was made: a file of yours that the sandbox moved can't be read: {error.reason}")
