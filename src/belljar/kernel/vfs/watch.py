"""Watching files: changes below a path, collected for each watcher.

A watched server stands before the real one in every mount and reports each change that passes through. Nobody pays
for it until the first watch; a file that was already open for writing then is seen from its next opening on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final, Literal, NamedTuple, Protocol
from weakref import WeakKeyDictionary

from belljar.abi.flags import O_ACCMODE, O_RDONLY, O_TRUNC, RENAME_EXCHANGE
from belljar.abi.records import Dirent, Owner, SetAttr, Stat, StatFs
from belljar.kernel.fiber import Hub, WaitQueue
from belljar.kernel.vfs.namespace import Mount, Namespace, Place
from belljar.kernel.vfs.resolve import Viewer, path_of
from belljar.kernel.vfs.server import FileServer, Handle, Node

PENDING_MAX: Final = 10_000
"""Changes kept for a watcher that does not ask; more are summed up as one `overflow`."""

Kind = Literal["created", "modified", "deleted", "renamed", "attributes", "overflow"]


class Change(NamedTuple):
    kind: Kind
    path: str
    to: str | None = None
    """The new path of a renamed file."""


class Report(Protocol):
    """Called with the kind, directory and name of a changed entry; of a rename also its new directory and name."""

    def __call__(self, kind: Kind, directory: Node, name: str, to: tuple[Node, str] | None = None) -> None: ...


class Watch:
    """One watcher's changes, in order, each once while it waits to be taken."""

    def __init__(self, hub: Hub, path: str, *, recursive: bool) -> None:
        self._prefix = path.rstrip("/")
        self._recursive = recursive
        self._pending: dict[Change, None] = {}
        self._news = WaitQueue(hub)
        self.closed = False

    def covers(self, path: str) -> bool:
        if path == self._prefix:
            return True
        below = path.startswith(self._prefix + "/")
        return below and (self._recursive or "/" not in path[len(self._prefix) + 1 :])

    def add(self, change: Change) -> None:
        if not (self.covers(change.path) or (change.to is not None and self.covers(change.to))):
            return
        if len(self._pending) >= PENDING_MAX:
            change = Change("overflow", self._prefix or "/")
        # Told again, it moves to the end: the last write to a file comes after whatever else happened before it.
        self._pending.pop(change, None)
        self._pending[change] = None
        self._news.wake_all()

    def take(self) -> list[Change]:
        """Take the changes since the last call; waits for one. Empty once the watch is closed."""
        while not self._pending and not self.closed:
            self._news.wait()
        changes, self._pending = list(self._pending), {}
        return changes

    def close(self) -> None:
        self.closed = True
        self._news.wake_all()


class Watches:
    """All watches of a sandbox, and the watched servers that feed them."""

    def __init__(self, hub: Hub, viewer: Viewer) -> None:
        self._hub = hub
        self._viewer = viewer
        self._watches: list[Watch] = []
        self._servers: dict[FileServer, WatchedServer] = {}

    def add(self, path: str, *, recursive: bool, namespaces: Iterable[Namespace]) -> Watch:
        """Watch from now on; `namespaces` are those of all processes."""
        watch = Watch(self._hub, path, recursive=recursive)
        self._watches.append(watch)
        self.cover(namespaces)
        return watch

    def cover(self, namespaces: Iterable[Namespace]) -> None:
        """Put watched servers before what is mounted now, if anybody watches."""
        if not self._watches:
            return
        for namespace in namespaces:
            for mount in namespace.every_mount():
                if not isinstance(mount.server, WatchedServer):
                    mount.server = self._watched(mount)

    def _watched(self, mount: Mount) -> WatchedServer:
        """One for each server, however often it is mounted: what is seen through two mounts is the same file."""
        watched = self._servers.get(mount.server)
        if watched is None:

            def report(kind: Kind, directory: Node, name: str, to: tuple[Node, str] | None = None) -> None:
                self._report(mount, kind, directory, name, to)

            watched = self._servers[mount.server] = WatchedServer(mount.server, report)
        return watched

    def remove(self, watch: Watch) -> None:
        watch.close()
        if watch in self._watches:
            self._watches.remove(watch)

    def _report(self, mount: Mount, kind: Kind, directory: Node, name: str, to: tuple[Node, str] | None) -> None:
        if not self._watches:
            return
        path = self._path(mount, directory, name)
        if path is None:
            return
        change = Change(kind, path, None if to is None else self._path(mount, *to))
        for watch in self._watches:
            watch.add(change)

    def _path(self, mount: Mount, directory: Node, name: str) -> str | None:
        above = path_of(self._viewer, Place(mount, directory))
        return None if above is None else f"{above.rstrip('/')}/{name}"


