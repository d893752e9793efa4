"""Trees of images, written to the host's disk: below one directory, whatever their names and links say.

Every call names one component below an open directory, makes a new file (O_EXCL), and follows no symbolic link. So
nothing outside that directory can be named. Set-user-id and set-group-id bits are dropped: a sandbox never honours
them, and a host that found them in its cache might.
"""

from __future__ import annotations

import errno
import os
import stat
import uuid
from collections.abc import Iterator, Sequence
from functools import partial
from typing import IO, Final, Protocol

from belljar.abi.errors import ImageError
from belljar.abi.limits import MIB
from belljar.image.tree import FileTree, Node, check_count, show
from belljar.native.roots import host_id
from belljar.store.objects import PIECE, PIECE_BYTES, Digest
from belljar.store.store import Objects
from belljar.store.tree import Kind

_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_KEPT_BITS: Final = 0o1777
_BATCH_FILES: Final = 256
_BATCH_BYTES: Final = 8 * MIB

Way = tuple[bytes, ...]
"""Names from the root of a tree to one of its directories."""


class Contents(Protocol):
    """The bytes of files."""

    def load(self, nodes: Sequence[Node]) -> None:
        """Get ready to write these files, which are small together, or one file."""

    def write(self, node: Node, way: Way, name: bytes, fd: int) -> None:
        """Write a file, whose size is already set: holes may be left out."""


class StoredContents:
    """Files whose pieces are in a store."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._loaded: dict[Digest, bytes] = {}

    def load(self, nodes: Sequence[Node]) -> None:
        some = [part for node in nodes for part in node.parts if part] if len(nodes) > 1 else []
        self._loaded = dict(zip(some, self._objects.read(some), strict=True))

    def write(self, node: Node, way: Way, name: bytes, fd: int) -> None:
        for number, part in enumerate(node.parts):
            if part:
                data = self._loaded.get(part) or self._objects.read([part])[0]
                if data[:1] != PIECE or len(data) - 1 != min(PIECE_BYTES, node.size - number * PIECE_BYTES):
                    raise ImageError(f"{show(b'/'.join((*way, name)))}: a piece of it is not as long as it should be")
                write_all(fd, memoryview(data)[1:], number * PIECE_BYTES)


class DirectoryContents:
    """Files of a directory of the host, which `scan_directory` has read."""

    def __init__(self, root: int) -> None:
        self._root = root

    def load(self, nodes: Sequence[Node]) -> None:
        pass

    def write(self, node: Node, way: Way, name: bytes, fd: int) -> None:
        with open_below(self._root, way, name) as file:
            source = file.fileno()
            for start, end in _data_ranges(source, node.size):
                while start < end and (data := os.pread(source, min(MIB, end - start), start)):
                    write_all(fd, memoryview(data), start)
                    start += len(data)


def unpack(tree: FileTree, contents: Contents, root: int, base: int | None) -> None:
    """Write a tree into an open, empty directory, which becomes its root. ImageError, StoreError, OSError.

    With a `base`, owners are shifted by it (see `host_id`); without, everything is this process's user's.
    """
    made: list[tuple[Way, Node]] = [((), tree.root)]
    links: dict[int, tuple[Way, bytes]] = {}
    for way, node in made:  # grows as directories are met
        directory = open_way(root, way)
        try:
            files, others = [], []
            for name, child in node.names.items():
                if child.is_directory:
                    os.mkdir(name, 0o700, dir_fd=directory)
                    made.append(((*way, name), child))
                elif id(child) in links:
                    others.append((name, child))
                else:
                    links[id(child)] = way, name
                    if child.kind is Kind.FILE:
                        files.append((name, child))
                    else:
                        _make_special(directory, name, child, base)
            for some in _batches(files):
                contents.load([child for _, child in some])
                for name, child in some:
                    _make_file(directory, way, name, child, contents, base)
            for name, child in others:
                if not _link(root, links[id(child)], directory, name):
                    raise ImageError(f"{show(name)}: a file has more names than this machine's disk allows")
        finally:
            os.close(directory)
    for way, node in reversed(made):
        directory = open_way(root, way)
        try:
            _set_attributes(directory, node, base)
        finally:
            os.close(directory)


def scan_directory(root: int) -> tuple[FileTree, list[str]]:
    """The tree of an open directory of the host, without contents; and what can't be in an image: device nodes and
    sockets. Other file systems mounted below it are part of it. OSError, ImageError.
    """
    tree, skipped = FileTree(node_of(os.fstat(root))), list[str]()
    links: dict[tuple[int, int], Node] = {}
    waiting: list[tuple[Way, Node]] = [((), tree.root)]
    count = 0
    while waiting:
        way, node = waiting.pop()
        directory = open_way(root, way)
        try:
            for text in os.listdir(directory):
                name = os.fsencode(text)
                count += 1
                check_count(count)
                found = os.stat(name, dir_fd=directory, follow_symlinks=False)
                child = links.get((found.st_dev, found.st_ino)) or node_of(found)
                if child.mode < 0:
                    skipped.append(f"/{show(b'/'.join((*way, name)))}")
                    continue
                if child.kind is Kind.SYMLINK:
                    child.target = os.readlink(name, dir_fd=directory)
                elif child.is_directory:
                    waiting.append(((*way, name), child))
                if found.st_nlink > 1 and not child.is_directory:
                    links[found.st_dev, found.st_ino] = child
                node.names[name] = child
        finally:
            os.close(directory)
    return tree, sorted(skipped)


def store_directory(path: str, objects: Objects) -> tuple[FileTree, list[str]]:
    """Store the files of a directory of the host's, owners and modes as they are. OSError, ImageError, StoreError."""
    root = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        tree, skipped = scan_directory(root)
        objects.write(_pieces(tree, root))
    finally:
        os.close(root)
    return tree, skipped


