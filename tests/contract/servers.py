"""The file servers the contract battery runs on. To add one: write `make_x(tree, tmp)` and list it in CASES."""

import io
import os
import tarfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import cast

import msgspec
from fsspec.core import url_to_fs

from belljar.abi.errno import EDQUOT
from belljar.abi.flags import FILE_MAX, O_CREAT, O_WRONLY, PERMISSIONS, S_IFDIR, S_IFLNK, S_IFREG
from belljar.abi.limits import MIB
from belljar.abi.records import NANO, SetAttr, Stat
from belljar.kernel.fs.archive import ArchiveServer
from belljar.kernel.fs.fsspec_host import FsspecServer
from belljar.kernel.fs.hostdir_host import HostDirServer
from belljar.kernel.fs.limited import LimitedServer
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.fs.overlay import OverlayServer
from belljar.kernel.fs.quota import Quota
from belljar.kernel.fs.remote import Export, RemoteServer
from belljar.kernel.fs.remote_cache import Cache
from belljar.kernel.lookup_cache import LookupCache
from belljar.kernel.vfs.credentials import Credentials
from belljar.kernel.vfs.namespace import Mount, Namespace
from belljar.kernel.vfs.server import FileServer, Handle, Node
from belljar.kernel.vfs.view import View
from belljar.kernel.vfs.watch import WatchedServer
from belljar.ninep.session import Session
from belljar.store.store import Objects, Store
from belljar.store.stored_tree import StoredTree
from tests.contract.ninep import direct, piped
from tests.fuse.inside import Shown, can_mount
from tests.ninep.diod import DiodServer
from tests.store.writing import store_tree

START = 1_767_225_600 * NANO


@dataclass(frozen=True)
class Dir:
    """A directory of a tree to be served."""

    mode: int = 0o755


@dataclass(frozen=True)
class File:
    data: bytes = b""
    mode: int = 0o644
    mtime: int = START


@dataclass(frozen=True)
class Link:
    """A symlink."""

    target: str


@dataclass(frozen=True)
class Hard:
    """Another name for the file at an earlier path of the same tree."""

    path: str


Tree = dict[str, Dir | File | Link | Hard]
"""Relative path -> entry, every directory before what is in it."""

Make = Callable[[Tree, Path], FileServer]


@dataclass(frozen=True)
class Case:
    """One server under test and what it can do. `lacks` names features of the battery a server has no way to give.

    Known features: `symlinks`, `hard links` (nlink and identity), `modes` (exact permission bits),
    `times` (mtime kept), `owners` (chown), `fifos`, `sparse` (holes cost nothing), `bytes` (names that are not UTF-8),
    `identity` (what is removed or moved stays what it was to whoever has it).
    """

    name: str
    make: Make
    writable: bool
    lacks: frozenset[str] = frozenset()

    def has(self, feature: str) -> bool:
        return feature not in self.lacks


class Ticking:
    """A clock on which every look is a microsecond later, so that times tell the order of things."""

    def __init__(self, start: int = START) -> None:
        self._ticks = count(start, 1000)

    def __call__(self) -> int:
        return next(self._ticks)


def refuse_fifo(_node: Node, _flags: int) -> Handle:
    raise AssertionError("the battery opens no FIFOs")


def view_of(server: FileServer, *, uid: int = 0, gid: int = 0) -> View:
    """A process's eyes on a namespace whose root is the server."""
    view = View(
        Namespace(Mount(server, server.root, None)),
        Credentials(uid, gid),
        open_fifo=refuse_fifo,
        now=Ticking(),
        lookup_cache=LookupCache(),
    )
    view.umask = 0
    return view


def fill(server: FileServer, tree: Tree) -> None:
    """Write a tree into a writable server."""
    view = view_of(server)
    for path, entry in tree.items():
        match entry:
            case Dir(mode):
                view.mkdir(path)
                view.chmod(path, mode & PERMISSIONS)
            case File(data, mode, mtime):
                file = view.open(path, O_CREAT | O_WRONLY, mode).retain()
                file.write(data)
                file.release()
                server.setattr(file.place.node, SetAttr(mode=mode, mtime=mtime))
            case Link(target):
                view.symlink(target, path)
            case Hard(old):
                view.link(old, path)


