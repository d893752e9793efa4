"""Bundles as files of this machine."""

from __future__ import annotations

import os
from contextlib import suppress

from belljar.abi.errors import SnapshotError
from belljar.store.bundle import read_bundle, write_bundle
from belljar.store.objects import Digest
from belljar.store.store import Objects


def export_bundle(objects: Objects, digest: Digest, path: str | os.PathLike[str]) -> None:
    """Write a snapshot to a file, which is replaced when all of it is written. SnapshotError, StoreError."""
    unfinished = f"{os.fspath(path)}.{os.getpid()}.part"
    try:
        try:
            with open(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
                write_bundle(objects, digest, file.write)
                file.flush()
                os.fsync(file.fileno())
            os.replace(unfinished, path)
        except BaseException:
            with suppress(OSError):
                os.unlink(unfinished)
            raise
    except OSError as error:
        raise SnapshotError(f"can't write {os.fspath(path)!r}: {error.strerror}") from error


def import_bundle(objects: Objects, path: str | os.PathLike[str]) -> Digest:
    """Keep the snapshot of a file in a store. SnapshotError, StoreError."""
    try:
        with open(path, "rb") as file:
            return read_bundle(file, objects)
    except SnapshotError as error:
        raise SnapshotError(f"{os.fspath(path)!r}: {error}") from None
    except OSError as error:
        raise SnapshotError(f"can't read {os.fspath(path)!r}: {error.strerror}") from error
