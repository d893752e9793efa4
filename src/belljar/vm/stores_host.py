"""Block stores that come along: files of a directory, rows of a SQLite database, objects of any fsspec file system."""

from __future__ import annotations

import fcntl
import os
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import inf
from os import PathLike
from typing import Any, Final

import msgspec

from belljar.abi.install import install_hint
from belljar.vm.blockstore import BlockContext, BlockRange, BlockStore, BlockStoreError, Chunk

LEASE_SECONDS: Final = 60.0
_RENEW_SECONDS: Final = 15.0


def _check_base(known: tuple[str, int] | None, context: BlockContext, block_size: int, where: str) -> None:
    """BlockStoreError for blocks that lie over something else."""
    if known is None:
        return
    if known[0] != context.base:
        raise BlockStoreError(
            f"the blocks in {where} lie over {known[0][:26]}..., and this base image is {context.base[:26]}...: "
            "use a new store, or the base it was made with"
        )
    if known[1] != block_size:
        raise BlockStoreError(f"the blocks in {where} have {known[1]} bytes: give block_size={known[1]}")


def _lock_file(path: str) -> Callable[[], None]:
    file = open(path, "a")  # noqa: SIM115 - held until it is released
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.close()
        raise BlockStoreError(f"{path}: the block store is in use, by this program or another one") from None
    return file.close


