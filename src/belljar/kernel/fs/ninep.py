"""A tree that a program of the sandbox serves by 9P2000.L: the kernel is its client.

`call` sends one request and gives the values of its answer; it may park. Everything the other side says is checked:
what makes no sense is EIO, and nothing it says makes us hold more than the limits below.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final
from weakref import WeakValueDictionary

from belljar.abi.errno import (
    EEXIST,
    EFBIG,
    EINVAL,
    EIO,
    EISDIR,
    ENFILE,
    ENOENT,
    ENOSYS,
    ENOTDIR,
    ENOTSUP,
    EPERM,
)
from belljar.abi.errors import SysError
from belljar.abi.flags import (
    FILE_MAX,
    NAME_MAX,
    O_ACCMODE,
    O_RDONLY,
    O_TRUNC,
    PATH_MAX,
    PERMISSIONS,
    RENAME_EXCHANGE,
    RENAME_NOREPLACE,
    S_IFDIR,
    S_IFLNK,
    S_IFMT,
    S_IFREG,
)
from belljar.abi.paths import check_name, fsdecode
from belljar.abi.records import NANO, Dirent, Owner, SetAttr, Stat, StatFs
from belljar.kernel.fs import ninep_wire as wire
from belljar.kernel.fs.ninep_wire import Malformed, Qid
from belljar.kernel.vfs.server import FileServer, Handle, Node

Call = Callable[..., tuple[Any, ...]]
"""`call(name, *values)`: the values of the answer. SysError."""

FIDS_MAX: Final = 50_000
ENTRIES_MAX: Final = 200_000
_PAGES_MAX: Final = 4_000
_UNKNOWN: Final = (ENOTSUP, ENOSYS)
"""What a server says to a request that it does not know."""
_DEVICES: Final = (0o020000, 0o060000)
_KINDS: Final = (0o010000, 0o020000, S_IFDIR, 0o060000, S_IFREG, S_IFLNK, 0o140000)


class NinePNode(Node):
    __slots__ = ("_clunk", "fid", "name", "parent", "qid")

    def __init__(self, fid: int, qid: Qid, mode: int, uid: int, gid: int, clunk: Callable[[int], None]) -> None:
        super().__init__(mode, uid, gid)
        self.fid = fid
        self.qid = qid
        self.parent: NinePNode | None = None
        self.name = ""
        self._clunk = clunk

    def __del__(self) -> None:
        self._clunk(self.fid)


class NinePServer(FileServer):
    """The client's side of one connection."""

    kind = "9p"

    def __init__(self, call: Call, message_size: int, user: str = "root", tree: str = "") -> None:
        """Agree on the protocol and attach to the tree. SysError."""
        self._call = call
        self._next = 0
        self._free: list[int] = []
        self._used = 0
        self._unwanted: list[int] = []
        """Fids of nodes that are gone: clunked before the next request."""
        self._nodes: WeakValueDictionary[tuple[int, int], NinePNode] = WeakValueDictionary()
        size, version = call("Tversion", message_size, wire.VERSION)
        if version != wire.VERSION or not wire.LEAST_SIZE <= size <= message_size:
            raise SysError(EIO, why="it does not speak 9P2000.L")
        self._most = size - wire.IOHDR
        fid = self._new_fid()
        (qid,) = self._ask("Tattach", fid, wire.NOFID, user, tree, wire.NONUNAME)
        self._root = self._node(fid, qid, None, "")
        if not self._root.is_dir:
            raise SysError(EIO)

    # Fids and nodes.

    def _ask(self, name: str, *values: Any) -> tuple[Any, ...]:
        self._let_go()
        return self._call(name, *values)

    def _let_go(self) -> None:
        while self._unwanted:
            fid = self._unwanted.pop()
            try:
                self._call("Tclunk", fid)
            except SysError:
                continue  # the number is not used again: the server may still know it
            finally:
                self._used -= 1
            self._free.append(fid)

    def _new_fid(self) -> int:
        if self._used >= FIDS_MAX:
            raise SysError(ENFILE)
        self._used += 1
        if self._free:
            return self._free.pop()
        self._next += 1
        return self._next

    def _drop(self, fid: int) -> None:
        self._unwanted.append(fid)

    def _node(self, fid: int, qid: Qid, parent: NinePNode | None, name: str) -> NinePNode:
        """The node of a new fid; the one that is known already, if it is the same file."""
        try:
            stat = self._getattr(fid, qid)
        except BaseException:
            self._drop(fid)
            raise
        known = self._nodes.get((qid.path, stat.mode & S_IFMT))
        if known is not None:
            self._drop(fid)
            node = known
        else:
            node = NinePNode(fid, qid, stat.mode, stat.uid, stat.gid, self._unwanted.append)
            self._nodes[qid.path, stat.mode & S_IFMT] = node
            # Where it was first seen: a server that says that a directory is in itself makes no circle.
            node.parent, node.name = parent, name
        node.mode, node.uid, node.gid = stat.mode, stat.uid, stat.gid
        return node

    def _getattr(self, fid: int, qid: Qid) -> Stat:
        valid, found, mode, uid, gid, *rest = self._ask("Tgetattr", fid, wire.GETATTR_BASIC)
        nlink, rdev, size, _, blocks, *times = rest
        atime, mtime, ctime = (times[n] * NANO + times[n + 1] for n in (0, 2, 4))
        kind = mode & S_IFMT
        if (
            valid & wire.GETATTR_BASIC != wire.GETATTR_BASIC
            or kind not in _KINDS
            or size > FILE_MAX
            or max(atime, mtime, ctime) >= 1 << 63
            or found.path != qid.path
            or {bool(each.kind & wire.QTDIR) for each in (found, qid)} != {kind == S_IFDIR}
        ):
            raise SysError(EIO)
        mode &= S_IFMT | PERMISSIONS
        return Stat(mode, found.path, self.dev, nlink, uid, gid, size, atime, mtime, ctime, rdev, blocks)

    @property
    def root(self) -> Node:
        return self._root

    def walk(self, directory: Node, name: str) -> Node:
        assert isinstance(directory, NinePNode)
        check_name(name)
        fid = self._new_fid()
        try:
            (qids,) = self._ask("Twalk", directory.fid, fid, [name])
        except SysError:
            self._used -= 1
            self._free.append(fid)  # the server has made none
            raise
        if len(qids) != 1:
            self._drop(fid)
            raise SysError(EIO)
        return self._node(fid, qids[0], directory, name)

    def _clone(self, node: NinePNode) -> int:
        """A further fid of a file: one that is opened can't be walked from."""
        fid = self._new_fid()
        try:
            (qids,) = self._ask("Twalk", node.fid, fid, [])
        except SysError:
            self._used -= 1
            self._free.append(fid)
            raise
        if qids:
            self._drop(fid)
            raise SysError(EIO)
        return fid

    def locate(self, directory: Node) -> tuple[Node, str] | None:
        assert isinstance(directory, NinePNode)
        return None if directory.parent is None else (directory.parent, directory.name)

    def stat(self, node: Node) -> Stat:
        assert isinstance(node, NinePNode)
        stat = self._getattr(node.fid, node.qid)
        if (stat.mode ^ node.mode) & S_IFMT:
            raise SysError(EIO)
        node.mode, node.uid, node.gid = stat.mode, stat.uid, stat.gid
        return stat

    def readdir(self, directory: Node) -> Sequence[Dirent]:
        assert isinstance(directory, NinePNode)
        found: dict[str, Dirent] = {}
        fid = self._clone(directory)
        try:
            self._ask("Tlopen", fid, 0)
            offset = 0
            for _ in range(_PAGES_MAX):
                (data,) = self._ask("Treaddir", fid, offset, self._most)
                if len(data) > self._most:
                    raise SysError(EIO)
                entries = wire.unpack_entries(data)
                if not entries:
                    return list(found.values())
                for qid, _, kind, raw in entries:
                    if raw in (b".", b".."):
                        continue
                    name = fsdecode(raw)
                    if not raw or b"/" in raw or b"\0" in raw or len(raw) > NAME_MAX:
                        raise SysError(EIO)
                    found[name] = Dirent(name, qid.path, (kind << 12) & S_IFMT)
                if entries[-1][1] == offset or len(found) > ENTRIES_MAX:
                    break  # it would go round for ever
                offset = entries[-1][1]
        except Malformed:
            raise SysError(EIO) from None
        finally:
            self._drop(fid)
        raise SysError(EIO)

    def readlink(self, node: Node) -> str:
        assert isinstance(node, NinePNode)
        if not node.is_symlink:
            raise SysError(EINVAL)
        (target,) = self._ask("Treadlink", node.fid)
        if not 0 < len(target) < PATH_MAX or "\0" in target:
            raise SysError(EIO)
        return str(target)

    # Open files.

    def open(self, node: Node, flags: int) -> Handle:
        assert isinstance(node, NinePNode)
        fid = self._clone(node)
        try:
            _, unit = self._ask("Tlopen", fid, flags & (O_ACCMODE | O_TRUNC))
        except BaseException:
            self._drop(fid)
            raise
        return NinePHandle(self, node, fid, min(unit or self._most, self._most))

    def ask(self, name: str, *values: Any) -> tuple[Any, ...]:
        """A request about an open file."""
        return self._ask(name, *values)

    def size_of(self, fid: int, node: NinePNode) -> int:
        """The size of an open file, which may have no name any more."""
        return self._getattr(fid, node.qid).size

    def close_handle(self, fid: int) -> None:
        self._drop(fid)

    # Changes.

    def _named(self, directory: Node, name: str) -> NinePNode:
        found = self.walk(directory, name)
        assert isinstance(found, NinePNode)
        return found

    def create(self, directory: Node, name: str, mode: int, owner: Owner) -> Node:
        assert isinstance(directory, NinePNode)
        check_name(name)
        if mode & S_IFMT in _DEVICES:
            raise SysError(EPERM)
        if mode & S_IFMT == S_IFREG:
            fid = self._clone(directory)
            try:
                self._ask("Tlcreate", fid, name, 0o200 | O_RDONLY, mode & PERMISSIONS, owner.gid)  # O_EXCL
            finally:
                self._drop(fid)
        else:
            self._ask("Tmknod", directory.fid, name, mode, 0, 0, owner.gid)
        return self._owned(self._named(directory, name), mode, owner)

    def mkdir(self, directory: Node, name: str, mode: int, owner: Owner) -> Node:
        assert isinstance(directory, NinePNode)
        check_name(name)
        self._ask("Tmkdir", directory.fid, name, mode & PERMISSIONS, owner.gid)
        return self._owned(self._named(directory, name), mode, owner)

    def symlink(self, directory: Node, name: str, target: str, owner: Owner) -> Node:
        assert isinstance(directory, NinePNode)
        check_name(name)
        self._ask("Tsymlink", directory.fid, name, target, owner.gid)
        return self._owned(self._named(directory, name), None, owner)

    def _owned(self, node: NinePNode, mode: int | None, owner: Owner) -> Node:
        """A new file is its maker's, as far as the server lets it be."""
        wrong_mode = mode is not None and node.mode & PERMISSIONS != mode & PERMISSIONS
        if wrong_mode or (node.uid, node.gid) != (owner.uid, owner.gid):
            try:
                self.setattr(node, SetAttr(mode=mode & PERMISSIONS if wrong_mode and mode is not None else None,
                                           uid=owner.uid, gid=owner.gid))  # fmt: skip
            except SysError as error:
                if error.errno == EIO:
                    raise
        return node

    def link(self, node: Node, directory: Node, name: str) -> None:
        assert isinstance(node, NinePNode)
        assert isinstance(directory, NinePNode)
        check_name(name)
        self._ask("Tlink", directory.fid, node.fid, name)

    def unlink(self, directory: Node, name: str) -> None:
        self._remove(directory, name, 0)

    def rmdir(self, directory: Node, name: str) -> None:
        removed = self._named(directory, name)
        self._remove(directory, name, wire.AT_REMOVEDIR)
        removed.name = ""  # it is still somebody's working directory, perhaps

    def _remove(self, directory: Node, name: str, flags: int) -> None:
        assert isinstance(directory, NinePNode)
        check_name(name)
        try:
            self._ask("Tunlinkat", directory.fid, name, flags)
            return
        except SysError as error:
            if error.errno not in _UNKNOWN:
                raise
        # An older server: it removes what a fid stands for, whatever that is.
        if self._named(directory, name).is_dir != bool(flags):
            raise SysError(ENOTDIR if flags else EISDIR)
        fid = self._new_fid()
        try:
            self._ask("Twalk", directory.fid, fid, [name])
            self._ask("Tremove", fid)
        finally:
            self._used -= 1  # the number is not used again: the server knows best whether it is free

    def rename(self, source: Node, old: str, target: Node, new: str, flags: int) -> None:
        assert isinstance(source, NinePNode)
        assert isinstance(target, NinePNode)
        check_name(old)
        check_name(new)
        moved = self._named(source, old)
        self._refuse_inside(moved, target)
        if flags & RENAME_EXCHANGE:
            return self._exchange(source, old, target, new, moved)
        if flags & RENAME_NOREPLACE and self._exists(target, new):
            raise SysError(EEXIST)
        self._move(source, old, target, new, moved)
        moved.parent, moved.name = target, new

    def _move(self, source: NinePNode, old: str, target: NinePNode, new: str, moved: NinePNode) -> None:
        try:
            self._ask("Trenameat", source.fid, old, target.fid, new)
        except SysError as error:
            if error.errno not in _UNKNOWN:
                raise
            self._ask("Trename", moved.fid, target.fid, new)  # an older server

    def _exchange(self, source: NinePNode, old: str, target: NinePNode, new: str, moved: NinePNode) -> None:
        """The protocol has no such request: by three of them, which somebody else might see."""
        other = self._named(target, new)
        self._refuse_inside(other, source)
        between = f"{old[:200]}.exchange"
        if other is moved:
            return
        if self._exists(source, between):
            raise SysError(EEXIST)
        self._move(source, old, source, between, moved)
        self._move(target, new, source, old, other)
        self._move(source, between, target, new, moved)
        moved.parent, moved.name, other.parent, other.name = target, new, source, old

    def _refuse_inside(self, moved: NinePNode, target: NinePNode) -> None:
        """EINVAL if a directory would be moved into itself."""
        above: NinePNode | None = target
        while above is not None:
            if above is moved:
                raise SysError(EINVAL)
            above = above.parent

    def _exists(self, directory: Node, name: str) -> bool:
        try:
            self.walk(directory, name)
        except SysError as error:
            if error.errno == ENOENT:
                return False
            raise
        return True

    def setattr(self, node: Node, change: SetAttr) -> None:
        assert isinstance(node, NinePNode)
        valid = 0
        for flag, value in (
            (wire.SETATTR_MODE, change.mode), (wire.SETATTR_UID, change.uid), (wire.SETATTR_GID, change.gid),
            (wire.SETATTR_SIZE, change.size), (wire.SETATTR_ATIME | wire.SETATTR_ATIME_SET, change.atime),
            (wire.SETATTR_MTIME | wire.SETATTR_MTIME_SET, change.mtime),
        ):  # fmt: skip
            valid |= flag if value is not None else 0
        if change.size is not None and change.size > FILE_MAX:
            raise SysError(EFBIG)
        self._ask(
            "Tsetattr", node.fid, valid, (change.mode or 0) & PERMISSIONS, change.uid or 0, change.gid or 0,
            change.size or 0, *divmod(max(change.atime or 0, 0), NANO), *divmod(max(change.mtime or 0, 0), NANO),
        )  # fmt: skip
        self.stat(node)

    def statfs(self) -> StatFs:
        _, size, blocks, free, _, files, files_free, *_ = self._ask("Tstatfs", self._root.fid)
        return StatFs(self.kind, max(1, size), blocks, free, files, files_free)