def memory(files: int = 100_000) -> MemoryServer:
    return MemoryServer(Ticking(), Quota(256 * MIB, files))


def make_memory(tree: Tree, _tmp: Path) -> FileServer:
    server = memory()
    fill(server, tree)
    return server


def make_watched(tree: Tree, tmp: Path) -> FileServer:
    return WatchedServer(make_memory(tree, tmp), lambda kind, directory, name, to=None: None)


def make_overlay_over_all(tree: Tree, tmp: Path) -> FileServer:
    """Everything is in the lower layer, which stays as it was."""
    return OverlayServer(make_memory(tree, tmp), memory(), Ticking())


def make_overlay_over_nothing(tree: Tree, tmp: Path) -> FileServer:
    server = OverlayServer(make_memory({}, tmp), memory(), Ticking())
    fill(server, tree)
    return server


def make_overlay_mixed(tree: Tree, tmp: Path) -> FileServer:
    """Half of the entries below, half above; the lower ones of the others' names are whited out or replaced."""
    half = {path: entry for number, (path, entry) in enumerate(tree.items()) if number % 2 or isinstance(entry, Dir)}
    half = {path: entry for path, entry in half.items() if not isinstance(entry, Hard)}
    below = {**half, **{path: File(b"hidden") for path in tree if path not in half}}
    server = OverlayServer(make_memory(below, tmp), memory(), Ticking())
    view = view_of(server)
    for path in tree:
        if path not in half:
            view.unlink(path)
    fill(server, {path: entry for path, entry in tree.items() if path not in half})
    return server


def make_overlay_adopting(tree: Tree, tmp: Path) -> FileServer:
    """The upper server already holds half of the tree when it is put over the other."""
    half: Tree = {path: entry for path, entry in tree.items() if isinstance(entry, Dir | File)}
    upper: Tree = {path: entry for path, entry in tree.items() if not isinstance(entry, File) or path == "twin-a"}
    return OverlayServer(make_memory(half, tmp), make_memory(upper, tmp), Ticking())


def make_overlay_of_overlay(tree: Tree, tmp: Path) -> FileServer:
    return OverlayServer(make_overlay_mixed(tree, tmp), memory(), Ticking())


def write_host(tree: Tree, tmp: Path) -> Path:
    """The tree as real files, made with plain host calls."""
    top = tmp / "served"
    top.mkdir()
    for path, entry in tree.items():
        match entry:
            case Dir():
                (top / path).mkdir()
            case File(data, mode, mtime):
                (top / path).write_bytes(data)
                (top / path).chmod(mode)
                os.utime(top / path, ns=(mtime, mtime))
            case Link(target):
                (top / path).symlink_to(target)
            case Hard(old):
                (top / path).hardlink_to(top / old)
    for path, entry in tree.items():
        if isinstance(entry, Dir):
            (top / path).chmod(entry.mode)
    return top


def make_host(tree: Tree, tmp: Path) -> FileServer:
    return HostDirServer(write_host(tree, tmp))


def make_writable_host(tree: Tree, tmp: Path) -> FileServer:
    # Files that came with a second name are not to be written, by default: tests/escape/test_planted.py.
    return HostDirServer(write_host(tree, tmp), read_only=False, trust="second-name")


def make_overlay_over_host(tree: Tree, tmp: Path) -> FileServer:
    return OverlayServer(make_host(tree, tmp), memory(), Ticking())


def make_overlay_into_host(tree: Tree, tmp: Path) -> FileServer:
    """What is written lands in a directory of the host."""
    upper = tmp / "upper"
    upper.mkdir()
    return OverlayServer(make_memory(tree, tmp), HostDirServer(upper, read_only=False), Ticking())


