"""One FUSE mount without any I/O: requests of a kernel in, replies out, over a file server.

The kernel resolves paths and checks permissions (`default_permissions`), so what is left here is what it leaves to a
file system: owners of new files, lookup counts, handles, and how long it may keep what it was told. Nothing that comes
from the kernel's side is trusted: a request that makes no sense is EINVAL, an unknown node ESTALE, an unknown handle
EBADF. What the server raises that is no error of a file system is reported and is EIO.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from belljar.abi.errno import (
    EBADF,
    EEXIST,
    EINVAL,
    EIO,
    ENAMETOOLONG,
    ENFILE,
    ENOENT,
    ENOSYS,
    ENOTDIR,
    ENOTSUP,
    ENOTTY,
    ENXIO,
    EPROTO,
    EROFS,
    from_host,
)
from belljar.abi.errors import Refused, SysError
from belljar.abi.flags import (
    FILE_MAX,
    NAME_MAX,
    O_ACCMODE,
    O_APPEND,
    O_EXCL,
    O_RDONLY,
    O_RDWR,
    O_WRONLY,
    PATH_MAX,
    PERMISSIONS,
    S_IFDIR,
    S_IFMT,
    S_IFREG,
    S_ISGID,
    SEEK_DATA,
    SEEK_HOLE,
)
from belljar.abi.paths import fsencode
from belljar.abi.records import NANO, Dirent, Owner, SetAttr, Stat, StatFs
from belljar.fuse import protocol as fuse
from belljar.fuse.nodes import KnownNode, NodeTable
from belljar.fuse.protocol import Malformed, Request
from belljar.kernel.fs.remote_export import complete, complete_handle
from belljar.kernel.vfs.server import FileServer, Handle, Node

HANDLES_MAX: Final = 65_536
NOTICES_MAX: Final = 10_000
LISTED_MAX: Final = 1_000_000
"""Entries of all directories that are being read."""
IOCTL: Final = 39
CREATE: Final = 35
_ZEROS: Final = bytes(fuse.DATA_MAX)


class Reply(NamedTuple):
    """A reply; `undo` takes back what it gave, if the kernel no longer waits for it."""

    header: bytes
    body: bytes
    undo: Callable[[], None] | None


class Account(NamedTuple):
    """The user of a sandbox, as the kernel is told it: files that the server gives to `AGENT` belong to this user.

    `only`: the sandbox has no other user, so all files do. `known`: the server itself uses these numbers, not `AGENT`.
    """

    uid: int
    gid: int
    only: bool = False
    known: bool = False


AGENT: Final = 1000
"""The user and group that the servers of mounts know as the sandbox's own."""


class _OpenFile:
    __slots__ = ("access", "handle", "node")

    def __init__(self, handle: Handle, node: Node, access: int) -> None:
        self.handle = handle
        self.node = node
        self.access = access


class _OpenDirectory:
    """An open directory, with its entries as they were when it was read from the start."""

    __slots__ = ("entries", "node")

    def __init__(self, node: Node) -> None:
        self.node = node
        self.entries: Sequence[tuple[bytes, str, int, int]] = ()