class NinePHandle(Handle):
    __slots__ = ("_fid", "_node", "_server", "_unit")
    may_be_terminal = False

    def __init__(self, server: NinePServer, node: NinePNode, fid: int, unit: int) -> None:
        self.nonblocking = False
        self._server = server
        self._node = node
        self._fid = fid
        self._unit = unit

    def read(self, offset: int, size: int) -> bytes:
        want = min(size, self._unit)
        if want <= 0:
            return b""
        (data,) = self._server.ask("Tread", self._fid, offset, want)
        if len(data) > want:
            raise SysError(EIO)
        return bytes(data)

    def write(self, offset: int | None, data: bytes) -> int:
        if not data:
            return 0
        start = self.size() if offset is None else offset
        if start + len(data) > FILE_MAX:
            raise SysError(EFBIG)
        piece = data[: self._unit]
        (count,) = self._server.ask("Twrite", self._fid, start, piece)
        if not 0 < count <= len(piece):
            raise SysError(EIO)
        return int(count)

    def truncate(self, size: int) -> None:
        self._server.setattr(self._node, SetAttr(size=size))

    def size(self) -> int:
        return self._server.size_of(self._fid, self._node)

    def sync(self) -> None:
        self._server.ask("Tfsync", self._fid, 0)

    def close(self) -> None:
        self._server.close_handle(self._fid)
