"""Cache of a remote file server's near side: listings with the stats of their entries, and contents of files.

An answer of the far side is believed for one *period*: until the owner says something, and for half a second at most.
In a new period a directory is asked for again once, by one message that says what is known of it; the answer is mostly
"unchanged". Contents are kept for as long as their file's stat stays the same. What is kept is bounded, in entries
and bytes; the least recently used goes first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from math import inf
from typing import Final

from belljar.abi.records import Dirent, Stat
from belljar.kernel.vfs.server import Node

PERIOD: Final = 0.5
"""Seconds for which a running command may not see what changes at the far side."""
LOOK_AHEAD: Final = 500
"""Directories that are looked at to find those to ask for next."""
OVERHEAD: Final = 512
"""Bytes counted for a file's contents beside their length."""


_GUESS: Final = 64


class RemoteNode(Node):
    """A file at the far side, and what is known of it."""

    __slots__ = (
        "ahead", "blocks", "checked", "count", "forgotten", "held", "home", "listing", "misses", "number", "place",
        "settled", "stat", "target", "times",
    )  # fmt: skip

    def __init__(self, number: int, mode: int, uid: int, gid: int, forgotten: list[tuple[int, int]]) -> None:
        super().__init__(mode, uid, gid)
        self.number = number
        self.times = 0
        """References held at the far side: the node is dropped there when as many were returned."""
        self.forgotten = forgotten
        self.stat: Stat | None = None
        self.checked = 0
        """The period in which `stat` was asked for alone."""
        self.home: Listing | None = None
        """The listing that says `stat`."""
        self.place: tuple[RemoteNode, str, tuple[int, int]] | None = None
        """The parent of a directory, its name there, and when that was so."""
        self.settled = False
        """Whether every later change will show in `stat`."""
        self.blocks: dict[int, bytes] = {}
        self.held = 0
        """Contents by their offset, and the bytes that are counted for them."""
        self.ahead = False
        """Whether the contents were read ahead and not used yet."""
        self.target: str | None = None
        self.listing: Listing | None = None
        self.count = 0
        self.misses = 0
        """Entries of the directory when it was last listed, and the lookups since then that were asked for alone."""

    def __del__(self) -> None:
        self.forgotten.append((self.number, self.times))


class Listing:
    """The entries of a directory; None as a node: that one has to be asked for by name."""

    __slots__ = ("ahead", "checked", "digest", "directory", "dirents", "exact", "nodes")

    def __init__(self, directory: RemoteNode, digest: int, exact: bool) -> None:
        self.directory = directory
        self.digest = digest
        self.exact = exact
        """Whether a name that is not among the entries does not exist."""
        self.checked = 0
        self.ahead = False
        """Whether it was checked ahead and not used yet."""
        self.dirents: list[Dirent] = []
        self.nodes: dict[str, RemoteNode | None] = {}


class Window:
    """How much to ask for at once: four times as much as long as what came ahead is used, else one."""

    __slots__ = ("_ahead", "_most", "_size", "used")

    def __init__(self, most: int) -> None:
        self._most = most
        self._size = 1
        self._ahead = 0
        self.used = 0
        """Uses of what came ahead with the last answer."""

    def next(self) -> int:
        self._size = min(self._size * 4, self._most) if self.used * 2 >= self._ahead else 1
        return self._size

    def asked(self, ahead: int) -> None:
        self._ahead, self.used = ahead, 0


