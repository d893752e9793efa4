"""Snapshots of a page's sandbox: its root as the trees and bundles of `store/`, which belljar elsewhere reads, too.

A page has no store of its own: a snapshot is written as one bundle, and restored from one, whole.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import asdict
from typing import Final

from belljar.abi.errors import SnapshotError
from belljar.abi.flags import O_RDONLY, O_WRONLY, S_IFIFO, S_IFMT, S_IFREG
from belljar.abi.paths import fsdecode, fsencode
from belljar.abi.records import Owner, SetAttr, Stat
from belljar.abi.wire import Plain, WireError
from belljar.kernel.container_state import contained_of, keep
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.fs.overlay import OverlayServer
from belljar.kernel.fs.quota import Quota
from belljar.kernel.vfs.server import FileServer, Node
from belljar.store.bundle import read_bundle, write_bundle
from belljar.store.memory_host import MemoryStore
from belljar.store.objects import PIECE, PIECE_BYTES, Digest, digest_of
from belljar.store.snapshot import ContainerRecord, SnapshotRecord, Tree, encode_snapshot, read_snapshot
from belljar.store.store import Objects
from belljar.store.tree import Entry, Kind, decode_directory, encode_directory
from belljar.worker.serve import Server
from belljar.worker.session import BASE_FILES, Session

BYTES_MAX: Final = 1 << 30
"""What a bundle may unpack to: a worker has no more memory."""


class Snapshots:
    """The owner's calls `snapshot` and `restore`."""

    def __init__(self, session: Session, server: Server) -> None:
        self._session = session
        self._server = server
        self.table: Final[dict[str, Callable[..., Plain]]] = {"snapshot": self.snapshot, "restore": self.restore}

    def snapshot(self, label: str) -> Plain:
        """A bundle of all files of this moment: nothing here waits, so no command goes on meanwhile."""
        session, kernel = self._session, self._session.kernel
        objects = Objects(MemoryStore())
        kept = [(*keep(each), each.root) for each in reversed(session.containers.list())]
        walk = _Walk(session.root, objects)
        record = SnapshotRecord(
            created=kernel.now(),
            label=label,
            trees=[walk.tree()],
            env=sorted((fsencode(name), fsencode(value)) for name, value in session.env.items()),
            cwd=fsencode(session.cwd),
            user=session.env.get("USER", ""),
            hostname=kernel.hostname,
            limits=sorted(asdict(kernel.limits).items()),
            lost=[lost for _, lost, _ in kept if lost],
            size=walk.size,
            containers=[
                ContainerRecord(state, _Walk(root, objects).tree()) for state, _, root in kept if state is not None
            ],
        )
        (made,) = objects.write([encode_snapshot(record)])
        bundle = bytearray()
        write_bundle(objects, made, bundle.extend)
        return bytes(bundle)

    def restore(self, bundle: bytes) -> Plain:
        """Have the files of a bundle instead of those of a new sandbox. Gives its environment and directory."""
        session = self._session
        objects = Objects(MemoryStore())
        try:
            record = read_snapshot(objects, read_bundle(io.BytesIO(bundle), objects, BYTES_MAX))
        except SnapshotError as error:
            raise WireError(str(error)) from None
        (tree,) = [each for each in record.trees if each.kind == "root"]
        kernel = session.kernel
        quota = Quota(kernel.limits.file_bytes, kernel.limits.files)
        root = _filled(tree, objects, kernel.now, quota)
        files = Quota(kernel.limits.file_bytes, kernel.limits.files + BASE_FILES)
        roots = [_filled(each.files, objects, kernel.now, files) for each in record.containers]
        session.replace_root(root, -1, record.user or "agent")
        root.quota = kernel.quota
        kernel.quota.bytes_used, kernel.quota.files_used = quota.bytes_used, quota.files_used
        self._server.root_replaced()
        for each, lower in zip(record.containers, roots, strict=True):
            over = OverlayServer(lower, MemoryServer(kernel.now, kernel.quota), kernel.now)
            session.containers.adopt(contained_of(each.state, over, kernel.now()))
        session.env = {**session.env, **{fsdecode(name): fsdecode(value) for name, value in record.env}}
        session.cwd = fsdecode(record.cwd)
        return None


def _filled(tree: Tree, objects: Objects, now: Callable[[], int], quota: Quota) -> MemoryServer:
    server = MemoryServer(now, quota, mode=tree.mode, owner=Owner(tree.uid, tree.gid))
    _Fill(server, objects).directory(server.root, tree.digest)
    return server


