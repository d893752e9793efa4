"""Files in memory: the root of every sandbox, /tmp, and the upper layer of overlays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from belljar.abi.errno import EEXIST, EFBIG, EINVAL, EISDIR, ENOENT, ENOTDIR, ENOTEMPTY, ENXIO, EPERM
from belljar.abi.errors import SysError
from belljar.abi.flags import (
    FILE_MAX,
    O_TRUNC,
    RENAME_EXCHANGE,
    RENAME_NOREPLACE,
    S_IFDIR,
    S_IFIFO,
    S_IFLNK,
    S_IFMT,
    S_IFREG,
    S_IFSOCK,
)
from belljar.abi.paths import byte_length, check_name
from belljar.abi.records import Dirent, Owner, SetAttr, Stat, StatFs
from belljar.kernel.fs.contents import HOLE, Contents, Sparse, held, length
from belljar.kernel.fs.quota import Quota
from belljar.kernel.vfs.server import FileServer, Handle, Node

BLOCK: Final = 4096


class MemoryNode(Node):
    """Metadata common to files, directories and symlinks."""

    __slots__ = ("atime", "ctime", "ino", "mtime", "nlink", "watched")

    def __init__(self, mode: int, owner: Owner, ino: int, now: int) -> None:
        super().__init__(mode, owner.uid, owner.gid)
        self.ino = ino
        self.nlink = 1
        self.watched = False
        self.atime = self.mtime = self.ctime = now


class File(MemoryNode):
    __slots__ = ("contents", "opens")

    def __init__(self, mode: int, owner: Owner, ino: int, now: int) -> None:
        super().__init__(mode, owner, ino, now)
        self.contents: Contents = b""
        self.opens = 0


class Directory(MemoryNode):
    __slots__ = ("entries", "name", "parent")

    def __init__(self, mode: int, owner: Owner, ino: int, now: int) -> None:
        super().__init__(mode, owner, ino, now)
        self.nlink = 2
        self.entries: dict[str, MemoryNode] = {}
        self.parent: Directory | None = None
        self.name = ""


class Symlink(MemoryNode):
    __slots__ = ("target",)

    def __init__(self, target: str, owner: Owner, ino: int, now: int) -> None:
        super().__init__(S_IFLNK | 0o777, owner, ino, now)
        self.target = target


class MemoryServer(FileServer):
    """A POSIX tree in memory. All servers given the same quota share it."""

    kind = "tmpfs"

    def __init__(
        self,
        now: Callable[[], int],
        quota: Quota,
        *,
        mode: int = 0o755,
        owner: Owner = Owner(0, 0),  # noqa: B008
    ) -> None:
        self._now = now
        self.quota = quota
        self._next_ino = 1
        self._root = Directory(S_IFDIR | mode, owner, self._ino(), now())

    @property
    def root(self) -> Directory:
        return self._root

    def _ino(self) -> int:
        number = self._next_ino
        self._next_ino = number + 1
        return number

    def watch(self, node: Node) -> bool:
        assert isinstance(node, MemoryNode)
        node.watched = True
        return True

    # Looking.

    def walk(self, directory: Node, name: str) -> Node:
        if not isinstance(directory, Directory):
            raise SysError(ENOTDIR)
        node = directory.entries.get(name)
        if node is None:
            if directory.nlink:
                check_name(name)
            raise SysError(ENOENT)
        return node

    def locate(self, directory: Node) -> tuple[Node, str] | None:
        assert isinstance(directory, Directory)
        parent = directory.parent
        return None if parent is None else (parent, directory.name)

    def stat(self, node: Node) -> Stat:
        assert isinstance(node, MemoryNode)
        if isinstance(node, File):
            size, room = length(node.contents), held(node.contents)
        elif isinstance(node, Symlink):
            size, room = byte_length(node.target), 0
        else:
            size = room = BLOCK if isinstance(node, Directory) else 0
        return Stat(
            node.mode, node.ino, self.dev, node.nlink, node.uid, node.gid, size,
            node.atime, node.mtime, node.ctime, 0, -(-room // BLOCK) * (BLOCK // 512),
        )  # fmt: skip

    def readdir(self, directory: Node) -> Sequence[Dirent]:
        if not isinstance(directory, Directory):
            raise SysError(ENOTDIR)
        return [Dirent(name, node.ino, node.mode & S_IFMT) for name, node in directory.entries.items()]

    def readlink(self, node: Node) -> str:
        if not isinstance(node, Symlink):
            raise SysError(EINVAL)
        return node.target

    def open(self, node: Node, flags: int) -> Handle:
        if not isinstance(node, File):
            raise SysError(EISDIR if node.is_dir else ENXIO)
        if flags & O_TRUNC:
            self.resize(node, 0)
        return MemoryHandle(self, node)

    def hold(self, node: Node) -> Handle:
        return MemoryHandle(self, node) if isinstance(node, File) else Handle()

    # Creating.

    def create(self, directory: Node, name: str, mode: int, owner: Owner) -> Node:
        kind = mode & S_IFMT
        if kind not in (S_IFREG, S_IFIFO, S_IFSOCK):
            raise SysError(EPERM)
        parent = self._room_for(directory, name)
        node_type = File if kind == S_IFREG else MemoryNode
        return self._insert(parent, name, node_type(mode, owner, self._ino(), self._now()))

    def mkdir(self, directory: Node, name: str, mode: int, owner: Owner) -> Node:
        parent = self._room_for(directory, name)
        return self._insert(parent, name, Directory(S_IFDIR | mode, owner, self._ino(), self._now()))

    def symlink(self, directory: Node, name: str, target: str, owner: Owner) -> Node:
        parent = self._room_for(directory, name)
        try:
            self.quota.take_bytes(len(target))
        except SysError:
            self.quota.give_file()
            raise
        return self._insert(parent, name, Symlink(target, owner, self._ino(), self._now()))

    def link(self, node: Node, directory: Node, name: str) -> None:
        assert isinstance(node, MemoryNode)
        if node.is_dir:
            raise SysError(EPERM)
        if node.nlink == 0:
            raise SysError(ENOENT)
        parent = self._room_for(directory, name)
        self._insert(parent, name, node)
        node.nlink += 1
        node.ctime = self._now()

    def _room_for(self, directory: Node, name: str) -> Directory:
        """The directory, checked to be alive and without that name, and a name's quota taken."""
        if not isinstance(directory, Directory):
            raise SysError(ENOTDIR)
        check_name(name)
        if name in directory.entries:
            raise SysError(EEXIST)
        if directory.nlink == 0:
            raise SysError(ENOENT)
        self.quota.take_file()
        return directory

    def _insert(self, parent: Directory, name: str, node: MemoryNode) -> MemoryNode:
        parent.entries[name] = node
        parent.mtime = parent.ctime = self._now()
        if parent.watched:
            self.changed()
        if isinstance(node, Directory):
            node.parent, node.name = parent, name
            parent.nlink += 1
        return node

    # Removing.

    def unlink(self, directory: Node, name: str) -> None:
        node = self.walk(directory, name)
        if isinstance(node, Directory):
            raise SysError(EISDIR)
        assert isinstance(directory, Directory)
        self._remove(directory, name)

    def rmdir(self, directory: Node, name: str) -> None:
        node = self.walk(directory, name)
        if not isinstance(node, Directory):
            raise SysError(ENOTDIR)
        if node.entries:
            raise SysError(ENOTEMPTY)
        assert isinstance(directory, Directory)
        self._remove(directory, name)

    def _remove(self, parent: Directory, name: str) -> None:
        """Remove a name, and with the last name of a file that is not open, its bytes."""
        node = parent.entries.pop(name)
        self.quota.give_file()
        parent.mtime = parent.ctime = node.ctime = self._now()
        if parent.watched:
            self.changed()
        if isinstance(node, Directory):
            node.name = ""
            node.nlink = 0
            parent.nlink -= 1
            return
        node.nlink -= 1
        if node.nlink == 0:
            if isinstance(node, File):
                if node.opens == 0:
                    self.forget(node)
            elif isinstance(node, Symlink):
                self.quota.take_bytes(-len(node.target))

    def clear(self) -> None:
        """Remove everything, for good: nothing can be made here any more, and open files go when they are closed."""
        waiting = [self._root]
        while waiting:
            directory = waiting.pop()
            for name, node in list(directory.entries.items()):
                if isinstance(node, Directory):
                    waiting.append(node)
                self._remove(directory, name)
            directory.nlink = 0

    def rename(self, source: Node, old: str, target: Node, new: str, flags: int) -> None:
        node = self.walk(source, old)
        if not isinstance(source, Directory) or not isinstance(target, Directory):
            raise SysError(ENOTDIR)
        check_name(new)
        assert isinstance(node, MemoryNode)
        replaced = target.entries.get(new)
        if replaced is not None and flags & RENAME_NOREPLACE:
            raise SysError(EEXIST)
        if flags & RENAME_EXCHANGE:
            if replaced is None:
                raise SysError(ENOENT)
            _check_outside(node, target)
            _check_outside(replaced, source)
            self._move(node, source, old, target, new)
            self._move(replaced, target, None, source, old)
            return
        if replaced is node:
            return
        _check_outside(node, target)
        if isinstance(node, Directory) and target.nlink == 0:
            raise SysError(ENOENT)
        if replaced is not None:
            if isinstance(replaced, Directory):
                if not isinstance(node, Directory):
                    raise SysError(EISDIR)
                if replaced.entries:
                    raise SysError(ENOTEMPTY)
            elif isinstance(node, Directory):
                raise SysError(ENOTDIR)
            self._remove(target, new)
        elif target.nlink == 0:
            raise SysError(ENOENT)
        self._move(node, source, old, target, new)

    def _move(self, node: MemoryNode, source: Directory, old: str | None, target: Directory, new: str) -> None:
        now = self._now()
        if old is not None and source.entries.get(old) is node:
            del source.entries[old]
        target.entries[new] = node
        if source.watched or target.watched:
            self.changed()
        node.ctime = source.mtime = source.ctime = target.mtime = target.ctime = now
        if isinstance(node, Directory):
            source.nlink -= 1
            target.nlink += 1
            node.parent, node.name = target, new

    # Changing.

    def setattr(self, node: Node, change: SetAttr) -> None:
        assert isinstance(node, MemoryNode)
        if change.size is not None:
            if not isinstance(node, File):
                raise SysError(EISDIR if node.is_dir else EINVAL)
            self.resize(node, change.size)
        if change.mode is not None:
            node.mode = node.mode & S_IFMT | change.mode
        if change.uid is not None:
            node.uid = change.uid
        if change.gid is not None:
            node.gid = change.gid
        node.ctime = self._now()
        if node.watched:
            self.changed()
        if change.atime is not None:
            node.atime = change.atime
        if change.mtime is not None:
            node.mtime = change.mtime

    def resize(self, file: File, size: int) -> None:
        if size > FILE_MAX:
            raise SysError(EFBIG)
        before = held(file.contents)
        contents = file.contents
        if isinstance(contents, Sparse):
            contents.truncate(size)
        elif size == 0:
            file.contents = b""
        elif size <= len(contents):
            file.contents = contents[:size]
        elif size - len(contents) < HOLE:
            self.quota.take_bytes(size - len(contents))
            file.contents = contents + bytes(size - len(contents))
            self._touch(file)
            return
        else:
            sparse = Sparse(contents)
            self.quota.take_bytes(sparse.held - before)
            sparse.truncate(size)
            file.contents = sparse
            self._touch(file)
            return
        self.quota.take_bytes(held(file.contents) - before)
        self._touch(file)

    def write(self, file: File, offset: int | None, data: bytes) -> int:
        """Write all of `data`, or nothing on ENOSPC."""
        count = len(data)
        if not count:
            return 0
        contents = file.contents
        size = length(contents)
        if offset is None:
            offset = size
        end = offset + count
        if end > FILE_MAX:
            raise SysError(EFBIG)
        if isinstance(contents, Sparse) or offset - size >= HOLE:
            self._write_sparse(file, offset, data)
        else:
            if end > size:
                self.quota.take_bytes(end - size)
            if size == 0 and offset == 0:
                file.contents = bytes(data)
            else:
                if not isinstance(contents, bytearray):
                    contents = file.contents = bytearray(contents)
                if offset > size:
                    contents.extend(bytes(offset - size))
                contents[offset:end] = data
        self._touch(file)
        return count

    def _write_sparse(self, file: File, offset: int, data: bytes) -> None:
        contents = file.contents
        if not isinstance(contents, Sparse):
            sparse = Sparse(contents)
            self.quota.take_bytes(sparse.held - len(contents))
            file.contents = contents = sparse
        self.quota.take_bytes(contents.cost(offset, len(data)))
        contents.write(offset, data)

    def _touch(self, file: File) -> None:
        file.mtime = file.ctime = self._now()
        if file.watched:
            self.changed()

    def forget(self, file: File) -> None:
        """Return the quota of a file without names and handles."""
        self.quota.take_bytes(-held(file.contents))
        file.contents = b""

    def read_time(self, file: File) -> None:
        """The access time, as `relatime` keeps it: only moved if it would otherwise be older than a change."""
        if file.atime <= file.mtime:
            file.atime = self._now()

    def statfs(self) -> StatFs:
        quota = self.quota
        blocks, used = quota.bytes_limit // BLOCK, -(-quota.bytes_used // BLOCK)
        files_free = quota.files_limit - quota.files_used
        return StatFs(self.kind, BLOCK, blocks, blocks - used, quota.files_limit, files_free)