class Session:
    """Answers the requests of one mount, one at a time. `root` is the directory to show, if not the server's own.

    `private`: nobody but this mount changes the tree, so the kernel may keep all that it was told. Otherwise it asks
    each time, and keeps the contents of a file only as long as the server can tell that they are unchanged. `valid`
    says for how many seconds from now names and attributes may be kept nevertheless, if the kernel can be told to ask
    anew before that (`new_epoch`).
    """

    def __init__(
        self,
        server: FileServer,
        now: Callable[[], int],
        *,
        root: Node | None = None,
        private: bool = False,
        valid: Callable[[], float] | None = None,
        read_only: bool = False,
        account: Account | None = None,
        report: Callable[[BaseException], None] | None = None,
        refused: Callable[[Refused], None] | None = None,
    ) -> None:
        self._server = complete(server)
        self._now = now
        self._private = private
        self._valid: Callable[[], float] = _for_ever if private else _not_at_all
        self._valid_for_a_while = valid
        self._read_only = read_only
        self._account = account
        self._report = report
        self._refused = refused
        self._served = server
        self._nodes = NodeTable(self._server.root if root is None else root)
        self._handles: dict[int, _OpenFile | _OpenDirectory] = {}
        self._last_handle = 0
        self._entries_listed = 0
        self._given: list[int] = []
        """Nodes that the reply under way tells the kernel of."""
        self._opened: list[int] = []
        self.notices: list[bytes] = []
        """Messages that the kernel may not take at once: to be sent by another thread than replies, or not at all."""
        self.started = False
        self.has_epochs = False
        """Whether the kernel keeps names for a while, and can be told to ask anew."""
        self._operations: dict[int, Callable[[Request], bytes]] = {
            fuse.LOOKUP: self._lookup,
            fuse.GETATTR: self._getattr,
            fuse.READLINK: self._readlink,
            fuse.OPEN: self._open,
            fuse.READ: self._read,
            fuse.STATFS: self._statfs,
            fuse.RELEASE: self._release,
            fuse.RELEASEDIR: self._release,
            fuse.FSYNC: self._fsync,
            fuse.OPENDIR: self._opendir,
            fuse.READDIR: self._readdir,
            fuse.READDIRPLUS: self._readdir,
            fuse.LSEEK: self._lseek,
            fuse.INIT: self._init,
            fuse.DESTROY: self._destroy,
        }
        self._changes: dict[int, Callable[[Request], bytes]] = {
            fuse.SETATTR: self._setattr,
            fuse.SYMLINK: self._symlink,
            fuse.MKNOD: self._mknod,
            fuse.MKDIR: self._mkdir,
            fuse.UNLINK: self._unlink,
            fuse.RMDIR: self._rmdir,
            fuse.RENAME: self._rename,
            fuse.RENAME2: self._rename,
            fuse.LINK: self._link,
            fuse.WRITE: self._write,
            fuse.FALLOCATE: self._fallocate,
            CREATE: self._create,
        }

    def use(self, server: FileServer) -> None:
        """Serve from another server of the same nodes from now on."""
        if server is not self._served:
            self._served, self._server = server, complete(server)

    def handle(self, request: Request) -> Reply | None:
        """The reply to one request; None where the kernel takes none. Never raises for what either side did."""
        self._given, self._opened = [], []
        try:
            body = self._perform(request)
        except Refused as error:
            if self._refused is not None:
                self._refused(error)
            errno = error.errno
        except SysError as error:
            errno = error.errno
        except Malformed:
            errno = EINVAL
        except OSError as error:
            errno = from_host(error.errno)
        except Exception as error:  # noqa: BLE001 - the frame that owns somebody else's server: its bug is an EIO
            self.report(error)
            errno = EIO
        else:
            if request.opcode in fuse.UNANSWERED:
                return None
            undo = partial(self._take_back, self._given, self._opened) if self._given or self._opened else None
            return Reply(fuse.pack_reply(request.unique, body), body, undo)
        self._take_back(self._given, self._opened)
        if request.opcode in fuse.UNANSWERED:
            return None
        return Reply(fuse.pack_error(request.unique, fuse.errno_of(errno)), b"", None)

    def report(self, error: BaseException) -> None:
        """Tell the owner of an error that its guests see as EIO."""
        if self._report is not None:
            self._report(error)

    def close(self) -> None:
        """Release all that the kernel had open. Idempotent."""
        for number in list(self._handles):
            self._close(number)

    def inval_inode(self, node: Node) -> bytes | None:
        """The message that tells the kernel of a file changed by others; None if it does not know the file."""
        number = self._nodes.number_of(node)
        return None if number is None else fuse.pack_inval_inode(number)

    def inval_entry(self, directory: Node, name: str) -> bytes | None:
        """The message that tells the kernel that others changed what a name means."""
        number = self._nodes.number_of(directory)
        return None if number is None else fuse.pack_inval_entry(number, fsencode(name))

    def _perform(self, request: Request) -> bytes:
        opcode = request.opcode
        if opcode == fuse.FORGET:
            self._nodes.forget(request.node, *request.fields(fuse.FORGET_IN))
            return b""
        if opcode == fuse.BATCH_FORGET:
            return self._batch_forget(request)
        if not self.started and opcode != fuse.INIT:
            raise Malformed
        perform = self._operations.get(opcode)
        if perform is None:
            perform = self._changes.get(opcode)
            if perform is None:
                raise SysError(ENOTTY if opcode == IOCTL else ENOSYS)
            if self._read_only:
                raise SysError(EROFS)
        return perform(request)

    def _take_back(self, given: list[int], opened: list[int]) -> None:
        """Undo a reply that the kernel did not take."""
        for number in given:
            self._nodes.forget(number)
        for number in opened:
            self._close(number)

    # Nodes.

    def _node(self, request: Request) -> Node:
        return self._nodes.find(request.node).node

    def _stat(self, node: Node) -> Stat:
        made: tuple[Any, ...] = self._server.stat(node)
        found = made if type(made) is Stat else Stat(*made)
        if (account := self._account) is None:
            return found
        agent = None if account.known else AGENT
        uid = account.uid if account.only or found.uid == agent else found.uid
        gid = account.gid if account.only or found.gid == agent else found.gid
        return found._replace(uid=uid, gid=gid)

    def _told_uid(self, uid: int) -> int:
        """A user as the server knows it."""
        account = self._account
        return uid if account is None or account.known or uid != account.uid else AGENT

    def _told_gid(self, gid: int) -> int:
        account = self._account
        return gid if account is None or account.known or gid != account.gid else AGENT

    def _entry(self, request: Request, name: str, node: Node) -> bytes:
        """Tell the kernel of a node by a name of the directory that the request is about."""
        stat = self._stat(node)
        number = self._nodes.give(node, request.node, name)
        self._given.append(number)
        if len(self.notices) < NOTICES_MAX:
            self.notices += [fuse.pack_inval_entry(above, fsencode(each)) for above, each in self._nodes.surplus()]
        return fuse.pack_entry(number, stat, self._valid())

    def _batch_forget(self, request: Request) -> bytes:
        (count,) = request.fields(fuse.BATCH_FORGET_IN)
        body = request.body[fuse.BATCH_FORGET_IN.size :]
        if len(body) != count * fuse.FORGET_ONE.size:
            raise Malformed
        for number, times in fuse.FORGET_ONE.iter_unpack(body):
            self._nodes.forget(number, times)
        return b""

    def _lookup(self, request: Request) -> bytes:
        [name] = request.names(0)
        directory = self._node(request)
        try:
            return self._entry(request, name, self._server.walk(directory, name))
        except SysError as error:
            if error.errno == ENOENT and (valid := self._valid()):
                return fuse.pack_missing(valid)
            raise

    def _getattr(self, request: Request) -> bytes:
        return fuse.pack_attributes(self._stat(self._node(request)), self._valid())

    def _readlink(self, request: Request) -> bytes:
        target = fsencode(self._server.readlink(self._node(request)))
        if len(target) >= PATH_MAX:
            raise SysError(ENAMETOOLONG)
        return target

    def _statfs(self, _request: Request) -> bytes:
        found: tuple[Any, ...] = self._server.statfs()
        return fuse.pack_statfs(found if isinstance(found, StatFs) else StatFs(*found))

    # Changes of directories.

    def _owner(self, directory: Node, request: Request) -> Owner:
        """Owner of a new file: a set-group-id directory passes on its group."""
        gid = directory.gid if directory.mode & S_ISGID else self._told_gid(request.gid)
        return Owner(self._told_uid(request.uid), gid)

    def _mknod(self, request: Request) -> bytes:
        mode, _ = request.fields(fuse.MKNOD_IN)
        [name] = request.names(fuse.MKNOD_IN.size)
        directory = self._node(request)
        made = self._server.create(directory, name, _check_mode(mode), self._owner(directory, request))
        return self._entry(request, name, made)

    def _mkdir(self, request: Request) -> bytes:
        mode, _ = request.fields(fuse.MKDIR_IN)
        [name] = request.names(fuse.MKDIR_IN.size)
        directory = self._node(request)
        mode = S_IFDIR | mode & PERMISSIONS | directory.mode & S_ISGID
        return self._entry(request, name, self._server.mkdir(directory, name, mode, self._owner(directory, request)))

    def _symlink(self, request: Request) -> bytes:
        encoded, target = request.texts(0, 2)
        name = fuse.check_name(encoded)
        directory = self._node(request)
        owner = self._owner(directory, request)
        return self._entry(request, name, self._server.symlink(directory, name, fuse.check_target(target), owner))

    def _link(self, request: Request) -> bytes:
        (number,) = request.fields(fuse.LINK_IN)
        [name] = request.names(fuse.LINK_IN.size)
        node = self._nodes.find(number).node
        self._server.link(node, self._node(request), name)
        return self._entry(request, name, node)

    def _unlink(self, request: Request) -> bytes:
        [name] = request.names(0)
        self._server.unlink(self._node(request), name)
        return b""

    def _rmdir(self, request: Request) -> bytes:
        [name] = request.names(0)
        self._server.rmdir(self._node(request), name)
        return b""

    def _rename(self, request: Request) -> bytes:
        record = fuse.RENAME2_IN if request.opcode == fuse.RENAME2 else fuse.RENAME_IN
        number, *flags = request.fields(record)
        old, new = request.names(record.size, 2)
        if flags and flags[0] not in (0, 1, 2):
            raise SysError(EINVAL)
        source, target = self._node(request), self._nodes.find(number).node
        self._server.rename(source, old, target, new, flags[0] if flags else 0)
        return b""

    # Attributes.

    def _setattr(self, request: Request) -> bytes:
        valid, handle, size, _, atime, mtime, _, atime_ns, mtime_ns, _, mode, _, uid, gid = request.fields(
            fuse.SETATTR_IN
        )
        node = self._node(request)
        if max(size if valid & fuse.FATTR_SIZE else 0, 0) > FILE_MAX:
            raise Malformed
        resized: int | None = size if valid & fuse.FATTR_SIZE else None
        if resized is not None and valid & fuse.FATTR_FH:
            file = self._handles.get(handle)
            if isinstance(file, _OpenFile) and file.node is node and file.access != O_RDONLY:
                file.handle.truncate(resized)
                resized = None
        now = self._now() if valid & (fuse.FATTR_ATIME_NOW | fuse.FATTR_MTIME_NOW) else 0
        change = SetAttr(
            mode & PERMISSIONS if valid & fuse.FATTR_MODE else None,
            self._told_uid(uid) if valid & fuse.FATTR_UID else None,
            self._told_gid(gid) if valid & fuse.FATTR_GID else None,
            resized,
            _time(valid & fuse.FATTR_ATIME, valid & fuse.FATTR_ATIME_NOW, now, atime, atime_ns),
            _time(valid & fuse.FATTR_MTIME, valid & fuse.FATTR_MTIME_NOW, now, mtime, mtime_ns),
        )
        if change != _NO_CHANGE or not valid & fuse.FATTR_SIZE:
            self._server.setattr(node, change)
        return fuse.pack_attributes(self._stat(node), self._valid())

    # Open files.

    def _keep(self, opened: _OpenFile | _OpenDirectory) -> int:
        self._last_handle += 1
        self._handles[self._last_handle] = opened
        self._opened.append(self._last_handle)
        return self._last_handle

    def _file(self, number: int, request: Request, *, writing: bool = False) -> Handle:
        """The open file of a request. EBADF."""
        file = self._handles.get(number)
        if (
            not isinstance(file, _OpenFile)
            or file.node is not self._node(request)
            or file.access not in ((O_WRONLY, O_RDWR) if writing else (O_RDONLY, O_RDWR))
        ):
            raise SysError(EBADF)
        return file.handle

    def _open_node(self, known: KnownNode, flags: int) -> bytes:
        """Open a file of the server; O_APPEND comes with each write, O_TRUNC as a SETATTR."""
        access = flags & O_ACCMODE
        if access == O_ACCMODE:
            raise SysError(EINVAL)
        if access != O_RDONLY and self._read_only:
            raise SysError(EROFS)
        if len(self._handles) >= HANDLES_MAX:
            raise SysError(ENFILE)
        stat = None if self._private else self._stat(known.node)
        handle = complete_handle(self._server.open(known.node, access))
        number = self._keep(_OpenFile(handle, known.node, access))
        if not handle.seekable:
            return fuse.OPEN_OUT.pack(number, fuse.FOPEN_DIRECT_IO | fuse.FOPEN_NONSEEKABLE)
        if stat is None:
            return fuse.OPEN_OUT.pack(number, fuse.FOPEN_KEEP_CACHE)
        if stat.size == 0 and access == O_RDONLY:
            # Some servers learn a file's size only by reading it, and the kernel reads no further than the size.
            return fuse.OPEN_OUT.pack(number, fuse.FOPEN_DIRECT_IO)
        version = (stat.mtime, stat.ctime, stat.size) if self._server.settled(stat) else None
        unchanged = version is not None and version == known.version
        known.version = version
        return fuse.OPEN_OUT.pack(number, fuse.FOPEN_KEEP_CACHE if unchanged else 0)

    def _open(self, request: Request) -> bytes:
        (flags,) = request.fields(fuse.OPEN_IN)
        return self._open_node(self._nodes.find(request.node), flags)

    def _create(self, request: Request) -> bytes:
        flags, mode = request.fields(fuse.CREATE_IN)
        [name] = request.names(fuse.CREATE_IN.size)
        directory = self._node(request)
        try:
            node = self._server.create(directory, name, S_IFREG | mode & PERMISSIONS, self._owner(directory, request))
        except SysError as error:
            # The kernel looked and found none, but others may have been faster.
            if error.errno != EEXIST or flags & O_EXCL or self._private:
                raise
            node = self._server.walk(directory, name)
        entry = self._entry(request, name, node)
        return entry + self._open_node(self._nodes.find(self._given[0]), flags)

    def _close(self, number: int) -> None:
        file = self._handles.pop(number, None)
        if isinstance(file, _OpenDirectory):
            self._drop_listing(file)
        if isinstance(file, _OpenFile):
            try:
                file.handle.close()
            except Exception as error:  # noqa: BLE001 - of the owner's own server
                self.report(error)

    def _release(self, request: Request) -> bytes:
        self._close(*request.fields(fuse.HANDLE_IN))
        return b""

    def _read(self, request: Request) -> bytes:
        number, offset, size = request.fields(fuse.READ_IN)
        if offset > FILE_MAX:
            raise Malformed
        handle = self._file(number, request)
        wanted = min(size, fuse.DATA_MAX)
        data = more = handle.read(offset, wanted)
        while len(data) < wanted and more and handle.seekable:  # the kernel takes a short read for the end
            more = handle.read(offset + len(data), wanted - len(data))
            data += more
        if type(data) is not bytes:
            raise TypeError(f"a file server read {type(data).__name__} instead of bytes")
        return data if len(data) <= wanted else data[:wanted]

    def _write(self, request: Request) -> bytes:
        number, offset, size, write_flags, flags = request.fields(fuse.WRITE_IN)
        data = bytes(request.body[fuse.WRITE_IN.size :])
        if len(data) != size or offset > FILE_MAX - size:
            raise Malformed
        handle = self._file(number, request, writing=True)
        at_end = flags & O_APPEND and not write_flags & fuse.WRITE_CACHE
        count = handle.write(None if at_end else offset, data)
        if not 0 <= count <= size:
            raise ValueError(f"a file server wrote {count} of {size} bytes")
        return fuse.WRITE_OUT.pack(count)

    def _fsync(self, request: Request) -> bytes:
        file = self._handles.get(*request.fields(fuse.HANDLE_IN))
        if not isinstance(file, _OpenFile):
            raise SysError(EBADF)
        file.handle.sync()
        return b""

    def _lseek(self, request: Request) -> bytes:
        number, offset, whence = request.fields(fuse.LSEEK_IN)
        file = self._handles.get(number)
        if not isinstance(file, _OpenFile) or whence not in (SEEK_DATA, SEEK_HOLE):
            raise SysError(EBADF if not isinstance(file, _OpenFile) else EINVAL)
        if offset >= file.handle.size():
            raise SysError(ENXIO)
        return fuse.LSEEK_OUT.pack(file.handle.seek_data(offset, hole=whence == SEEK_HOLE))

    def _fallocate(self, request: Request) -> bytes:
        """Lengthen a file, or clear a range of it. Space is not set aside: a write may still be ENOSPC."""
        number, offset, length, mode = request.fields(fuse.FALLOCATE_IN)
        if not length or offset + length > FILE_MAX:
            raise Malformed
        handle = self._file(number, request, writing=True)
        size = handle.size()
        if mode == 0:
            if offset + length > size:
                handle.truncate(offset + length)
        elif mode == fuse.FALLOC_KEEP_SIZE | fuse.FALLOC_PUNCH_HOLE:
            _clear(handle, offset, min(offset + length, size))
        elif mode != fuse.FALLOC_KEEP_SIZE:
            raise SysError(ENOTSUP)
        return b""

    # Open directories.

    def _opendir(self, request: Request) -> bytes:
        node = self._node(request)
        if node.mode & S_IFMT != S_IFDIR:
            raise SysError(ENOTDIR)
        if len(self._handles) >= HANDLES_MAX:
            raise SysError(ENFILE)
        flags = fuse.FOPEN_KEEP_CACHE | fuse.FOPEN_CACHE_DIR if self._private else 0
        return fuse.OPEN_OUT.pack(self._keep(_OpenDirectory(node)), flags)

    def _readdir(self, request: Request) -> bytes:
        number, offset, size = request.fields(fuse.READ_IN)
        directory = self._handles.get(number)
        if not isinstance(directory, _OpenDirectory) or directory.node is not self._node(request):
            raise SysError(EBADF)
        if offset == 0 or not directory.entries:
            self._list(directory)
        plus = request.opcode == fuse.READDIRPLUS
        room = min(size, fuse.DATA_MAX)
        found: list[bytes] = []
        for position in range(offset, len(directory.entries)):
            encoded, name, ino, kind = directory.entries[position]
            room -= fuse.dirent_size(encoded, plus=plus)
            if room < 0:
                break
            if plus:
                found.append(self._entry_of(request, directory.node, name))
            found.append(fuse.pack_dirent(encoded, ino, position + 1, kind))
        if not found:  # the end: most are not read again
            self._drop_listing(directory)
        return b"".join(found)

    def _list(self, directory: _OpenDirectory) -> None:
        """Take the entries as they are now. ENFILE."""
        self._drop_listing(directory)
        entries = self._listed(directory.node)
        if self._entries_listed + len(entries) > LISTED_MAX:
            raise SysError(ENFILE)
        directory.entries = entries
        self._entries_listed += len(entries)

    def _drop_listing(self, directory: _OpenDirectory) -> None:
        self._entries_listed -= len(directory.entries)
        directory.entries = ()

    def _listed(self, node: Node) -> list[tuple[bytes, str, int, int]]:
        own = self._stat(node).ino
        above = self._server.locate(node)
        parent = own if above is None else self._stat(above[0]).ino
        entries = [(b".", "", own, S_IFDIR), (b"..", "", parent, S_IFDIR)]
        found: Sequence[Dirent] = self._server.readdir(node)
        for name, ino, kind in found:
            encoded = fsencode(name)
            # The kernel gives up on a whole directory for the sake of one such name.
            if 0 < len(encoded) <= NAME_MAX and b"/" not in encoded and encoded not in (b".", b".."):
                entries.append((encoded, name, ino, kind))
        return entries

    def _entry_of(self, request: Request, directory: Node, name: str) -> bytes:
        """The first part of an entry of READDIRPLUS; without a node for one that can't be looked up."""
        if name:
            try:
                return self._entry(request, name, self._server.walk(directory, name))
            except SysError:
                pass
        return fuse.pack_missing(0)

    # The connection.

    def _init(self, request: Request) -> bytes:
        major, minor, _, offered = request.fields(fuse.INIT_IN)
        if major > fuse.MAJOR:
            return fuse.pack_init(fuse.MINOR, 0)  # the kernel asks again with this version
        if major < fuse.MAJOR or minor < fuse.MINOR_LEAST:
            raise SysError(EPROTO)
        if self._valid_for_a_while is not None and minor >= fuse.EPOCHS_MINOR:
            self._valid, self.has_epochs = self._valid_for_a_while, True
        kept = self._private or self.has_epochs
        if offered & fuse.INIT_EXT:
            offered |= request.fields(fuse.INIT_EXT_IN)[0] << 32
        wanted = (
            fuse.INIT_EXT | fuse.DIRECT_IO_ALLOW_MMAP | fuse.ASYNC_READ | fuse.BIG_WRITES | fuse.PARALLEL_DIROPS
            | fuse.ABORT_ERROR | fuse.MAX_PAGES
            | (fuse.DO_READDIRPLUS | fuse.READDIRPLUS_AUTO if kept else 0)
            | (fuse.CACHE_SYMLINKS if self._private else fuse.AUTO_INVAL_DATA)
        )  # fmt: skip
        self.started = True
        return fuse.pack_init(min(minor, fuse.MINOR), offered & wanted)

    def _destroy(self, _request: Request) -> bytes:
        self.close()
        return b""


_NO_CHANGE: Final = SetAttr()


def _not_at_all() -> float:
    return 0.0


def _for_ever() -> float:
    return fuse.FOREVER


def _check_mode(mode: int) -> int:
    """Type and permission bits of a new file; no type means a regular one."""
    return (mode & S_IFMT or S_IFREG) | mode & PERMISSIONS


def _time(wanted: int, wants_now: int, now: int, seconds: int, nanoseconds: int) -> int | None:
    if wants_now:
        return now
    if not wanted:
        return None
    return min(max(seconds * NANO + min(nanoseconds, NANO - 1), -FILE_MAX), FILE_MAX)


def _clear(handle: Handle, start: int, end: int) -> None:
    """Write zeros where there is data."""
    while start < end:
        try:
            start = handle.seek_data(start, hole=False)
        except SysError as error:
            if error.errno == ENXIO:
                return
            raise
        count = min(end - start, len(_ZEROS))
        if count > 0:
            start += handle.write(start, _ZEROS[:count])
