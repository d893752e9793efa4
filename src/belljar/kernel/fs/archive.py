"""Archives as read-only trees: tar (plain, gz, bz2, xz, zst) and zip, from bytes or a seekable file object.

The list of members is read once; their contents when somebody reads them. Names cannot lead outside, links are only
links, devices and FIFOs are left out, of two members with one name the last counts, and set-user-id bits are dropped.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import tarfile
import zipfile
import zlib
from calendar import timegm
from collections.abc import Callable, Sequence
from io import SEEK_SET, BytesIO, RawIOBase
from typing import IO, Final

from msgspec import Struct

from belljar.abi.errno import EACCES, EINVAL, EIO, ENOENT, ENOTDIR, ENOTSUP, ENXIO, EROFS
from belljar.abi.errors import SysError
from belljar.abi.flags import NAME_MAX, O_ACCMODE, O_RDONLY, O_TRUNC, S_IFDIR, S_IFLNK, S_IFMT, S_IFREG
from belljar.abi.limits import GIB, MIB
from belljar.abi.paths import byte_length, check_name
from belljar.abi.records import NANO, Dirent, Owner, Stat, StatFs
from belljar.kernel.vfs.server import FileServer, Handle, Node

BLOCK: Final = 4096
WHOLE_MAX: Final = 8 * MIB
"""A member up to this size is unpacked when opened, so that reading it back and forth costs nothing more,"""
HELD_MAX: Final = 64 * MIB
"""as long as all that are open hold no more than this."""
_DEPTH_MAX: Final = 1000
_ZIP_UNIX: Final = 3
_ENCRYPTED: Final = 1
_UTF8_NAME: Final = 0x800
_BROKEN: Final = (tarfile.TarError, zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, OSError, ValueError)


class ArchiveError(ValueError):
    """The archive cannot be mounted: not one we know, damaged, or beyond the limits."""


class ArchiveLimits(Struct, frozen=True):
    """Limits on the number and size of an archive's members, as its headers state them."""

    entries: int = 1_000_000
    member_bytes: int = 16 * GIB
    total_bytes: int = 16 * GIB


class ArchiveNode(Node):
    __slots__ = ("entries", "ino", "mtime", "name", "nlink", "opener", "parent", "size", "target")

    def __init__(self, mode: int, owner: Owner, ino: int, mtime: int) -> None:
        super().__init__(mode, owner.uid, owner.gid)
        self.ino = ino
        self.mtime = mtime
        self.nlink = 1
        self.size = 0
        self.target = ""
        self.opener: Callable[[], IO[bytes]] | None = None
        self.entries: dict[str, ArchiveNode] | None = None
        self.parent: ArchiveNode | None = None
        self.name = ""