def _check_outside(node: MemoryNode, directory: Directory) -> None:
    """EINVAL if a directory would move into itself."""
    above: Directory | None = directory if isinstance(node, Directory) else None
    while above is not None:
        if above is node:
            raise SysError(EINVAL)
        above = above.parent


class MemoryHandle(Handle):
    """An open file in memory."""

    __slots__ = ("_file", "_server")
    may_be_terminal = False

    def __init__(self, server: MemoryServer, file: File) -> None:
        self.nonblocking = False
        self._server = server
        self._file = file
        file.opens += 1

    def read(self, offset: int, size: int) -> bytes:
        file = self._file
        contents = file.contents
        self._server.read_time(file)
        if isinstance(contents, bytes):
            return contents[offset : offset + size]
        if isinstance(contents, bytearray):
            return bytes(memoryview(contents)[offset : offset + size])
        return contents.read(offset, size)

    def write(self, offset: int | None, data: bytes) -> int:
        return self._server.write(self._file, offset, data)

    def truncate(self, size: int) -> None:
        self._server.resize(self._file, size)

    def size(self) -> int:
        return length(self._file.contents)

    def seek_data(self, offset: int, *, hole: bool) -> int:
        contents = self._file.contents
        if isinstance(contents, Sparse):
            found = contents.seek_data(offset, hole=hole)
            if found < 0:
                raise SysError(ENXIO)
            return found
        return len(contents) if hole else offset

    def close(self) -> None:
        file = self._file
        file.opens -= 1
        if file.opens == 0 and file.nlink == 0:
            self._server.forget(file)
