"""The store that comes with belljar: one SQLite file, whose transactions are what makes it durable."""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final
from weakref import WeakSet

from belljar.store.compression import compress, decompress
from belljar.store.errors import RefConflict, StoreError
from belljar.store.files_host import make_directory, make_file, sync_directory
from belljar.store.objects import Digest
from belljar.store.store import Store, Swept, check_name

_APPLICATION: Final = 0x62656C6A
"""PRAGMA application_id: "belj"."""
_VERSION: Final = 1
_BUSY_SECONDS: Final = 60.0
_ASKED_AT_ONCE: Final = 500
"""Placeholders in one statement; SQLite's own limit may be 999."""
_SCHEMA: Final = """
CREATE TABLE objects (digest BLOB NOT NULL UNIQUE, data BLOB NOT NULL);
CREATE TABLE condemned (digest BLOB PRIMARY KEY, since REAL NOT NULL) WITHOUT ROWID;
CREATE TABLE refs (name TEXT PRIMARY KEY, digest BLOB NOT NULL) WITHOUT ROWID;
"""
_SETTINGS: Final = (
    "PRAGMA trusted_schema = OFF",
    "PRAGMA cell_size_check = ON",
    # As FULL, and durable also where a file system gives no WAL.
    "PRAGMA synchronous = EXTRA",
    # macOS: fsync(2) leaves the data in the drive's cache.
    "PRAGMA fullfsync = ON",
    "PRAGMA checkpoint_fullfsync = ON",
)


class _Slot:
    """One connection, and the lock by which threads take turns."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.connection: sqlite3.Connection | None = None
        _slots.add(self)

    def close(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.close()


_slots: Final[WeakSet[_Slot]] = WeakSet()
_held: Final[list[_Slot]] = []
"""Those that a fork under way has locked."""


def _before_fork() -> None:
    """Close every connection between its transactions. SQLite in a child would believe that it holds the locks of the
    connections that it inherits, and lose what it writes.
    """
    for slot in list(_slots):
        slot.lock.acquire()
        _held.append(slot)
        with suppress(sqlite3.Error):
            slot.close()


def _after_fork() -> None:
    while _held:
        _held.pop().lock.release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)


class SqliteStore(Store):
    """Any number of processes and threads may use one file. Reading does not wait for a writer."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = os.path.abspath(os.path.expanduser(path))
        self._reader, self._writer = _Slot(), _Slot()
        self._file: tuple[int, int] | None = None
        """Device and inode of the file that was opened first: no other one is taken for it."""

    def __repr__(self) -> str:
        return f"Store.sqlite({self._path!r})"

    def read(self, digests: Sequence[Digest]) -> Mapping[Digest, bytes]:
        with self._transaction() as connection:
            rows = list(_select(connection, "SELECT digest, CAST(data AS BLOB) FROM objects WHERE digest IN", digests))
        return {digest: decompress(data) for digest, data in rows}

    def missing(self, digests: Collection[Digest]) -> set[Digest]:
        there = "SELECT digest FROM objects WHERE digest IN"
        condemned = "SELECT digest FROM condemned WHERE digest IN"
        with self._transaction() as connection:
            found = {digest for (digest,) in _select(connection, there, list(digests))}
            found -= {digest for (digest,) in _select(connection, condemned, list(digests))}
        return set(digests) - found

    def write(self, objects: Mapping[Digest, bytes]) -> None:
        kept = list(zip(objects, compress(objects.values()), strict=True))
        with self._transaction(writes=True) as connection:
            # What is there may be damaged, so it is replaced.
            connection.executemany("INSERT OR REPLACE INTO objects VALUES (?, ?)", kept)
            connection.executemany("DELETE FROM condemned WHERE digest = ?", ((digest,) for digest in objects))

    def get(self, name: str) -> Digest | None:
        with self._transaction() as connection:
            return _get(connection, name)

    def list(self, prefix: str = "") -> dict[str, Digest]:
        with self._transaction() as connection:
            rows = connection.execute("SELECT name, digest FROM refs ORDER BY name").fetchall()
        return {name: digest for name, digest in rows if name.startswith(prefix)}

    def set(self, name: str, digest: Digest, expected: Digest | None) -> None:
        with self._transaction(writes=True) as connection:
            if _get(connection, name) != expected:
                raise RefConflict(name)
            connection.execute("INSERT OR REPLACE INTO refs VALUES (?, ?)", (name, digest))

    def delete(self, name: str, expected: Digest) -> None:
        with self._transaction(writes=True) as connection:
            if _get(connection, name) != expected:
                raise RefConflict(name)
            connection.execute("DELETE FROM refs WHERE name = ?", (name,))

    def sweep(self, needed: Collection[Digest], now: float, grace: float) -> Swept:
        due = "FROM objects WHERE digest IN (SELECT digest FROM condemned WHERE since <= ?)"
        new = "FROM objects WHERE digest NOT IN (SELECT digest FROM needed UNION ALL SELECT digest FROM condemned)"
        with self._transaction(writes=True) as connection:
            connection.execute("CREATE TEMP TABLE needed (digest BLOB PRIMARY KEY) WITHOUT ROWID")
            connection.executemany("INSERT INTO needed VALUES (?)", ((digest,) for digest in needed))
            connection.execute("DELETE FROM condemned WHERE digest IN (SELECT digest FROM needed)")
            removed, size = connection.execute(
                f"SELECT count(*), coalesce(sum(length(data)), 0) {due}", (now - grace,)
            ).fetchone()
            connection.execute(f"DELETE {due}", (now - grace,))
            connection.execute("DELETE FROM condemned WHERE since <= ?", (now - grace,))
            (condemned,) = connection.execute(f"SELECT count(*) {new}").fetchone()
            connection.execute(f"INSERT INTO condemned SELECT digest, ? {new}", (now,))
            connection.execute("DROP TABLE needed")
            connection.executescript("PRAGMA incremental_vacuum")  # it commits first
        return Swept(condemned, removed, size)

    def digests(self) -> Iterator[Digest]:
        with self._transaction() as connection:
            rows = connection.execute("SELECT digest FROM objects").fetchall()
        for (digest,) in rows:
            yield digest

    def close(self) -> None:
        for slot in (self._reader, self._writer):
            with slot.lock:
                slot.close()
        self._file = None

    @contextmanager
    def _transaction(self, *, writes: bool = False) -> Iterator[sqlite3.Connection]:
        """One transaction: all or nothing of what is done inside. Raises StoreError for what SQLite says."""
        slot = self._writer if writes else self._reader
        with slot.lock:
            try:
                if writes or slot.connection is None:
                    self._check_file()
                if slot.connection is None:
                    slot.connection = self._connect()
                connection = slot.connection
                connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
                try:
                    yield connection
                except BaseException:
                    connection.rollback()
                    raise
                connection.commit()
            except (sqlite3.Error, OSError) as error:
                with suppress(sqlite3.Error):
                    slot.close()  # the next call begins afresh
                raise StoreError(f"the store {self._path}: {error}{_advice(error)}") from error

    def _check_file(self) -> None:
        """StoreError if the file was removed, or another one is in its place: what is written would be lost."""
        if self._file is None:
            return
        try:
            found = os.stat(self._path)
        except FileNotFoundError:
            raise StoreError(f"the store {self._path}: its file was removed while it was in use") from None
        if (found.st_dev, found.st_ino) != self._file:
            raise StoreError(f"the store {self._path}: its file was replaced by another one while it was in use")

    def _connect(self) -> sqlite3.Connection:
        make_directory(os.path.dirname(self._path))
        make_file(self._path)
        connection = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        try:
            self._prepare(connection)
            # SQLite does so only if it made the WAL; it may have been another connection, which does not write.
            sync_directory(os.path.dirname(self._path))
            found = os.stat(self._path)
            self._file = self._file or (found.st_dev, found.st_ino)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        for setting in _SETTINGS:
            connection.execute(setting)
        if _identity(connection) == (0, 0) and not _tables(connection):
            _create(connection)
        application, version = _identity(connection)
        if application != _APPLICATION:
            raise StoreError(f"{self._path} is an SQLite file of another program: choose another path")
        if version != _VERSION:
            raise StoreError(f"{self._path} is a store of version {version}; this belljar knows version {_VERSION}")
        with suppress(sqlite3.OperationalError):  # another process is at it: then it is soon done, or tried again
            connection.execute("PRAGMA journal_mode = WAL").fetchall()