class _Walk:
    """A tree on its way to a store."""

    def __init__(self, server: FileServer, objects: Objects) -> None:
        self._server = server
        self._objects = objects
        self._groups: dict[int, list[int]] = {}
        """Of each file with several names: the number of its link group, and how many names were found."""
        self.size = 0

    def tree(self) -> Tree:
        """All of it."""
        root = self._server.root
        stat, digest = self._server.stat(root), self.directory(root)
        return Tree(b"/", "root", digest, stat.mode & 0o7777, stat.uid, stat.gid, stat.mtime, self._hard_links())

    def directory(self, node: Node) -> Digest:
        entries = [
            self._entry(self._server.walk(node, entry.name), fsencode(entry.name))
            for entry in sorted(self._server.readdir(node))
            if entry.name not in (".", "..")
        ]
        (digest,) = self._objects.write([encode_directory([entry for entry in entries if entry is not None])])
        return digest

    def _hard_links(self) -> list[tuple[int, int]]:
        return sorted((number, count) for number, count in self._groups.values())

    def _entry(self, node: Node, name: bytes) -> Entry | None:
        stat = self._server.stat(node)
        if node.is_dir:
            return _entry(stat, name, Kind.DIRECTORY, parts=[self.directory(node)])
        if node.is_symlink:
            return _entry(stat, name, Kind.SYMLINK, target=fsencode(self._server.readlink(node)))
        group = self._group(stat)
        if stat.mode & S_IFMT == S_IFIFO:
            return _entry(stat, name, Kind.FIFO, group)
        if stat.mode & S_IFMT != S_IFREG:
            return None  # a socket: nobody listens there after a restore
        self.size += stat.size if not group or self._groups[stat.ino][1] == 1 else 0
        return _entry(stat, name, Kind.FILE, group, size=stat.size, parts=self._pieces(node, stat.size))

    def _group(self, stat: Stat) -> int:
        """The number of a file's link group; 0: it has one name."""
        if stat.nlink < 2:
            return 0
        group, count = self._groups.get(stat.ino, [len(self._groups) + 1, 0])
        self._groups[stat.ino] = [group, count + 1]
        return group

    def _pieces(self, node: Node, size: int) -> list[Digest]:
        handle = self._server.open(node, O_RDONLY)
        digests: list[Digest] = []
        try:
            for start in range(0, size, PIECE_BYTES):
                data = handle.read(start, min(PIECE_BYTES, size - start))
                piece = PIECE + data
                if data.count(0) == len(data):
                    digests.append(b"")
                else:
                    self._objects.write([piece])
                    digests.append(digest_of(piece))
        finally:
            handle.close()
        return digests


def _entry(
    stat: Stat,
    name: bytes,
    kind: Kind,
    group: int = 0,
    *,
    size: int = 0,
    target: bytes = b"",
    parts: list[Digest] | None = None,
) -> Entry:
    return Entry(name, kind, stat.mode & 0o7777, stat.uid, stat.gid, stat.mtime, size, group, target, parts or [])


class _Fill:
    """A tree on its way from a store."""

    def __init__(self, server: MemoryServer, objects: Objects) -> None:
        self._server = server
        self._objects = objects
        self._linked: dict[int, Node] = {}

    def directory(self, node: Node, digest: Digest) -> None:
        for entry in decode_directory(self._objects.read([digest])[0]):
            self._make(node, entry)

    def _make(self, parent: Node, entry: Entry) -> None:
        server, name, owner = self._server, fsdecode(entry.name), Owner(entry.uid, entry.gid)
        if entry.link_group in self._linked:
            server.link(self._linked[entry.link_group], parent, name)
            return
        match entry.kind:
            case Kind.DIRECTORY:
                made: Node = server.mkdir(parent, name, entry.mode, owner)
                self.directory(made, entry.parts[0])
            case Kind.SYMLINK:
                made = server.symlink(parent, name, fsdecode(entry.target), owner)
            case Kind.FIFO:
                made = server.create(parent, name, S_IFIFO | entry.mode, owner)
            case Kind.FILE:
                made = server.create(parent, name, S_IFREG | entry.mode, owner)
                self._write(made, entry)
            case _:
                return  # of an overlay; a root has none
        if entry.link_group:
            self._linked[entry.link_group] = made
        server.setattr(made, SetAttr(mtime=entry.mtime_ns))

    def _write(self, node: Node, entry: Entry) -> None:
        handle = self._server.open(node, O_WRONLY)
        try:
            for number, part in enumerate(entry.parts):
                if part:
                    handle.write(number * PIECE_BYTES, self._objects.read([part])[0][1:])
            handle.truncate(entry.size)
        finally:
            handle.close()
