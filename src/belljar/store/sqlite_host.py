"""The store that comes with belljar: one SQLite file, whose transactions are what makes it durable."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from belljar.store.compression import compress, decompress
from belljar.store.errors import RefConflict, StoreError
from belljar.store.objects import Digest
from belljar.store.store import Store, Swept, check_name

_APPLICATION: Final = 0x62656C6A
"""PRAGMA application_id: "belj"."""
_VERSION: Final = 1
_BUSY_SECONDS: Final = 60.0
_ASKED_AT_ONCE: Final = 500
"""Placeholders in one statement; SQLite's own limit may be 999."""
_SCHEMA: Final = """
CREATE TABLE objects (digest BLOB NOT NULL UNIQUE, data BLOB NOT NULL, condemned REAL);
CREATE TABLE refs (name TEXT PRIMARY KEY, digest BLOB NOT NULL, changed REAL NOT NULL) WITHOUT ROWID;
"""


class SqliteStore(Store):
    """Any number of processes and threads may use one file. A connection is not carried over a fork: each process has
    its own.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path).expanduser()
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._owner = 0

    def read(self, digests: Sequence[Digest]) -> Mapping[Digest, bytes]:
        with self._transaction() as connection:
            rows = list(_select(connection, "SELECT digest, data FROM objects WHERE digest IN", digests))
        return {digest: decompress(data) for digest, data in rows}

    def missing(self, digests: Collection[Digest]) -> set[Digest]:
        query = "SELECT digest FROM objects WHERE condemned IS NULL AND digest IN"
        with self._transaction() as connection:
            return set(digests) - {digest for (digest,) in _select(connection, query, list(digests))}

    def write(self, objects: Mapping[Digest, bytes]) -> None:
        rows = [(digest, compress(data)) for digest, data in objects.items()]
        with self._transaction(writes=True) as connection:
            # What is there may be damaged, so it is replaced.
            connection.executemany("INSERT OR REPLACE INTO objects (digest, data) VALUES (?, ?)", rows)

    def get(self, name: str) -> Digest | None:
        with self._transaction() as connection:
            return _get(connection, name)

    def list(self, prefix: str = "") -> dict[str, Digest]:
        with self._transaction() as connection:
            rows = connection.execute("SELECT name, digest FROM refs ORDER BY name").fetchall()
        return {name: digest for name, digest in rows if name.startswith(prefix)}

    def set(self, name: str, digest: Digest, expected: Digest | None) -> None:
        with self._transaction(writes=True) as connection:
            if _get(connection, check_name(name)) != expected:
                raise RefConflict(name)
            connection.execute("INSERT OR REPLACE INTO refs VALUES (?, ?, ?)", (name, digest, time.time()))

    def delete(self, name: str, expected: Digest) -> None:
        with self._transaction(writes=True) as connection:
            if _get(connection, name) != expected:
                raise RefConflict(name)
            connection.execute("DELETE FROM refs WHERE name = ?", (name,))

    def sweep(self, needed: Collection[Digest], now: float, grace: float) -> Swept:
        with self._transaction(writes=True) as connection:
            connection.execute("CREATE TEMP TABLE needed (digest BLOB PRIMARY KEY) WITHOUT ROWID")
            connection.executemany("INSERT INTO needed VALUES (?)", ((digest,) for digest in needed))
            connection.execute(
                "UPDATE objects SET condemned = NULL WHERE condemned IS NOT NULL AND digest IN (SELECT * FROM needed)"
            )
            old = "FROM objects WHERE condemned <= ?"
            removed, size = connection.execute(
                f"SELECT count(*), coalesce(sum(length(data)), 0) {old}",
                (now - grace,),
            ).fetchone()
            connection.execute(f"DELETE {old}", (now - grace,))
            condemned = connection.execute(
                "UPDATE objects SET condemned = ? WHERE condemned IS NULL AND digest NOT IN (SELECT * FROM needed)",
                (now,),
            ).rowcount
            connection.execute("DROP TABLE needed")
        return Swept(condemned, removed, size)

    def digests(self) -> Iterator[Digest]:
        with self._transaction() as connection:
            rows = connection.execute("SELECT digest FROM objects").fetchall()
        for (digest,) in rows:
            yield digest

    def close(self) -> None:
        with self._lock:
            if self._connection is not None and self._owner == os.getpid():
                self._connection.close()
            self._connection = None

    @contextmanager
    def _transaction(self, *, writes: bool = False) -> Iterator[sqlite3.Connection]:
        """One transaction: all or nothing of what is done inside. Raises StoreError for what SQLite says."""
        with self._lock:
            try:
                connection = self._connect()
                connection.execute("BEGIN IMMEDIATE" if writes else "BEGIN")
                try:
                    yield connection
                except BaseException:
                    connection.rollback()
                    raise
                connection.commit()
            except (sqlite3.Error, OSError) as error:
                self.close()  # the next call begins afresh
                raise StoreError(f"the store {self._path}: {error}{_advice(error)}") from error

    def _connect(self) -> sqlite3.Connection:
        if self._connection is None or self._owner != os.getpid():
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            connection = sqlite3.connect(
                self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
            self._connection, self._owner = connection, os.getpid()
        return self._connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA trusted_schema = OFF")
        connection.execute("PRAGMA synchronous = FULL")
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if (application, version) == (0, 0) and not _tables(connection):
            application, version = self._create(connection)
        if application != _APPLICATION:
            raise StoreError(f"{self._path} is an SQLite file of another program: choose another path")
        if version != _VERSION:
            raise StoreError(f"{self._path} is a store of version {version}; this belljar knows version {_VERSION}")

    def _create(self, connection: sqlite3.Connection) -> tuple[int, int]:
        """Make an empty file a store, unless another process has just done so. Its application and version."""
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("BEGIN IMMEDIATE")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0 and not _tables(connection):
            for statement in _SCHEMA.split(";"):
                connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {_VERSION}")
        connection.execute("COMMIT")
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        return application, version


def _tables(connection: sqlite3.Connection) -> int:
    (count,) = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()
    return int(count)


def _get(connection: sqlite3.Connection, name: str) -> Digest | None:
    with closing(connection.execute("SELECT digest FROM refs WHERE name = ?", (name,))) as found:
        row = found.fetchone()
    return None if row is None else row[0]


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
