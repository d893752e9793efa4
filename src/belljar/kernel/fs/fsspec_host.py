"""Any fsspec URL as a file server (s3, gcs, http, zip, ...), for the host's side of a sandbox.

Object stores have no random writes: a file opened for writing is kept here and uploaded when it is synced or closed.
Owners, modes and links do not exist there either. Local files are refused: `hostdir` serves them without following
symlinks out of the directory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any, Final
from weakref import WeakValueDictionary
from zlib import crc32

from belljar.abi.errno import (
    EACCES,
    EEXIST,
    EFBIG,
    EIO,
    EISDIR,
    ENOENT,
    ENOSPC,
    ENOSYS,
    ENOTDIR,
    ENOTEMPTY,
    EPERM,
    EROFS,
)
from belljar.abi.errors import SysError
from belljar.abi.flags import O_ACCMODE, O_RDONLY, O_TRUNC, RENAME_EXCHANGE, RENAME_NOREPLACE, S_IFDIR, S_IFMT, S_IFREG
from belljar.abi.install import install_hint
from belljar.abi.limits import MIB
from belljar.abi.paths import check_name, fsencode
from belljar.abi.records import NANO, Dirent, Owner, SetAttr, Stat
from belljar.kernel.vfs.server import FileServer, Handle, Node

LOCAL: Final = frozenset({"file", "local"})
BUFFER_MAX: Final = 256 * MIB
"""Bytes buffered for all files being written, until they are uploaded (ENOSPC)."""
READERS_MAX: Final = 32
"""Files open for reading at the store; fsspec buffers megabytes for each. Others are opened again when read."""
READ_MAX: Final = 16 * MIB
ENTRIES_MAX: Final = 1_000_000


class FsspecNode(Node):
    __slots__ = ("ino", "mtime", "parts", "removed", "version", "writers")

    def __init__(self, parts: tuple[str, ...], *, directory: bool, owner: Owner, writable: bool) -> None:
        mode = (S_IFDIR | 0o755 if directory else S_IFREG | 0o644) if writable else None
        super().__init__(mode or (S_IFDIR | 0o555 if directory else S_IFREG | 0o444), owner.uid, owner.gid)
        self.parts = parts
        self.ino = _ino(parts)
        self.mtime = 0
        self.removed = False
        self.version = 0
        """Incremented by every upload: readers then open the file again."""
        self.writers: list[FsspecHandle] = []


class FsspecServer(FileServer):
    """The tree below a URL. `options` go to fsspec (credentials, endpoints); they never reach the guest."""

    kind = "fsspec"

    def __init__(
        self,
        url: str,
        *,
        read_only: bool = True,
        owner: Owner = Owner(0, 0),  # noqa: B008 - frozen
        options: dict[str, Any] | None = None,
    ) -> None:
        """ValueError for a URL fsspec does not know or that names local files, ImportError if fsspec is missing."""
        try:
            from fsspec.core import url_to_fs
        except ImportError:
            raise ImportError(f"this mount needs fsspec; {install_hint('fs')}") from None
        self._fs, top = url_to_fs(url, **(options or {}))
        protocols = self._fs.protocol if isinstance(self._fs.protocol, tuple | list) else (self._fs.protocol,)
        if LOCAL.intersection(protocols):
            raise ValueError(f"{url!r} names local files: mount them with Mount.host(path)")
        self._top: str = top.rstrip("/")
        self._read_only = read_only
        self._owner = owner
        self._nodes: WeakValueDictionary[tuple[str, ...], FsspecNode] = WeakValueDictionary()
        # Directories made here: where only files exist, an empty one is nothing but our word.
        self._made: set[tuple[str, ...]] = set()
        self.held = 0
        self._readers: dict[FsspecReader, Any] = {}
        self._root = self._node((), directory=True)

    def _node(self, parts: tuple[str, ...], *, directory: bool) -> FsspecNode:
        node = self._nodes.get(parts)
        if node is None or node.is_dir != directory:
            node = FsspecNode(parts, directory=directory, owner=self._owner, writable=not self._read_only)
            self._nodes[parts] = node
        return node

    def _path(self, parts: tuple[str, ...]) -> str:
        return "/".join((self._top, *parts)) if self._top else "/".join(parts)

    def _info(self, parts: tuple[str, ...]) -> dict[str, Any]:
        """ENOENT."""
        if not parts:
            return {"type": "directory"}
        with _errors():
            try:
                info: dict[str, Any] = self._fs.info(self._path(parts))
            except FileNotFoundError:
                if parts in self._made:
                    return {"type": "directory"}
                raise
        return info

    # Looking.

    @property
    def root(self) -> Node:
        return self._root

    def walk(self, directory: Node, name: str) -> Node:
        assert isinstance(directory, FsspecNode)
        if not directory.is_dir:
            raise SysError(ENOTDIR)
        check_name(name)
        parts = (*directory.parts, name)
        known = self._nodes.get(parts)
        if known is not None and known.writers:
            return known
        return self._node(parts, directory=self._info(parts)["type"] == "directory")

    def locate(self, directory: Node) -> tuple[Node, str] | None:
        assert isinstance(directory, FsspecNode)
        if not directory.parts:
            return None
        return self._node(directory.parts[:-1], directory=True), "" if directory.removed else directory.parts[-1]

    def stat(self, node: Node) -> Stat:
        assert isinstance(node, FsspecNode)
        size, mtime = 0, node.mtime
        if node.writers:
            size = node.writers[-1].size()
        elif not node.is_dir and not node.removed:
            info = self._info(node.parts)
            size, mtime = int(info.get("size") or 0), _mtime(info)
        return Stat(
            node.mode, node.ino, self.dev, 0 if node.removed else 1, node.uid, node.gid, size,
            mtime, mtime, mtime, 0, -(-size // 512),
        )  # fmt: skip

    def readdir(self, directory: Node) -> Sequence[Dirent]:
        assert isinstance(directory, FsspecNode)
        if not directory.is_dir:
            raise SysError(ENOTDIR)
        if directory.removed:
            return []
        found: dict[str, Dirent] = {}
        for name, kind in self._list(directory.parts):
            parts = (*directory.parts, name)
            known = self._nodes.get(parts)
            found[name] = Dirent(name, known.ino if known is not None else _ino(parts), kind)
            if len(found) > ENTRIES_MAX:
                raise SysError(EFBIG)
        return list(found.values())

    def _list(self, parts: tuple[str, ...]) -> Iterator[tuple[str, int]]:
        path = self._path(parts)
        with _errors():
            try:
                infos: list[dict[str, Any]] = self._fs.ls(path, detail=True, **self._fresh())
            except FileNotFoundError:
                if parts not in self._made and parts:
                    raise
                infos = []
        for info in infos:
            name = str(info["name"]).rstrip("/").rpartition("/")[2]
            if name in ("", ".", "..") or "\0" in name or str(info["name"]).strip("/") == path.strip("/"):
                continue
            yield name, S_IFDIR if info["type"] == "directory" else S_IFREG
        depth = len(parts)
        for made in self._made:
            if len(made) == depth + 1 and made[:depth] == parts:
                yield made[-1], S_IFDIR

    def _fresh(self) -> dict[str, bool]:
        """Listings are cached by the stores that cost a request each; after our own changes the cache is wrong."""
        return {} if self._read_only else {"refresh": True}

    def open(self, node: Node, flags: int) -> Handle:
        assert isinstance(node, FsspecNode)
        if node.is_dir:
            raise SysError(EISDIR)
        if flags & O_ACCMODE == O_RDONLY and not flags & O_TRUNC and not node.writers:
            return FsspecReader(self, node)
        self._check_writable()
        return FsspecHandle(self, node, truncated=bool(flags & O_TRUNC))

    # Changing.

    def _check_writable(self) -> None:
        if self._read_only:
            raise SysError(EROFS)

    def _new_parts(self, directory: Node, name: str) -> tuple[str, ...]:
        self._check_writable()
        assert isinstance(directory, FsspecNode)
        if directory.removed:
            raise SysError(ENOENT)
        check_name(name)
        parts = (*directory.parts, name)
        try:
            self._info(parts)
        except SysError as error:
            if error.errno != ENOENT:
                raise
            return parts
        raise SysError(EEXIST)

    def create(self, directory: Node, name: str, mode: int, owner: Owner) -> Node:
        if mode & S_IFMT != S_IFREG:
            raise SysError(EPERM)
        parts = self._new_parts(directory, name)
        self.upload(parts, b"")
        return self._node(parts, directory=False)

    def mkdir(self, directory: Node, name: str, mode: int, owner: Owner) -> Node:
        parts = self._new_parts(directory, name)
        with _errors():
            self._fs.mkdir(self._path(parts), create_parents=False)
        self._made.add(parts)
        return self._node(parts, directory=True)

    def upload(self, parts: tuple[str, ...], data: bytes) -> None:
        with _errors():
            self._fs.pipe_file(self._path(parts), data)

    def open_file(self, reader: FsspecReader, parts: tuple[str, ...]) -> Any:
        """The store's open file for a reader: the one it had, or a new one in place of the longest unused."""
        file = self._readers.pop(reader, None)
        if file is None:
            with _errors():
                file = self._fs.open(self._path(parts), "rb")
            if len(self._readers) >= READERS_MAX:
                oldest = next(iter(self._readers))
                self._readers.pop(oldest).close()
        self._readers[reader] = file
        return file

    def close_file(self, reader: FsspecReader) -> None:
        file = self._readers.pop(reader, None)
        if file is not None:
            file.close()

    def account(self, count: int) -> None:
        """Account for bytes about to be buffered (or, negative, freed). ENOSPC."""
        if count > 0 and self.held + count > BUFFER_MAX:
            raise SysError(ENOSPC)
        self.held += count

    def download(self, parts: tuple[str, ...]) -> bytes:
        """All of a file, to be changed here; it is accounted for."""
        size = int(self._info(parts).get("size") or 0)
        self.account(size)
        try:
            with _errors():
                data: bytes = self._fs.cat_file(self._path(parts))
            self.account(len(data) - size)
        except SysError:
            self.account(-size)
            raise
        return data

    def unlink(self, directory: Node, name: str) -> None:
        self._check_writable()
        node = self.walk(directory, name)
        assert isinstance(node, FsspecNode)
        if node.is_dir:
            raise SysError(EISDIR)
        with _errors():
            self._fs.rm_file(self._path(node.parts))
        self._forget(node)

    def rmdir(self, directory: Node, name: str) -> None:
        self._check_writable()
        node = self.walk(directory, name)
        assert isinstance(node, FsspecNode)
        if not node.is_dir:
            raise SysError(ENOTDIR)
        if any(True for _ in self._list(node.parts)):
            raise SysError(ENOTEMPTY)
        with _errors():
            try:
                self._fs.rmdir(self._path(node.parts))
            except FileNotFoundError:
                if node.parts not in self._made:
                    raise
        self._made.discard(node.parts)
        self._forget(node)

    def _forget(self, node: FsspecNode) -> None:
        node.removed = True
        self._nodes.pop(node.parts, None)
        self._keep_parent(node.parts)

    def _keep_parent(self, parts: tuple[str, ...]) -> None:
        """A store without directories loses one with its last file; here it stays until removed."""
        if len(parts) > 1:
            self._made.add(parts[:-1])

    def rename(self, source: Node, old: str, target: Node, new: str, flags: int) -> None:
        """Atomic only as far as the store's own move is."""
        self._check_writable()
        node = self.walk(source, old)
        assert isinstance(node, FsspecNode)
        assert isinstance(target, FsspecNode)
        if target.removed:
            raise SysError(ENOENT)
        check_name(new)
        here, there = node.parts, (*target.parts, new)
        if here == there:
            return
        replaced = self._existing(target, new)
        if flags & RENAME_EXCHANGE:
            if replaced is None:
                raise SysError(ENOENT)
            aside = (*here[:-1], f".{old[:200]}.exchange")
            for before, after in ((here, aside), (there, here), (aside, there)):
                self._move(before, after)
            return
        if replaced is not None:
            if flags & RENAME_NOREPLACE:
                raise SysError(EEXIST)
            if replaced.is_dir != node.is_dir:
                raise SysError(EISDIR if replaced.is_dir else ENOTDIR)
            if replaced.is_dir:
                self.rmdir(target, new)
            else:
                self._forget(replaced)
        self._move(here, there)

    def _existing(self, directory: FsspecNode, name: str) -> FsspecNode | None:
        try:
            node = self.walk(directory, name)
        except SysError as error:
            if error.errno == ENOENT:
                return None
            raise
        assert isinstance(node, FsspecNode)
        return node

    def _move(self, here: tuple[str, ...], there: tuple[str, ...]) -> None:
        directory = self._info(here)["type"] == "directory"
        with _errors():
            try:
                self._fs.mv(self._path(here), self._path(there), recursive=directory)
            except FileNotFoundError:
                if here not in self._made:
                    raise
        depth = len(here)
        self._made = {there + made[depth:] if made[:depth] == here else made for made in self._made}
        if directory:
            self._made.add(there)
        for parts, moved in list(self._nodes.items()):
            if parts[:depth] == here:
                del self._nodes[parts]
                moved.parts = there + parts[depth:]
                self._nodes[moved.parts] = moved
        self._keep_parent(here)

    def setattr(self, node: Node, change: SetAttr) -> None:
        self._check_writable()
        assert isinstance(node, FsspecNode)
        if change.size is not None:
            if node.is_dir:
                raise SysError(EISDIR)
            handle = FsspecHandle(self, node, truncated=change.size == 0)
            handle.truncate(change.size)
            handle.sync()
            handle.close()
        if change.mode is not None and change.mode != node.mode & ~S_IFMT:
            raise SysError(EPERM)
        if (change.uid, change.gid) != (None, None) or (change.atime, change.mtime) != (None, None):
            raise SysError(EPERM)

    def close(self) -> None:
        """Nothing is held open."""


