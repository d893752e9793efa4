"""A directory of the host as a file server: read-only by default, confined to that directory.

Every access starts at one descriptor of the directory and goes through openat2 with RESOLVE_BENEATH, no symlinks and
no magic links, so nothing that anybody renames or replaces meanwhile can lead out. Symlinks are shown; following
them is the guest kernel's business, inside the guest's namespace. This runs on the trusted side, never in a worker.
"""

from __future__ import annotations

import os
import stat as modes
import time
from collections.abc import Callable, Iterator, Sequence
from functools import wraps
from typing import Final, NoReturn, ParamSpec, TypeVar
from weakref import WeakSet, WeakValueDictionary

from belljar.abi.errno import (
    EACCES,
    EFBIG,
    EINVAL,
    EIO,
    EISDIR,
    ELOOP,
    ENAMETOOLONG,
    ENFILE,
    ENOENT,
    ENOSYS,
    ENOTDIR,
    EPERM,
    EROFS,
    EXDEV,
    from_host,
)
from belljar.abi.errors import Refused, SysError
from belljar.abi.flags import FILE_MAX, O_ACCMODE, O_RDONLY, O_TRUNC, RENAME_EXCHANGE, S_IFDIR, S_IFLNK, S_IFMT, S_IFREG
from belljar.abi.paths import check_name, fsdecode, fsencode
from belljar.abi.records import NANO, Dirent, Owner, SetAttr, Stat, StatFs
from belljar.kernel.fs.openat2_host import BENEATH, NO_MAGICLINKS, NO_SYMLINKS, NO_XDEV, openat2, renameat2
from belljar.kernel.fs.protection import CROWDED, SECOND_NAME, Protection, Rule, Trust
from belljar.kernel.vfs.server import FileServer, Handle, Node, Scan

P = ParamSpec("P")
R = TypeVar("R")

_READ_MOST: Final = 1 << 24
_PATH_MOST: Final = 4000
_DEPTH_MOST: Final = 1000
"""Directories above a file: each access goes through them all."""
_HELD_MOST: Final = 8
_HELD_SECONDS: Final = 0.02
"""Directories that are kept open, and for how long: a directory that is moved away is no longer served after that.

Few: a mount that is not used keeps them until it is used again or closed."""
_DEVICE_STEP: Final = 0x9E3779B97F4A7C15
"""An odd number with no pattern."""
_SCAN_MOST: Final = 10_000
"""Entries of a directory that is scanned."""
_LOOK: Final = os.O_PATH | os.O_NOFOLLOW
_MOVED_MOST: Final = 20_000
"""Entries below a directory that is renamed: each is looked at."""
_LINKED_MOST: Final = 10_000
"""Files that were given another name through a server: their names are remembered."""


def check_entry(name: str) -> None:
    """Check that it is a single component: the request may come from a compromised worker. EINVAL."""
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise SysError(EINVAL)
    check_name(name)


def passing_errno(call: Callable[P, R]) -> Callable[P, R]:
    """The host's errno is the guest's; its paths and messages stay here."""

    @wraps(call)
    def guarded(*arguments: P.args, **options: P.kwargs) -> R:
        try:
            return call(*arguments, **options)
        except OSError as error:
            raise SysError(from_host(error.errno)) from None

    return guarded


class HostNode(Node):
    """A file of the host, known by device and inode, and by the places it was seen at."""

    __slots__ = ("gone", "handles", "key", "places")

    def __init__(self, key: tuple[int, int], mode: int, owner: Owner) -> None:
        super().__init__(mode, owner.uid, owner.gid)
        self.key = key
        self.places: dict[tuple[HostNode, str], None] = {}
        """Directory and name, the latest last; a directory has only one. Empty for the root."""
        self.handles: list[HostHandle] = []
        self.gone: Stat | None = None
        """Its metadata when its last name was removed through us."""

    def seen_at(self, parent: HostNode, name: str) -> None:
        if self.is_dir:
            self.places.clear()
        self.places.pop((parent, name), None)
        self.places[parent, name] = None


