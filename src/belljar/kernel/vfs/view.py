"""System calls that take paths, for one process: its namespace, root, directory, user and umask.

The order of the checks is Linux's, so that the errno is too when several things are wrong at once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final

from belljar.abi.errno import (
    EACCES,
    EBUSY,
    EEXIST,
    EINVAL,
    EISDIR,
    ELOOP,
    ENOENT,
    ENOTDIR,
    ENOTEMPTY,
    ENXIO,
    EPERM,
    EROFS,
    EXDEV,
)
from belljar.abi.errors import SysError
from belljar.abi.flags import (
    FILE_MAX,
    O_ACCMODE,
    O_CREAT,
    O_DIRECTORY,
    O_EXCL,
    O_NOFOLLOW,
    O_PATH,
    O_RDONLY,
    O_RDWR,
    O_TRUNC,
    O_WRONLY,
    PERMISSIONS,
    R_OK,
    RENAME_EXCHANGE,
    RENAME_NOREPLACE,
    S_IFBLK,
    S_IFCHR,
    S_IFDIR,
    S_IFIFO,
    S_IFLNK,
    S_IFMT,
    S_IFREG,
    S_IFSOCK,
    S_ISGID,
    S_ISUID,
    S_IXGRP,
    SYMLINK_MAX,
    W_OK,
    X_OK,
)
from belljar.abi.paths import check_path
from belljar.abi.records import Dirent, Owner, SetAttr, Stat, StatFs
from belljar.kernel.lookup_cache import LookupCache
from belljar.kernel.vfs.credentials import Credentials
from belljar.kernel.vfs.namespace import Mount, Namespace, Order, Place
from belljar.kernel.vfs.openfile import DirectoryHandle, OpenFile
from belljar.kernel.vfs.resolve import Slot, path_of, resolve, resolve_slot, step
from belljar.kernel.vfs.server import FileServer, Handle, Node

_WANT: Final = {O_RDONLY: R_OK, O_WRONLY: W_OK, O_RDWR: R_OK | W_OK, 3: R_OK | W_OK}

FifoOpener = Callable[[Node, int], Handle]


class View:
    """One process's view of the file system. Forked with it; `chdir`, `umask` and mounts change only its own copy."""

    __slots__ = ("credentials", "cwd", "lookup_cache", "namespace", "now", "open_fifo", "root", "umask")

    def __init__(
        self,
        namespace: Namespace,
        credentials: Credentials,
        *,
        open_fifo: FifoOpener,
        now: Callable[[], int],
        lookup_cache: LookupCache,
    ) -> None:
        self.namespace = namespace
        self.root = namespace.root
        self.cwd = namespace.root
        self.credentials = credentials
        self.umask = 0o022
        self.open_fifo = open_fifo
        self.now = now
        self.lookup_cache = lookup_cache

    def fork(self) -> View:
        child = self.at(self.cwd)
        child.namespace = self.namespace.fork()
        return child

    def at(self, place: Place) -> View:
        """The same view with another working directory, for openat and the like."""
        child = View.__new__(View)
        child.namespace = self.namespace
        child.root = self.root
        child.cwd = place
        child.credentials = self.credentials
        child.umask = self.umask
        child.open_fifo = self.open_fifo
        child.now = self.now
        child.lookup_cache = self.lookup_cache
        return child

    def let_go(self) -> None:
        """Lead to nothing that is mounted: it is a view of a process that has ended, of which something may be left."""
        self.namespace = self.namespace.fork()
        self.namespace.tops = {}
        self.cwd = self.root

    # Looking.

    def resolve(self, path: str, *, follow: bool = True, start: Place | None = None) -> Place:
        return resolve(self, path, follow=follow, start=start)

    def stat(self, path: str, *, follow: bool = True, start: Place | None = None) -> Stat:
        mount, node = resolve(self, path, follow=follow, start=start)
        return mount.server.stat(node)

    def try_stat(self, path: str, *, follow: bool = True) -> Stat | None:
        """As `stat`; None for any error."""
        try:
            return self.stat(path, follow=follow)
        except SysError:
            return None

    def exists(self, path: str, *, follow: bool = True) -> bool:
        return self.try_stat(path, follow=follow) is not None

    def is_dir(self, path: str) -> bool:
        return (stat := self.try_stat(path)) is not None and stat.is_dir

    def is_file(self, path: str) -> bool:
        return (stat := self.try_stat(path)) is not None and stat.is_regular

    def readlink(self, path: str) -> str:
        mount, node = resolve(self, path, follow=False)
        if node.mode & S_IFMT != S_IFLNK:
            raise SysError(EINVAL, path)
        return mount.server.readlink(node)

    def readdir(self, path: str) -> Sequence[Dirent]:
        place = resolve(self, path)
        if not place.node.is_dir:
            raise SysError(ENOTDIR, path)
        if not self.credentials.may(place.node, R_OK):
            raise SysError(EACCES, path)
        return self.list_place(place)

    def list_place(self, place: Place) -> Sequence[Dirent]:
        """The entries of a directory already found; of a union, each name once, the first that has it."""
        mount, node = place
        if not (mount.members and node is mount.root):
            return mount.server.readdir(node)
        seen: dict[str, Dirent] = {}
        for member in mount.members:
            for entry in member.mount.server.readdir(member.node):
                seen.setdefault(entry.name, entry)
        return list(seen.values())

    def access(self, path: str, mode: int, *, follow: bool = True) -> None:
        """EACCES, EROFS."""
        mount, node = resolve(self, path, follow=follow)
        if mode & W_OK and mount.read_only and node.mode & S_IFMT in (S_IFREG, S_IFDIR, S_IFLNK):
            raise SysError(EROFS, path)
        if mode and not self.credentials.may(node, mode):
            raise SysError(EACCES, path)

    def statfs(self, path: str) -> StatFs:
        return resolve(self, path).mount.server.statfs()

    # Moving about.

    def getcwd(self) -> str:
        """ENOENT if the directory was removed."""
        path: str | None = self.lookup_cache.get(self, self.cwd)
        if path is None:
            visited: list[Place] = []
            path = path_of(self, self.cwd, visited)
            if path is None:
                raise SysError(ENOENT)
            self._remember(self.cwd, path, visited)
        return path

    def chdir(self, path: str) -> None:
        self.cwd = self._directory(path)

    def chroot(self, path: str) -> None:
        root = self._directory(path)
        if self.credentials.uid != 0:
            raise SysError(EPERM, path)
        self.root = root

    def _directory(self, path: str) -> Place:
        place: Place | None = self.lookup_cache.get(self, ("chdir", path))
        if place is None:
            visited: list[Place] = []
            place = resolve(self, path, visited=visited)
            if path[0] == "/":
                self._remember(("chdir", path), place, visited)
        if not place.node.is_dir:
            raise SysError(ENOTDIR, path)
        if not self.credentials.may(place.node, X_OK):
            raise SysError(EACCES, path)
        return place

    def _remember(self, key: Hashable, value: object, visited: list[Place]) -> None:
        """Cache directories right below the root only: others are in directories written to often, and each change
        of a watched node invalidates the whole cache."""
        if visited == [self.root]:
            self.lookup_cache.put(self, key, value, visited)

    # Opening.

    def open(self, path: str, flags: int, mode: int = 0o666, *, start: Place | None = None) -> OpenFile:
        if flags & O_PATH:
            place = resolve(self, path, follow=not flags & O_NOFOLLOW, start=start)
            if flags & O_DIRECTORY and not place.node.is_dir:
                raise SysError(ENOTDIR, path)
            return OpenFile(place.mount.server.hold(place.node), flags, place, path)
        if path.startswith("/dev/") and not flags & (O_EXCL | O_NOFOLLOW | O_DIRECTORY):
            device: Place | None = self.lookup_cache.get(self, ("open", path))
            if device is not None:
                return self.open_place(device, flags, path)
            self._remember_device(path)
        if flags & O_CREAT:
            if flags & O_DIRECTORY:
                raise SysError(EINVAL, path)
            place, created = self._open_slot(path, flags, mode, start)
        else:
            place, created = resolve(self, path, follow=not flags & O_NOFOLLOW, start=start), False
        return self.open_place(place, flags, path, created=created)

    def _remember_device(self, path: str) -> None:
        """Cache the lookup of a device, as /dev/null is opened often."""
        if not self.root.mount.server.watch(self.root.node):
            return
        visited: list[Place] = []
        try:
            place = resolve(self, path, visited=visited)
        except SysError:
            return
        if place.node.mode & S_IFMT == S_IFCHR:
            self.lookup_cache.put(self, ("open", path), place, [*visited, place])

    def _open_slot(self, path: str, flags: int, mode: int, start: Place | None) -> tuple[Place, bool]:
        """Find or create the last component, following symlinks to what they name, existing or not."""
        target = path
        for _ in range(SYMLINK_MAX + 1):
            slot = resolve_slot(self, target, start=start)
            if not slot.name:
                if flags & O_EXCL:
                    raise SysError(EEXIST, path)
                return slot.directory, False
            if slot.slash:
                raise SysError(EISDIR, path)
            found = self._entry(slot)
            if found is None:
                return self._create_at(slot, S_IFREG | mode & PERMISSIONS, path), True
            if flags & O_EXCL:
                raise SysError(EEXIST, path)
            if not found.node.is_symlink or flags & O_NOFOLLOW:
                return found, False
            server = found.mount.server
            if server.magic_link(found.node) is not None:
                return resolve(self, target, start=start), False
            target = server.readlink(found.node)
            check_path(target)
            start = slot.directory
        raise SysError(ELOOP, path)

    def open_place(self, place: Place, flags: int, path: str, *, created: bool = False) -> OpenFile:
        """Open what was already found, with the access checks of open(2)."""
        mount, node = place
        kind = node.mode & S_IFMT
        if kind == S_IFLNK:
            raise SysError(ENOTDIR if flags & O_DIRECTORY else ELOOP, path)
        if flags & O_DIRECTORY and kind != S_IFDIR:
            raise SysError(ENOTDIR, path)
        writes = flags & O_ACCMODE != O_RDONLY or bool(flags & O_TRUNC)
        if kind == S_IFDIR and (writes or flags & O_CREAT):
            raise SysError(EISDIR, path)
        if not created:
            if writes and mount.read_only and kind == S_IFREG:
                raise SysError(EROFS, path)
            want = _WANT[flags & O_ACCMODE] | (W_OK if flags & O_TRUNC else 0)
            if not self.credentials.may(node, want):
                raise SysError(EACCES, path)
        if kind == S_IFDIR:
            handle: Handle = DirectoryHandle()
        elif kind == S_IFIFO:
            handle = self.open_fifo(node, flags)
        elif kind == S_IFSOCK:
            raise SysError(ENXIO, path)
        else:
            try:
                handle = mount.server.open(node, flags)
            except SysError as error:
                raise SysError(error.errno, path, error.why) from None
        file = OpenFile(handle, flags, place, path)
        if writes and kind == S_IFREG and self.credentials.uid != 0:
            file.writer = self.credentials
            mode = self.credentials.mode_after_write(node) if flags & O_TRUNC and not created else None
            if mode is not None:
                mount.server.setattr(node, SetAttr(mode=mode))
        return file

    # Creating.

    def mkdir(self, path: str, mode: int = 0o777) -> None:
        slot = self._new_slot(path, directory=True)
        place = self._writable(slot, path)
        owner, bits = self._ownership(place.node)
        bits |= mode & 0o1777 & ~self.umask
        place.mount.server.mkdir(place.node, slot.name, S_IFDIR | bits, owner)

    def makedirs(self, path: str, mode: int = 0o777) -> None:
        """mkdir -p: make a directory, and those above it that are missing."""
        parts = path.split("/")
        for end in range(1, len(parts) + 1):
            above = "/".join(parts[:end])
            if above and not self.exists(above):
                self.mkdir(above, mode)

    def mknod(self, path: str, mode: int = S_IFREG | 0o666) -> None:
        """A regular file, FIFO or socket; devices are EPERM whoever asks."""
        kind = mode & S_IFMT or S_IFREG
        if kind not in (S_IFREG, S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK):
            raise SysError(EPERM if kind == S_IFDIR else EINVAL, path)
        slot = self._new_slot(path)
        if kind in (S_IFCHR, S_IFBLK):
            raise SysError(EPERM, path)
        self._create_at(slot, kind | mode & PERMISSIONS, path)

    def symlink(self, target: str, path: str) -> None:
        check_path(target)
        slot = self._new_slot(path)
        place = self._writable(slot, path)
        owner, _ = self._ownership(place.node)
        place.mount.server.symlink(place.node, slot.name, target, owner)

    def link(self, source: str, path: str, *, follow: bool = False) -> None:
        old = resolve(self, source, follow=follow)
        slot = self._new_slot(path)
        into = self._creating_member(slot.directory).mount
        if into.read_only:
            raise SysError(EROFS, path)
        if into is not old.mount:
            raise SysError(EXDEV, path)
        if not self._may_link(old.node):
            raise SysError(EPERM, source)
        place = self._writable(slot, path)
        if old.node.is_dir:
            above = place.mount.server.locate(place.node)
            raise SysError(ENOENT if above is not None and not above[1] else EPERM, source)
        place.mount.server.link(old.node, place.node, slot.name)

    def _may_link(self, node: Node) -> bool:
        """Whether a hard link is allowed (fs.protected_hardlinks): to own files, and safe ones that may be written."""
        if self.credentials.owns(node):
            return True
        mode = node.mode
        runs_as_others = mode & S_ISUID or (mode & S_ISGID and mode & S_IXGRP)
        return mode & S_IFMT == S_IFREG and not runs_as_others and self.credentials.may(node, R_OK | W_OK)

    def _new_slot(self, path: str, *, directory: bool = False) -> Slot:
        """The slot of a new entry. EEXIST before ENOENT (trailing slash), as Linux orders them."""
        slot = resolve_slot(self, path)
        if not slot.name or self._entry(slot) is not None:
            raise SysError(EEXIST, path)
        if slot.slash and not directory:
            raise SysError(ENOENT, path)
        return slot

    def _create_at(self, slot: Slot, mode: int, path: str) -> Place:
        place = self._writable(slot, path)
        owner, handed_on = self._ownership(place.node)
        if (
            handed_on
            and mode & S_ISGID
            and mode & S_IXGRP
            and self.credentials.uid != 0
            and not self.credentials.in_group(owner.gid)
        ):
            mode &= ~S_ISGID  # a user must not create a program with set-group-id of a foreign group
        server = place.mount.server
        return Place(place.mount, server.create(place.node, slot.name, mode & ~self.umask, owner))

    def _ownership(self, directory: Node) -> tuple[Owner, int]:
        """Owner of a new entry of a directory: a set-group-id directory passes on its group."""
        owner = self.credentials.owner
        if directory.mode & S_ISGID:
            return Owner(owner.uid, directory.gid), S_ISGID
        return owner, 0

    def _entry(self, slot: Slot) -> Place | None:
        """The file in a slot, mounts entered; None if there is none."""
        try:
            return self.namespace.enter(step(slot.directory, slot.name))
        except SysError as error:
            if error.errno == ENOENT:
                return None
            raise

    def _creating_member(self, directory: Place) -> Place:
        """The directory for new files: of a union, its first member bound to create; EPERM if there is none."""
        mount, node = directory
        if not (mount.members and node is mount.root):
            return directory
        for member in mount.members:
            if member.creates:
                return Place(member.mount, member.node)
        raise SysError(EPERM)

    def _writable(self, slot: Slot, path: str) -> Place:
        """The real directory a new entry goes to, checked for writing. EROFS, EACCES, EPERM, ENOENT (removed)."""
        place = self._creating_member(slot.directory)
        self._check_directory(place, path)
        return place

    def _check_directory(self, place: Place, path: str) -> None:
        if place.mount.read_only:
            raise SysError(EROFS, path)
        if not self.credentials.may(place.node, W_OK | X_OK):
            raise SysError(EACCES, path)

    # Removing and renaming.

    def unlink(self, path: str) -> None:
        slot = resolve_slot(self, path)
        if not slot.name:
            raise SysError(EISDIR, path)
        holder, node = self._existing_entry(slot, path)
        if slot.slash:
            raise SysError(EISDIR if node.is_dir else ENOTDIR, path)
        self._check_delete(holder, node, path)
        if node.is_dir:
            raise SysError(EISDIR, path)
        self._check_unmounted(node, path)
        holder.mount.server.unlink(holder.node, slot.name)

    def rmdir(self, path: str) -> None:
        slot = resolve_slot(self, path)
        if not slot.name:
            raise SysError({".": EINVAL, "..": ENOTEMPTY}.get(slot.last, EBUSY), path)
        holder, node = self._existing_entry(slot, path)
        self._check_delete(holder, node, path)
        if not node.is_dir:
            raise SysError(ENOTDIR, path)
        self._check_unmounted(node, path)
        holder.mount.server.rmdir(holder.node, slot.name)

    def _existing_entry(self, slot: Slot, path: str) -> tuple[Place, Node]:
        """The directory that really holds a slot's entry (in a union: which member), and the entry."""
        mount, node = slot.directory
        try:
            found = step(slot.directory, slot.name)
        except SysError as error:
            raise SysError(EROFS if mount.read_only else error.errno, path) from None
        holder = slot.directory
        if mount.members and node is mount.root:
            member = next(m for m in mount.members if m.mount is found.mount)
            holder = Place(member.mount, member.node)
        if holder.mount.read_only:
            raise SysError(EROFS, path)
        return holder, found.node

    def _check_delete(self, holder: Place, node: Node, path: str) -> None:
        if not self.credentials.may(holder.node, W_OK | X_OK):
            raise SysError(EACCES, path)
        if not self.credentials.may_remove(holder.node, node):
            raise SysError(EPERM, path)

    def _check_unmounted(self, node: Node, path: str) -> None:
        if self.namespace.is_mount_point(node):
            raise SysError(EBUSY, path)

    def rename(self, old: str, new: str, flags: int = 0) -> None:
        if flags & ~(RENAME_NOREPLACE | RENAME_EXCHANGE) or flags == RENAME_NOREPLACE | RENAME_EXCHANGE:
            raise SysError(EINVAL, old)
        source, target = resolve_slot(self, old), resolve_slot(self, new)
        if self._creating_member(target.holder or target.directory).mount is not self._holder_mount(source):
            raise SysError(EXDEV, new)
        if not source.name:
            raise SysError(EBUSY, old)
        if not target.name:
            raise SysError(EEXIST if flags & RENAME_NOREPLACE else EBUSY, new)
        from_place, node = self._existing_entry(source, old)
        into = self._creating_member(target.directory)
        replaced = self._entry_of(into, target.name)
        exchange = flags & RENAME_EXCHANGE
        if replaced is not None and flags & RENAME_NOREPLACE:
            raise SysError(EEXIST, new)
        if replaced is None and exchange:
            raise SysError(ENOENT, new)
        if not node.is_dir and (source.slash or (target.slash and not exchange)):
            raise SysError(ENOTDIR, old)
        if exchange and replaced is not None and not replaced.is_dir and target.slash:
            raise SysError(ENOTDIR, new)
        self._check_ancestry(from_place, node, into, replaced, old, new, exchange=bool(exchange))
        if replaced is node:
            return
        self._check_delete(from_place, node, old)
        if replaced is None:
            self._check_directory(into, new)
        else:
            self._check_delete(into, replaced, new)
            if not exchange and node.is_dir != replaced.is_dir:
                raise SysError(ENOTDIR if node.is_dir else EISDIR, new)
        if from_place != into:
            for moved in (node, replaced if exchange else None):
                if moved is not None and moved.is_dir and not self.credentials.may(moved, W_OK):
                    raise SysError(EACCES, old)
        for touched in (node, replaced):
            if touched is not None:
                self._check_unmounted(touched, old)
        from_place.mount.server.rename(from_place.node, source.name, into.node, target.name, flags)

    def _holder_mount(self, slot: Slot) -> Mount:
        mount, node = slot.holder or slot.directory
        if slot.name and mount.members and node is mount.root:
            try:
                return step(slot.directory, slot.name).mount
            except SysError:
                return mount
        return mount

    def _entry_of(self, directory: Place, name: str) -> Node | None:
        try:
            return directory.mount.server.walk(directory.node, name)
        except SysError as error:
            if error.errno == ENOENT:
                return None
            raise

    def _check_ancestry(
        self,
        source: Place,
        node: Node,
        target: Place,
        replaced: Node | None,
        old: str,
        new: str,
        *,
        exchange: bool,
    ) -> None:
        """EINVAL for a directory moved into itself, ENOTEMPTY for one replaced by its own descendant."""
        if node.is_dir and _is_within(source.mount.server, target.node, node):
            raise SysError(EINVAL, old)
        if replaced is not None and replaced.is_dir and _is_within(source.mount.server, source.node, replaced):
            raise SysError(EINVAL if exchange else ENOTEMPTY, new)

    # Attributes.

    def chmod(self, path: str, mode: int, *, follow: bool = True) -> None:
        self.set_mode(resolve(self, path, follow=follow), mode, path)

    def set_mode(self, place: Place, mode: int, path: str) -> None:
        mount, node = place
        if mount.read_only:
            raise SysError(EROFS, path)
        if not self.credentials.owns(node):
            raise SysError(EPERM, path)
        if self.credentials.uid != 0 and not self.credentials.in_group(node.gid):
            mode &= ~S_ISGID
        mount.server.setattr(node, SetAttr(mode=mode & PERMISSIONS))

    def chown(self, path: str, uid: int, gid: int, *, follow: bool = True) -> None:
        """-1 leaves one as it is."""
        self.set_owner(resolve(self, path, follow=follow), uid, gid, path)

    def set_owner(self, place: Place, uid: int, gid: int, path: str) -> None:
        mount, node = place
        if mount.read_only:
            raise SysError(EROFS, path)
        who = self.credentials
        mode = None
        if not node.is_dir and node.mode & (S_ISUID | S_ISGID):
            mode = node.mode & PERMISSIONS & ~S_ISUID
            if mode & S_IXGRP or not (who.uid == 0 or who.in_group(node.gid)):
                mode &= ~S_ISGID
            mode = None if mode == node.mode & PERMISSIONS else mode
        if who.uid != 0:
            same_user = uid in (-1, node.uid)
            same_group = gid in (-1, node.gid) or who.in_group(gid)
            nothing = uid == gid == -1 and mode is None
            if not (who.uid == node.uid and same_user and same_group) and not nothing:
                raise SysError(EPERM, path)
        mount.server.setattr(node, SetAttr(mode=mode, uid=uid if uid != -1 else None, gid=gid if gid != -1 else None))

    def utimens(
        self, path: str, atime: int | None, mtime: int | None, *, follow: bool = True, now: bool = False
    ) -> None:
        """Set the times (ns) that are not None. `now` sets both, and needs only write permission."""
        self.set_times(resolve(self, path, follow=follow), atime, mtime, path, now=now)

    def set_times(self, place: Place, atime: int | None, mtime: int | None, path: str, *, now: bool = False) -> None:
        mount, node = place
        if mount.read_only:
            raise SysError(EROFS, path)
        if now:
            atime = mtime = self.now()
        if not self.credentials.owns(node) and not (now and self.credentials.may(node, W_OK)):
            raise SysError(EACCES if now else EPERM, path)
        atime, mtime = (None if time is None else min(max(time, -FILE_MAX), FILE_MAX) for time in (atime, mtime))
        mount.server.setattr(node, SetAttr(atime=atime, mtime=mtime))

    def truncate(self, path: str, size: int) -> None:
        if size < 0:
            raise SysError(EINVAL, path)
        mount, node = resolve(self, path)
        if node.is_dir:
            raise SysError(EISDIR, path)
        if node.mode & S_IFMT != S_IFREG:
            raise SysError(EINVAL, path)
        if mount.read_only:
            raise SysError(EROFS, path)
        if not self.credentials.may(node, W_OK):
            raise SysError(EACCES, path)
        mode = self.credentials.mode_after_write(node)
        mount.server.setattr(node, SetAttr(mode=mode, size=min(size, FILE_MAX)))

    # Mounts.

    def mount(
        self,
        server: FileServer,
        path: str,
        *,
        order: Order = "replace",
        creates: bool = True,
        read_only: bool = False,
        source: str = "none",
    ) -> None:
        """Make a server's root appear at `path`, in this view and those forked from it later."""
        self.namespace.mount(
            resolve(self, path), server, order=order, creates=creates, read_only=read_only, source=source
        )

    def bind(
        self, old: str, path: str, *, order: Order = "replace", creates: bool = True, read_only: bool = False
    ) -> None:
        """Make what is seen at `old` appear at `path` too."""
        mount, node = resolve(self, old)
        self.namespace.mount(
            resolve(self, path),
            mount.server,
            node,
            order=order,
            creates=creates,
            read_only=read_only or mount.read_only,
            source=old,
        )

    def unmount(self, path: str, source: str | None = None) -> None:
        member = resolve(self, source).node if source is not None else None
        # What is mounted on the working directory isn't seen at `.`, but it is what is meant.
        self.namespace.unmount(self.namespace.enter(resolve(self, path)), member)
        self.lookup_cache.clear()  # it keeps the mount table that was, and that what is gone now


def _is_within(server: FileServer, node: Node, ancestor: Node) -> bool:
    while node is not ancestor:
        above = server.locate(node)
        if above is None:
            return False
        node = above[0]
    return True