class FsspecReader(Handle):
    """A file open for reading, fetched block by block as fsspec caches them."""

    __slots__ = ("_node", "_server", "_version")

    def __init__(self, server: FsspecServer, node: FsspecNode) -> None:
        self.nonblocking = False
        self._server = server
        self._node = node
        self._version = node.version
        server.open_file(self, node.parts)

    def _current(self) -> Any:
        if self._version != self._node.version and not self._node.removed:
            self._server.close_file(self)
            self._version = self._node.version
        return self._server.open_file(self, self._node.parts)

    def read(self, offset: int, size: int) -> bytes:
        if self._node.writers:
            return self._node.writers[0].read(offset, size)
        file = self._current()
        with _errors():
            if offset >= file.size:
                return b""
            file.seek(offset)
            data: bytes = file.read(min(size, READ_MAX))
        return data

    def size(self) -> int:
        if self._node.writers:
            return self._node.writers[0].size()
        return int(self._current().size)

    def close(self) -> None:
        self._server.close_file(self)


class FsspecHandle(Handle):
    """A file being written: all of it is here until it is uploaded. All who write a file at once share its bytes."""

    __slots__ = ("_dirty", "_node", "_server", "data")

    def __init__(self, server: FsspecServer, node: FsspecNode, *, truncated: bool) -> None:
        self.nonblocking = False
        self._server = server
        self._node = node
        self._dirty = truncated
        if node.writers:
            self.data: bytearray = node.writers[0].data
        else:
            self.data = bytearray(b"" if truncated or node.removed else server.download(node.parts))
        node.writers.append(self)
        if truncated:
            self.truncate(0)

    def read(self, offset: int, size: int) -> bytes:
        return bytes(memoryview(self.data)[offset : offset + size])

    def write(self, offset: int | None, data: bytes) -> int:
        offset = len(self.data) if offset is None else offset
        if offset + len(data) > len(self.data):
            self._resize(max(offset + len(data), len(self.data)))
        self.data[offset : offset + len(data)] = data
        self._dirty = True
        return len(data)

    def truncate(self, size: int) -> None:
        self._resize(size)
        self._dirty = True

    def _resize(self, size: int) -> None:
        change = size - len(self.data)
        self._server.account(change)
        if change > 0:
            self.data.extend(bytes(change))
        else:
            del self.data[size:]

    def size(self) -> int:
        return len(self.data)

    def sync(self) -> None:
        if self._dirty and not self._node.removed:
            self._server.upload(self._node.parts, bytes(self.data))
            self._node.version += 1
        self._dirty = False

    def close(self) -> None:
        try:
            self.sync()
        except SysError:
            return  # as with any network file system: who must know calls fsync
        finally:
            self._node.writers.remove(self)
            if not self._node.writers:
                self._server.account(-len(self.data))


