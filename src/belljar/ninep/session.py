"""One 9P client's session over a file server: requests in, answers out. No I/O; everything a client says is checked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

from belljar.abi.errno import (
    EBADF,
    EINVAL,
    EIO,
    ENFILE,
    ENOENT,
    ENOTDIR,
    ENOTSUP,
    EROFS,
)
from belljar.abi.errors import SysError
from belljar.abi.flags import (
    FILE_MAX,
    O_ACCMODE,
    O_RDONLY,
    O_TRUNC,
    PATH_MAX,
    PERMISSIONS,
    S_IFDIR,
    S_IFLNK,
    S_IFMT,
    S_IFREG,
)
from belljar.abi.paths import check_name, fsencode
from belljar.abi.records import NANO, Owner, SetAttr, Stat
from belljar.kernel.fs import ninep_wire as wire
from belljar.kernel.fs.ninep_wire import Frames, Malformed, Message, Qid
from belljar.kernel.vfs.server import FileServer, Handle, Node

FIDS_MAX: Final = 20_000
_MESSAGE: Final = 256 << 10
_LISTED_MAX: Final = 1_000_000
"""Entries of all directories that are being read."""
_CHANGES: Final = frozenset(
    ("Tlcreate", "Tsymlink", "Tmknod", "Trename", "Tsetattr", "Tlink", "Tmkdir", "Trenameat", "Tunlinkat", "Twrite",
     "Tremove")
)  # fmt: skip


class _Fid:
    __slots__ = ("access", "handle", "listing", "name", "node", "parent")

    def __init__(self, node: Node, parent: Node | None, name: str) -> None:
        self.node = node
        self.parent = parent
        """The directory it was walked to from, and its name there: what Tremove and Trename need."""
        self.name = name
        self.handle: Handle | None = None
        self.access = O_RDONLY
        self.listing: list[tuple[str, int, int]] | None = None


class Session:
    """`receive` takes the client's bytes and gives answers, one by one. Malformed: it broke the protocol, hang up."""

    def __init__(
        self,
        server: FileServer,
        *,
        read_only: bool = False,
        owner: Owner = Owner(0, 0),  # noqa: B008 - frozen
        report: Callable[[BaseException], object] = lambda _error: None,
    ) -> None:
        """New files are `owner`'s. `report` is told of exceptions of the server's that are no SysError."""
        self._server = server
        self._read_only = read_only
        self._owner = owner
        self._report = report
        self._frames = Frames(wire.LEAST_SIZE)
        self._size = 0
        self._fids: dict[int, _Fid] = {}
        self._listed = 0

    def receive(self, data: bytes) -> Iterator[bytes]:
        """A request is carried out when its answer is asked for: small ones may have large answers."""
        return (self._answer(wire.decode(frame)) for frame in self._frames.feed(data))

    def close(self) -> None:
        """The client is gone."""
        for number in list(self._fids):
            self._forget(number)

    def _answer(self, message: Message) -> bytes:
        name, tag, values = message
        operation = getattr(self, f"_{name[1:]}", None) if name[0] == "T" else None
        if name[0] == "R" or (not self._size and name != "Tversion"):
            raise Malformed(f"{name} from a client")
        try:
            if operation is None:
                raise SysError(ENOTSUP)
            if self._read_only and name in _CHANGES:
                raise SysError(EROFS)
            found = operation(*values)
        except SysError as error:
            return wire.encode("Rlerror", tag, error.errno)
        except Exception as error:  # noqa: BLE001 - a server of the owner's: its client sees an I/O error
            self._report(error)
            return wire.encode("Rlerror", tag, EIO)
        return wire.encode("R" + name[1:], tag, *found)

    # The session.

    def _version(self, size: int, version: str) -> tuple[Any, ...]:
        self.close()
        if size < wire.LEAST_SIZE:
            raise SysError(EINVAL)
        self._size = min(size, _MESSAGE)
        self._frames.most = self._size
        return self._size, wire.VERSION if version.startswith(wire.VERSION) else "unknown"

    def _auth(self, *_: object) -> tuple[Any, ...]:
        raise SysError(ENOENT)  # there is none to be done

    def _attach(self, fid: int, auth: int, user: str, tree: str, uid: int) -> tuple[Any, ...]:
        if tree not in ("", "/"):
            raise SysError(ENOENT)
        return (self._keep(fid, _Fid(self._server.root, None, "")),)

    def _flush(self, tag: int) -> tuple[Any, ...]:
        return ()  # each request is answered before the next is read

    def _keep(self, number: int, fid: _Fid) -> Qid:
        if number in self._fids or number == wire.NOFID:
            raise SysError(EBADF)
        if len(self._fids) >= FIDS_MAX:
            raise SysError(ENFILE)
        qid = self._qid(self._server.stat(fid.node))
        self._fids[number] = fid
        return qid

    def _forget(self, number: int) -> None:
        fid = self._fids.pop(number, None)
        if fid is None:
            return
        self._listed -= len(fid.listing or ())
        if fid.handle is not None:
            fid.handle.close()

    def _fid(self, number: int) -> _Fid:
        try:
            return self._fids[number]
        except KeyError:
            raise SysError(EBADF) from None

    def _directory(self, number: int) -> Node:
        node = self._fid(number).node
        if not node.is_dir:
            raise SysError(ENOTDIR)
        return node

    def _qid(self, stat: Stat) -> Qid:
        kind = wire.QTDIR if stat.kind == S_IFDIR else wire.QTSYMLINK if stat.kind == S_IFLNK else 0
        return Qid(kind, (stat.mtime ^ stat.size) & 0xFFFFFFFF, stat.ino & 0xFFFFFFFFFFFFFFFF)

    def _clunk(self, number: int) -> tuple[Any, ...]:
        self._fid(number)
        self._forget(number)
        return ()

    def _walk(self, number: int, new: int, names: list[str]) -> tuple[Any, ...]:
        start = self._fid(number)
        if new != number and new in self._fids:
            raise SysError(EBADF)
        at, qids = _Fid(start.node, start.parent, start.name), []
        for name in names:
            try:
                at = self._step(at, name)
                qids.append(self._qid(self._server.stat(at.node)))
            except SysError:
                if not qids:
                    raise
                return (qids,)  # as far as it went, and no new fid
        if new == number:
            self._forget(number)
        self._keep(new, at)
        return (qids,)

    def _step(self, at: _Fid, name: str) -> _Fid:
        if not at.node.is_dir:
            raise SysError(ENOTDIR)
        if name == "..":
            above = self._server.locate(at.node)
            return at if above is None else _Fid(above[0], None, "")
        check_name(name)
        return _Fid(self._server.walk(at.node, name), at.node, name)

    # Attributes.

    def _getattr(self, number: int, mask: int) -> tuple[Any, ...]:
        stat = self._server.stat(self._fid(number).node)
        times = [part for time in (stat.atime, stat.mtime, stat.ctime, 0) for part in divmod(max(time, 0), NANO)]
        return (
            wire.GETATTR_BASIC, self._qid(stat), stat.mode, stat.uid, stat.gid, stat.nlink, stat.rdev, stat.size, 4096,
            stat.blocks if stat.blocks >= 0 else (stat.size + 511) // 512, *times, 0, 0,
        )  # fmt: skip

    def _setattr(
        self, number: int, valid: int, mode: int, uid: int, gid: int, size: int, *times: int
    ) -> tuple[Any, ...]:
        fid = self._fid(number)
        if size > FILE_MAX:
            raise SysError(EINVAL)
        atime, mtime = times[0] * NANO + times[1], times[2] * NANO + times[3]
        self._server.setattr(fid.node, SetAttr(
            mode & PERMISSIONS if valid & wire.SETATTR_MODE else None,
            uid if valid & wire.SETATTR_UID else None,
            gid if valid & wire.SETATTR_GID else None,
            size if valid & wire.SETATTR_SIZE else None,
            atime if valid & wire.SETATTR_ATIME_SET else None,
            mtime if valid & wire.SETATTR_MTIME_SET else None,
        ))  # fmt: skip
        return ()

    def _statfs(self, number: int) -> tuple[Any, ...]:
        self._fid(number)
        found = self._server.statfs()
        return (
            0x01021997,
            found.block_size,
            found.blocks,
            found.blocks_free,
            found.blocks_free,
            found.files,
            found.files_free,
            0,
            255,
        )

    def _xattrwalk(self, *_: object) -> tuple[Any, ...]:
        raise SysError(ENOTSUP)

    # Files.

    def _lopen(self, number: int, flags: int) -> tuple[Any, ...]:
        fid = self._fid(number)
        access = flags & O_ACCMODE
        if fid.handle is not None or fid.listing is not None or access == O_ACCMODE:
            raise SysError(EINVAL)
        if self._read_only and (access != O_RDONLY or flags & O_TRUNC):
            raise SysError(EROFS)
        qid = self._qid(self._server.stat(fid.node))
        if fid.node.is_dir:
            fid.listing = []
        elif fid.node.is_symlink:
            raise SysError(EINVAL)
        else:
            fid.handle, fid.access = self._server.open(fid.node, flags & (O_ACCMODE | O_TRUNC)), access
        return qid, 0

    def _lcreate(self, number: int, name: str, flags: int, mode: int, gid: int) -> tuple[Any, ...]:
        fid = self._fid(number)
        if fid.handle is not None:
            raise SysError(EINVAL)
        check_name(name)
        owner = Owner(self._owner.uid, gid)
        node = self._server.create(self._directory(number), name, S_IFREG | mode & PERMISSIONS, owner)
        fid.parent, fid.name, fid.node = fid.node, name, node
        fid.handle, fid.access = self._server.open(node, flags & O_ACCMODE), flags & O_ACCMODE
        return self._qid(self._server.stat(node)), 0

    def _read(self, number: int, offset: int, count: int) -> tuple[Any, ...]:
        fid = self._fid(number)
        if fid.handle is None or fid.access not in (O_RDONLY, 2) or offset > FILE_MAX:
            raise SysError(EBADF)
        return (fid.handle.read(offset, min(count, self._size - wire.IOHDR)),)

    def _write(self, number: int, offset: int, data: bytes) -> tuple[Any, ...]:
        fid = self._fid(number)
        if fid.handle is None or fid.access == O_RDONLY or offset > FILE_MAX:
            raise SysError(EBADF)
        return (fid.handle.write(offset, data),)

    def _fsync(self, number: int, data_only: int = 0) -> tuple[Any, ...]:
        fid = self._fid(number)
        if fid.handle is not None:
            fid.handle.sync()
        return ()

    def _readdir(self, number: int, offset: int, count: int) -> tuple[Any, ...]:
        fid = self._fid(number)
        if fid.listing is None:
            raise SysError(EBADF)
        if offset == 0:
            entries = self._server.readdir(fid.node)
            listed = self._listed - len(fid.listing) + len(entries)
            if listed > _LISTED_MAX:
                raise SysError(ENFILE)
            self._listed = listed
            fid.listing = [(entry.name, entry.ino, entry.kind) for entry in entries]
        parts: list[bytes] = []
        room = min(count, self._size - wire.IOHDR)
        for index in range(offset, len(fid.listing)):
            name, ino, kind = fid.listing[index]
            qid = Qid(wire.QTDIR if kind == S_IFDIR else wire.QTSYMLINK if kind == S_IFLNK else 0, 0, ino)
            entry = wire.pack_entry(qid, index + 1, kind >> 12, fsencode(name))
            room -= len(entry)
            if room < 0:
                break
            parts.append(entry)
        return (b"".join(parts),)

    def _readlink(self, number: int) -> tuple[Any, ...]:
        return (self._server.readlink(self._fid(number).node),)

    def _lock(self, number: int, *_: object) -> tuple[Any, ...]:
        self._fid(number)
        raise SysError(ENOTSUP)

    # Names.

    def _mkdir(self, number: int, name: str, mode: int, gid: int) -> tuple[Any, ...]:
        check_name(name)
        owner = Owner(self._owner.uid, gid)
        made = self._server.mkdir(self._directory(number), name, S_IFDIR | mode & PERMISSIONS, owner)
        return (self._qid(self._server.stat(made)),)

    def _symlink(self, number: int, name: str, target: str, gid: int) -> tuple[Any, ...]:
        check_name(name)
        if not 0 < len(target) < PATH_MAX or "\0" in target:
            raise SysError(EINVAL)
        made = self._server.symlink(self._directory(number), name, target, Owner(self._owner.uid, gid))
        return (self._qid(self._server.stat(made)),)

    def _mknod(self, number: int, name: str, mode: int, major: int, minor: int, gid: int) -> tuple[Any, ...]:
        check_name(name)
        made = self._server.create(
            self._directory(number), name, mode & (S_IFMT | PERMISSIONS), Owner(self._owner.uid, gid)
        )
        return (self._qid(self._server.stat(made)),)

    def _link(self, number: int, target: int, name: str) -> tuple[Any, ...]:
        check_name(name)
        self._server.link(self._fid(target).node, self._directory(number), name)
        return ()

    def _unlinkat(self, number: int, name: str, flags: int) -> tuple[Any, ...]:
        check_name(name)
        remove = self._server.rmdir if flags & wire.AT_REMOVEDIR else self._server.unlink
        remove(self._directory(number), name)
        return ()

    def _renameat(self, number: int, old: str, target: int, new: str) -> tuple[Any, ...]:
        check_name(old)
        check_name(new)
        self._server.rename(self._directory(number), old, self._directory(target), new, 0)
        return ()

    def _rename(self, number: int, target: int, name: str) -> tuple[Any, ...]:
        fid = self._fid(number)
        if fid.parent is None:
            raise SysError(EINVAL)
        check_name(name)
        self._server.rename(fid.parent, fid.name, self._directory(target), name, 0)
        fid.parent, fid.name = self._directory(target), name
        return ()

    def _remove(self, number: int) -> tuple[Any, ...]:
        fid = self._fid(number)
        self._forget(number)  # whatever comes of it
        if fid.parent is None:
            raise SysError(EINVAL)
        remove = self._server.rmdir if fid.node.is_dir else self._server.unlink
        remove(fid.parent, fid.name)
        return ()
