"""What the server must remember: one SQLite file with tenants, keys, sandboxes, snapshots, usage and an audit log."""

from __future__ import annotations

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

from msgspec import Struct

from belljar.api.errors import SandboxError

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS secret (name TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS tenant (
    id TEXT PRIMARY KEY, created REAL NOT NULL, quota TEXT NOT NULL DEFAULT '{}');
CREATE TABLE IF NOT EXISTS key (
    id TEXT PRIMARY KEY, tenant TEXT NOT NULL REFERENCES tenant(id), hash BLOB NOT NULL, name TEXT NOT NULL,
    scope TEXT NOT NULL, created REAL NOT NULL, revoked REAL);
CREATE TABLE IF NOT EXISTS sandbox (
    id TEXT PRIMARY KEY, tenant TEXT NOT NULL, state TEXT NOT NULL, record TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS sandbox_tenant ON sandbox(tenant);
CREATE TABLE IF NOT EXISTS snapshot (
    id TEXT PRIMARY KEY, tenant TEXT NOT NULL, sandbox TEXT NOT NULL, name TEXT, ref TEXT NOT NULL,
    template TEXT NOT NULL, created REAL NOT NULL);
CREATE INDEX IF NOT EXISTS snapshot_tenant ON snapshot(tenant, created);
CREATE TABLE IF NOT EXISTS usage (
    tenant TEXT NOT NULL, hour INTEGER NOT NULL, name TEXT NOT NULL, amount REAL NOT NULL,
    PRIMARY KEY (tenant, hour, name));
CREATE TABLE IF NOT EXISTS template (
    id TEXT PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, created REAL NOT NULL, spawned REAL,
    spawns INTEGER NOT NULL DEFAULT 0, UNIQUE (tenant, name));
CREATE TABLE IF NOT EXISTS build (
    id TEXT PRIMARY KEY, template TEXT NOT NULL REFERENCES template(id) ON DELETE CASCADE, status TEXT NOT NULL,
    created REAL NOT NULL, finished REAL, image TEXT, start TEXT NOT NULL DEFAULT '', ready TEXT NOT NULL DEFAULT '',
    reason TEXT NOT NULL DEFAULT '', step TEXT NOT NULL DEFAULT '', tags TEXT NOT NULL DEFAULT '',
    user TEXT NOT NULL DEFAULT '', cwd TEXT NOT NULL DEFAULT '');
CREATE INDEX IF NOT EXISTS build_template ON build(template, created);
CREATE TABLE IF NOT EXISTS tag (
    template TEXT NOT NULL REFERENCES template(id) ON DELETE CASCADE, name TEXT NOT NULL,
    build TEXT NOT NULL REFERENCES build(id) ON DELETE CASCADE, created REAL NOT NULL, PRIMARY KEY (template, name));
CREATE TABLE IF NOT EXISTS volume (
    id TEXT PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, created REAL NOT NULL, UNIQUE (tenant, name));
CREATE TABLE IF NOT EXISTS credential (
    id TEXT PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, value TEXT NOT NULL, version INTEGER NOT NULL,
    metadata TEXT NOT NULL, created REAL NOT NULL, updated REAL NOT NULL, UNIQUE (tenant, name));
CREATE TABLE IF NOT EXISTS audit (
    at REAL NOT NULL, tenant TEXT NOT NULL, key TEXT NOT NULL, request TEXT NOT NULL, action TEXT NOT NULL,
    subject TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS session (
    hash BLOB PRIMARY KEY, key TEXT NOT NULL REFERENCES key(id), expires REAL NOT NULL);
PRAGMA user_version = 1;
"""
_VERSION: Final = 1
_AUDIT_KEPT: Final = 1_000_000
"""Lines of the audit log; the oldest go."""


class DataError(SandboxError):
    """The server's own file can't be used."""


class Key(Struct, frozen=True):
    """An API key as it is kept: its secret part only as a hash."""

    id: str
    tenant: str
    hash: bytes
    name: str
    scope: str
    created: float
    revoked: float | None


class SnapshotRow(Struct, frozen=True):
    id: str
    tenant: str
    sandbox: str
    name: str | None
    ref: str
    template: str
    created: float


class Database:
    """Used by one thread at a time. What `durable()` wraps survives a power cut when it returns; the rest a kill -9."""

    def __init__(self, path: str | None) -> None:
        """`path` None: memory. DataError."""
        try:
            self._connection = _connect(path)
        except (sqlite3.Error, OSError) as error:
            raise DataError(f"the server's file {path} can't be used: {error}") from None
        self._lock: int | None = None
        self._path = path

    def close(self) -> None:
        self._connection.close()
        if self._lock is not None:
            os.close(self._lock)

    def claim(self) -> None:
        """Be the only server on this file until this process ends. DataError if another one is."""
        if self._path is None:
            return
        self._lock = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise DataError(f"another server uses {self._path}: stop it, or choose another --data") from None

    @contextmanager
    def durable(self) -> Iterator[None]:
        """Sync to disk what is written inside."""
        self._connection.execute("PRAGMA synchronous = FULL")
        try:
            with self._transaction():
                yield
        finally:
            self._connection.execute("PRAGMA synchronous = NORMAL")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")

    def rows(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        return self._connection.execute(sql, values).fetchall()

    def write(self, sql: str, *values: Any) -> int:
        """Change something, durably; gives the number of rows it changed. sqlite3.Error."""
        with self.durable():
            return self._connection.execute(sql, values).rowcount

    def one(self, sql: str, *values: Any) -> tuple[Any, ...] | None:
        row: tuple[Any, ...] | None = self._connection.execute(sql, values).fetchone()
        return row

    def check(self) -> None:
        """Raises if the file can't be read any more. sqlite3.Error."""
        self.one("SELECT 1 FROM tenant")

    def secret(self, name: str) -> bytes:
        """A random value of the server's own, made when it is first asked for."""
        with self.durable():
            self._connection.execute("INSERT OR IGNORE INTO secret VALUES (?, ?)", (name, os.urandom(32)))
        row = self.one("SELECT value FROM secret WHERE name = ?", name)
        assert row is not None
        return bytes(row[0])

    def add_tenant(self, tenant: str, now: float, quota: str | None = None) -> None:
        """Make a tenant, or change the quota of one, a JSON object."""
        with self.durable():
            self._connection.execute("INSERT OR IGNORE INTO tenant (id, created) VALUES (?, ?)", (tenant, now))
            if quota is not None:
                self._connection.execute("UPDATE tenant SET quota = ? WHERE id = ?", (quota, tenant))

    def quota(self, tenant: str) -> str:
        row = self.one("SELECT quota FROM tenant WHERE id = ?", tenant)
        return "{}" if row is None else str(row[0])

    def add_key(self, key: Key) -> None:
        with self.durable():
            self._connection.execute(
                "INSERT INTO key VALUES (?, ?, ?, ?, ?, ?, ?)",
                (key.id, key.tenant, key.hash, key.name, key.scope, key.created, None),
            )

    def key(self, number: str) -> Key | None:
        row = self.one("SELECT id, tenant, hash, name, scope, created, revoked FROM key WHERE id = ?", number)
        return None if row is None else Key(*row)

    def list_keys(self) -> list[Key]:
        return [
            Key(*row)
            for row in self.rows("SELECT id, tenant, hash, name, scope, created, revoked FROM key ORDER BY created")
        ]

    def revoke(self, number: str, now: float) -> bool:
        """False if there is no such key that is valid."""
        with self.durable():
            done = self._connection.execute(
                "UPDATE key SET revoked = ? WHERE id = ? AND revoked IS NULL", (now, number)
            )
        return done.rowcount == 1

    def add_session(self, digest: bytes, key: str, expires: float, now: float) -> None:
        """Remember that somebody signed in to the console with a key; sessions that are over are forgotten."""
        with self._transaction():
            self._connection.execute("DELETE FROM session WHERE expires <= ?", (now,))
            self._connection.execute("INSERT INTO session VALUES (?, ?, ?)", (digest, key, expires))

    def session(self, digest: bytes, now: float) -> Key | None:
        """The valid key that somebody signed in with."""
        row = self.one("SELECT key FROM session WHERE hash = ? AND expires > ?", digest, now)
        key = None if row is None else self.key(str(row[0]))
        return key if key is not None and key.revoked is None else None

    def drop_session(self, digest: bytes) -> None:
        self._connection.execute("DELETE FROM session WHERE hash = ?", (digest,))

    def put_sandbox(self, number: str, tenant: str, state: str, record: str, *, durable: bool = False) -> None:
        row = (number, tenant, state, record)
        if durable:
            with self.durable():
                self._connection.execute("INSERT OR REPLACE INTO sandbox VALUES (?, ?, ?, ?)", row)
        else:
            self._connection.execute("INSERT OR REPLACE INTO sandbox VALUES (?, ?, ?, ?)", row)

    def sandboxes(self) -> list[tuple[str, str]]:
        """State and record of each."""
        return [(str(state), str(record)) for state, record in self.rows("SELECT state, record FROM sandbox")]

    def needs_store(self) -> bool:
        """Whether there is a paused sandbox or a snapshot."""
        sql = "SELECT 1 FROM sandbox WHERE state = 'paused' UNION SELECT 1 FROM snapshot"
        return self.one(sql) is not None

    def drop_sandbox(self, number: str) -> None:
        self._connection.execute("DELETE FROM sandbox WHERE id = ?", (number,))

    def add_snapshot(self, row: SnapshotRow) -> None:
        with self.durable():
            self._connection.execute(
                "INSERT INTO snapshot VALUES (?, ?, ?, ?, ?, ?, ?)",
                (row.id, row.tenant, row.sandbox, row.name, row.ref, row.template, row.created),
            )

    def snapshots(self, tenant: str) -> list[SnapshotRow]:
        """Newest first."""
        rows = self.rows("SELECT * FROM snapshot WHERE tenant = ? ORDER BY created DESC, id", tenant)
        return [SnapshotRow(*row) for row in rows]

    def snapshot_name(self, tenant: str, number: str) -> str | None:
        row = self.one("SELECT name FROM snapshot WHERE tenant = ? AND id = ?", tenant, number)
        return None if row is None else row[0]

    def refers(self, ref: str) -> bool:
        """Whether a snapshot of any tenant is this one of the store."""
        return self.one("SELECT 1 FROM snapshot WHERE ref = ?", ref) is not None

    def drop_snapshot(self, number: str) -> None:
        with self.durable():
            self._connection.execute("DELETE FROM snapshot WHERE id = ?", (number,))

    def add_usage(self, amounts: dict[tuple[str, int, str], float]) -> None:
        """Add to counters, by tenant, hour since 1970 and name."""
        with self._transaction():
            self._connection.executemany(
                "INSERT INTO usage VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET amount = amount + excluded.amount",
                [(*key, amount) for key, amount in amounts.items()],
            )

    def usage(self, tenant: str | None = None) -> list[tuple[str, int, str, float]]:
        sql = "SELECT tenant, hour, name, amount FROM usage WHERE ? IS NULL OR tenant = ? ORDER BY 1, 2, 3"
        return [
            (str(who), int(hour), str(name), float(much)) for who, hour, name, much in self.rows(sql, tenant, tenant)
        ]

    def audit(self, at: float, tenant: str, key: str, request: str, action: str, subject: str) -> None:
        done = self._connection.execute(
            "INSERT INTO audit VALUES (?, ?, ?, ?, ?, ?)", (at, tenant, key, request, action, subject)
        )
        if done.lastrowid is not None and done.lastrowid % 1000 == 0:
            self._connection.execute("DELETE FROM audit WHERE rowid <= ?", (done.lastrowid - _AUDIT_KEPT,))

    def audited(self, tenant: str | None = None, most: int = 1000) -> list[tuple[Any, ...]]:
        """The newest lines first."""
        sql = "SELECT * FROM audit WHERE ? IS NULL OR tenant = ? ORDER BY rowid DESC LIMIT ?"
        return self.rows(sql, tenant, tenant, most)


def _connect(path: str | None) -> sqlite3.Connection:
    if path is not None:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(path or ":memory:", isolation_level=None, timeout=10.0, check_same_thread=False)
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if version > _VERSION:
        raise sqlite3.DatabaseError("it was written by a newer version of belljar")
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA foreign_keys = ON")
    connection.executescript(_SCHEMA)
    return connection
