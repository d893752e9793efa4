"""A tree of a sandbox as its owner knows it: records of a worker in, directory objects out.

The table of nodes outlives a snapshot, so that the next one costs what has changed since. What a worker tells is
hostile: anything that is no tree is a SnapshotError, and the table is then of no use any more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple, Protocol

from msgspec.structs import replace

from belljar.abi.capture import Record
from belljar.abi.errors import SnapshotError
from belljar.abi.flags import S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG
from belljar.store.errors import StoreError
from belljar.store.objects import Digest, digest_of
from belljar.store.tree import Entry, Kind, decode_directory, encode_directory

_KINDS: Final = {S_IFREG: Kind.FILE, S_IFDIR: Kind.DIRECTORY, S_IFLNK: Kind.SYMLINK, S_IFIFO: Kind.FIFO}
_DIRECTORIES: Final = (Kind.DIRECTORY, Kind.MERGED)
_NAMELESS: Final = b"?"
_NO_NAMES: Final[Mapping[bytes, int]] = {}
_WALKED_MAX: Final = 10_000_000
"""Entries of a lower tree that are looked at: one that has a directory in many places may have any number of them."""

ReadDirectory = Callable[[Digest], list[Entry]]


class Shown(NamedTuple):
    """How a directory of the owner's shows through an overlay."""

    digest: Digest = b""
    """The object with the entries that are stored; b"": none are."""
    path: tuple[bytes, ...] | None = None
    """If more shows through, which is not stored: the path of that directory in the owner's tree."""


class Lower(Protocol):
    """The owner's files below an overlay."""

    def entry(self, number: int) -> Entry:
        """A file or symlink as it is kept; of a directory the attributes."""

    def shown(self, number: int) -> Shown: ...

    def copy(self, number: int) -> Digest:
        """The object of a directory with everything that is seen in it."""


class _Node:
    """A file, and where its names are."""

    __slots__ = ("below", "children", "entry", "group", "growth", "parents", "shown")

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        """With one of its names. A directory's object is that of its last encoding."""
        self.children: Mapping[bytes, int] = _NO_NAMES
        self.parents: dict[tuple[int, bytes], None] = {}
        """The directory and the name in it, of each name; a dict, since one of very many may go."""
        self.below = 0
        self.shown = Shown()
        """Of a directory: the number of the lower one, and what shows through."""
        self.group = 0
        self.growth = 0
        """Of a directory: bytes of all files below it, less those of its lower directory."""

    @property
    def is_dir(self) -> bool:
        return self.entry.kind in _DIRECTORIES

    @property
    def place(self) -> tuple[int, bytes]:
        """One of `parents`: the only one of a directory."""
        return next(iter(self.parents))


def nonsense(why: str) -> SnapshotError:
    return SnapshotError(f"no snapshot was made: what the sandbox's worker tells of its files makes no sense ({why})")


