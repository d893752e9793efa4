"""A file server with a quota: what is added through it, in bytes and names, stays below a limit (EDQUOT).

What counts is the growth of the tree by what passes through here: removing or shortening a file gives its bytes back,
once nobody has it open. Bytes are those of the files' lengths, holes included. What others add does not count.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, TypeVar

from belljar.abi.errno import ENOENT
from belljar.abi.errors import SysError
from belljar.abi.flags import O_TRUNC, RENAME_EXCHANGE
from belljar.abi.records import Owner, SetAttr, StatFs
from belljar.kernel.fs.quota import Quota
from belljar.kernel.vfs.server import FileServer, Handle, Node

T = TypeVar("T")


class LimitedServer:
    """Another server, charged to a quota. All that changes nothing goes to that server as it is."""

    def __init__(self, inner: FileServer, quota: Quota) -> None:
        self._inner = inner
        self._quota = quota
        self._opened: Counter[Node] = Counter()
        """How often each file is open."""
        self._removed: dict[Node, int] = {}
        """Lengths of files without a name that are still open."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    # Names.

    def create(self, directory: Node, name: str, mode: int, owner: Owner) -> Node:
        return self._name(lambda: self._inner.create(directory, name, mode, owner))

    def mkdir(self, directory: Node, name: str, mode: int, owner: Owner) -> Node:
        return self._name(lambda: self._inner.mkdir(directory, name, mode, owner))

    def symlink(self, directory: Node, name: str, target: str, owner: Owner) -> Node:
        return self._name(lambda: self._inner.symlink(directory, name, target, owner))

    def link(self, node: Node, directory: Node, name: str) -> None:
        self._name(lambda: self._inner.link(node, directory, name))

    def _name(self, make: Callable[[], T]) -> T:
        self._quota.take_file()
        try:
            return make()
        except BaseException:
            self._quota.give_file()
            raise

    def unlink(self, directory: Node, name: str) -> None:
        self._remove(directory, name, lambda: self._inner.unlink(directory, name))

    def rmdir(self, directory: Node, name: str) -> None:
        self._remove(directory, name, lambda: self._inner.rmdir(directory, name))

    def rename(self, source: Node, old: str, target: Node, new: str, flags: int) -> None:
        def move() -> None:
            self._inner.rename(source, old, target, new, flags)

        if flags & RENAME_EXCHANGE or (source is target and old == new):
            move()
            return
        moved = self._inner.walk(source, old)
        try:
            same = self._inner.walk(target, new) is moved  # two names of one file stay as they are
        except SysError as error:
            if error.errno != ENOENT:
                raise
            same = True  # there is none to be replaced
        if same:
            move()
        else:
            self._remove(target, new, move)

    def _remove(self, directory: Node, name: str, remove: Callable[[], None]) -> None:
        node = self._inner.walk(directory, name)
        stat = self._inner.stat(node)
        remove()
        self._quota.give_file()
        if stat.is_regular and stat.nlink <= 1:
            if self._opened[node]:
                self._removed[node] = stat.size
            else:
                self._quota.take_bytes(-stat.size)

    # Bytes.

    def setattr(self, node: Node, change: SetAttr) -> None:
        size = change.size
        if size is None:
            self._inner.setattr(node, change)
        else:
            self.resize(node, size - self._inner.stat(node).size, lambda: self._inner.setattr(node, change))

    def resize(self, node: Node, growth: int, resize: Callable[[], T]) -> T:
        """Charge a change of a file's length; before it is made if the file grows, and after that if it shrinks."""
        self._quota.take_bytes(max(growth, 0))
        try:
            result = resize()
        except BaseException:
            self._quota.take_bytes(-max(growth, 0))
            raise
        self._quota.take_bytes(min(growth, 0))
        if node in self._removed:
            self._removed[node] += growth
        return result

    def open(self, node: Node, flags: int) -> LimitedHandle:
        length = -self._inner.stat(node).size if flags & O_TRUNC else 0
        handle = self.resize(node, length, lambda: self._inner.open(node, flags))
        self._opened[node] += 1
        return LimitedHandle(handle, node, self)

    def closed(self, node: Node) -> None:
        self._opened[node] -= 1
        if not self._opened[node]:
            del self._opened[node]
            self._quota.take_bytes(-self._removed.pop(node, 0))

    def statfs(self) -> StatFs:
        found = self._inner.statfs()
        free = max(self._quota.bytes_limit - self._quota.bytes_used, 0) // (found.block_size or 1)
        files = max(self._quota.files_limit - self._quota.files_used, 0)
        return found._replace(blocks_free=min(found.blocks_free, free), files_free=min(found.files_free, files))


class LimitedHandle:
    """An open file of a limited server."""

    def __init__(self, inner: Handle, node: Node, server: LimitedServer) -> None:
        self._inner = inner
        self._node = node
        self._server = server

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def write(self, offset: int | None, data: bytes) -> int:
        size = self._inner.size()
        end = (size if offset is None else offset) + len(data)
        growth = max(end - size, 0)
        count = self._server.resize(self._node, growth, lambda: self._inner.write(offset, data))
        if growth and count < len(data):
            unwritten = min(len(data) - count, growth)
            self._server.resize(self._node, -unwritten, lambda: None)
        return count

    def truncate(self, size: int) -> None:
        self._server.resize(self._node, size - self._inner.size(), lambda: self._inner.truncate(size))

    def close(self) -> None:
        self._inner.close()
        self._server.closed(self._node)
