"""A consistent point of a tree in memory: records of what changed since a time, and contents as they were then.

Nothing here parks, so no other fiber changes the tree meanwhile. Contents are not copied but frozen: what a file holds
is made immutable in place, and the next write to it makes a copy of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from belljar.abi.capture import NAMES_MAX, PIECE_BYTES, SMALL, Record
from belljar.abi.flags import S_IFMT, S_IFSOCK
from belljar.abi.paths import fsencode
from belljar.kernel.fs.contents import PAGE, Sparse, length
from belljar.kernel.fs.memory import Directory, File, MemoryNode, MemoryServer, Symlink
from belljar.kernel.fs.overlay import OverlayServer
from belljar.kernel.fs.overlay_node import OverlayDirectory, OverlayNode
from belljar.kernel.fs.remote_cache import RemoteNode

_PAGES: Final = PIECE_BYTES // PAGE


class Captured:
    """Trees at one moment. `records` in no particular order."""

    def __init__(self) -> None:
        self.records: list[Record] = []
        self.sockets = 0
        """Socket files, which are left out."""
        self._contents: dict[tuple[int, int], bytes | dict[int, bytes]] = {}
        """Of the larger files: all bytes, or the pages of a sparse one."""
        self._lower: list[RemoteNode] = []
        """Keeps the owner's files known to it by their numbers."""

    def read(self, tree: int, number: int, piece: int) -> bytes:
        """A piece of a larger file; without its zeros at the end if it is sparse. KeyError."""
        contents = self._contents[tree, number]
        if isinstance(contents, bytes):
            return contents[piece * PIECE_BYTES : (piece + 1) * PIECE_BYTES]
        zeros = bytes(PAGE)
        pages = [contents.get(page, zeros) for page in range(piece * _PAGES, (piece + 1) * _PAGES)]
        return b"".join(pages).rstrip(b"\0")

    def add_memory(self, server: MemoryServer, since: int) -> int:
        """Capture a tree of which nothing that changed before `since` is wanted. The number of its root."""
        tree, add = server.dev, self.records.append
        seen: set[MemoryNode] = set()
        todo = [server.root]
        while todo:
            directory = todo.pop()
            entries = directory.entries
            if directory.ctime >= since:
                named = ((name, node.ino) for name, node in entries.items() if node.mode & S_IFMT != S_IFSOCK)
                self._add_directory(_attributes(tree, directory.ino, directory, directory.mtime), named)
            for node in entries.values():
                if isinstance(node, Directory):
                    todo.append(node)
                elif node.ctime >= since and node not in seen:
                    if node.nlink > 1:
                        seen.add(node)
                    if node.mode & S_IFMT == S_IFSOCK:
                        self.sockets += 1
                    else:
                        given = _attributes(tree, node.ino, node, node.mtime)
                        add(Record(**given, **self._contents_of(tree, node.ino, node)))
        return server.root.ino

    def add_overlay(self, server: OverlayServer, since: int) -> int:
        """As `add_memory`, for changes over files of the owner's."""
        tree = server.dev
        seen: set[OverlayNode] = set()
        todo: list[OverlayNode] = [server.root, *server.pinned.values()]
        while todo:
            node = todo.pop()
            if node in seen:
                continue
            seen.add(node)
            if isinstance(node, OverlayDirectory):
                todo += [child for child in node.names.values() if child is not None]
            upper = node.upper
            assert upper is None or isinstance(upper, MemoryNode)
            if max(node.ctime, 0 if upper is None else upper.ctime) < since and node.kept < since:
                continue
            lower = node.lower
            if isinstance(lower, RemoteNode):
                self._lower.append(lower)
            given = _attributes(tree, server.number(node), node, 0)
            given["lower"] = lower.number if isinstance(lower, RemoteNode) else 0
            if node.own and (upper is None or node.is_dir):
                given["mtime"] = max(node.mtime, 0)
            elif upper is not None:
                given["mtime"] = upper.mtime
            else:
                given["as_lower"] = True
            if isinstance(node, OverlayDirectory):
                named = [
                    (name, 0 if child is None or child.mode & S_IFMT == S_IFSOCK else server.number(child))
                    for name, child in node.names.items()
                ]
                shown = [pair for pair in named if pair[1] or lower is not None]
                self._add_directory(given, shown)
            elif node.mode & S_IFMT == S_IFSOCK:
                self.sockets += 1
            elif upper is None:
                self.records.append(Record(**given, contents=False))
            else:
                self.records.append(Record(**given, **self._contents_of(tree, given["id"], upper)))
        return server.number(server.root)

    def add_whole(self, server: OverlayServer, since: int) -> int:
        """As `add_overlay`, over files in memory that never change: they are captured, too.

        A file has the number of the lower one that it was, so that it stays the same file when it is first changed.
        """
        tree = server.dev
        seen: set[int] = set()
        shown: list[MemoryNode] = []
        """Lower files that were not changed."""
        todo: list[OverlayNode] = [server.root, *server.pinned.values()]
        while todo:
            node = todo.pop()
            number, upper, lower = _whole_number(server, node), node.upper, node.lower
            if number in seen:
                continue
            seen.add(number)
            if isinstance(node, OverlayDirectory):
                todo += [child for child in node.names.values() if child is not None]
            assert upper is None or isinstance(upper, MemoryNode)
            held = lower if upper is None else upper
            assert isinstance(held, MemoryNode)
            if max(node.ctime, 0 if upper is None else upper.ctime, node.kept) < since:
                continue
            mtime = node.mtime if node.own and (upper is None or node.is_dir) else held.mtime
            given = _attributes(tree, number, node, max(mtime, 0))
            if isinstance(node, OverlayDirectory):
                named = [
                    (name, _whole_number(server, child))
                    for name, child in node.names.items()
                    if child is not None and child.mode & S_IFMT != S_IFSOCK
                ]
                below = lower.entries if isinstance(lower, Directory) else {}
                unchanged = {name: each for name, each in below.items() if name not in node.names}
                shown += unchanged.values()
                self._add_directory(given, [*named, *((name, 2 * each.ino) for name, each in unchanged.items())])
            elif node.mode & S_IFMT == S_IFSOCK:
                self.sockets += 1
            else:
                self.records.append(Record(**given, **self._contents_of(tree, number, held)))
        while shown and not since:
            below_node = shown.pop()
            number = 2 * below_node.ino
            if number in seen:
                continue
            seen.add(number)
            given = _attributes(tree, number, below_node, below_node.mtime)
            if isinstance(below_node, Directory):
                shown += below_node.entries.values()
                self._add_directory(given, [(name, 2 * each.ino) for name, each in below_node.entries.items()])
            else:
                self.records.append(Record(**given, **self._contents_of(tree, number, below_node)))
        return _whole_number(server, server.root)

    def _add_directory(self, given: dict[str, Any], named: Iterable[tuple[str, int]]) -> None:
        pairs = list(named)
        for start in range(0, len(pairs) or 1, NAMES_MAX):
            some = pairs[start : start + NAMES_MAX]
            names, children = [fsencode(name) for name, _ in some], [number for _, number in some]
            self.records.append(Record(**given, names=names, children=children, goes_on=start > 0))

    def _contents_of(self, tree: int, number: int, node: MemoryNode) -> dict[str, Any]:
        """The fields of a record that say what is in a file; freezes what is to be read later."""
        if isinstance(node, Symlink):
            return {"target": fsencode(node.target)}
        if not isinstance(node, File):
            return {}
        contents = node.contents
        if isinstance(contents, Sparse):
            contents.freeze()
            pages: dict[int, bytes] = {page: bytes(data) for page, data in contents.pages.items()}
            self._contents[tree, number] = pages
            return {"size": contents.size, "pieces": _runs({page // _PAGES for page in pages})}
        size = length(contents)
        if size <= SMALL:
            return {"size": size, "data": bytes(contents)}
        frozen = node.contents = bytes(contents)
        self._contents[tree, number] = frozen
        return {"size": size, "pieces": [0, -(-size // PIECE_BYTES)]}


def _whole_number(server: OverlayServer, node: OverlayNode) -> int:
    lower = node.lower
    return 2 * lower.ino if isinstance(lower, MemoryNode) else 2 * server.number(node) + 1


def _attributes(tree: int, number: int, node: MemoryNode | OverlayNode, mtime: int) -> dict[str, Any]:
    return {"tree": tree, "id": number, "mode": node.mode, "uid": node.uid, "gid": node.gid, "mtime": mtime}


def _runs(numbers: set[int]) -> list[int]:
    """Numbers as pairs: the first of a run, and its length."""
    found: list[int] = []
    for number in sorted(numbers):
        if found and found[-2] + found[-1] == number:
            found[-1] += 1
        else:
            found += [number, 1]
    return found
