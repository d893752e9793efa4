"""SQLite over a disk that forgets: a VFS that records, and what of the module `sqlite3` the store uses over it.

As SQLite's own VFS does, the first sync of a new journal or WAL syncs the directory, too.
"""

from __future__ import annotations

import errno
import itertools
import os
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import Any

import apsw

from tests.store.powercut import Disk, Fault

JOURNALS = apsw.SQLITE_OPEN_MAIN_JOURNAL | apsw.SQLITE_OPEN_SUPER_JOURNAL | apsw.SQLITE_OPEN_WAL
_names = itertools.count()


def _error(fault: Fault, otherwise: type[Exception]) -> Exception:
    """The error by which SQLite's own VFS would tell of an errno."""
    return apsw.FullError("full") if fault.args[0] == errno.ENOSPC else otherwise(os.strerror(fault.args[0]))


class RecordingVFS(apsw.VFS):
    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self.name = f"recording {next(_names)}"
        super().__init__(self.name, "")

    def xOpen(self, name: Any, flags: list[int]) -> apsw.VFSFile:
        return RecordingFile(self.disk, name, flags)

    def xDelete(self, filename: str, syncdir: bool) -> None:
        try:
            self.disk.call()
        except Fault as fault:
            raise apsw.IOError(os.strerror(fault.args[0])) from None
        super().xDelete(filename, syncdir)
        self.disk.removed(filename)
        if syncdir:
            self.disk.synced(self.disk.inode(os.path.dirname(filename)))


class RecordingFile(apsw.VFSFile):
    def __init__(self, disk: Disk, name: Any, flags: list[int]) -> None:
        self.disk = disk
        path = name.filename() if isinstance(name, apsw.URIFilename) else name
        self.recorded = path is not None and disk.covers(path)
        self.new_journal = False
        if self.recorded and not os.path.exists(path):
            try:
                disk.call()
            except Fault as fault:
                raise apsw.CantOpenError(os.strerror(fault.args[0])) from None
            super().__init__("", name, flags)
            disk.named(path)
            self.new_journal = bool(flags[0] & JOURNALS)
        else:
            super().__init__("", name, flags)
        self.path = path
        self.inode = disk.inode(path) if self.recorded else -1

    def xWrite(self, data: bytes, offset: int) -> None:
        if self.recorded:
            try:
                self.disk.call()
            except Fault as fault:
                raise _error(fault, apsw.IOError) from None
            self.disk.wrote(self.inode, offset, data)
        super().xWrite(data, offset)

    def xTruncate(self, newsize: int) -> None:
        if self.recorded:
            self.disk.truncated(self.inode, newsize)
        super().xTruncate(newsize)

    def xSync(self, flags: int) -> None:
        if self.recorded:
            try:
                self.disk.call()
            except Fault as fault:
                self.disk.synced(self.inode, failed=True)
                raise apsw.IOError(os.strerror(fault.args[0])) from None
            self.disk.synced(self.inode)
            if self.new_journal:
                self.disk.synced(self.disk.inode(os.path.dirname(self.path)))
                self.new_journal = False


class Connection:
    """As much of `sqlite3.Connection` as the store uses."""

    def __init__(self, vfs: str, path: str) -> None:
        try:
            self._connection = apsw.Connection(path, vfs=vfs)
        except apsw.Error as error:
            raise sqlite3.OperationalError(str(error)) from error

    def execute(self, statement: str, bindings: Sequence[Any] = ()) -> Rows:
        try:
            return Rows(self._connection.execute(statement, bindings).fetchall())
        except apsw.Error as error:
            raise sqlite3.OperationalError(str(error)) from error

    def executemany(self, statement: str, many: Iterable[Sequence[Any]]) -> None:
        for bindings in many:
            self.execute(statement, bindings)

    def executescript(self, script: str) -> None:
        self.commit()
        self.execute(script)

    def commit(self) -> None:
        if self._connection.in_transaction:
            self.execute("COMMIT")

    def rollback(self) -> None:
        if self._connection.in_transaction:
            self.execute("ROLLBACK")

    def close(self) -> None:
        with suppress(apsw.Error):  # of the last checkpoint: `sqlite3` does not tell, either
            self._connection.close()


class Rows(list[Any]):
    def fetchall(self) -> list[Any]:
        return self

    def fetchone(self) -> Any:
        return self[0]


class RecordingSqlite:
    """The module `sqlite3`, for the store: its connections use a recording VFS."""

    Error = sqlite3.Error
    OperationalError = sqlite3.OperationalError

    def __init__(self, disk: Disk) -> None:
        self._vfs = RecordingVFS(disk)

    def connect(self, path: str, **_: Any) -> Connection:
        return Connection(self._vfs.name, path)