class WatchedServer(FileServer):
    """Another server, with every change reported after it was made."""

    def __init__(self, inner: FileServer, report: Report) -> None:
        self.inner = inner
        self._report = report
        self.kind = inner.kind
        self.dev = inner.dev
        self._names: WeakKeyDictionary[Node, tuple[Node, str]] = WeakKeyDictionary()
        """The place where each file was last seen: a file, unlike a directory, does not know its name."""

    def report_node(self, kind: Kind, node: Node) -> None:
        where = self.inner.locate(node) if node.is_dir else self._names.get(node)
        if where is not None and where[1]:
            self._report(kind, *where)

    @property
    def root(self) -> Node:
        return self.inner.root

    def walk(self, directory: Node, name: str) -> Node:
        node = self.inner.walk(directory, name)
        if not node.is_dir:
            self._names[node] = directory, name
        return node

    def locate(self, directory: Node) -> tuple[Node, str] | None:
        return self.inner.locate(directory)

    def stat(self, node: Node) -> Stat:
        return self.inner.stat(node)

    def readdir(self, directory: Node) -> Sequence[Dirent]:
        return self.inner.readdir(directory)

    def open(self, node: Node, flags: int) -> Handle:
        handle = self.inner.open(node, flags)
        if flags & O_ACCMODE == O_RDONLY or not handle.seekable:
            return handle
        if flags & O_TRUNC:
            self.report_node("modified", node)
        return WatchedHandle(handle, lambda: self.report_node("modified", node))

    def hold(self, node: Node) -> Handle:
        return self.inner.hold(node)

    def readlink(self, node: Node) -> str:
        return self.inner.readlink(node)

    def magic_link(self, node: Node) -> Place | None:
        return self.inner.magic_link(node)

    def create(self, directory: Node, name: str, mode: int, owner: Owner) -> Node:
        node = self.inner.create(directory, name, mode, owner)
        self._names[node] = directory, name
        self._report("created", directory, name)
        return node

    def mkdir(self, directory: Node, name: str, mode: int, owner: Owner) -> Node:
        node = self.inner.mkdir(directory, name, mode, owner)
        self._report("created", directory, name)
        return node

    def symlink(self, directory: Node, name: str, target: str, owner: Owner) -> Node:
        node = self.inner.symlink(directory, name, target, owner)
        self._report("created", directory, name)
        return node

    def link(self, node: Node, directory: Node, name: str) -> None:
        self.inner.link(node, directory, name)
        self._report("created", directory, name)

    def unlink(self, directory: Node, name: str) -> None:
        node = self.inner.walk(directory, name)
        self.inner.unlink(directory, name)
        if self._names.get(node) == (directory, name):
            del self._names[node]  # what is still written to it is no change of any path
        self._report("deleted", directory, name)

    def rmdir(self, directory: Node, name: str) -> None:
        self.inner.rmdir(directory, name)
        self._report("deleted", directory, name)

    def rename(self, source: Node, old: str, target: Node, new: str, flags: int) -> None:
        self.inner.rename(source, old, target, new, flags)
        self.walk(target, new)
        self._report("renamed", source, old, (target, new))
        if flags & RENAME_EXCHANGE:
            self._report("renamed", target, new, (source, old))

    def setattr(self, node: Node, change: SetAttr) -> None:
        self.inner.setattr(node, change)
        self.report_node("attributes" if change.size is None else "modified", node)

    def statfs(self) -> StatFs:
        return self.inner.statfs()

    def close(self) -> None:
        self.inner.close()


class WatchedHandle(Handle):
    """A file open for writing, each write of which is reported."""

    __slots__ = ("_changed", "_inner")

    def __init__(self, inner: Handle, changed: Callable[[], None]) -> None:
        self._inner = inner
        self._changed = changed
        super().__init__()

    def read(self, offset: int, size: int) -> bytes:
        return self._inner.read(offset, size)

    def write(self, offset: int | None, data: bytes) -> int:
        count = self._inner.write(offset, data)
        self._changed()
        return count

    def truncate(self, size: int) -> None:
        self._inner.truncate(size)
        self._changed()

    def size(self) -> int:
        return self._inner.size()

    def seek_data(self, offset: int, *, hole: bool) -> int:
        return self._inner.seek_data(offset, hole=hole)

    def sync(self) -> None:
        self._inner.sync()

    def ioctl(self, request: str, argument: object = None) -> object:
        return self._inner.ioctl(request, argument)

    def poll(self) -> int:
        return self._inner.poll()

    @property
    def waiters(self) -> WaitQueue | None:
        return self._inner.waiters

    def close(self) -> None:
        self._inner.close()