def _pieces(tree: FileTree, root: int) -> Iterator[bytes]:
    """The contents of all files of a directory, which are noted in its tree."""
    seen: set[int] = set()
    for path, node in tree.walk():
        if node.kind is Kind.FILE and id(node) not in seen:
            seen.add(id(node))
            *above, name = path.split(b"/")
            with open_below(root, tuple(above), name) as file:
                yield from node.fill(iter(partial(file.read, MIB), b""))


def open_below(root: int, way: Way, name: bytes) -> IO[bytes]:
    """Open a file below an open directory to be read, following no symbolic link."""
    directory = open_way(root, way)
    try:
        fd = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    finally:
        os.close(directory)
    return open(fd, "rb")


def remove_tree(parent: int, name: str) -> None:
    """Remove a directory and everything below it, whatever the modes of its directories. What somebody else has
    removed meanwhile is no error. `name` is in a directory where only such remains are: what is below moves up to it.
    """
    waiting = [name]
    while waiting:
        current = waiting.pop()
        try:
            os.chmod(current, 0o700, dir_fd=parent)
            directory = os.open(current, _DIRECTORY, dir_fd=parent)
        except FileNotFoundError:
            continue
        try:
            for below in os.listdir(directory):
                try:
                    if stat.S_ISDIR(os.stat(below, dir_fd=directory, follow_symlinks=False).st_mode):
                        moved = f"{uuid.uuid4().hex}.gone"
                        os.chmod(below, 0o700, dir_fd=directory)
                        os.rename(below, moved, src_dir_fd=directory, dst_dir_fd=parent)
                        waiting.append(moved)
                    else:
                        os.unlink(below, dir_fd=directory)
                except FileNotFoundError:
                    continue
            os.rmdir(current, dir_fd=parent)
        except FileNotFoundError:
            continue
        finally:
            os.close(directory)


def open_way(root: int, way: Way) -> int:
    """Open a directory below an open one, following no symbolic link, however long its path is."""
    current = os.open(".", _DIRECTORY, dir_fd=root)
    for name in way:
        try:
            below = os.open(name, _DIRECTORY, dir_fd=current)
        finally:
            os.close(current)
        current = below
    return current


