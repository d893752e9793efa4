"""The stored changes of an overlay over the tree that they were made to: one read-only tree."""

from __future__ import annotations

from collections.abc import Sequence
from weakref import WeakValueDictionary

from belljar.abi.errno import ENOENT, ENOTDIR
from belljar.abi.errors import SysError
from belljar.abi.paths import check_name
from belljar.abi.records import Dirent, Stat, StatFs
from belljar.kernel.vfs.server import FileServer, Handle, Node
from belljar.store.stored_tree import StoredNode, StoredTree
from belljar.store.tree import Kind


class LayeredNode(Node):
    """A file of either tree, or a directory of both."""

    __slots__ = ("lower", "name", "parent", "upper")

    def __init__(self, upper: StoredNode | None, lower: Node | None, parent: LayeredNode | None, name: str) -> None:
        shown = lower if upper is None else upper
        assert shown is not None
        super().__init__(shown.mode, shown.uid, shown.gid)
        self.upper = upper
        self.lower = lower
        """Of a directory with an upper one: what shows through."""
        self.parent = parent
        self.name = name


class Layered(FileServer):
    """`upper` has `Kind.MERGED` for directories that show the lower one, and `Kind.WHITEOUT` for deleted names."""

    kind = "layered"

    def __init__(self, upper: StoredTree, lower: FileServer) -> None:
        if not lower.root.is_dir:
            raise SysError(ENOTDIR)
        self.upper = upper
        self.lower = lower
        self._root = LayeredNode(upper.root, lower.root, None, "")
        self._nodes: WeakValueDictionary[tuple[Node | None, Node | None], LayeredNode] = WeakValueDictionary()

    @property
    def root(self) -> LayeredNode:
        return self._root

    def walk(self, directory: Node, name: str) -> LayeredNode:
        assert isinstance(directory, LayeredNode)
        if not directory.is_dir:
            raise SysError(ENOTDIR)
        upper, lower = None, None
        entry = None if directory.upper is None else self.upper.entries(directory.upper).get(name)
        if entry is not None and entry.kind is Kind.WHITEOUT:
            check_name(name)
            raise SysError(ENOENT)
        if entry is not None and directory.upper is not None:
            upper = self.upper.walk(directory.upper, name)
        if directory.lower is not None and (entry is None or entry.kind is Kind.MERGED):
            try:
                lower = self.lower.walk(directory.lower, name)
            except SysError as error:
                if upper is None or error.errno != ENOENT:
                    raise
            if upper is not None and lower is not None and not lower.is_dir:
                lower = None
        if upper is None and lower is None:
            check_name(name)
            raise SysError(ENOENT)
        node = self._nodes.get((upper, lower))
        if node is None:
            node = self._nodes[upper, lower] = LayeredNode(upper, lower, directory, name)
        elif upper is None and lower is not None:
            node.mode, node.uid, node.gid = lower.mode, lower.uid, lower.gid
        return node

    def locate(self, directory: Node) -> tuple[Node, str] | None:
        assert isinstance(directory, LayeredNode)
        return None if directory.parent is None else (directory.parent, directory.name)

    def readdir(self, directory: Node) -> Sequence[Dirent]:
        assert isinstance(directory, LayeredNode)
        if not directory.is_dir:
            raise SysError(ENOTDIR)
        above = {} if directory.upper is None else self.upper.entries(directory.upper)
        found = list(self.upper.readdir(directory.upper)) if directory.upper is not None else []
        if directory.lower is not None:
            found += [entry for entry in self.lower.readdir(directory.lower) if entry.name not in above]
        return found

    def stat(self, node: Node) -> Stat:
        assert isinstance(node, LayeredNode)
        if node.upper is None:
            assert node.lower is not None
            return self.lower.stat(node.lower)
        found = self.upper.stat(node.upper)
        return found if node.lower is None else found._replace(nlink=1)

    def open(self, node: Node, flags: int) -> Handle:
        assert isinstance(node, LayeredNode)
        if node.upper is not None:
            return self.upper.open(node.upper, flags)
        assert node.lower is not None
        return self.lower.open(node.lower, flags)

    def hold(self, node: Node) -> Handle:
        assert isinstance(node, LayeredNode)
        if node.upper is not None:
            return self.upper.hold(node.upper)
        assert node.lower is not None
        return self.lower.hold(node.lower)

    def readlink(self, node: Node) -> str:
        assert isinstance(node, LayeredNode)
        if node.upper is not None:
            return self.upper.readlink(node.upper)
        assert node.lower is not None
        return self.lower.readlink(node.lower)

    def statfs(self) -> StatFs:
        return self.lower.statfs()

    def close(self) -> None:
        self.lower.close()
