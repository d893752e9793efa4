"""The files of a live sandbox as a file server, read-only: each question is one to the sandbox."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final
from weakref import WeakValueDictionary

from belljar.abi.errno import EFBIG, EINVAL, EIO, ENOENT, ENOTDIR
from belljar.abi.errors import SysError
from belljar.abi.flags import FILE_MAX, NAME_MAX, S_IFMT
from belljar.abi.paths import dirname, fsdecode, fsencode, join
from belljar.abi.records import Dirent, Stat
from belljar.abi.wire import LIST_PAGE
from belljar.api.errors import FileError, SandboxError
from belljar.api.operations import ENTRIES_MAX, Steps, ask, check_answer, check_entries, read_range, readlink
from belljar.kernel.vfs.server import FileServer, Handle, Node

_ID_MAX: Final = 0xFFFFFFFE


class _LiveNode(Node):
    __slots__ = ("path",)

    def __init__(self, path: str, stat: Stat) -> None:
        super().__init__(stat.mode, stat.uid, stat.gid)
        self.path = path


class LiveTree(FileServer):
    """What is at `path` of a sandbox and below it, as it is when it is asked for. `run` performs an operation."""

    kind = "sandbox"

    def __init__(self, run: Callable[[Steps[Any]], Any], path: str) -> None:
        """FileError if there is no directory."""
        self._run = run
        self._nodes: WeakValueDictionary[str, _LiveNode] = WeakValueDictionary()
        self._root = self._node(path, _stat_of(run(_stat(path, follow=True))))
        if not self._root.is_dir:
            raise FileError(ENOTDIR, path)

    def _perform(self, steps: Steps[Any]) -> Any:
        try:
            return self._run(steps)
        except FileError as error:
            raise SysError(error.errno) from None
        except SandboxError as error:
            raise SysError(EIO) from error

    def _node(self, path: str, stat: Stat) -> _LiveNode:
        """The same object for the same path, as long as there is a file of the same kind."""
        node = self._nodes.get(path)
        if node is None or node.mode & S_IFMT != stat.kind:
            node = self._nodes[path] = _LiveNode(path, stat)
        node.mode, node.uid, node.gid = stat.mode, stat.uid, stat.gid
        return node

    @property
    def root(self) -> Node:
        return self._root

    def walk(self, directory: Node, name: str) -> Node:
        assert isinstance(directory, _LiveNode)
        path = join(directory.path, name)
        return self._node(path, _stat_of(self._perform(_stat(path, follow=False))))

    def locate(self, directory: Node) -> tuple[Node, str] | None:
        assert isinstance(directory, _LiveNode)
        if directory is self._root:
            return None
        above = dirname(directory.path)
        parent = self._root if above == self._root.path else self._nodes.get(above)
        return (parent or self._root), directory.path.rpartition("/")[2]

    def stat(self, node: Node) -> Stat:
        assert isinstance(node, _LiveNode)
        found = _stat_of(self._perform(_stat(node.path, follow=node is self._root)))
        if found.kind != node.mode & S_IFMT:
            raise SysError(ENOENT)  # it is another file by now
        node.mode, node.uid, node.gid = found.mode, found.uid, found.gid
        return found._replace(dev=self.dev)

    def readdir(self, directory: Node) -> Sequence[Dirent]:
        assert isinstance(directory, _LiveNode)
        found: list[Dirent] = self._perform(_list(directory.path))
        return found

    def readlink(self, node: Node) -> str:
        assert isinstance(node, _LiveNode)
        if not node.is_symlink:
            raise SysError(EINVAL)
        found: str = self._perform(readlink(node.path))
        return found

    def open(self, node: Node, flags: int) -> Handle:
        assert isinstance(node, _LiveNode)
        return _LiveFile(self, node)


class _LiveFile(Handle):
    __slots__ = ("_node", "_tree")

    def __init__(self, tree: LiveTree, node: _LiveNode) -> None:
        super().__init__()
        self._tree = tree
        self._node = node

    def read(self, offset: int, size: int) -> bytes:
        found: bytes = self._tree._perform(read_range(self._node.path, offset, size)) if size else b""
        return found[:size]

    def size(self) -> int:
        return self._tree.stat(self._node).size


def _stat(path: str, *, follow: bool) -> Steps[list[int]]:
    answer = yield from ask(path, "stat", fsencode(path), follow)
    (entry,) = check_entries([[b"", *check_answer(answer, list[int])]])
    return entry[1:]


def _list(path: str) -> Steps[list[Dirent]]:
    found: list[Dirent] = []
    while True:
        last = found[-1].name if found else ""
        page = check_entries((yield from ask(path, "list", fsencode(path), fsencode(last))))
        for name, *fields in page:
            stat = _stat_of(fields)
            found.append(Dirent(_check_name(fsdecode(name)), stat.ino, stat.kind))
        if len(page) < LIST_PAGE or found[-1].name <= last:
            return found
        if len(found) > ENTRIES_MAX:
            raise FileError(EFBIG, path)


def _check_name(name: str) -> str:
    if not name or name in (".", "..") or "/" in name or "\0" in name or len(fsencode(name)) > NAME_MAX:
        raise SandboxError("the sandbox names a file as none can be named")
    return name


def _stat_of(fields: list[int]) -> Stat:
    """What a sandbox says of a file, within what a kernel takes."""
    mode, size, mtime, uid, gid, *more = fields
    nlink, ino = more if len(more) == 2 else (1, 0)
    size, mtime = (min(max(value, 0), FILE_MAX) for value in (size, mtime))
    nlink, uid, gid = (min(max(value, 0), _ID_MAX) for value in (nlink, uid, gid))
    blocks = -(-size // 512)
    return Stat(mode & 0o177777, ino & FILE_MAX, 0, nlink, uid, gid, size, mtime, mtime, mtime, 0, blocks)
