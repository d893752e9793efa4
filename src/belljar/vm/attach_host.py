"""A root's blocks as a machine has them: a file that QEMU reads itself, or a server in this process."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from typing import Protocol

from msgspec import Struct, structs

from belljar.vm.blocks import Base
from belljar.vm.blocks import Disk as BlockDisk
from belljar.vm.blockstore import BlockContext, BlockStore, BlockStoreError, Chunk
from belljar.vm.command import Disk as DiskWords
from belljar.vm.disks_host import Disk
from belljar.vm.nbd_host import DiskServer, Report, StoreCalls
from belljar.vm.plan import RootMode

_attached: list[BlockStore] = []
_lock = threading.Lock()


class Attached(Struct):
    """How QEMU has the blocks, what becomes of changes, and how they are let go."""

    words: DiskWords
    fd: int
    mode: RootMode
    release: Callable[[], None]
    """Called when QEMU has ended. Idempotent."""
    server: DiskServer | None = None
    """Which serves the blocks, if QEMU does not read a file."""
    durable: bool = False
    """Whether changes outlive the machine."""


def attach_file(disk: Disk, mode: RootMode) -> Attached:
    """A base image as it is. OSError."""
    file = open(disk.path, "rb")  # noqa: SIM115 - closed by release
    return Attached(DiskWords("file"), file.fileno(), mode, file.close)


class Closable(Base, Protocol):
    """A base that is closed when nobody reads it any more."""

    def close(self) -> None: ...


def attach_base(base: Closable, report: Report) -> Attached:
    """A base image that QEMU can't read itself, read-only."""
    return _serve(BlockDisk(base), report, RootMode.READ_ONLY, base.close)


def attach_blocks(
    base: Closable,
    digest: str,
    store: BlockStore | None,
    dirty_bytes: int,
    report: Report,
    chunks: Sequence[Chunk] = (),
) -> Attached:
    """A base image under a store's blocks, or without one under those in memory, which begin with `chunks`.
    BlockStoreError, OSError."""
    with ExitStack() as undo:
        undo.callback(base.close)
        calls = None
        if store is not None:
            undo.callback(hold_store(store))
            calls = StoreCalls(store, BlockContext(digest, base.size))
            undo.callback(calls.close)
        disk = BlockDisk(base, calls, dirty_bytes)
        disk.adopt(chunks)
        release = undo.pop_all().close
    return structs.replace(_serve(disk, report, RootMode.DISK, release), durable=store is not None)


def _serve(disk: BlockDisk, report: Report, mode: RootMode, release: Callable[[], None]) -> Attached:
    read_only = mode is not RootMode.DISK
    server = DiskServer(disk, report, read_only=read_only)

    def let_go() -> None:
        server.close()
        release()

    return Attached(DiskWords("nbd", read_only), server.theirs.fileno(), mode, let_go, server)


def hold_store(store: BlockStore) -> Callable[[], None]:
    """Make a store one machine's. BlockStoreError if it is another's."""
    with _lock:
        if any(each is store for each in _attached):
            raise BlockStoreError("the block store is attached to a machine that runs: close that first")
        release = store.lease()
        _attached.append(store)

    def let_go() -> None:
        with _lock:
            _attached[:] = [each for each in _attached if each is not store]
        release()

    return let_go
