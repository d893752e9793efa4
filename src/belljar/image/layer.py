"""A layer of an image: a tar archive of changes, applied to a tree. Every name and link in it is checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import Final

from belljar.abi.errors import ImageError
from belljar.abi.flags import PATH_MAX
from belljar.abi.limits import GIB, MIB
from belljar.abi.paths import fsencode
from belljar.image.tree import FileTree, Node, check_count, pieces, show, split_path
from belljar.libc.tar_header import BLOCK_DEVICE, CHARACTER, FIFO, HARD_LINK, SYMLINK, BadHeader, Member
from belljar.libc.tar_stream import NotArchive, Reader, Source, UnexpectedEnd
from belljar.store.tree import Kind

BYTES_MAX: Final = 16 * GIB
"""Bytes of all layers, uncompressed."""
RATIO_MAX: Final = 200
"""Uncompressed bytes for each compressed one, in a layer of more than `RATIO_FREE`."""
RATIO_FREE: Final = 64 * MIB
_HEADER_MAX: Final = MIB
"""Bytes of the extended headers of one member."""
_HEADERS_MAX: Final = 64 * MIB
_CUT: Final = "a layer ends too early"
_WHITEOUT: Final = b".wh."
_OPAQUE: Final = b".wh..wh..opq"
_PARENT: Final = Node(Kind.DIRECTORY, 0o755)
_INT64: Final = 1 << 63
_ID_MAX: Final = (1 << 32) - 1


class Meter:
    """Counts what an image takes to read. ImageError when it is more than any image may take."""

    def __init__(self) -> None:
        self.entries = 0
        self.skipped: list[str] = []
        """Device nodes, which no image has here."""
        self._bytes = 0
        self._layer = 0
        self._compressed = 0
        self._header = 0
        self._headers = 0

    def begin(self, compressed: int) -> None:
        """Begin a layer of this many bytes, as it is kept."""
        self._layer, self._compressed, self._headers = 0, compressed, 0

    def add(self, size: int) -> None:
        """Count bytes of the layer, uncompressed."""
        self._bytes += size
        self._layer += size
        if self._bytes > BYTES_MAX:
            raise ImageError(f"the image has more than {BYTES_MAX >> 30} GiB of files")
        if self._layer > RATIO_FREE and self._layer > RATIO_MAX * self._compressed:
            raise ImageError(f"a layer of {self._compressed} bytes unpacks to more than {RATIO_MAX} times its size")

    def count_member(self) -> None:
        self.entries += 1
        self._header = 0
        check_count(self.entries)

    def charge(self, steps: int, /) -> None:
        """Steps cost nothing here: members and bytes are counted."""

    def charge_size(self, size: int, /) -> None:
        """Count an extended header, before it is read."""
        self._header += size
        self._headers += size
        if self._header > _HEADER_MAX or self._headers > _HEADERS_MAX + 512 * self.entries:
            raise ImageError("a layer has extended headers that are too large")


def apply_layer(tree: FileTree, chunks: Iterable[bytes], meter: Meter) -> None:
    """Make the changes of a layer. Whiteouts delete what earlier layers have, wherever in the layer they are.

    ImageError: the tree is then half changed, and of no use.
    """
    layer = _Layer(tree, meter)
    for member, data, _ in members(chunks, meter):
        layer.add(member, data)


def members(chunks: Iterable[bytes], meter: Meter) -> Iterator[tuple[Member, Iterator[bytes], int]]:
    """The members of a tar archive, with their contents, to be read before the next, and where these are.

    All is read, to the end behind the last member. ImageError.
    """
    source = Source(chunks)
    reader = Reader(source, meter)
    try:
        for member in reader:
            meter.count_member()
            yield member, _whole(reader.data()), source.position
        while source.read(MIB):
            pass
    except (BadHeader, NotArchive):
        raise ImageError("a layer is no tar archive, or damaged") from None
    except UnexpectedEnd:
        raise ImageError(_CUT) from None


def _whole(data: Iterator[bytes]) -> Iterator[bytes]:
    """The contents of a member. ImageError if the archive ends before they do."""
    try:
        yield from data
    except UnexpectedEnd:
        raise ImageError(_CUT) from None


class _Layer:
    """One layer being applied."""

    def __init__(self, tree: FileTree, meter: Meter) -> None:
        self._tree = tree
        self._meter = meter
        self._added: dict[int, dict[bytes, bool]] = {}
        """By the id of a directory: the names in it that this layer has, and whether it has an entry of that name."""
        self._kept: list[Node] = []
        """Directories whose ids are in `_added`: they must not be collected."""

    def add(self, member: Member, data: Iterator[bytes]) -> None:
        path = fsencode(member.name)
        parts = split_path(path)
        if member.sparse is not None:
            raise ImageError(f"{show(path)}: sparse members of GNU tar are not supported")
        if not parts:
            if not member.is_dir:
                raise ImageError("the root of the image is no directory")
            _set_attributes(self._tree.root, member)
            return
        *above, name = parts
        for part in above:
            if part.startswith(_WHITEOUT):
                raise ImageError(f"{show(path)}: a file below a whiteout")
        if name.startswith(_WHITEOUT):
            self._delete(above, name, path)
            return
        way = self._tree.way(above, absolute_links=False, make=_PARENT)
        assert way is not None
        directory = way[-1][1]
        before = directory.names.get(name)
        if self._is_added(directory, name) and not (member.is_dir and before is not None and before.is_directory):
            raise ImageError(f"{show(path)}: a layer has two entries of this name")
        self._mark(way, name)
        node = self._node(member, path, before, data)
        if node is None:
            directory.names.pop(name, None)
        else:
            directory.names[name] = node

    def _node(self, member: Member, path: bytes, before: Node | None, data: Iterator[bytes]) -> Node | None:
        """The node of an entry; None for a device, which no image has here."""
        if member.is_dir:
            node = before if before is not None and before.is_directory else Node(Kind.DIRECTORY)
        elif member.is_regular:
            parts = [digest for digest, _ in pieces(data)]
            node = Node(Kind.FILE, size=member.size, parts=parts)
        elif member.kind == HARD_LINK:
            link = fsencode(member.link)
            found = self._tree.find(split_path(link), absolute_links=False)
            if found is None or found.is_directory:
                raise ImageError(f"{show(path)}: a hard link to {show(link)}, which is no file of the image")
            return found
        elif member.kind == SYMLINK:
            target = fsencode(member.link)
            if not target or len(target) > PATH_MAX or b"\0" in target:
                raise ImageError(f"{show(path)}: a symbolic link to nowhere")
            node = Node(Kind.SYMLINK, target=target)
        elif member.kind == FIFO:
            node = Node(Kind.FIFO)
        elif member.kind in (CHARACTER, BLOCK_DEVICE):
            self._meter.skipped.append(show(path))
            return None
        else:
            raise ImageError(f"{show(path)}: a member of an unknown kind, {member.kind!r}")
        _set_attributes(node, member)
        return node

    def _is_added(self, directory: Node, name: bytes) -> bool:
        return self._added.get(id(directory), {}).get(name, False)

    def _mark(self, way: list[tuple[bytes, Node]], name: bytes) -> None:
        """Note that this layer has a name, and so the directories above it."""
        self._note(way[-1][1], name, entry=True)
        for (_, parent), (below, _) in reversed(list(pairwise(way))):
            if below in self._added.get(id(parent), {}):
                break
            self._note(parent, below, entry=False)

    def _note(self, directory: Node, name: bytes, *, entry: bool) -> None:
        if id(directory) not in self._added:
            self._kept.append(directory)
        names = self._added.setdefault(id(directory), {})
        names[name] = names.get(name, False) or entry

    def _delete(self, above: list[bytes], name: bytes, path: bytes) -> None:
        """A whiteout: delete what earlier layers have under a name, or in a directory."""
        deleted = name.removeprefix(_WHITEOUT)
        if deleted in (b"", b".", b".."):
            raise ImageError(f"{show(path)}: a whiteout of {show(deleted) or 'nothing'}")
        if name != _OPAQUE and deleted.startswith(_WHITEOUT):
            return  # bookkeeping of aufs
        directory = self._tree.directory(above, absolute_links=False)
        if directory is None:
            return
        if name == _OPAQUE:
            self._prune(directory)
        elif deleted in self._added.get(id(directory), {}):
            node = directory.names.get(deleted)
            if node is not None and node.is_directory:
                self._prune(node)
        else:
            directory.names.pop(deleted, None)

    def _prune(self, directory: Node) -> None:
        """Keep only what this layer has."""
        waiting = [directory]
        while waiting:
            one = waiting.pop()
            added = self._added.get(id(one), {})
            one.names = {name: node for name, node in one.names.items() if name in added}
            waiting += [node for node in one.names.values() if node.is_directory]


def _set_attributes(node: Node, member: Member) -> None:
    if not (0 <= member.uid <= _ID_MAX and 0 <= member.gid <= _ID_MAX and -_INT64 <= member.mtime < _INT64):
        raise ImageError(f"{show(fsencode(member.name))}: an owner or time that is out of range")
    node.mode, node.uid, node.gid, node.mtime_ns = member.mode, member.uid, member.gid, member.mtime