class TreeTable:
    """The nodes of one tree. `salt` makes the numbers of its hard links differ from those of its lower tree."""

    def __init__(self, root: int, salt: bytes, lower_groups: Mapping[int, int], *, merges: bool = False) -> None:
        """`merges`: its lower tree is not stored, and only the differences from it are."""
        self._root = root
        self._merges = merges
        self._salt = salt
        self._lower_groups = lower_groups
        """Link groups of the lower tree, and how many names each has."""
        self._nodes: dict[int, _Node] = {}
        self._names = 0
        self._replaced: dict[int, int] = {}
        """The node that each changed link group of the lower tree is now; not all of its names may be known."""
        self._linked: set[int] = set()
        """The files with several names."""
        self._new: dict[Digest, bytes] = {}
        self._read: ReadDirectory = _no_directory
        self._lower: Lower | None = None
        self._paths: dict[int, Digest] = {}
        """During an update, of directories: digests of their paths."""
        self._replacing: dict[Digest, Digest] = {}
        """During an update: lower directories, and what they are with the files of `_replaced`."""

    @property
    def count(self) -> int:
        """Files, or names if they are more: what the table takes to keep."""
        return max(len(self._nodes), self._names)

    @property
    def root(self) -> Entry:
        """The root directory."""
        return self._nodes[self._root].entry

    @property
    def growth(self) -> int:
        """Bytes of all files, less those of the lower tree."""
        return self._nodes[self._root].growth

    def update(
        self, records: list[tuple[Record, list[Digest]]], lower: Lower | None, read: ReadDirectory
    ) -> Mapping[Digest, bytes]:
        """Take what changed, each with the pieces of its contents; gives the new directory objects."""
        self._read, self._new, self._lower, self._paths, self._replacing = read, {}, lower, {}, {}
        changed: dict[int, dict[bytes, int]] = {}
        for record, parts in records:
            if record.goes_on:
                if record.id not in changed or record.mode & S_IFMT != S_IFDIR:
                    raise nonsense("names without a directory")
                children = changed[record.id]
            else:
                if record.id in changed or record.id < 1:
                    raise nonsense("a file comes twice")
                children = changed[record.id] = {}
                self._take(record, parts, lower)
            if len(record.names) != len(record.children):
                raise nonsense("names and files do not match")
            count = len(children)
            children.update(zip(record.names, record.children, strict=True))
            if len(children) != count + len(record.names):
                raise nonsense("a name comes twice")
        dirty = self._connect(changed)
        try:
            self._encode(dirty)
        except StoreError as error:
            raise nonsense(str(error)) from None
        except RecursionError:
            raise SnapshotError("no snapshot was made: hard links in directories that are nested too deep") from None
        return self._new

    def hard_links(self) -> list[tuple[int, int]]:
        """Every link group of the tree with the number of its names."""
        if self._lower_groups:
            found: dict[int, int] = {}
            for entry in self._walk(self.root.parts[0]):
                if entry.link_group:
                    found[entry.link_group] = found.get(entry.link_group, 0) + 1
        else:
            linked = [self._nodes[number] for number in self._linked]
            found = {node.group: len(node.parents) for node in linked}
        return sorted(found.items())

    # Records.

    def _take(self, record: Record, parts: list[Digest], lower: Lower | None) -> None:
        kind = _KINDS.get(record.mode & S_IFMT)
        if kind is None:
            raise nonsense("a file of no known kind")
        below = None
        if record.lower:
            if lower is None:
                raise nonsense("a file over nothing")
            below = lower.entry(record.lower)
        node = self._nodes.get(record.id)
        if node is not None and (node.is_dir != (kind is Kind.DIRECTORY)):
            raise nonsense("a file turned into a directory")
        if kind is Kind.DIRECTORY:
            entry = Entry(_NAMELESS, kind, parts=[b"\0" * 32])
        elif record.contents:
            entry = Entry(_NAMELESS, kind, size=record.size, target=record.target, parts=parts)
        elif below is not None and below.kind is kind:
            entry = replace(below, name=_NAMELESS, link_group=0)
        else:
            raise nonsense("a file without contents")
        known = below if record.as_lower else None
        if record.as_lower and known is None:
            raise nonsense("a file without attributes")
        entry = replace(
            entry,
            mode=record.mode & 0o7777 if known is None else known.mode,
            uid=record.uid if known is None else known.uid,
            gid=record.gid if known is None else known.gid,
            mtime_ns=record.mtime if known is None else known.mtime_ns,
        )
        if node is None:
            node = self._nodes[record.id] = _Node(entry)
        else:
            node.entry = entry if node.is_dir else replace(entry, name=node.entry.name)
        if kind is Kind.DIRECTORY:
            if below is not None and below.kind not in _DIRECTORIES:
                raise nonsense("a directory over a file")
            node.below = record.lower
            node.shown = lower.shown(record.lower) if record.lower and lower is not None else Shown()
        elif below is not None and below.link_group:
            node.group = below.link_group
            self._replaced[node.group] = record.id

    # Names.

    def _connect(self, changed: dict[int, dict[bytes, int]]) -> set[int]:
        """Give directories their new names; the directories whose objects change."""
        nodes = self._nodes
        if self._root not in nodes or not nodes[self._root].is_dir:
            raise nonsense("there is no root")
        touched: set[int] = set(changed)
        added: list[tuple[int, bytes, int]] = []
        for number, children in changed.items():
            node = nodes[number]
            if not node.is_dir:
                if children:
                    raise nonsense("a file with names in it")
                continue
            for name, child in node.children.items():
                if children.get(name) != child and child:
                    del nodes[child].parents[number, name]
                    touched.add(child)
            for name, child in children.items():
                if node.children.get(name) != child:
                    if not child and not node.below:
                        raise nonsense("a name was removed where there is none")
                    if child:
                        added.append((number, name, child))
            self._names += len(children) - len(node.children)
            node.children = children
        for number, name, child in added:
            found = nodes.get(child)
            if found is None or child == self._root:
                raise nonsense("a name for no file")
            if found.is_dir and found.parents:
                raise nonsense("a directory has two names")
            found.parents[number, name] = None
            touched.add(child)
        touched -= self._drop([number for number in touched if not nodes[number].parents and number != self._root])
        self._check_reached([number for number in touched if number in nodes and nodes[number].is_dir])
        moved = self._below([child for _, _, child in added]) if self._merges or self._linked else set()
        touched |= {number for number in moved if self._merges or number in self._linked}
        for number in touched:
            self._number_links(number)
        dirty = {number for number in touched if nodes[number].is_dir}
        for number in touched:
            dirty.update(parent for parent, _ in nodes[number].parents)
        if self._replaced:
            dirty.update(number for number, node in nodes.items() if node.is_dir and node.shown.digest)
        for number in list(dirty):
            while nodes[number].parents and (above := nodes[number].place[0]) not in dirty:
                number = above
                dirty.add(number)
        return dirty

    def _below(self, directories: list[int]) -> set[int]:
        """Files and all below them: their paths are other ones now."""
        found: set[int] = set()
        while directories:
            number = directories.pop()
            if number not in found and number in self._nodes:
                found.add(number)
                directories += filter(None, self._nodes[number].children.values())
        return found

    def _drop(self, orphans: list[int]) -> set[int]:
        """Forget files without a name, and all below them."""
        dropped: set[int] = set()
        while orphans:
            number = orphans.pop()
            if number in dropped:
                continue
            node = self._nodes[number]
            dropped.add(number)
            self._linked.discard(number)
            for name, child in node.children.items():
                if child:
                    parents = self._nodes[child].parents
                    del parents[number, name]
                    if not parents:
                        orphans.append(child)
            self._names -= len(node.children)
            node.children = _NO_NAMES
            if node.group not in self._replaced:
                del self._nodes[number]
        return dropped

    def _check_reached(self, directories: list[int]) -> None:
        """Every directory must be below the root."""
        reached = {self._root}
        for number in directories:
            way: set[int] = set()
            while number not in reached:
                if number in way:
                    raise nonsense("a directory is in itself")
                way.add(number)
                number = self._nodes[number].place[0]
            reached |= way

    # Objects.

    def _encode(self, dirty: set[int]) -> None:
        """Make the objects of these directories, each after those below it."""
        nodes = self._nodes
        waiting = dict.fromkeys(dirty, 0)
        for number in dirty:
            for above, _ in nodes[number].parents:
                waiting[above] += 1
        ready = [number for number, count in waiting.items() if not count]
        while ready:
            number = ready.pop()
            self._encode_directory(number, nodes[number])
            for above, _ in nodes[number].parents:
                waiting[above] -= 1
                if not waiting[above]:
                    ready.append(above)

    def _encode_directory(self, number: int, node: _Node) -> None:
        entries: list[Entry] = []
        growth = 0
        hidden: dict[bytes, Entry] = {}
        stored, merges = node.shown.digest, node.shown.path is not None
        if merges and node.shown.path != tuple(self._path(number)):
            assert self._lower is not None
            stored, merges = self._lower.copy(node.below), False
        if stored:
            for shown in self._directory(stored):
                if shown.name in node.children:
                    hidden[shown.name] = shown
                else:
                    entries.append(now := self._as_it_is_now(shown))
                    growth += 0 if now is shown else self._bytes(now) - self._bytes(shown)
        for name, inside in node.children.items():
            below = hidden.get(name)
            if not inside:
                growth -= self._bytes(below)
                if merges:
                    entries.append(Entry(name, Kind.WHITEOUT))
                continue
            child = self._nodes[inside]
            if child.entry.name != name:
                child.entry = replace(child.entry, name=name)
            entries.append(child.entry)
            if not child.is_dir:
                growth += child.entry.size - self._bytes(below)
            elif below is not None and below.kind in _DIRECTORIES and below.parts[0] == child.shown.digest:
                growth += child.growth
            else:
                growth += child.growth + self._size(child.shown.digest) - self._bytes(below)
        data = encode_directory(entries)
        digest = digest_of(data)
        self._new[digest] = data
        node.growth = growth
        node.entry = replace(node.entry, kind=Kind.MERGED if merges else Kind.DIRECTORY, parts=[digest])

    def _number_links(self, number: int) -> None:
        """Give a file with several names the number that they share, from its paths; else none."""
        node = self._nodes[number]
        if node.is_dir:
            return
        if node.group not in self._replaced:
            if len(node.parents) > 1:
                first = min(self._path_digest(parent) + name for parent, name in node.parents)
                node.group = int.from_bytes(digest_of(self._salt + first)[:8], "big") >> 1 or 1
                self._linked.add(number)
            else:
                node.group = 0
                self._linked.discard(number)
        if node.entry.link_group != node.group:
            node.entry = replace(node.entry, link_group=node.group)

    def _path(self, number: int) -> list[bytes]:
        names: list[bytes] = []
        while number != self._root:
            number, name = self._nodes[number].place
            names.append(name)
        return names[::-1]

    def _path_digest(self, number: int) -> Digest:
        """The same for the same path of a directory; the way up is gone once for all that are on it."""
        way: list[int] = []
        while number != self._root and number not in self._paths:
            way.append(number)
            number = self._nodes[number].place[0]
        digest = self._paths.get(number, b"")
        for below in reversed(way):
            digest = self._paths[below] = digest_of(digest + self._nodes[below].place[1])
        return digest

    # The lower tree.

    def _directory(self, digest: Digest) -> list[Entry]:
        data = self._new.get(digest)
        return self._read(digest) if data is None else decode_directory(data)

    def _bytes(self, entry: Entry | None) -> int:
        """Bytes of a lower file, or of all files below a lower directory."""
        if entry is None:
            return 0
        return self._size(entry.parts[0]) if entry.kind in _DIRECTORIES else entry.size

    def _size(self, digest: Digest) -> int:
        """Bytes of all files below a lower directory."""
        return sum(entry.size for entry in self._walk(digest)) if digest else 0

    def _walk(self, digest: Digest) -> Iterator[Entry]:
        """Everything below a directory object. SnapshotError if that does not end."""
        todo, left = [digest], _WALKED_MAX
        while todo:
            entries = self._directory(todo.pop())
            left -= len(entries) + 1
            if left < 0:
                raise SnapshotError(f"no snapshot was made: a tree below has more than {_WALKED_MAX} files")
            yield from entries
            todo += [entry.parts[0] for entry in entries if entry.kind in _DIRECTORIES]

    def _as_it_is_now(self, entry: Entry) -> Entry:
        """A lower file that shows through: changed by another of its names, or with such a one below it."""
        if not self._replaced:
            return entry
        if entry.link_group in self._replaced:
            return replace(
                self._nodes[self._replaced[entry.link_group]].entry, name=entry.name, link_group=entry.link_group
            )
        if entry.kind in _DIRECTORIES:
            before = entry.parts[0]
            if before not in self._replacing:
                below = self._directory(before)
                now = [self._as_it_is_now(each) for each in below]
                data = encode_directory(now) if now != below else b""
                self._replacing[before] = digest_of(data) if data else before
                if data:
                    self._new[digest_of(data)] = data
            if self._replacing[before] != before:
                return replace(entry, parts=[self._replacing[before]])
        return entry


def _no_directory(_digest: Digest) -> list[Entry]:
    raise nonsense("a directory of no tree")
