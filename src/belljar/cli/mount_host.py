"""`belljar mount` and `belljar unmount`: the files of a snapshot or an image as a directory of this machine."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NoReturn

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from belljar.kernel.vfs.server import FileServer
    from belljar.store.snapshot import SnapshotRecord
    from belljar.store.store import Store

_OK: Final = b"ok"
_LOOK_SECONDS: Final = 1.0


def add_to(subcommands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = subcommands.add_parser(
        "mount",
        help="show a snapshot or an image as a directory",
        description="Show the files of a snapshot or an image at DIR, for you alone and read-only, until ^C or "
        "`belljar unmount DIR`. See docs/fuse.md.",
    )
    parser.add_argument("ref", metavar="REF", help="a label, a ref, its first digits (at least 8), or an image's name")
    parser.add_argument("directory", metavar="DIR", help="an existing directory")
    parser.add_argument(
        "--write", action="store_true", help="let files be changed; the changes are in memory and end with the mount"
    )
    parser.add_argument("--background", action="store_true", help="return as soon as it is mounted")
    parser.add_argument(
        "--store", metavar="LOCATION", help="where snapshots and images are (default: see `belljar snapshot ls -h`)"
    )
    parser.set_defaults(run=run_mount)
    undo = subcommands.add_parser(
        "unmount",
        help="end what `belljar mount` began",
        description="Unmount a directory that `belljar mount` shows something at, even if it is in use.",
    )
    undo.add_argument("directory", metavar="DIR")
    undo.set_defaults(run=run_unmount)


def run_unmount(arguments: argparse.Namespace) -> int:
    from belljar.fuse.mount_host import unmount

    unmount(arguments.directory)
    return 0


def run_mount(arguments: argparse.Namespace) -> int:
    from belljar.fuse.mount_host import MountError, missing

    if why := missing():  # before anything is imported that only Linux has
        raise MountError(f"can't mount at {arguments.directory}: {why}")
    if arguments.background:
        return _in_background(arguments)
    from belljar.cli.screen_host import complain

    _serve(arguments, lambda: complain(f"{arguments.ref} is at {arguments.directory}; ^C unmounts it"))
    return 0


def _serve(arguments: argparse.Namespace, ready: Callable[[], object]) -> None:
    """Mount, and serve until it is unmounted or this process is told to end. SandboxError."""
    import time

    from belljar.fuse.mount_host import MountError, mount, unmount
    from belljar.fuse.serve_host import Served
    from belljar.fuse.session import Session

    server = find_tree(arguments.ref, arguments.store)
    if arguments.write:
        server = writable(server, time.time_ns)
    directory = os.path.abspath(arguments.directory)
    signal.signal(signal.SIGTERM, _interrupt)
    fd = mount(directory, arguments.ref, read_only=not arguments.write)
    session = Session(server, time.time_ns, private=True, read_only=not arguments.write, report=_report)
    served = Served(fd, session)
    try:
        ready()
        # A signal that came while the process was stopped may be taken by another thread, which does not wake this one.
        while not served.wait(_LOOK_SECONDS):
            continue
    except KeyboardInterrupt:
        with suppress(MountError):  # somebody else was faster
            unmount(directory)
    finally:
        served.close()
        server.close()


def _in_background(arguments: argparse.Namespace) -> int:
    """Serve in a child that outlives this process; fails here if the child can't mount."""
    from belljar.cli.screen_host import complain

    read, write = os.pipe()
    if os.fork() == 0:
        os.close(read)
        _serve_detached(arguments, write)
    os.close(write)
    with open(read, "rb") as pipe:
        said = pipe.read()
    if said != _OK:
        complain(said.decode(errors="replace") or "belljar: the process in the background ended")
        return 125
    return 0


def _serve_detached(arguments: argparse.Namespace, write: int) -> NoReturn:
    from belljar.api.errors import SandboxError

    def ready() -> None:
        null = os.open(os.devnull, os.O_RDWR)
        for fd in (0, 1, 2):
            os.dup2(null, fd)
        os.write(write, _OK)
        os.close(write)

    os.setsid()
    try:
        _serve(arguments, ready)
    except SandboxError as error:
        os.write(write, f"belljar: {error}".encode())
    except BaseException as error:  # noqa: BLE001 - the parent tells it
        os.write(write, f"belljar: {error!r}".encode())
    os._exit(0)


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _report(error: BaseException) -> None:
    sys.stderr.write(f"belljar: {error!r}: programs see an input/output error\n")


def find_tree(ref: str, location: str | None) -> FileServer:
    """The files of a snapshot, or else of an image. SandboxError, also of the store."""
    from belljar.abi.errors import ImageError, SandboxError, SnapshotError
    from belljar.api.image import Image
    from belljar.api.snapshot import Snapshot
    from belljar.cli.options import store_at
    from belljar.store.default_host import default_store

    store = store_at(location, must_exist=True) or default_store()
    try:
        return _tree(store, Snapshot.find(ref, store).record)
    except SnapshotError as no_snapshot:
        try:
            return _tree(store, Image.find(ref, store).built.record)
        except ImageError:
            raise SandboxError(
                f"{no_snapshot}; nor is there an image of that name. A sandbox that runs can't be mounted by its name: "
                "the program that made it can show it (sandbox.mount_on(DIR)), or take a snapshot to mount"
            ) from None


def _tree(store: Store, record: SnapshotRecord) -> FileServer:
    from belljar.abi.paths import fsdecode
    from belljar.fuse.trees import Trees
    from belljar.store.store import Objects
    from belljar.store.stored_tree import StoredTree

    objects = Objects(store)
    root, *others = ((fsdecode(tree.path), StoredTree(objects, tree, _report)) for tree in record.trees)
    return Trees(root[1], others)


def writable(lower: FileServer, now: Callable[[], int]) -> FileServer:
    """Keep all changes in memory."""
    from belljar.abi.flags import FILE_MAX
    from belljar.kernel.fs.memory import MemoryServer
    from belljar.kernel.fs.overlay import OverlayServer
    from belljar.kernel.fs.quota import Quota

    return OverlayServer(lower, MemoryServer(now, Quota(FILE_MAX, FILE_MAX)), now)