def _ino(parts: tuple[str, ...]) -> int:
    """The same for the same path; a file that is renamed while in use keeps its own."""
    return crc32(fsencode("/".join(parts))) + 2


def _mtime(info: dict[str, Any]) -> int:
    """The modification time, under whichever key the store has it."""
    for key in ("mtime", "LastModified", "last_modified", "updated", "modified", "created"):
        value = info.get(key)
        if isinstance(value, datetime):
            return int((value if value.tzinfo else value.replace(tzinfo=UTC)).timestamp() * NANO)
        if isinstance(value, int | float):
            return int(value * NANO)
    return 0


_ERRNOS: Final[tuple[tuple[type[BaseException], int], ...]] = (
    (FileNotFoundError, ENOENT),
    (PermissionError, EACCES),
    (FileExistsError, EEXIST),
    (IsADirectoryError, EISDIR),
    (NotADirectoryError, ENOTDIR),
    (NotImplementedError, ENOSYS),
)


@contextmanager
def _errors() -> Iterator[None]:
    """fsspec's exceptions as errnos. Its plugins raise anything, so this is the frame that owns them."""
    try:
        yield
    except SysError:
        raise
    except Exception as error:
        raise SysError(next((number for kind, number in _ERRNOS if isinstance(error, kind)), EIO)) from error
