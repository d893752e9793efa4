"""Here-documents as files of their own: unnamed, in memory, readable again through /dev/fd."""

from __future__ import annotations

from typing import TYPE_CHECKING

from belljar.abi.errno import EACCES, ENOENT
from belljar.abi.errors import SysError
from belljar.abi.flags import O_ACCMODE, O_RDONLY, S_IFDIR, S_IFREG
from belljar.abi.records import Dirent, Stat
from belljar.kernel.vfs.namespace import Mount, Place
from belljar.kernel.vfs.openfile import OpenFile
from belljar.kernel.vfs.server import FileServer, Handle, Node

if TYPE_CHECKING:
    from belljar.shell.shell import Shell


class Text(Handle):
    """The body, open for reading."""

    __slots__ = ("data",)
    may_be_terminal = False

    def __init__(self, data: bytes) -> None:
        super().__init__()
        self.data = data

    def read(self, offset: int, size: int) -> bytes:
        return self.data[offset : offset + size]

    def size(self) -> int:
        return len(self.data)


class TextNode(Node):
    """One body."""

    __slots__ = ("data", "number", "time")

    def __init__(self, data: bytes, number: int, uid: int, gid: int, time: int) -> None:
        super().__init__(S_IFREG | 0o600, uid, gid)
        self.data = data
        self.number = number
        self.time = time


class HereServer(FileServer):
    """The server of bodies; mounted nowhere."""

    kind = "heredoc"

    def __init__(self) -> None:
        self._root = Node(S_IFDIR | 0o500, 0, 0)
        self.mount = Mount(self, self._root, None)
        self.count = 0

    @property
    def root(self) -> Node:
        return self._root

    def walk(self, directory: Node, name: str) -> Node:
        raise SysError(ENOENT, name)

    def locate(self, directory: Node) -> None:
        return None

    def readdir(self, directory: Node) -> list[Dirent]:
        return []

    def stat(self, node: Node) -> Stat:
        assert isinstance(node, TextNode)
        size, time = len(node.data), node.time
        return Stat(node.mode, node.number, self.dev, 0, node.uid, node.gid, size, time, time, time)

    def open(self, node: Node, flags: int) -> Handle:
        assert isinstance(node, TextNode)
        if flags & O_ACCMODE != O_RDONLY:
            raise SysError(EACCES)
        return Text(node.data)


def here_file(shell: Shell, data: bytes) -> OpenFile:
    """An open file that reads `data`: no pipe to fill, so no size deadlocks."""
    server = shell.here_server
    if server is None:
        server = shell.here_server = HereServer()
        shell.process.kernel.register(server)
    server.count += 1
    process = shell.process
    who = process.fs.credentials
    node = TextNode(data, server.count, who.uid, who.gid, process.kernel.now())
    return OpenFile(Text(data), O_RDONLY, Place(server.mount, node), f"/tmp/sh-thd.{server.count} (deleted)")
