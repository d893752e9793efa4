"""Differences between an overlay and its lower tree, path by path."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from belljar.abi.errno import ENOENT, ENOTDIR, ENOTSUP
from belljar.abi.errors import SysError
from belljar.abi.flags import O_RDONLY, PERMISSIONS, S_IFLNK, S_IFMT
from belljar.abi.paths import fsdecode, fsencode
from belljar.abi.records import Stat
from belljar.kernel.fs.overlay import OverlayServer
from belljar.kernel.fs.overlay_node import OverlayDirectory, OverlayNode
from belljar.kernel.fs.remote import RemoteServer
from belljar.kernel.vfs.server import FileServer, Node


class OverlayChanges:
    """A directory of an overlay, and the lower tree at the same path."""

    def __init__(self, server: FileServer, top: Node) -> None:
        """ENOTSUP for what is no directory of an overlay."""
        if not isinstance(server, OverlayServer) or not isinstance(top, OverlayDirectory):
            raise SysError(ENOTSUP)
        self._server = server
        self._top = top
        self._parts = server.path_of(top)

    def lower_place(self) -> tuple[int | None, list[str]]:
        """The far side's number of the lower tree, if that is remote, and the names from its root to the directory."""
        lower = self._server.lower
        return lower.export if isinstance(lower, RemoteServer) else None, self._parts

    def page(self, after: bytes, most: int) -> list[list[Any]]:
        """The first files, by path, that differ and follow a path, as an owner asks for them.

        Each with its mode now and before, 0 for none, and whether the lower file changed since it was copied.
        """
        last = fsdecode(after)
        rows = [
            [fsencode(name), 0 if new is None else new.mode, 0 if old is None else old.mode, stale]
            for name, new, old, stale in sorted(self.differing(), key=lambda row: row[0])
            if name > last
        ]
        return rows[:most]

    def differing(self) -> Iterator[tuple[str, Stat | None, Stat | None, bool]]:
        """Paths below the directory where the trees may differ, what is there and what was, and whether the lower file
        has changed since it was copied.

        Of two files the contents are not compared; two directories are never different.
        """
        todo: list[tuple[str, OverlayNode | None, Node | None]] = [("", self._top, self._find_lower(self._parts))]
        while todo:
            path, directory, lower = todo.pop()
            for name in sorted(self._names(directory, lower), reverse=True):
                new = self._find(self._server, directory, name)
                old = self._find(self._server.lower, lower, name)
                if (new is None and old is None) or self._is_same(new, old):
                    continue
                if isinstance(new, OverlayNode):
                    self._detach(new, old)
                below = f"{path}/{name}" if path else name
                if not (new is not None and new.is_dir and old is not None and old.is_dir):
                    is_stale = isinstance(new, OverlayNode) and self._is_stale(new)
                    yield (
                        below,
                        None if new is None else self._server.stat(new),
                        None if old is None else self._server.lower.stat(old),
                        is_stale,
                    )
                if (new is not None and new.is_dir) or (old is not None and old.is_dir):
                    assert new is None or isinstance(new, OverlayNode)
                    todo.append((below, new, old))

    def _detach(self, node: OverlayNode, old: Node | None) -> None:
        """Keep what differs apart from the lower tree: when the changes are made there, its files are replaced.

        If there is no room for that, it stays as it is.
        """
        shows_another = node.upper is None if not node.is_dir else node.lower is not None and node.lower is not old
        if shows_another:
            with suppress(SysError):
                self._server.detach(node)

    def read_lower(self, path: str, offset: int, size: int) -> tuple[bytes, bool]:
        """Read from a file of the lower tree, and tell whether that was its end; the whole target of a symlink."""
        server = self._server.lower
        node = self._find_lower([*self._parts, *path.split("/")])
        if node is None:
            raise SysError(ENOENT)
        if node.mode & S_IFMT == S_IFLNK:
            return fsencode(server.readlink(node)), True
        handle = server.open(node, O_RDONLY)
        try:
            parts: list[bytes] = []
            while size and (data := handle.read(offset, size)):
                parts.append(data)
                offset, size = offset + len(data), size - len(data)
            return b"".join(parts), size > 0
        finally:
            handle.close()

    def _find_lower(self, parts: Sequence[str]) -> Node | None:
        node: Node | None = self._server.lower.root
        for part in parts:
            node = self._find(self._server.lower, node, part)
        return node

    @staticmethod
    def _find(server: FileServer, directory: Node | None, name: str) -> Node | None:
        if directory is None or not directory.is_dir:
            return None
        try:
            return server.walk(directory, name)
        except SysError as error:
            if error.errno in (ENOENT, ENOTDIR):
                return None
            raise

    def _names(self, directory: OverlayNode | None, lower: Node | None) -> set[str]:
        """Names to compare: all, unless the one directory shows the other but for what it records."""
        if isinstance(directory, OverlayDirectory) and directory.lower is lower:
            return set(directory.names)
        names: set[str] = set()
        for server, node in ((self._server, directory), (self._server.lower, lower)):
            if node is not None and node.is_dir:
                names |= {entry.name for entry in server.readdir(node)}
        return names

    def _is_same(self, new: Node | None, old: Node | None) -> bool:
        """Whether the overlay shows the lower file as it is."""
        if not isinstance(new, OverlayNode) or old is None or new.lower is not old:
            return False
        if isinstance(new, OverlayDirectory):
            return not new.names
        return new.upper is None and not (new.mode ^ old.mode) & PERMISSIONS

    def _is_stale(self, node: OverlayNode) -> bool:
        if node.copied is None:
            return False
        assert node.lower is not None
        try:
            return self._server.version(node.lower) != node.copied
        except SysError:
            return True
