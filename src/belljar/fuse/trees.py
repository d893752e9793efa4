"""Several read-only file servers as one tree: the trees of a snapshot, each at its place in the root."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final
from weakref import WeakKeyDictionary

from belljar.abi.errno import ENOENT, ENOTDIR
from belljar.abi.errors import SysError
from belljar.abi.flags import FILE_MAX
from belljar.abi.records import Dirent, Stat
from belljar.kernel.vfs.server import FileServer, Handle, Node

_SHIFT: Final = 52
"""Bits of an inode number below those that tell the trees apart."""


class Trees(FileServer):
    """`root`, with other servers shown at paths in it; one whose place is not there is left out."""

    kind = "stored"

    def __init__(self, root: FileServer, others: Iterable[tuple[str, FileServer]] = ()) -> None:
        self._servers = [root]
        self._owners: WeakKeyDictionary[Node, int] = WeakKeyDictionary({root.root: 0})
        self._shown: dict[Node, Node] = {}
        """Roots of the other servers, by the directories that they are shown at."""
        self._hidden: dict[Node, tuple[Node, str]] = {}
        """Places of the other roots."""
        for path, server in others:
            try:
                self._graft(path, server)
            except SysError as error:
                if error.errno not in (ENOENT, ENOTDIR):
                    raise

    def _graft(self, path: str, server: FileServer) -> None:
        above = node = self.root
        name = ""
        for name in filter(None, path.split("/")):
            above, node = node, self.walk(node, name)
        self._shown[node] = server.root
        self._hidden[server.root] = above, name
        self._owners[server.root] = len(self._servers)
        self._servers.append(server)

    def _server(self, node: Node) -> FileServer:
        return self._servers[self._owners[node]]

    def _ino(self, node: Node, ino: int) -> int:
        """Number a node apart from those of the other trees."""
        return (ino ^ self._owners[node] << _SHIFT) & FILE_MAX

    @property
    def root(self) -> Node:
        return self._servers[0].root

    def walk(self, directory: Node, name: str) -> Node:
        number = self._owners[directory]
        node = self._servers[number].walk(directory, name)
        self._owners[node] = number
        return self._shown.get(node, node)

    def locate(self, directory: Node) -> tuple[Node, str] | None:
        place = self._hidden.get(directory)
        if place is not None:
            return place
        found = self._server(directory).locate(directory)
        if found is not None:
            self._owners.setdefault(found[0], self._owners[directory])
        return found

    def stat(self, node: Node) -> Stat:
        found = self._server(node).stat(node)
        return found._replace(ino=self._ino(node, found.ino), dev=self.dev)

    def readdir(self, directory: Node) -> Sequence[Dirent]:
        return [
            Dirent(name, self._ino(directory, ino), kind)
            for name, ino, kind in self._server(directory).readdir(directory)
        ]

    def settled(self, stat: Stat) -> bool:
        return all(server.settled(stat) for server in self._servers)

    def readlink(self, node: Node) -> str:
        return self._server(node).readlink(node)

    def open(self, node: Node, flags: int) -> Handle:
        return self._server(node).open(node, flags)

    def close(self) -> None:
        for server in self._servers:
            server.close()