class Cache:
    """Listings and contents that the remote servers of one kernel keep."""

    def __init__(self, clock: Callable[[], float], bytes_max: int, entries_max: int, *, lasting: bool = False) -> None:
        """`lasting`: the far sides never change, and all is one period."""
        self._clock = clock
        self._bytes_max = bytes_max
        self._entries_max = entries_max
        self._period = 1
        self._until = inf if lasting else 0.0
        self.guess = _GUESS if lasting else 1
        """Entries that a directory is thought to have before it was listed: few lookups do not make it be listed."""
        self._files: dict[RemoteNode, None] = {}
        self._directories: dict[RemoteNode, None] = {}
        """Nodes with contents, and directories with listings; the most recently used last."""
        self.bytes = 0
        self.entries = 0

    def renew(self) -> None:
        """Begin a new period."""
        self._period += 1
        self._until = self._clock() + PERIOD

    def remaining(self) -> float:
        """Seconds that the present period has left."""
        self.period()
        return max(self._until - self._clock(), 0.0)

    def period(self) -> int:
        """The number of the present period."""
        if self._clock() >= self._until:
            self.renew()
        return self._period

    def is_current(self, node: RemoteNode) -> bool:
        """Whether the node's stat holds in this period."""
        if node.stat is None:
            return False
        period = self.period()
        return node.checked == period or (node.home is not None and node.home.checked == period)

    # Contents.

    def keep(self, node: RemoteNode, offset: int, data: bytes) -> None:
        """Keep a part of a file. Its stat must be settled and from before the part was read."""
        size = len(data) + OVERHEAD
        if size > self._bytes_max // 2 or offset in node.blocks:
            return
        self._files.pop(node, None)
        while self._files and self.bytes + size > self._bytes_max:
            self.drop(next(iter(self._files)))
        node.blocks[offset] = data
        node.held += size
        self.bytes += size
        self._files[node] = None

    def use(self, node: RemoteNode) -> None:
        self._files[node] = self._files.pop(node)

    def drop(self, node: RemoteNode) -> None:
        """Forget a file's contents."""
        if node.blocks:
            self._files.pop(node, None)
            self.bytes -= node.held
            node.blocks, node.held = {}, 0

    def update(self, node: RemoteNode, stat: Stat, settled: bool | None) -> None:
        """Take a stat; what was read of another version of the file is dropped. None: settled if it was."""
        old = node.stat
        if old is None or _version(old) != _version(stat):
            self.drop(node)
            node.target = None
            node.settled = settled is True
        elif settled is not None:
            node.settled = settled
        if old is None or without_access(old) != without_access(stat):
            node.stat = stat
        node.mode, node.uid, node.gid = stat.mode, stat.uid, stat.gid

    # Listings.

    def put(self, listing: Listing, rows: Sequence[tuple[str, RemoteNode | None, Stat, bool]]) -> None:
        """Install a directory's listing."""
        directory = listing.directory
        self.remove(directory)
        while self._directories and self.entries + len(rows) > self._entries_max:
            self.remove(next(iter(self._directories)))
        for name, node, stat, settled in rows:
            listing.dirents.append(Dirent(name, stat.ino, stat.kind))
            listing.nodes[name] = node
            if node is not None:
                self.update(node, stat, settled)
                node.home = listing
        directory.listing = listing
        self.entries += len(rows)
        self._directories[directory] = None

    def remove(self, directory: RemoteNode) -> None:
        """Forget a listing."""
        listing, directory.listing = directory.listing, None
        if listing is not None:
            del self._directories[directory]
            self.entries -= len(listing.nodes)
            for node in listing.nodes.values():
                if node is not None and node.home is listing:
                    node.home = None
            listing.nodes = {}

    def touch(self, directory: RemoteNode) -> None:
        self._directories[directory] = self._directories.pop(directory)

    def stale_after(self, directory: RemoteNode, count: int) -> list[RemoteNode]:
        """Directories that a walk through the tree comes to next and that must be asked for (again)."""
        period = self.period()
        after = walk_after(directory) if count else ()
        stale = (each for each in after if each.listing is None or each.listing.checked != period)
        return list(islice(stale, count))

    def unread_after(self, node: RemoteNode, count: int, longest: int, room: int) -> list[RemoteNode]:
        """Small files that a walk comes to next and that are not known yet, as far as their listings are current."""
        home, period = node.home, self.period()
        found: list[RemoteNode] = []
        if home is None or not count:
            return found
        for directory in chain([home.directory], walk_after(home.directory)):
            listing = directory.listing
            if listing is None or listing.checked != period:
                break
            for each in listing.nodes.values():
                stat = None if each is None or each.blocks or not each.settled or each is node else each.stat
                if each is None or stat is None or not stat.is_regular or stat.size > longest:
                    continue
                room -= stat.size
                if room < 0 or len(found) == count:
                    return found
                found.append(each)
        return found

    def changed(self, *nodes: RemoteNode | None) -> None:
        """Forget all that is known of nodes that are changed from here."""
        for node in nodes:
            if node is not None:
                self.drop(node)
                node.stat = node.target = None
                node.misses = 0
                if node.listing is not None:
                    self.remove(node)


def walk_after(directory: RemoteNode) -> Iterator[RemoteNode]:
    """Directories that a walk through the tree comes to after this one, as far as the listings are known."""
    todo = _directories(directory.listing)
    for _ in range(LOOK_AHEAD):
        while not todo:
            # All below it is done: what comes after it in its parent is next.
            if directory.home is None:
                return
            after = _directories(directory.home)
            todo = after[: after.index(directory)] if directory in after else []
            directory = directory.home.directory
        node = todo.pop()
        yield node
        todo += _directories(node.listing)


def _directories(listing: Listing | None) -> list[RemoteNode]:
    """Directories in a listing, the last one first."""
    if listing is None:
        return []
    return [each for each in reversed(listing.nodes.values()) if each is not None and each.is_dir]


def without_access(stat: Stat) -> tuple[int, ...]:
    """A stat without the time of the last access, which is no change of the file."""
    return stat[:7] + stat[8:]


def _version(stat: Stat) -> tuple[int, ...]:
    return stat.ino, stat.size, stat.mtime, stat.ctime
