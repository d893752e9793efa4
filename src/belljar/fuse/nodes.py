"""The nodes of a file server that a kernel knows, by the numbers it knows them by."""

from __future__ import annotations

from typing import Final

from belljar.abi.errno import ENFILE, ESTALE
from belljar.abi.errors import SysError
from belljar.fuse.protocol import ROOT_ID
from belljar.kernel.vfs.server import Node

NODES_MAX: Final = 1_000_000

Version = tuple[int, int, int]
"""Modification time, change time and size of a file: its contents are the same as long as these are."""


class KnownNode:
    """A node, how often the kernel was told of it, and the version of the contents that it may have kept."""

    __slots__ = ("lookups", "node", "version")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.lookups = 0
        self.version: Version | None = None


class NodeTable:
    """Nodes are kept as long as the kernel refers to them. No number is used twice."""

    def __init__(self, root: Node) -> None:
        self._known = {ROOT_ID: KnownNode(root)}
        self._numbers = {id(root): ROOT_ID}
        self._last = ROOT_ID

    def __len__(self) -> int:
        return len(self._known)

    def give(self, node: Node) -> int:
        """The number of a node that the kernel is told of once more. ENFILE."""
        number = self._numbers.get(id(node))
        if number is None:
            if len(self._known) >= NODES_MAX:
                raise SysError(ENFILE)
            self._last = number = self._last + 1
            self._numbers[id(node)] = number
            self._known[number] = KnownNode(node)
        self._known[number].lookups += 1
        return number

    def find(self, number: int) -> KnownNode:
        """ESTALE."""
        known = self._known.get(number)
        if known is None:
            raise SysError(ESTALE)
        return known

    def number_of(self, node: Node) -> int | None:
        """The number of a node, if the kernel knows it."""
        return self._numbers.get(id(node))

    def forget(self, number: int, times: int = 1) -> None:
        """The kernel gave up so many of its references."""
        known = self._known.get(number)
        if known is None:
            return
        known.lookups -= times
        if known.lookups <= 0 and number != ROOT_ID:
            del self._known[number]
            del self._numbers[id(known.node)]
