"""The nodes of a file server that a kernel knows, by the numbers it knows them by."""

from __future__ import annotations

from itertools import islice
from typing import Final

from belljar.abi.errno import ENFILE, ESTALE
from belljar.abi.errors import SysError
from belljar.fuse.protocol import ROOT_ID
from belljar.kernel.vfs.server import Node

NODES_MAX: Final = 1_000_000
NODES_WANTED: Final = 100_000
"""When the kernel knows more, it is asked to forget those that it was told of first."""
BATCH: Final = 1000

Version = tuple[int, int, int]
"""Modification time, change time and size of a file: its contents are the same as long as these are."""


class KnownNode:
    """A node, how often the kernel was told of it, and the version of the contents that it may have kept."""

    __slots__ = ("lookups", "node", "place", "version")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.place: tuple[int, str] | None = None
        """The number of the directory and the name by which the kernel was told of it last."""
        self.lookups = 0
        self.version: Version | None = None


class NodeTable:
    """Nodes are kept as long as the kernel refers to them. No number is used twice."""

    def __init__(self, root: Node) -> None:
        self._known = {ROOT_ID: KnownNode(root)}
        self._numbers = {id(root): ROOT_ID}
        self._last = ROOT_ID
        self._asked = NODES_WANTED
        """How many there were, or were wanted, when the kernel was last asked to forget some."""

    def __len__(self) -> int:
        return len(self._known)

    def give(self, node: Node, directory: int, name: str) -> int:
        """The number of a node that the kernel is told of once more. ENFILE."""
        number = self._numbers.get(id(node))
        if number is None:
            if len(self._known) >= NODES_MAX:
                raise SysError(ENFILE)
            self._last = number = self._last + 1
            self._numbers[id(node)] = number
            self._known[number] = KnownNode(node)
        known = self._known[number]
        known.lookups += 1
        known.place = directory, name
        return number

    def surplus(self) -> list[tuple[int, str]]:
        """Names that the kernel should forget: of those nodes that it has known for the longest, some at a time."""
        if len(self._known) < self._asked + BATCH:
            return []
        found = [known.place for known in islice(self._known.values(), 1, 1 + BATCH) if known.place is not None]
        for number in list(islice(self._known, 1, 1 + BATCH)):
            self._known[number] = self._known.pop(number)  # what is in use is asked for again last
        self._asked = max(len(self._known) - BATCH // 2, NODES_WANTED)
        return found

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
            self._asked = max(min(self._asked, len(self._known)), NODES_WANTED)
            del self._known[number]
            del self._numbers[id(known.node)]