class ArchiveServer(FileServer):
    """One archive, read-only."""

    kind = "archive"

    def __init__(
        self,
        source: bytes | IO[bytes],
        *,
        owner: Owner = Owner(0, 0),  # noqa: B008 - frozen
        limits: ArchiveLimits = ArchiveLimits(),  # noqa: B008 - frozen
    ) -> None:
        """ArchiveError if it can't be read. The file object is the server's from now on."""
        self._owner = owner
        self._limits = limits
        self._source: IO[bytes] = BytesIO(source) if isinstance(source, bytes) else source
        self._next_ino = 1
        self._total = 0
        self.held = 0
        self._root = self._directory(0)
        try:
            if zipfile.is_zipfile(self._source):
                self._archive: tarfile.TarFile | zipfile.ZipFile = self._read_zip()
            else:
                self._archive = self._read_tar()
        except _BROKEN as error:
            if isinstance(error, ArchiveError):
                raise
            raise ArchiveError(f"not a readable tar or zip archive: {error}") from error

    # Reading the list of members.

    def _read_zip(self) -> zipfile.ZipFile:
        archive = zipfile.ZipFile(self._source)
        infos = archive.infolist()
        self._check_count(len(infos))
        for info in infos:
            parts = safe_parts(_zip_name(info))
            if not parts:
                continue
            mtime = _zip_time(info)
            unix = info.external_attr >> 16 if info.create_system == _ZIP_UNIX else 0
            kind, bits = unix & 0o170000, unix & 0o777
            if info.is_dir() or kind == S_IFDIR:
                self._add_directory(parts, bits or 0o755, mtime)
            elif kind == S_IFLNK:
                if info.file_size < BLOCK and not info.flag_bits & _ENCRYPTED:
                    self._add_symlink(parts, archive.read(info).decode("utf-8", "surrogateescape"), mtime)
            elif kind in (0, S_IFREG):
                self._add_file(parts, bits or 0o644, mtime, info.file_size, _zip_opener(archive, info))
        return archive

    def _read_tar(self) -> tarfile.TarFile:
        archive = tarfile.open(  # noqa: SIM115 - open as long as the server is
            fileobj=unpack(self._source), mode="r:", encoding="utf-8", errors="surrogateescape"
        )
        count = 0
        for info in archive:
            count += 1
            self._check_count(count)
            parts = safe_parts(info.name)
            if not parts:
                continue
            mtime = int(info.mtime * NANO)
            if info.isdir():
                self._add_directory(parts, info.mode & 0o777, mtime)
            elif info.issym():
                self._add_symlink(parts, info.linkname, mtime)
            elif info.islnk():
                self._link(parts, safe_parts(info.linkname))
            elif info.isfile():
                self._add_file(parts, info.mode & 0o777, mtime, info.size, _tar_opener(archive, info))
        return archive

    def _check_count(self, count: int) -> None:
        if count > self._limits.entries:
            raise ArchiveError(f"more than {self._limits.entries} entries; raise ArchiveLimits.entries to allow it")

    # Building the tree.

    def _directory(self, mtime: int, mode: int = 0o755) -> ArchiveNode:
        node = ArchiveNode(S_IFDIR | mode, self._owner, self._ino(), mtime)
        node.entries = {}
        node.nlink = 2
        return node

    def _ino(self) -> int:
        self._next_ino += 1
        return self._next_ino - 1

    def _parent(self, parts: Sequence[str]) -> dict[str, ArchiveNode]:
        """The directory a member goes to, made if missing; what stands in its way, even a symlink, makes room."""
        node = self._root
        for part in parts[:-1]:
            assert node.entries is not None
            child = node.entries.get(part)
            if child is None or child.entries is None:
                self._check_count(self._next_ino)
                child = self._directory(0)
                self._insert(node, part, child)
            node = child
        assert node.entries is not None
        return node.entries

    def _insert(self, parent: ArchiveNode, name: str, node: ArchiveNode) -> None:
        assert parent.entries is not None
        old = parent.entries.pop(name, None)
        if old is not None:
            old.nlink -= 1
            parent.nlink -= old.entries is not None
        parent.entries[name] = node
        if node.entries is not None:
            node.parent, node.name = parent, name
            parent.nlink += 1

    def _put(self, parts: Sequence[str], node: ArchiveNode) -> None:
        self._parent(parts)
        parent = self._root
        for part in parts[:-1]:
            assert parent.entries is not None
            parent = parent.entries[part]
        self._insert(parent, parts[-1], node)

    def _add_directory(self, parts: Sequence[str], mode: int, mtime: int) -> None:
        old = self._parent(parts).get(parts[-1])
        if old is None or old.entries is None:
            old = self._directory(mtime)
            self._put(parts, old)
        old.mode, old.mtime = S_IFDIR | mode, mtime

    def _add_symlink(self, parts: Sequence[str], target: str, mtime: int) -> None:
        if not target or "\0" in target or byte_length(target) >= BLOCK:
            return
        node = ArchiveNode(S_IFLNK | 0o777, self._owner, self._ino(), mtime)
        node.target, node.size = target, byte_length(target)
        self._put(parts, node)

    def _add_file(
        self, parts: Sequence[str], mode: int, mtime: int, size: int, opener: Callable[[], IO[bytes]]
    ) -> None:
        self._total += size
        if not 0 <= size <= self._limits.member_bytes or self._total > self._limits.total_bytes:
            raise ArchiveError(f"{'/'.join(parts)!r}: {size} bytes are beyond ArchiveLimits")
        node = ArchiveNode(S_IFREG | mode, self._owner, self._ino(), mtime)
        node.size, node.opener = size, opener
        self._put(parts, node)

    def _link(self, parts: Sequence[str], target: Sequence[str]) -> None:
        """A hard link to a member that came before; to anything else it is left out."""
        node: ArchiveNode | None = self._root
        for part in target:
            node = node.entries.get(part) if node is not None and node.entries is not None else None
        if node is None or node.entries is not None or (not target):
            return
        self._put(parts, node)
        node.nlink += 1

    # Serving.

    @property
    def root(self) -> Node:
        return self._root

    def _entries(self, directory: Node) -> dict[str, ArchiveNode]:
        assert isinstance(directory, ArchiveNode)
        if directory.entries is None:
            raise SysError(ENOTDIR)
        return directory.entries

    def walk(self, directory: Node, name: str) -> Node:
        node = self._entries(directory).get(name)
        if node is None:
            check_name(name)
            raise SysError(ENOENT)
        return node

    def locate(self, directory: Node) -> tuple[Node, str] | None:
        assert isinstance(directory, ArchiveNode)
        return None if directory.parent is None else (directory.parent, directory.name)

    def readdir(self, directory: Node) -> Sequence[Dirent]:
        return [Dirent(name, node.ino, node.mode & S_IFMT) for name, node in self._entries(directory).items()]

    def stat(self, node: Node) -> Stat:
        assert isinstance(node, ArchiveNode)
        size = BLOCK if node.is_dir else node.size
        return Stat(
            node.mode, node.ino, self.dev, node.nlink, node.uid, node.gid, size,
            node.mtime, node.mtime, node.mtime, 0, -(-size // 512),
        )  # fmt: skip

    def readlink(self, node: Node) -> str:
        assert isinstance(node, ArchiveNode)
        if not node.target:
            raise SysError(EINVAL)
        return node.target

    def open(self, node: Node, flags: int) -> Handle:
        assert isinstance(node, ArchiveNode)
        if node.opener is None:
            raise SysError(ENXIO)
        if flags & O_ACCMODE != O_RDONLY or flags & O_TRUNC:
            raise SysError(EROFS)
        try:
            return ArchiveHandle(self, node.opener(), node.size)
        except NotImplementedError:
            raise SysError(ENOTSUP) from None
        except RuntimeError:
            raise SysError(EACCES) from None  # zipfile's word for "encrypted"
        except _BROKEN:
            raise SysError(EIO) from None

    def statfs(self) -> StatFs:
        return StatFs(self.kind, BLOCK, -(-self._total // BLOCK), 0, self._next_ino, 0)

    def close(self) -> None:
        self._archive.close()
        self._source.close()


class ArchiveHandle(Handle):
    """An open member."""

    __slots__ = ("_data", "_file", "_position", "_server", "_size")

    def __init__(self, server: ArchiveServer, file: IO[bytes], size: int) -> None:
        self.nonblocking = False
        self._server = server
        self._file = file
        self._size = size
        self._position = 0
        self._data: bytes | None = None
        if size <= WHOLE_MAX and server.held + size <= HELD_MAX:
            self._data = self._read(0, size)
            server.held += size

    def read(self, offset: int, size: int) -> bytes:
        if self._data is not None:
            return self._data[offset : offset + size]
        return self._read(offset, min(size, WHOLE_MAX, max(0, self._size - offset)))

    def _read(self, offset: int, size: int) -> bytes:
        try:
            if offset != self._position:
                self._file.seek(offset)
            data = self._file.read(size)
        except _BROKEN:
            raise SysError(EIO) from None
        if len(data) < size:
            raise SysError(EIO)  # the archive ends before the member does
        self._position = offset + len(data)
        return data

    def size(self) -> int:
        return self._size

    def close(self) -> None:
        if self._data is not None:
            self._server.held -= self._size
        self._file.close()


def safe_parts(name: str) -> list[str]:
    """A member's path inside the tree; [] for one that must not be served (`..`, NUL, names too long or deep)."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    unsafe = ".." in parts or "\0" in name or len(parts) > _DEPTH_MAX
    if unsafe or any(byte_length(part) > NAME_MAX for part in parts):
        return []
    return parts


def _zip_name(info: zipfile.ZipInfo) -> str:
    """Many zip programs write UTF-8 without saying so; zipfile then reads it as code page 437."""
    if not info.flag_bits & _UTF8_NAME:
        try:
            return info.filename.encode("cp437").decode("utf-8")
        except UnicodeError:
            return info.filename
    return info.filename


def _zip_time(info: zipfile.ZipInfo) -> int:
    year, month, day, *clock = info.date_time
    # Zero stands for "unknown" in a date that has no such month or day.
    return timegm((year, max(1, min(month, 12)), max(1, day), *clock, 0, 0, 0)) * NANO


def _zip_opener(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Callable[[], IO[bytes]]:
    return lambda: archive.open(info)


def _tar_opener(archive: tarfile.TarFile, info: tarfile.TarInfo) -> Callable[[], IO[bytes]]:
    def open_member() -> IO[bytes]:
        file = archive.extractfile(info)
        assert file is not None
        return file

    return open_member


def unpack(source: IO[bytes]) -> IO[bytes]:
    """The contents of a file that may be compressed, as a seekable file: read from its start.

    Reading raises zlib.error, lzma.LZMAError, EOFError, OSError or ValueError if it is damaged.
    """
    source.seek(0)
    head = source.read(6)
    source.seek(0)
    if head.startswith(b"\x1f\x8b"):
        return gzip.GzipFile(fileobj=source, mode="rb")  # type: ignore[return-value]
    if head.startswith(b"BZh"):
        return bz2.BZ2File(source)
    if head.startswith(b"\xfd7zXZ\0") or head.startswith(b"\x5d\0\0"):
        return lzma.LZMAFile(source)
    if head.startswith(b"\x28\xb5\x2f\xfd"):
        return _Rewinding(*_zstd_reader(source))  # type: ignore[return-value]
    return source


def _zstd_reader(source: IO[bytes]) -> tuple[Callable[[], IO[bytes]], type[Exception]]:
    """A function that reads from the start, and the error of damaged data."""
    try:
        import zstandard
    except ImportError:
        raise ArchiveError("a .zst archive needs the zstandard package: pip install zstandard") from None

    def restart() -> IO[bytes]:
        source.seek(0)
        reader: IO[bytes] = zstandard.ZstdDecompressor().stream_reader(source, read_across_frames=True, closefd=False)
        return reader

    return restart, zstandard.ZstdError


class _Rewinding(RawIOBase):
    """A stream that only goes forward, made seekable by starting over."""

    def __init__(self, restart: Callable[[], IO[bytes]], damage: type[Exception]) -> None:
        self._restart = restart
        self._damage = damage
        self._stream = restart()
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def read(self, size: int | None = -1) -> bytes:
        parts = []
        left = -1 if size is None else size
        try:
            while left and (data := self._stream.read(min(left, MIB) if left > 0 else MIB)):
                parts.append(data)
                left -= len(data) if left > 0 else 0
        except self._damage as error:
            raise OSError(str(error)) from None
        found = b"".join(parts)
        self._position += len(found)
        return found

    def seek(self, offset: int, whence: int = SEEK_SET) -> int:
        if whence != SEEK_SET:
            offset += self._position
        if offset < self._position:
            self._stream = self._restart()
            self._position = 0
        while self._position < offset and self.read(min(MIB, offset - self._position)):
            pass
        return self._position