class DirectoryStore(BlockStore):
    """A file for each block. One that was written is under a name of its own until it is flushed."""

    def __init__(self, path: str | PathLike[str], block_size: int) -> None:
        self.block_size = block_size
        self._path = os.path.abspath(os.fspath(path))
        self._pending: dict[int, str] = {}

    def lease(self) -> Callable[[], None]:
        os.makedirs(self._path, exist_ok=True)
        return _lock_file(os.path.join(self._path, "lock"))

    def list(self, context: BlockContext) -> Sequence[int]:
        base = os.path.join(self._path, "base.json")
        known = None
        with suppress(FileNotFoundError), open(base, "rb") as file:
            known = msgspec.json.decode(file.read(4096), type=tuple[str, int])
        _check_base(known, context, self.block_size, self._path)
        self._pending.clear()
        found: list[int] = []
        for name in os.listdir(self._path):
            if name.endswith(".new"):
                os.unlink(os.path.join(self._path, name))
            elif name.endswith(".block"):
                found.append(int(name.removesuffix(".block"), 16))
        if known is None:
            self._replace(base, msgspec.json.encode([context.base, self.block_size]))
            self._sync_directory()
        return found

    def _name(self, index: int) -> str:
        return os.path.join(self._path, f"{index:012x}.block")

    def read(self, range: BlockRange, context: BlockContext) -> Sequence[Chunk]:
        found = []
        for index in [*_indices(range)]:
            with suppress(FileNotFoundError), open(self._pending.get(index, self._name(index)), "rb") as file:
                found.append((index, file.read(self.block_size + 1)))
        return found

    def write(self, chunks: Sequence[Chunk], context: BlockContext) -> None:
        for index, data in chunks:
            path = f"{self._name(index)}.new"
            with open(path, "wb") as file:
                file.write(data)
            self._pending[index] = path

    def flush(self, context: BlockContext) -> None:
        for path in self._pending.values():
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                os.fsync(fd)
            finally:
                os.close(fd)
        for index, path in self._pending.items():
            os.rename(path, self._name(index))
        self._sync_directory()
        self._pending.clear()

    def _replace(self, path: str, data: bytes) -> None:
        with open(f"{path}.new", "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.rename(f"{path}.new", path)

    def _sync_directory(self) -> None:
        fd = os.open(self._path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)


def _indices(wanted: BlockRange) -> range:
    return range(wanted.start, wanted.stop)


class SqliteStore(BlockStore):
    """A row for each block. What was written is a transaction until it is flushed."""

    def __init__(self, path: str | PathLike[str], block_size: int) -> None:
        self.block_size = block_size
        self._path = os.path.abspath(os.fspath(path))
        self._db: sqlite3.Connection | None = None

    def lease(self) -> Callable[[], None]:
        os.makedirs(os.path.dirname(self._path), exist_ok=True)
        unlock = _lock_file(f"{self._path}.lock")

        def release() -> None:
            db, self._db = self._db, None
            if db is not None:
                db.close()
            unlock()

        return release

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            self._db = db = sqlite3.connect(self._path, check_same_thread=False, isolation_level=None)
            db.execute("PRAGMA journal_mode=WAL")
            db.execute("PRAGMA synchronous=FULL")
            db.execute("CREATE TABLE IF NOT EXISTS base (digest TEXT, block_size INTEGER)")
            db.execute("CREATE TABLE IF NOT EXISTS blocks (number INTEGER PRIMARY KEY, data BLOB)")
        return self._db

    def list(self, context: BlockContext) -> Sequence[int]:
        db = self._open()
        known = db.execute("SELECT digest, block_size FROM base").fetchone()
        _check_base(known, context, self.block_size, self._path)
        if known is None:
            db.execute("INSERT INTO base VALUES (?, ?)", (context.base, self.block_size))
        return [number for (number,) in db.execute("SELECT number FROM blocks")]

    def read(self, range: BlockRange, context: BlockContext) -> Sequence[Chunk]:
        query = "SELECT number, data FROM blocks WHERE number >= ? AND number < ?"
        return list(self._open().execute(query, (range.start, range.stop)))

    def write(self, chunks: Sequence[Chunk], context: BlockContext) -> None:
        db = self._open()
        if not db.in_transaction:
            db.execute("BEGIN IMMEDIATE")
        db.executemany("INSERT OR REPLACE INTO blocks VALUES (?, ?)", chunks)

    def flush(self, context: BlockContext) -> None:
        if self._db is not None and self._db.in_transaction:
            self._db.execute("COMMIT")


class FsspecStore(BlockStore):
    """An object for each block: durable when it is written. Its lease is an object, too, which is renewed: a program
    that was killed blocks others for a minute."""

    def __init__(self, url: str, block_size: int, **options: object) -> None:
        try:
            import fsspec
        except ImportError:
            raise BlockStoreError(f"BlockStore.fsspec needs fsspec; {install_hint('fs')}") from None
        self.block_size = block_size
        self._fs, place = fsspec.core.url_to_fs(url, **options)
        self._place = str(place).rstrip("/")
        self._token = secrets.token_hex(8)
        self._held_until = inf
        """When another program may take the store over; never, if there is no lease on it."""

    def lease(self) -> Callable[[], None]:
        path = f"{self._place}/lease.json"
        self._fs.makedirs(self._place, exist_ok=True)
        held = self._load(path)
        if held is not None and held[0] != self._token and time.time() - float(held[1]) < LEASE_SECONDS:
            raise BlockStoreError(f"{self._place}: the block store is in use by another program")
        ended = threading.Event()

        def renew() -> None:
            now = time.time()
            self._fs.pipe_file(path, msgspec.json.encode([self._token, now]))
            self._held_until = now + LEASE_SECONDS

        def is_ours() -> bool:
            return (found := self._load(path)) is not None and found[0] == self._token

        def keep() -> None:
            while not ended.wait(_RENEW_SECONDS):
                with suppress(Exception):
                    if is_ours():
                        renew()

        renew()
        if not is_ours():
            raise BlockStoreError(f"{self._place}: the block store is in use by another program")
        threading.Thread(target=keep, name="belljar-lease", daemon=True).start()

        def release() -> None:
            ended.set()
            self._held_until = inf
            with suppress(Exception):
                if is_ours():
                    self._fs.rm_file(path)

        return release

    def _load(self, path: str) -> list[Any] | None:
        try:
            return msgspec.json.decode(self._fs.cat_file(path), type=list[Any])
        except (OSError, msgspec.MsgspecError):
            return None

    def list(self, context: BlockContext) -> Sequence[int]:
        path = f"{self._place}/base.json"
        known = self._load(path)
        _check_base(None if known is None else (str(known[0]), int(known[1])), context, self.block_size, self._place)
        if known is None:
            self._fs.pipe_file(path, msgspec.json.encode([context.base, self.block_size]))
        self._fs.invalidate_cache()
        names = [str(name).rpartition("/")[2] for name in self._fs.ls(self._place, detail=False)]
        return [int(name.removesuffix(".block"), 16) for name in names if name.endswith(".block")]

    def _name(self, index: int) -> str:
        return f"{self._place}/{index:012x}.block"

    def read(self, range: BlockRange, context: BlockContext) -> Sequence[Chunk]:
        found = []
        for index in _indices(range):
            with suppress(FileNotFoundError):
                found.append((index, self._fs.cat_file(self._name(index))))
        return found

    def write(self, chunks: Sequence[Chunk], context: BlockContext) -> None:
        if time.time() > self._held_until:
            raise BlockStoreError(
                f"{self._place}: the lease could not be renewed for {LEASE_SECONDS:g} s: the block store may be "
                "another program's by now"
            )
        self._fs.pipe({self._name(index): data for index, data in chunks})
