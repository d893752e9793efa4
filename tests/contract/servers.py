"""The file servers the contract battery runs on. To add one: write `make_x(tree, tmp)` and list it in CASES."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from belljar.abi.flags import O_CREAT, O_WRONLY, PERMISSIONS
from belljar.abi.limits import MIB
from belljar.abi.records import NANO, SetAttr
from belljar.kernel.fs.hostdir_host import HostDirServer
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.fs.overlay import OverlayServer
from belljar.kernel.fs.quota import Quota
from belljar.kernel.vfs.credentials import Credentials
from belljar.kernel.vfs.namespace import Mount, Namespace
from belljar.kernel.vfs.server import FileServer, Handle, Node
from belljar.kernel.vfs.view import View

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
    `times` (mtime kept), `owners` (chown), `fifos`, `sparse` (holes cost nothing), `bytes` (names that are not UTF-8).
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
        Namespace(Mount(server, server.root, None)), Credentials(uid, gid), open_fifo=refuse_fifo, now=Ticking()
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
    return HostDirServer(write_host(tree, tmp), read_only=False)


def make_overlay_over_host(tree: Tree, tmp: Path) -> FileServer:
    return OverlayServer(make_host(tree, tmp), memory(), Ticking())


def make_overlay_into_host(tree: Tree, tmp: Path) -> FileServer:
    """What is written lands in a directory of the host."""
    upper = tmp / "upper"
    upper.mkdir()
    return OverlayServer(make_memory(tree, tmp), HostDirServer(upper, read_only=False), Ticking())


# A host directory can't give files away, and takes no FIFOs.
HOST_LACKS = frozenset({"owners", "fifos"})

CASES: list[Case] = [
    Case("memory", make_memory, writable=True),
    Case("overlay-all-lower", make_overlay_over_all, writable=True),
    Case("overlay-no-lower", make_overlay_over_nothing, writable=True),
    Case("overlay-mixed", make_overlay_mixed, writable=True),
    Case("overlay-adopting", make_overlay_adopting, writable=True),
    Case("overlay-of-overlay", make_overlay_of_overlay, writable=True),
    Case("hostdir-read-only", make_host, writable=False),
    Case("hostdir", make_writable_host, writable=True, lacks=HOST_LACKS),
    Case("overlay-over-hostdir", make_overlay_over_host, writable=True),
    Case("overlay-into-hostdir", make_overlay_into_host, writable=True, lacks=HOST_LACKS),
]