def _create(connection: sqlite3.Connection) -> None:
    """Make an empty file a store, unless another process has just done so."""
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    connection.execute("BEGIN IMMEDIATE")
    if not _tables(connection):
        for statement in _SCHEMA.split(";"):
            connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {_APPLICATION}")
        connection.execute(f"PRAGMA user_version = {_VERSION}")
    connection.execute("COMMIT")


def _identity(connection: sqlite3.Connection) -> tuple[int, int]:
    """The program that a file belongs to, and the version of its format."""
    (application,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return application, version


def _tables(connection: sqlite3.Connection) -> int:
    (count,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    return int(count)


def _get(connection: sqlite3.Connection, name: str) -> Digest | None:
    rows = connection.execute("SELECT digest FROM refs WHERE name = ?", (check_name(name),)).fetchall()
    return rows[0][0] if rows else None


def _select(connection: sqlite3.Connection, query: str, digests: Sequence[Digest]) -> Iterator[tuple[bytes, ...]]:
    for start in range(0, len(digests), _ASKED_AT_ONCE):
        some = digests[start : start + _ASKED_AT_ONCE]
        yield from connection.execute(f"{query} ({','.join('?' * len(some))})", some)


def _advice(error: Exception) -> str:
    """Say what to do next, where SQLite's own text does not."""
    text = str(error)
    if "full" in text:
        return ": free some space; what was acknowledged is safe"
    if "malformed" in text or "not a database" in text:
        return ": move it away, or restore it from a copy"
    if "readonly" in text or "unable to open" in text:
        return ": is its directory there, and may you write to it?"
    if "locked" in text:
        return f": another process has held it for {_BUSY_SECONDS:g} s"
    return ""
