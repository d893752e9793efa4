"""File-server operations as messages: a server whose far side is any Python object, on the other end of a channel.

`RemoteServer` is the near side: it turns each operation into a request, a dict of simple values (int, bytes, bool,
None, lists of them, and one str, the operation), and gives it to a `call` that may park. `Export` is the far side: it
holds the real server and answers with {"ok": value} or {"errno": number}. Neither trusts the other: a malformed reply
is EIO, a malformed request EINVAL, an unknown node ESTALE, and neither can make the other hold more than the limits
below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from weakref import WeakValueDictionary, finalize

from belljar.abi.errno import EIO
from belljar.abi.errors import SysError
from belljar.abi.flags import FILE_MAX, PATH_MAX, S_IFMT
from belljar.abi.paths import check_name, fsencode
from belljar.abi.records import Dirent, Owner, SetAttr, Stat, StatFs
from belljar.kernel.fs.remote_export import Export as Export
from belljar.kernel.fs.remote_message import (
    ATTRIBUTES,
    CHUNK,
    ENTRIES_MAX,
    ERRNO_MAX,
    ID_MAX,
    LET_GO_MAX,
    OPEN_FLAGS,
    PAGE,
    U64,
    Call,
    Malformed,
    Send,
    check_data,
    check_file_name,
    check_int,
    check_list,
    check_text,
)
from belljar.kernel.fs.remote_message import Message as Message
from belljar.kernel.vfs.server import FileServer, Handle, Node


class RemoteNode(Node):
    __slots__ = ("number", "times")

    def __init__(self, number: int, mode: int, uid: int, gid: int) -> None:
        super().__init__(mode, uid, gid)
        self.number = number
        self.times = [0]
        """References held at the far side: the node is dropped there when as many were returned."""


class RemoteServer(FileServer):
    """A server at the other end of `call`. With `send` (no reply, may not park), closes are told at once."""

    kind = "remote"

    def __init__(self, call: Call, send: Send | None = None) -> None:
        self._call = call
        self._send = send
        self._nodes: WeakValueDictionary[int, RemoteNode] = WeakValueDictionary()
        self._forgotten: list[tuple[int, list[int]]] = []
        self._closed: list[int] = []
        self._root = self._node(self.ask("root"))

    def ask(self, operation: str, **fields: object) -> object:
        """Send one request with the nodes and handles released since the last, and return its answer."""
        message: dict[str, object] = {"op": operation}
        for key, value in fields.items():
            if type(value) is str:
                if key != "target":
                    check_name(value)
                message[key] = fsencode(value)
            else:
                message[key] = value
        if self._forgotten:
            message["forget"] = [[number, times[0]] for number, times in self._forgotten[:LET_GO_MAX]]
            del self._forgotten[:LET_GO_MAX]
        if self._closed:
            message["close"] = self._closed[:LET_GO_MAX]
            del self._closed[:LET_GO_MAX]
        reply = self._call(message)
        if not isinstance(reply, Mapping):
            raise SysError(EIO)
        if "errno" in reply:
            number, why = reply["errno"], reply.get("why")
            raise SysError(
                number if type(number) is int and 0 < number <= ERRNO_MAX else EIO,
                why=why.decode("utf-8", "replace") if isinstance(why, bytes) else "",
            )
        if "ok" not in reply:
            raise SysError(EIO)
        return reply["ok"]

    def close_handle(self, number: int) -> None:
        if self._send is not None:
            self._send({"op": "nothing", "close": [number]})
        else:
            self._closed.append(number)

    def _node(self, value: object) -> RemoteNode:
        try:
            number, mode, uid, gid = check_list(value, 4)
            number = check_int(number, 1, ID_MAX)
            mode, uid, gid = check_int(mode, 0, 0o177777), check_int(uid, 0, 1 << 32), check_int(gid, 0, 1 << 32)
        except (Malformed, ValueError):
            raise SysError(EIO) from None
        node = self._nodes.get(number)
        if node is None:
            node = self._nodes[number] = RemoteNode(number, mode, uid, gid)
            finalize(node, self._forgotten.append, (number, node.times)).atexit = False
        elif (node.mode ^ mode) & S_IFMT:
            raise SysError(EIO)  # a file does not turn into a directory
        node.times[0] += 1
        node.mode, node.uid, node.gid = mode, uid, gid
        return node

    @property
    def root(self) -> Node:
        return self._root

    def walk(self, directory: Node, name: str) -> Node:
        return self._node(self.ask("walk", node=_number(directory), name=name))

    def locate(self, directory: Node) -> tuple[Node, str] | None:
        value = self.ask("locate", node=_number(directory))
        if value is None:
            return None
        try:
            node, name = check_list(value, 2)
            return self._node(node), check_file_name(name) if name else ""
        except (Malformed, ValueError):
            raise SysError(EIO) from None

    def stat(self, node: Node) -> Stat:
        try:
            values = [
                check_int(value, -FILE_MAX, U64) for value in check_list(self.ask("stat", node=_number(node)), 12)
            ]
            mode, ino, _, nlink, uid, gid, size, atime, mtime, ctime, rdev, blocks = values
        except (Malformed, ValueError):
            raise SysError(EIO) from None
        if (mode ^ node.mode) & S_IFMT or not 0 <= size <= FILE_MAX:
            raise SysError(EIO)
        node.mode, node.uid, node.gid = mode, uid, gid
        return Stat(mode, ino, self.dev, nlink, uid, gid, size, atime, mtime, ctime, rdev, blocks)

    def readdir(self, directory: Node) -> Sequence[Dirent]:
        found: dict[str, Dirent] = {}
        start, page = 0, PAGE
        try:
            while page == PAGE and start < ENTRIES_MAX:
                entries = check_list(self.ask("readdir", node=_number(directory), start=start), PAGE)
                for entry in entries:
                    name, ino, kind = check_list(entry, 3)
                    name = check_file_name(name)
                    found[name] = Dirent(name, check_int(ino, 0, U64), check_int(kind, 0, S_IFMT) & S_IFMT)
                page = len(entries)
                start += page
        except (Malformed, ValueError):
            raise SysError(EIO) from None
        return list(found.values())

    def readlink(self, node: Node) -> str:
        try:
            return check_text(self.ask("readlink", node=_number(node)), PATH_MAX - 1)
        except Malformed:
            raise SysError(EIO) from None

    def open(self, node: Node, flags: int) -> Handle:
        return self._opened(self.ask("open", node=_number(node), flags=flags & OPEN_FLAGS))

    def hold(self, node: Node) -> Handle:
        return self._opened(self.ask("hold", node=_number(node)))

    def _opened(self, value: object) -> Handle:
        try:
            return RemoteHandle(self, check_int(value, 1, ID_MAX))
        except Malformed:
            raise SysError(EIO) from None

    def create(self, directory: Node, name: str, mode: int, owner: Owner) -> Node:
        return self._make("create", directory, name, mode, owner)

    def mkdir(self, directory: Node, name: str, mode: int, owner: Owner) -> Node:
        return self._make("mkdir", directory, name, mode, owner)

    def _make(self, operation: str, directory: Node, name: str, mode: int, owner: Owner) -> Node:
        return self._node(
            self.ask(operation, node=_number(directory), name=name, mode=mode, uid=owner.uid, gid=owner.gid)
        )

    def symlink(self, directory: Node, name: str, target: str, owner: Owner) -> Node:
        return self._node(
            self.ask("symlink", node=_number(directory), name=name, target=target, uid=owner.uid, gid=owner.gid)
        )

    def link(self, node: Node, directory: Node, name: str) -> None:
        self.ask("link", node=_number(node), into=_number(directory), name=name)

    def unlink(self, directory: Node, name: str) -> None:
        self.ask("unlink", node=_number(directory), name=name)

    def rmdir(self, directory: Node, name: str) -> None:
        self.ask("rmdir", node=_number(directory), name=name)

    def rename(self, source: Node, old: str, target: Node, new: str, flags: int) -> None:
        self.ask("rename", node=_number(source), name=old, into=_number(target), new=new, flags=flags)

    def setattr(self, node: Node, change: SetAttr) -> None:
        fields = {name: getattr(change, name) for name in ATTRIBUTES}
        self._node(self.ask("setattr", node=_number(node), **fields))

    def statfs(self) -> StatFs:
        try:
            figures = check_list(self.ask("statfs"), 6)
            return StatFs(self.kind, *(check_int(figure, 0, U64) for figure in figures))
        except (Malformed, TypeError, ValueError):
            raise SysError(EIO) from None


def _number(node: Node) -> int:
    assert isinstance(node, RemoteNode)
    return node.number


class RemoteHandle(Handle):
    """A file open at the far side."""

    __slots__ = ("_number", "_server")

    def __init__(self, server: RemoteServer, number: int) -> None:
        self.nonblocking = False
        self._server = server
        self._number = number

    def read(self, offset: int, size: int) -> bytes:
        size = min(size, CHUNK)
        try:
            return check_data(self._server.ask("read", handle=self._number, offset=offset, size=size), size)
        except Malformed:
            raise SysError(EIO) from None

    def write(self, offset: int | None, data: bytes) -> int:
        data = bytes(data[:CHUNK])
        return self._figure("write", len(data), offset=offset, data=data)

    def truncate(self, size: int) -> None:
        self._server.ask("truncate", handle=self._number, size=size)

    def size(self) -> int:
        return self._figure("size", FILE_MAX)

    def seek_data(self, offset: int, *, hole: bool) -> int:
        return self._figure("seek_data", FILE_MAX, offset=offset, hole=hole)

    def sync(self) -> None:
        self._server.ask("sync", handle=self._number)

    def _figure(self, operation: str, limit: int, **fields: object) -> int:
        try:
            return check_int(self._server.ask(operation, handle=self._number, **fields), 0, limit)
        except Malformed:
            raise SysError(EIO) from None

    def close(self) -> None:
        self._server.close_handle(self._number)