def make_tar(tree: Tree, _tmp: Path) -> FileServer:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for path, entry in tree.items():
            info = tarfile.TarInfo(path)
            info.mtime = START // NANO
            match entry:
                case Dir(mode):
                    info.type, info.mode = tarfile.DIRTYPE, mode
                case File(data, mode, _):
                    info.size, info.mode = len(data), mode
                    archive.addfile(info, io.BytesIO(data))
                    continue
                case Link(target):
                    info.type, info.linkname = tarfile.SYMTYPE, target
                case Hard(old):
                    info.type, info.linkname = tarfile.LNKTYPE, old
            archive.addfile(info)
    return ArchiveServer(buffer.getvalue())


def make_zip(tree: Tree, _tmp: Path) -> FileServer:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, entry in tree.items():
            match entry:
                case Dir(mode):
                    info, data, kind = zipfile.ZipInfo(path + "/"), b"", S_IFDIR
                case File(data, mode, _):
                    info, kind = zipfile.ZipInfo(path, time.gmtime(START // NANO)[:6]), S_IFREG
                case Link(target):
                    info, data, mode, kind = zipfile.ZipInfo(path), target.encode(), 0o777, S_IFLNK
                case Hard():
                    continue
            info.create_system, info.external_attr = 3, (kind | mode) << 16
            archive.writestr(info, data)
    return ArchiveServer(buffer.getvalue())


def remote(server: FileServer, cache: Cache | None = None) -> RemoteServer:
    """The same server at the far end of a channel that carries bytes."""
    export = Export(server)

    def call(message: object) -> dict[str, object]:
        request = msgspec.msgpack.decode(msgspec.msgpack.encode(message))
        return msgspec.msgpack.decode(msgspec.msgpack.encode(export.serve(request)), type=dict[str, object])

    return RemoteServer(call, cache=cache)


class SettledHostDir(HostDirServer):
    """A host directory whose files may be kept however new they are: nobody changes them but through it."""

    def __init__(self, top: Path) -> None:
        super().__init__(top, read_only=False, trust=True)

    def settled(self, _stat: Stat) -> bool:
        return True


def cached(server: SettledHostDir) -> RemoteServer:
    """A host directory at the far end, of which everything is kept for ever."""
    return remote(server, Cache(lambda: 0.0, 64 * MIB, 10_000))


def make_cached_host(tree: Tree, tmp: Path) -> FileServer:
    return cached(SettledHostDir(write_host(tree, tmp)))


def make_ninep(tree: Tree, tmp: Path) -> FileServer:
    session = Session(make_memory(tree, tmp))
    return direct(lambda data: b"".join(session.receive(data)))


def make_ninep_piped(tree: Tree, tmp: Path) -> FileServer:
    return piped(make_memory(tree, tmp))


def make_diod(tree: Tree, tmp: Path) -> FileServer:
    return DiodServer(write_host(tree, tmp))


def make_limited(tree: Tree, tmp: Path) -> FileServer:
    limited = LimitedServer(make_memory(tree, tmp), Quota(FILE_MAX, 1000, EDQUOT))
    return remote(cast("FileServer", limited))


def make_overlay_over_cached_host(tree: Tree, tmp: Path) -> FileServer:
    return OverlayServer(make_cached_host(tree, tmp), memory(), Ticking())


def make_stored(tree: Tree, tmp: Path) -> FileServer:
    objects = Objects(Store.memory())
    return StoredTree(objects, store_tree(objects, make_memory(tree, tmp)))


def make_cached_stored(tree: Tree, tmp: Path) -> FileServer:
    return remote(make_stored(tree, tmp), Cache(lambda: 0.0, 64 * MIB, 10_000))


def make_overlay_over_stored(tree: Tree, tmp: Path) -> FileServer:
    """As a restored sandbox has it."""
    return OverlayServer(make_cached_stored(tree, tmp), memory(), Ticking())


def make_remote(tree: Tree, tmp: Path) -> FileServer:
    return remote(make_memory(tree, tmp))


def make_remote_overlay(tree: Tree, tmp: Path) -> FileServer:
    return remote(make_overlay_mixed(tree, tmp))


def make_fsspec(tree: Tree, tmp: Path) -> FileServer:
    top = f"memory://{tmp.name}-{next(_FSSPEC_TREES)}"
    url_to_fs(top)[0].mkdir(top)
    fill_fsspec(FsspecServer(top, read_only=False), tree)
    return FsspecServer(top)


def make_writable_fsspec(tree: Tree, tmp: Path) -> FileServer:
    top = f"memory://{tmp.name}-{next(_FSSPEC_TREES)}"
    url_to_fs(top)[0].mkdir(top)
    server = FsspecServer(top, read_only=False)
    fill_fsspec(server, tree)
    return server


def fill_fsspec(server: FileServer, tree: Tree) -> None:
    view = view_of(server)
    for path, entry in tree.items():
        if isinstance(entry, Dir):
            view.mkdir(path)
        elif isinstance(entry, File):
            file = view.open(path, O_CREAT | O_WRONLY, 0o644).retain()
            file.write(entry.data)
            file.release()


_FSSPEC_TREES = count()
# What no object store knows.
FSSPEC_LACKS = frozenset({"symlinks", "hard links", "modes", "times", "owners", "fifos", "sparse", "bytes"})

# A host directory can't give files away, and takes no FIFOs.
HOST_LACKS = frozenset({"owners", "fifos"})


def make_fuse(tree: Tree, tmp: Path) -> FileServer:
    """Through a real mount: the kernel asks our server, and a directory server in that namespace asks the kernel."""
    return Shown(make_memory(tree, tmp), str(tmp / "fuse"), private=True)


def make_shared_fuse(tree: Tree, tmp: Path) -> FileServer:
    return Shown(make_overlay_mixed(tree, tmp), str(tmp / "fuse"), private=False)


CASES: list[Case] = [
    Case("memory", make_memory, writable=True),
    Case("watched", make_watched, writable=True),
    Case("overlay-all-lower", make_overlay_over_all, writable=True),
    Case("overlay-no-lower", make_overlay_over_nothing, writable=True),
    Case("overlay-mixed", make_overlay_mixed, writable=True),
    Case("overlay-adopting", make_overlay_adopting, writable=True),
    Case("overlay-of-overlay", make_overlay_of_overlay, writable=True),
    Case("hostdir-read-only", make_host, writable=False),
    Case("hostdir", make_writable_host, writable=True, lacks=HOST_LACKS),
    Case("overlay-over-hostdir", make_overlay_over_host, writable=True),
    Case("overlay-into-hostdir", make_overlay_into_host, writable=True, lacks=HOST_LACKS),
    Case("archive-tar", make_tar, writable=False),
    Case("archive-zip", make_zip, writable=False, lacks=frozenset({"hard links"})),
    Case("remote", make_remote, writable=True),
    Case("remote-limited", make_limited, writable=True),
    Case("remote-overlay", make_remote_overlay, writable=True),
    Case("remote-hostdir-cached", make_cached_host, writable=True, lacks=HOST_LACKS),
    Case("overlay-over-cached-hostdir", make_overlay_over_cached_host, writable=True),
    Case("stored", make_stored, writable=False),
    Case("remote-stored-cached", make_cached_stored, writable=False),
    Case("overlay-over-stored", make_overlay_over_stored, writable=True),
    Case("9p", make_ninep, writable=True),
    Case("9p-through-pipes", make_ninep_piped, writable=True),
    Case("9p-diod", make_diod, writable=True, lacks=HOST_LACKS | {"identity"}),
    Case("fsspec-read-only", make_fsspec, writable=False, lacks=FSSPEC_LACKS),
    Case("fsspec", make_writable_fsspec, writable=True, lacks=FSSPEC_LACKS),
]
if can_mount():
    CASES += [
        Case("fuse", make_fuse, writable=True, lacks=HOST_LACKS),
        Case("fuse-shared-overlay", make_shared_fuse, writable=True, lacks=HOST_LACKS),
    ]
