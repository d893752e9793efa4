"""File-server operations as messages: a server whose far side is any Python object, on the other end of a channel.

`RemoteServer` is the near side: it turns each operation into a request, a dict of simple values (int, bytes, bool,
None, lists of them, and one str, the operation), and gives it to a `call` that may park. `Export` is the far side: it
holds the real server and answers with {"ok": value} or {"errno": number}. Neither trusts the other: a malformed reply
is EIO, a malformed request EINVAL, an unknown node ESTALE, and neither can make the other hold more than the limits
below.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from errno import EBADF, EINVAL, EIO, ENFILE, ESTALE
from typing import Final
from weakref import WeakValueDictionary, finalize

from belljar.abi.errors import SysError
from belljar.abi.flags import FILE_MAX, NAME_MAX, O_ACCMODE, O_APPEND, O_NONBLOCK, O_TRUNC, PATH_MAX, S_IFMT
from belljar.abi.paths import check_name, fsdecode, fsencode
from belljar.abi.records import Dirent, Owner, SetAttr, Stat, StatFs
from belljar.kernel.vfs.server import FileServer, Handle, Node

Message = Mapping[str, object]
Call = Callable[[Message], Message]
Send = Callable[[Message], None]

CHUNK: Final = 1 << 20
"""The most data one message carries."""
ENTRIES_MAX: Final = 1_000_000
NODES_MAX: Final = 1_000_000
HANDLES_MAX: Final = 4096
LET_GO_MAX: Final = 1000
_OPEN_FLAGS: Final = O_ACCMODE | O_TRUNC | O_APPEND | O_NONBLOCK
_ID_MAX: Final = 1 << 53
_ERRNO_MAX: Final = 133
_U64: Final = (1 << 64) - 1


# Both sides: checked values.


class Malformed(Exception):
    """A message that no honest peer sends."""


def _int(value: object, low: int, high: int) -> int:
    if type(value) is not int or not low <= value <= high:
        raise Malformed
    return value


def _text(value: object, limit: int) -> str:
    """Names and targets travel as bytes: not all of them are UTF-8."""
    if type(value) is not bytes or not 0 < len(value) <= limit or b"\0" in value:
        raise Malformed
    return fsdecode(value)


def _name(value: object) -> str:
    name = _text(value, NAME_MAX)
    if "/" in name or name in (".", ".."):
        raise Malformed
    return name


def _data(value: object, limit: int) -> bytes:
    if type(value) is not bytes or len(value) > limit:
        raise Malformed
    return value


def _list(value: object, limit: int) -> list[object]:
    if not isinstance(value, list | tuple) or len(value) > limit:
        raise Malformed
    return list(value)


# The near side.


class RemoteNode(Node):
    __slots__ = ("number", "times")

    def __init__(self, number: int, mode: int, uid: int, gid: int) -> None:
        super().__init__(mode, uid, gid)
        self.number = number
        self.times = [0]
        """How often the far side gave it to us: it is forgotten there when we have returned it as often."""


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
        """One request and its answer, together with what was let go since the last."""
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
            number = reply["errno"]
            raise SysError(number if type(number) is int and 0 < number <= _ERRNO_MAX else EIO)
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
            number, mode, uid, gid = _list(value, 4)
            number = _int(number, 1, _ID_MAX)
            mode, uid, gid = _int(mode, 0, 0o177777), _int(uid, 0, 1 << 32), _int(gid, 0, 1 << 32)
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
            node, name = _list(value, 2)
            return self._node(node), _name(name) if name else ""
        except (Malformed, ValueError):
            raise SysError(EIO) from None

    def stat(self, node: Node) -> Stat:
        try:
            values = [_int(value, -FILE_MAX, _U64) for value in _list(self.ask("stat", node=_number(node)), 12)]
            mode, ino, _, nlink, uid, gid, size, atime, mtime, ctime, rdev, blocks = values
        except (Malformed, ValueError):
            raise SysError(EIO) from None
        if (mode ^ node.mode) & S_IFMT or not 0 <= size <= FILE_MAX:
            raise SysError(EIO)
        node.mode, node.uid, node.gid = mode, uid, gid
        return Stat(mode, ino, self.dev, nlink, uid, gid, size, atime, mtime, ctime, rdev, blocks)

    def readdir(self, directory: Node) -> Sequence[Dirent]:
        found: dict[str, Dirent] = {}
        try:
            for entry in _list(self.ask("readdir", node=_number(directory)), ENTRIES_MAX):
                name, ino, kind = _list(entry, 3)
                name = _name(name)
                found[name] = Dirent(name, _int(ino, 0, _U64), _int(kind, 0, S_IFMT) & S_IFMT)
        except (Malformed, ValueError):
            raise SysError(EIO) from None
        return list(found.values())

    def readlink(self, node: Node) -> str:
        try:
            return _text(self.ask("readlink", node=_number(node)), PATH_MAX - 1)
        except Malformed:
            raise SysError(EIO) from None

    def open(self, node: Node, flags: int) -> Handle:
        try:
            number = _int(self.ask("open", node=_number(node), flags=flags & _OPEN_FLAGS), 1, _ID_MAX)
        except Malformed:
            raise SysError(EIO) from None
        return RemoteHandle(self, number)

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
        fields = {name: getattr(change, name) for name in _ATTRIBUTES}
        self._node(self.ask("setattr", node=_number(node), **fields))

    def statfs(self) -> StatFs:
        try:
            figures = _list(self.ask("statfs"), 6)
            return StatFs(self.kind, *(_int(figure, 0, _U64) for figure in figures))
        except (Malformed, TypeError, ValueError):
            raise SysError(EIO) from None


_ATTRIBUTES: Final = ("mode", "uid", "gid", "size", "atime", "mtime")


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
            return _data(self._server.ask("read", handle=self._number, offset=offset, size=size), size)
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
            return _int(self._server.ask(operation, handle=self._number, **fields), 0, limit)
        except Malformed:
            raise SysError(EIO) from None

    def close(self) -> None:
        self._server.close_handle(self._number)


# The far side.


class Export:
    """A server, answering requests of one untrusted peer.

    `report` is told of exceptions that are the server's own bugs; the peer sees EIO.
    """

    def __init__(self, server: FileServer, report: Callable[[BaseException], None] | None = None) -> None:
        self._server = server
        self._report = report
        self._nodes: dict[int, Node] = {}
        self._numbers: dict[int, int] = {}
        self._times: dict[int, int] = {}
        self._handles: dict[int, Handle] = {}
        self._next = 1
        self._operations: dict[str, tuple[frozenset[str], Callable[[Message], object]]] = {
            "nothing": (frozenset(), lambda _message: None),
            "root": (frozenset(), lambda _message: self._give(server.root)),
            "walk": (frozenset({"node", "name"}), self._walk),
            "locate": (frozenset({"node"}), self._locate),
            "stat": (frozenset({"node"}), lambda m: list(server.stat(self._node(m["node"])))),
            "readdir": (frozenset({"node"}), self._readdir),
            "readlink": (frozenset({"node"}), lambda m: fsencode(server.readlink(self._node(m["node"])))),
            "open": (frozenset({"node", "flags"}), self._open),
            "create": (frozenset({"node", "name", "mode", "uid", "gid"}), lambda m: self._make(server.create, m)),
            "mkdir": (frozenset({"node", "name", "mode", "uid", "gid"}), lambda m: self._make(server.mkdir, m)),
            "symlink": (frozenset({"node", "name", "target", "uid", "gid"}), self._symlink),
            "link": (frozenset({"node", "into", "name"}), self._link),
            "unlink": (frozenset({"node", "name"}), lambda m: server.unlink(self._node(m["node"]), _name(m["name"]))),
            "rmdir": (frozenset({"node", "name"}), lambda m: server.rmdir(self._node(m["node"]), _name(m["name"]))),
            "rename": (frozenset({"node", "name", "into", "new", "flags"}), self._rename),
            "setattr": (frozenset({"node", *_ATTRIBUTES}), self._setattr),
            "statfs": (frozenset(), lambda _message: list(server.statfs()[1:])),
            "read": (frozenset({"handle", "offset", "size"}), self._read),
            "write": (frozenset({"handle", "offset", "data"}), self._write),
            "truncate": (frozenset({"handle", "size"}), self._truncate),
            "size": (frozenset({"handle"}), lambda m: self._handle(m["handle"]).size()),
            "seek_data": (frozenset({"handle", "offset", "hole"}), self._seek_data),
            "sync": (frozenset({"handle"}), lambda m: self._handle(m["handle"]).sync()),
        }

    def serve(self, message: object) -> Message:
        """The reply to one request; never raises for anything the peer or the server did."""
        try:
            return {"ok": self._perform(message)}
        except SysError as error:
            return {"errno": error.errno}
        except Malformed:
            return {"errno": EINVAL}
        except OSError as error:
            return {"errno": error.errno if error.errno is not None and 0 < error.errno <= _ERRNO_MAX else EIO}
        except Exception as error:  # noqa: BLE001 - the frame that owns somebody else's server: its bug is an EIO
            if self._report is not None:
                self._report(error)
            return {"errno": EIO}

    def close(self) -> None:
        """The peer is gone: let go of all it held."""
        handles, self._handles = self._handles, {}
        for handle in handles.values():
            handle.close()
        self._nodes.clear()
        self._numbers.clear()
        self._times.clear()

    def _perform(self, message: object) -> object:
        if not isinstance(message, Mapping):
            raise Malformed
        operation = message.get("op")
        if type(operation) is not str or operation not in self._operations:
            raise Malformed
        wanted, perform = self._operations[operation]
        if message.keys() - {"op", "forget", "close"} != wanted:
            raise Malformed
        for number in _list(message.get("close", []), LET_GO_MAX):
            handle = self._handles.pop(_int(number, 1, _ID_MAX), None)
            if handle is not None:
                handle.close()
        for number in _list(message.get("forget", []), LET_GO_MAX):
            self._forget(number)
        return perform(message)

    # Numbers for nodes and handles.

    def _give(self, node: Node) -> list[int]:
        number = self._numbers.get(id(node))
        if number is None:
            if len(self._nodes) >= NODES_MAX:
                raise SysError(ENFILE)
            number = self._new_number()
            self._nodes[number] = node
            self._numbers[id(node)] = number
            self._times[number] = 0
        self._times[number] += 1
        return [number, node.mode, node.uid, node.gid]

    def _forget(self, value: object) -> None:
        """The peer no longer uses a node that it was given so many times; answers on their way still count."""
        pair = _list(value, 2)
        if len(pair) != 2:
            raise Malformed
        number, times = _int(pair[0], 1, _ID_MAX), _int(pair[1], 1, _ID_MAX)
        node = self._nodes.get(number)
        if node is None or node is self._server.root:
            return
        self._times[number] -= times
        if self._times[number] <= 0:
            del self._nodes[number]
            del self._times[number]
            del self._numbers[id(node)]

    def _new_number(self) -> int:
        self._next += 1
        return self._next - 1

    def _node(self, value: object) -> Node:
        node = self._nodes.get(_int(value, 1, _ID_MAX))
        if node is None:
            raise SysError(ESTALE)
        return node

    def _handle(self, value: object) -> Handle:
        handle = self._handles.get(_int(value, 1, _ID_MAX))
        if handle is None:
            raise SysError(EBADF)
        return handle

    # Operations that check more than a node and a name.

    def _walk(self, message: Message) -> object:
        return self._give(self._server.walk(self._node(message["node"]), _name(message["name"])))

    def _locate(self, message: Message) -> object:
        found = self._server.locate(self._node(message["node"]))
        return None if found is None else [self._give(found[0]), fsencode(found[1])]

    def _readdir(self, message: Message) -> object:
        found = self._server.readdir(self._node(message["node"]))
        return [[fsencode(entry.name), entry.ino, entry.kind] for entry in found]

    def _open(self, message: Message) -> object:
        flags = _int(message["flags"], 0, _OPEN_FLAGS)
        if flags & ~_OPEN_FLAGS:
            raise Malformed
        if len(self._handles) >= HANDLES_MAX:
            raise SysError(ENFILE)
        handle = self._server.open(self._node(message["node"]), flags)
        number = self._new_number()
        self._handles[number] = handle
        return number

    def _make(self, make: Callable[[Node, str, int, Owner], Node], message: Message) -> object:
        mode = _int(message["mode"], 0, 0o177777)
        return self._give(make(self._node(message["node"]), _name(message["name"]), mode, _owner(message)))

    def _symlink(self, message: Message) -> object:
        target = _text(message["target"], PATH_MAX - 1)
        node, name = self._node(message["node"]), _name(message["name"])
        return self._give(self._server.symlink(node, name, target, _owner(message)))

    def _link(self, message: Message) -> None:
        self._server.link(self._node(message["node"]), self._node(message["into"]), _name(message["name"]))

    def _rename(self, message: Message) -> None:
        source, target = self._node(message["node"]), self._node(message["into"])
        self._server.rename(source, _name(message["name"]), target, _name(message["new"]), _int(message["flags"], 0, 3))

    def _setattr(self, message: Message) -> object:
        limits = {
            "mode": 0o7777,
            "uid": 1 << 32,
            "gid": 1 << 32,
            "size": FILE_MAX,
            "atime": FILE_MAX,
            "mtime": FILE_MAX,
        }
        values = {
            name: None if message[name] is None else _int(message[name], -FILE_MAX if "time" in name else 0, limit)
            for name, limit in limits.items()
        }
        node = self._node(message["node"])
        self._server.setattr(node, SetAttr(**values))
        return self._give(node)

    def _read(self, message: Message) -> object:
        offset, size = _int(message["offset"], 0, FILE_MAX), _int(message["size"], 0, CHUNK)
        return bytes(self._handle(message["handle"]).read(offset, size)[:size])

    def _write(self, message: Message) -> object:
        offset = None if message["offset"] is None else _int(message["offset"], 0, FILE_MAX)
        data = _data(message["data"], CHUNK)
        return self._handle(message["handle"]).write(offset, data)

    def _truncate(self, message: Message) -> None:
        self._handle(message["handle"]).truncate(_int(message["size"], 0, FILE_MAX))

    def _seek_data(self, message: Message) -> object:
        if type(message["hole"]) is not bool:
            raise Malformed
        return self._handle(message["handle"]).seek_data(_int(message["offset"], 0, FILE_MAX), hole=message["hole"])


def _owner(message: Message) -> Owner:
    return Owner(_int(message["uid"], 0, 1 << 32), _int(message["gid"], 0, 1 << 32))