class HostDirServer(FileServer):
    """The tree below `path`.

    All files appear to belong to `owner`; what the host's own permissions forbid stays forbidden. Devices, sockets
    and FIFOs are shown and never opened. Other file systems mounted below are shut off unless `cross_mounts`.
    Of a writable mount, what the rules of `protection` name can't be changed (EACCES) unless `trust` says so; set-id
    bits can't be set on anything.
    More than `open_files` at once are ENFILE: the descriptors are this process's own.
    """

    kind = "hostdir"

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        read_only: bool = True,
        owner: Owner = Owner(0, 0),  # noqa: B008
        cross_mounts: bool = False,
        trust: Trust = False,
        open_files: int = 512,
    ) -> None:
        self.read_only = read_only
        self.open_files = open_files
        self._opened: WeakSet[HostHandle] = WeakSet()
        self._owner = owner
        self._path = fsdecode(os.fsencode(os.path.realpath(path)))
        self._protection = Protection(trust, [part for part in self._path.split("/") if part])
        self._linked: dict[tuple[int, int], HostNode] = {}
        """Files with names that were made here, which would otherwise be forgotten."""
        self._resolve = BENEATH | NO_MAGICLINKS | NO_SYMLINKS | (0 if cross_mounts else NO_XDEV)
        self._fd = os.open(path, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.close(openat2(self._fd, b".", _LOOK, self._resolve))
            os.stat(f"/proc/self/fd/{self._fd}")
        except OSError as error:
            os.close(self._fd)
            raise OSError(
                ENOSYS,
                f"host mounts need openat2(2) and a mounted /proc, but got '{error.strerror}': run on Linux 5.6 or"
                " newer, with a seccomp profile that allows openat2",
            ) from error
        self._nodes: WeakValueDictionary[tuple[int, int], HostNode] = WeakValueDictionary()
        self._devices: dict[int, int] = {}
        self._held: dict[HostNode, tuple[int, int]] = {}
        self._held_until = 0.0
        """Descriptors of directories and how deep they are, kept for a moment: a tree is walked step by step."""
        self._root = self._node(os.fstat(self._fd))
        self._has_times = os.fstatvfs(self._fd).f_blocks > 0
        """Files of /proc and the like change without a sign in their stat."""

    @property
    def root(self) -> HostNode:
        return self._root

    # Finding.

    def _node(self, found: os.stat_result) -> HostNode:
        """The one node of a file, brought up to date."""
        key = (found.st_dev, found.st_ino)
        node = self._nodes.get(key)
        if node is None or (node.mode ^ found.st_mode) & S_IFMT:
            node = self._nodes[key] = HostNode(key, found.st_mode, self._owner)
        node.mode = found.st_mode & ~(modes.S_ISUID | modes.S_ISGID)
        return node

    def _parts(self, node: HostNode) -> list[str]:
        """The names from the root to a file. ENOENT if it was removed, ENAMETOOLONG if it is too deep."""
        parts: list[str] = []
        while node is not self._root:
            if node.gone is not None or not node.places:
                raise SysError(ENOENT)
            node, name = next(reversed(node.places))
            parts.append(name)
            if len(parts) > _DEPTH_MOST:
                raise SysError(ENAMETOOLONG)
        parts.reverse()
        return parts

    def _directory(self, node: HostNode) -> int:
        """A descriptor of exactly this directory, which is kept for a moment; not to be closed. ENOENT."""
        now = time.monotonic()
        if now >= self._held_until or len(self._held) >= _HELD_MOST:
            self._release_held()
            self._held_until = now + _HELD_SECONDS
        base, depth, above, names = self._fd, 0, node, list[str]()
        while above is not self._root:
            if (held := self._held.get(above)) is not None:
                base, depth = held
                break
            if above.gone is not None or not above.places:
                raise SysError(ENOENT)
            above, name = next(reversed(above.places))
            names.append(name)
        names.reverse()
        if not names:
            return base
        if depth + len(names) > _DEPTH_MOST:
            raise SysError(ENAMETOOLONG)
        fd = self._open_parts(base, names, _LOOK | os.O_DIRECTORY)
        self._held[node] = fd, depth + len(names)
        found = os.fstat(fd)
        if (found.st_dev, found.st_ino) != node.key:
            self._release_held()
            raise SysError(ENOENT)
        return fd

    def _release_held(self) -> None:
        held, self._held = self._held, {}
        for fd, _ in held.values():
            os.close(fd)

    def _open_parts(self, start: int, parts: Sequence[str], flags: int) -> int:
        """openat2 from a descriptor down. A path longer than the call takes is done in pieces."""
        base = start
        rest = [fsencode(part) for part in parts]
        try:
            while True:
                count, length = 0, 0
                while count < len(rest) and (length := length + len(rest[count]) + 1) <= _PATH_MOST:
                    count += 1
                last = count == len(rest)
                path = b"/".join(rest[:count]) or b"."
                fd = openat2(base, path, flags if last else _LOOK | os.O_DIRECTORY, self._resolve)
                if base != start:
                    os.close(base)
                base = fd
                if last:
                    return fd
                rest = rest[count:]
        except OSError as error:
            if base != start:
                os.close(base)
            # A symlink where we know a directory: it was replaced. A mount: not ours to enter.
            code = {ELOOP: ENOENT, EXDEV: EACCES}.get(error.errno or EIO, error.errno or EIO)
            raise SysError(code) from None

    def _open_node(self, node: HostNode, flags: int = _LOOK) -> int:
        """A descriptor of exactly this file; the caller closes it. ENOENT if something else is in its place."""
        if node.gone is not None and not node.handles:
            raise SysError(ENOENT)
        if node.handles and flags == _LOOK:
            return os.dup(node.handles[0].fd)
        while True:
            try:
                fd = self._open_place(node, flags)
            except SysError as error:
                if error.errno != ENOENT or len(node.places) < 2:
                    raise
            else:
                found = os.fstat(fd)
                if (found.st_dev, found.st_ino) == node.key:
                    return fd
                os.close(fd)
                if len(node.places) < 2:
                    raise SysError(ENOENT)
            node.places.popitem()  # that name is another file's now; this one has more

    def _open_place(self, node: HostNode, flags: int) -> int:
        """Open whatever is now where a file was last seen."""
        if node is self._root:
            return self._open_parts(self._fd, [], flags)
        if node.gone is not None or not node.places:
            raise SysError(ENOENT)
        parent, name = next(reversed(node.places))
        return self._open_parts(self._directory(parent), [name], flags)

    # Looking.

    @passing_errno
    def walk(self, directory: Node, name: str) -> HostNode:
        assert isinstance(directory, HostNode)
        if not directory.is_dir:
            raise SysError(ENOTDIR)
        check_entry(name)
        if directory.gone is not None:
            raise SysError(ENOENT)
        fd = self._open_parts(self._directory(directory), [name], _LOOK)
        try:
            found = os.fstat(fd)
        finally:
            os.close(fd)
        node = self._node(found)
        if node is not self._root:
            node.seen_at(directory, name)
        return node

    def locate(self, directory: Node) -> tuple[Node, str] | None:
        assert isinstance(directory, HostNode)
        if not directory.places:
            return None
        parent, name = next(iter(directory.places))
        return parent, name if directory.gone is None else ""

    @passing_errno
    def stat(self, node: Node) -> Stat:
        assert isinstance(node, HostNode)
        if node.handles:
            return self._stat(node, os.fstat(node.handles[0].fd))
        if node.gone is not None:
            return node.gone
        fd = self._open_node(node)
        try:
            return self._stat(node, os.fstat(fd))
        finally:
            os.close(fd)

    def _stat(self, node: HostNode, found: os.stat_result) -> Stat:
        stat = self._record(found)
        node.mode = stat.mode
        return stat

    def _record(self, found: os.stat_result) -> Stat:
        return Stat(
            found.st_mode & ~(modes.S_ISUID | modes.S_ISGID),
            self._number(found.st_dev, found.st_ino),
            self.dev,
            found.st_nlink,
            self._owner.uid,
            self._owner.gid,
            found.st_size,
            found.st_atime_ns,
            found.st_mtime_ns,
            found.st_ctime_ns,
            0,
            found.st_blocks,
        )

    def _number(self, device: int, ino: int) -> int:
        """Inode numbers, unlikely to be the same on several file systems."""
        return (ino + self._devices.setdefault(device, len(self._devices)) * _DEVICE_STEP) & FILE_MAX

    @passing_errno
    def readdir(self, directory: Node) -> Sequence[Dirent]:
        assert isinstance(directory, HostNode)
        if not directory.is_dir:
            raise SysError(ENOTDIR)
        if directory.gone is not None:
            return []
        fd = self._open_node(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            device = os.fstat(fd).st_dev
            with os.scandir(fd) as entries:
                return [
                    Dirent(fsdecode(os.fsencode(entry.name)), self._number(device, entry.inode()), _kind(entry))
                    for entry in entries
                ]
        finally:
            os.close(fd)

    @passing_errno
    def scan(self, directory: Node) -> Scan | None:
        assert isinstance(directory, HostNode)
        if not self._has_times:
            return None
        if directory.gone is not None:
            return Scan([], exact=True)
        fd = self._open_node(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        found: list[tuple[str, Node | None, Stat]] = []
        try:
            device = os.fstat(fd).st_dev
            with os.scandir(fd) as entries:
                for entry in entries:
                    if len(found) == _SCAN_MOST:
                        raise SysError(EFBIG)
                    try:
                        stat = entry.stat(follow_symlinks=False)
                    except FileNotFoundError:
                        continue
                    name = fsdecode(os.fsencode(entry.name))
                    node: HostNode | None = None
                    if stat.st_dev == device and stat.st_ino == entry.inode():  # else something is mounted there
                        node = self._node(stat)
                        node.seen_at(directory, name)
                    found.append((name, node, self._record(stat)))
            return Scan(found, exact=not _folds_case(fd, [name for name, _, _ in found]))
        finally:
            os.close(fd)

    def settled(self, stat: Stat) -> bool:
        # Times of files are those of the last tick of the kernel's clock; some file systems know only seconds.
        tick = 20_000_000 if stat.ctime % NANO else 2 * NANO
        return self._has_times and stat.ctime < time.time_ns() - tick

    @passing_errno
    def readlink(self, node: Node) -> str:
        assert isinstance(node, HostNode)
        if node.mode & S_IFMT != S_IFLNK:
            raise SysError(EINVAL)
        fd = self._open_node(node)
        try:
            return fsdecode(os.readlink(b"", dir_fd=fd))
        finally:
            os.close(fd)

    @passing_errno
    def open(self, node: Node, flags: int) -> Handle:
        assert isinstance(node, HostNode)
        if node.mode & S_IFMT != S_IFREG:
            raise SysError(EISDIR if node.is_dir else EACCES)
        access = flags & O_ACCMODE
        if access != O_RDONLY or flags & O_TRUNC:
            self._check_writable(node, contents=True)
        if flags & O_TRUNC:  # which Linux allows with O_RDONLY too
            self._resize(node, 0)
        if len(self._opened) >= self.open_files:
            raise SysError(ENFILE)
        handle = HostHandle(self._reopen(node, os.O_RDWR if access == O_ACCMODE else access), node, self._opened)
        self._opened.add(handle)
        return handle

    def _reopen(self, node: HostNode, access: int) -> int:
        """Open a file by name with O_PATH, check that it is this regular file, and only then open its contents.

        Opening by name could hit a device or FIFO that was put there meanwhile, and opening alone can do harm.
        """
        looking = self._open_node(node)
        try:
            if not modes.S_ISREG(os.fstat(looking).st_mode):
                raise SysError(EACCES)
            return os.open(f"/proc/self/fd/{looking}", access | os.O_CLOEXEC | os.O_NOCTTY)
        finally:
            os.close(looking)

    @passing_errno
    def statfs(self) -> StatFs:
        found = os.fstatvfs(self._fd)
        return StatFs(
            self.kind, found.f_frsize, found.f_blocks, found.f_bavail, found.f_files, found.f_favail, found.f_namemax
        )

    def close(self) -> None:
        self._release_held()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    # Changing.

    def _check_writable(self, node: HostNode, *, contents: bool = False) -> None:
        """EROFS, or EACCES for what is protected; of its contents and mode, also if it has a name we don't know."""
        parts = self._parts(node) if node.gone is None else []
        self._check_path(parts)
        if contents and not node.is_dir and not self._protection.trusts(SECOND_NAME, parts):
            fd = self._open_node(node)
            try:
                links = os.fstat(fd).st_nlink
            finally:
                os.close(fd)
            if links > 1 and self._known_names(node) < links:
                self._refuse(SECOND_NAME, parts)

    def _known_names(self, node: HostNode) -> int:
        """Names of a file that are below the root now and not protected."""
        count = 0
        for directory, name in node.places:
            try:
                parts = [*self._parts(directory), name]
                fd = self._open_parts(self._fd, parts, _LOOK)
            except SysError:
                continue
            try:
                found = os.fstat(fd)
            finally:
                os.close(fd)
            same = (found.st_dev, found.st_ino) == node.key
            count += same and self._protection.refusal(parts, self._has, fixed=True) is None
        return count

    def _check_path(self, parts: Sequence[str], *, fixed: bool = False) -> None:
        """`fixed`: what is done there would also give away a directory that protected files belong in."""
        if self.read_only:
            raise SysError(EROFS)
        rule = self._protection.refusal(parts, self._has, fixed=fixed)
        if rule is not None:
            self._refuse(rule, parts)

    def _check_new(self, parts: Sequence[str]) -> None:
        """EACCES if a bare repository would be complete with this entry."""
        rule = self._protection.completes_repository(parts, self._has)
        if rule is not None:
            self._refuse(rule, parts)

    def _check_moved(self, node: HostNode, old: Sequence[str], new: Sequence[str]) -> None:
        """EACCES if a protected file would be moved with its directory, or become one by its new place."""
        if not node.is_dir or self._protection.off:
            return
        most = None if self._protection.trusts(CROWDED, old) else _MOVED_MOST
        for count, below in enumerate(self._below(old)):
            if count == most:
                self._refuse(CROWDED, old)
            self._check_path([*old, *below])
            self._check_path([*new, *below])

    def _below(self, top: Sequence[str]) -> Iterator[list[str]]:
        """The paths below a directory, relative to it."""
        todo: list[list[str]] = [[]]
        while todo:
            directory = todo.pop()
            fd = self._open_parts(self._fd, [*top, *directory], os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                with os.scandir(fd) as entries:
                    found = [(os.fsencode(entry.name), entry.is_dir(follow_symlinks=False)) for entry in entries]
            finally:
                os.close(fd)
            for name, is_dir in found:
                path = [*directory, fsdecode(name)]
                yield path
                if is_dir:
                    todo.append(path)

    def _has(self, directory: Sequence[str], name: str) -> bool:
        """Whether the host has such a file; if it can't be known, it has."""
        try:
            os.close(self._open_parts(self._fd, [*directory, name], _LOOK))
        except SysError as error:
            return error.errno not in (ENOENT, ENOTDIR)
        return True

    def _refuse(self, rule: Rule, parts: Sequence[str]) -> NoReturn:
        raise Refused(EACCES, f"protected on the host: {rule.why}", rule.name, "/".join([self._path, *parts]))

    def _entry(
        self, directory: Node, name: str, *, fixed: bool = False, new: bool = False
    ) -> tuple[HostNode, int, bytes]:
        """A directory to change, a descriptor of it (the caller closes it), and the name as the host writes it.

        `new`: the name is to be made there.
        """
        assert isinstance(directory, HostNode)
        if self.read_only:
            raise SysError(EROFS)
        if not directory.is_dir:
            raise SysError(ENOTDIR)
        check_entry(name)
        if directory.gone is not None:
            raise SysError(ENOENT)
        parts = [*self._parts(directory), name]
        self._check_path(parts, fixed=fixed)
        if new:
            self._check_new(parts)
        return directory, self._open_node(directory, _LOOK | os.O_DIRECTORY), fsencode(name)

    @passing_errno
    def create(self, directory: Node, name: str, mode: int, owner: Owner) -> Node:
        if mode & S_IFMT != S_IFREG:
            raise SysError(EROFS if self.read_only else EPERM)  # the host's programs would find a FIFO or socket there
        parent, fd, raw = self._entry(directory, name, fixed=True, new=True)
        try:
            made = os.open(raw, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600, dir_fd=fd)
            try:
                os.fchmod(made, mode & 0o777)
                node = self._node(os.fstat(made))
            finally:
                os.close(made)
        finally:
            os.close(fd)
        node.seen_at(parent, name)
        return node

    @passing_errno
    def mkdir(self, directory: Node, name: str, mode: int, owner: Owner) -> Node:
        parent, fd, raw = self._entry(directory, name, new=True)
        try:
            os.mkdir(raw, 0o700, dir_fd=fd)
            made = openat2(fd, raw, _LOOK | os.O_DIRECTORY, self._resolve)
            try:
                os.chmod(f"/proc/self/fd/{made}", mode & 0o1777)
                node = self._node(os.fstat(made))
            finally:
                os.close(made)
        finally:
            os.close(fd)
        node.seen_at(parent, name)
        return node

    @passing_errno
    def symlink(self, directory: Node, name: str, target: str, owner: Owner) -> Node:
        parent, fd, raw = self._entry(directory, name, fixed=True, new=True)
        try:
            os.symlink(fsencode(target), raw, dir_fd=fd)
        finally:
            os.close(fd)
        return self.walk(parent, name)

    @passing_errno
    def link(self, node: Node, directory: Node, name: str) -> None:
        assert isinstance(node, HostNode)
        parent, fd, raw = self._entry(directory, name, fixed=True, new=True)
        try:
            if node.is_dir:
                raise SysError(EPERM)
            if node.gone is not None or not node.places:
                raise SysError(ENOENT)
            self._check_writable(node)
            holder, known = next(reversed(node.places))
            source = self._open_node(holder, _LOOK | os.O_DIRECTORY)
            try:
                os.link(fsencode(known), raw, src_dir_fd=source, dst_dir_fd=fd, follow_symlinks=False)
            finally:
                os.close(source)
            made = os.stat(raw, dir_fd=fd, follow_symlinks=False)
            if (made.st_dev, made.st_ino) != node.key:  # another file was put there meanwhile
                os.unlink(raw, dir_fd=fd)
                raise SysError(ENOENT)
        finally:
            os.close(fd)
        node.seen_at(parent, name)
        self._linked[node.key] = node
        while len(self._linked) > _LINKED_MOST:
            del self._linked[next(iter(self._linked))]

    @passing_errno
    def unlink(self, directory: Node, name: str) -> None:
        node = None if self.read_only else self.walk(directory, name)
        parent, fd, raw = self._entry(directory, name, fixed=True)
        assert node is not None
        try:
            if node.is_dir:
                raise SysError(EISDIR)
            before = self.stat(node)
            os.unlink(raw, dir_fd=fd)
        finally:
            os.close(fd)
        self._removed(parent, name, node, before)

    @passing_errno
    def rmdir(self, directory: Node, name: str) -> None:
        node = None if self.read_only else self.walk(directory, name)
        parent, fd, raw = self._entry(directory, name)
        assert node is not None
        try:
            before = self.stat(node)
            os.rmdir(raw, dir_fd=fd)
        finally:
            os.close(fd)
        self._removed(parent, name, node, before)

    def _removed(self, parent: HostNode, name: str, node: HostNode, before: Stat) -> None:
        """A name of the node is gone; with the last one, so is the node."""
        if not node.is_dir:
            node.places.pop((parent, name), None)
        if node.is_dir or before.nlink <= 1:
            node.gone = before._replace(nlink=0)
            self._nodes.pop(node.key, None)
        if before.nlink <= 2:
            self._linked.pop(node.key, None)

    @passing_errno
    def rename(self, source: Node, old: str, target: Node, new: str, flags: int) -> None:
        node = None if self.read_only else self.walk(source, old)
        here, fd, raw_old = self._entry(source, old, fixed=True)
        assert node is not None
        replaced: HostNode | None = None
        before: Stat | None = None
        try:
            there, into, raw_new = self._entry(target, new, fixed=True, new=True)
            try:
                try:
                    replaced = self.walk(target, new)
                    before = self.stat(replaced)
                except SysError as error:
                    if error.errno != ENOENT:
                        raise
                if replaced is not None and not flags & RENAME_EXCHANGE and node.is_dir != replaced.is_dir:
                    raise SysError(ENOTDIR if node.is_dir else EISDIR)
                old_parts, new_parts = [*self._parts(here), old], [*self._parts(there), new]
                self._check_moved(node, old_parts, new_parts)
                if replaced is not None and flags & RENAME_EXCHANGE:
                    self._check_moved(replaced, new_parts, old_parts)
                renameat2(fd, raw_old, into, raw_new, flags)
            finally:
                os.close(into)
        finally:
            os.close(fd)
        if replaced is node:
            return
        if replaced is not None and before is not None:
            if flags & RENAME_EXCHANGE:
                replaced.places.pop((there, new), None)
                replaced.seen_at(here, old)
            else:
                self._removed(there, new, replaced, before)
        node.places.pop((here, old), None)
        node.seen_at(there, new)

    @passing_errno
    def setattr(self, node: Node, change: SetAttr) -> None:
        assert isinstance(node, HostNode)
        self._check_writable(node, contents=change.mode is not None or change.size is not None)
        if change.uid not in (None, node.uid) or change.gid not in (None, node.gid):
            raise SysError(EPERM)
        if change.size is not None:
            self._resize(node, change.size)
        fd = self._open_node(node)
        try:
            # A descriptor made only for looking takes no fchmod; its entry in /proc leads to exactly this file.
            itself = f"/proc/self/fd/{fd}"
            if change.mode is not None:
                os.chmod(itself, change.mode & (0o1777 if node.is_dir else 0o777))
            if change.atime is not None or change.mtime is not None:
                found = os.fstat(fd)
                atime = found.st_atime_ns if change.atime is None else change.atime
                mtime = found.st_mtime_ns if change.mtime is None else change.mtime
                os.utime(itself, ns=(atime, mtime))
            self._stat(node, os.fstat(fd))
        finally:
            os.close(fd)

    def _resize(self, node: HostNode, size: int) -> None:
        if node.mode & S_IFMT != S_IFREG:
            raise SysError(EISDIR if node.is_dir else EINVAL)
        fd = self._reopen(node, os.O_WRONLY)
        try:
            os.ftruncate(fd, size)
        finally:
            os.close(fd)


def _folds_case(fd: int, names: Sequence[str]) -> bool:
    """Whether a directory finds a name in another case."""
    name = next((name for name in names if name != name.swapcase()), None)
    if name is None or name.swapcase() in names:
        return False
    try:
        os.stat(fsencode(name.swapcase()), dir_fd=fd, follow_symlinks=False)
    except OSError:
        return False
    return True


def _kind(entry: os.DirEntry[str]) -> int:
    if entry.is_symlink():
        return S_IFLNK
    if entry.is_dir(follow_symlinks=False):
        return S_IFDIR
    if entry.is_file(follow_symlinks=False):
        return S_IFREG
    return modes.S_IFMT(entry.stat(follow_symlinks=False).st_mode)


class HostHandle(Handle):
    """An open regular file of the host."""

    __slots__ = ("__weakref__", "_node", "_opened", "fd")

    def __init__(self, fd: int, node: HostNode, opened: WeakSet[HostHandle]) -> None:
        self.nonblocking = False
        self.fd = fd
        self._node = node
        self._opened = opened
        node.handles.append(self)

    @passing_errno
    def read(self, offset: int, size: int) -> bytes:
        if offset > FILE_MAX:
            return b""
        return os.pread(self.fd, min(size, _READ_MOST), offset)

    @passing_errno
    def write(self, offset: int | None, data: bytes) -> int:
        if offset is None:
            return os.pwritev(self.fd, [data], 0, os.RWF_APPEND)
        if offset + len(data) > FILE_MAX:
            raise SysError(EFBIG)
        return os.pwrite(self.fd, data, offset)

    @passing_errno
    def truncate(self, size: int) -> None:
        if size > FILE_MAX:
            raise SysError(EFBIG)
        os.ftruncate(self.fd, size)

    @passing_errno
    def size(self) -> int:
        return os.fstat(self.fd).st_size

    @passing_errno
    def seek_data(self, offset: int, *, hole: bool) -> int:
        return os.lseek(self.fd, offset, os.SEEK_HOLE if hole else os.SEEK_DATA)

    @passing_errno
    def sync(self) -> None:
        os.fsync(self.fd)

    def close(self) -> None:
        self._node.handles.remove(self)
        self._opened.discard(self)
        os.close(self.fd)