def write_all(fd: int, data: memoryview, offset: int) -> None:
    while data:
        written = os.pwrite(fd, data, offset)
        data, offset = data[written:], offset + written


def _batches(files: list[tuple[bytes, Node]]) -> Iterator[list[tuple[bytes, Node]]]:
    some: list[tuple[bytes, Node]] = []
    size = 0
    for name, node in files:
        if some and (size + node.size > _BATCH_BYTES or len(some) == _BATCH_FILES):
            yield some
            some, size = [], 0
        some.append((name, node))
        size += node.size
    if some:
        yield some


def _make_file(directory: int, way: Way, name: bytes, node: Node, contents: Contents, base: int | None) -> None:
    fd = os.open(name, _NEW, 0o600, dir_fd=directory)
    try:
        if node.size:
            os.ftruncate(fd, node.size)
            contents.write(node, way, name, fd)
        _set_attributes(fd, node, base)
    except OSError as error:
        if error.errno in (errno.EFBIG, errno.EINVAL):
            raise ImageError(f"{show(name)}: this machine's disk can't have a file of {node.size} bytes") from None
        raise
    finally:
        os.close(fd)


def _make_special(directory: int, name: bytes, node: Node, base: int | None) -> None:
    if node.kind is Kind.SYMLINK:
        os.symlink(node.target, name, dir_fd=directory)
    elif node.kind is Kind.FIFO:
        os.mkfifo(name, 0o600, dir_fd=directory)
        os.chmod(name, node.mode & _KEPT_BITS, dir_fd=directory)  # it was made just now: no link
    else:
        raise ImageError(f"{show(name)}: a {node.kind.name.lower()} can't be in an image")
    if base is not None:
        owner = host_id(node.uid, base), host_id(node.gid, base)
        os.chown(name, *owner, dir_fd=directory, follow_symlinks=False)
    os.utime(name, ns=(node.mtime_ns, node.mtime_ns), dir_fd=directory, follow_symlinks=False)


def _set_attributes(fd: int, node: Node, base: int | None) -> None:
    if base is not None:
        os.fchown(fd, host_id(node.uid, base), host_id(node.gid, base))
    os.fchmod(fd, node.mode & _KEPT_BITS)
    os.utime(fd, ns=(node.mtime_ns, node.mtime_ns))


def _link(root: int, first: tuple[Way, bytes], directory: int, name: bytes) -> bool:
    """Make a hard link to a file that was made before; False if it has as many names as the disk allows."""
    way, existing = first
    source = open_way(root, way)
    try:
        os.link(existing, name, src_dir_fd=source, dst_dir_fd=directory, follow_symlinks=False)
    except OSError as error:
        if error.errno == errno.EMLINK:
            return False
        raise
    finally:
        os.close(source)
    return True


_KINDS: Final = {
    stat.S_IFREG: Kind.FILE,
    stat.S_IFDIR: Kind.DIRECTORY,
    stat.S_IFLNK: Kind.SYMLINK,
    stat.S_IFIFO: Kind.FIFO,
}


def node_of(found: os.stat_result) -> Node:
    """The node of a file of the host; its mode is -1 if no image can have such a file."""
    kind = _KINDS.get(stat.S_IFMT(found.st_mode))
    if kind is None:
        return Node(Kind.FILE, -1)
    size = found.st_size if kind is Kind.FILE else 0
    return Node(kind, stat.S_IMODE(found.st_mode), found.st_uid, found.st_gid, found.st_mtime_ns, size)


def _data_ranges(fd: int, size: int) -> Iterator[tuple[int, int]]:
    """The parts of a file that are no holes."""
    at = 0
    while at < size:
        try:
            at = os.lseek(fd, at, os.SEEK_DATA)
            end = os.lseek(fd, at, os.SEEK_HOLE)
        except OSError as error:
            if error.errno != errno.ENXIO:  # a file system that does not tell
                yield at, size
            return
        yield at, end
        at = end
