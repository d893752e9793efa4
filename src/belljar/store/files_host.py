"""Whole files under a directory or a bucket, each written once: all that a store of packs needs of its backend."""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeVar

from belljar.abi.install import install_hint
from belljar.store.errors import StoreError

_Result = TypeVar("_Result")

UNFINISHED = "unfinished"
"""Folder of files that are being written; those of writers that ended are left there."""


class Files(Protocol):
    """Files by name, FOLDER/NAME or NAME. Methods raise OSError; FileNotFoundError if there is no such file."""

    def create(self, name: str, data: bytes) -> None:
        """Write a file that does not exist; it is durable when it returns. FileExistsError if it exists.

        Whatever ends the writer midway may leave a part of it, or nothing.
        """

    def read(self, names: Sequence[str]) -> dict[str, bytes]:
        """The files that there are, of those asked for."""

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Parts of a file, each from a start to an end."""

    def names(self, folder: str) -> list[str]:
        """Names of the files in a folder, without the folder; none if it does not exist."""

    def sync(self, folder: str) -> None:
        """Make durable what is in a folder and what is not, whoever created or deleted it."""

    def remove(self, name: str) -> None:
        """Delete a file, if it is there."""


def files_at(url: str) -> Files:
    """The files at a URL or below a path. StoreError."""
    scheme, separator, path = url.partition("://")
    if not separator:
        return LocalFiles(url)
    return LocalFiles(path) if scheme in ("file", "local") else FsspecFiles(url)


class LocalFiles:
    """Files in a directory of this machine.

    A file is written under another name, synced, and then linked: what has its name is whole. The directory is synced
    before a file counts as written.
    """

    def __init__(self, root: str | os.PathLike[str]) -> None:
        self._root = os.path.abspath(os.path.expanduser(root))
        self._made: set[str] = set()

    def create(self, name: str, data: bytes) -> None:
        folder = name.rpartition("/")[0]
        path = self._path(name)
        scratch = self._path(f"{UNFINISHED}/{uuid.uuid4().hex}")
        for each in ("", folder, UNFINISHED):
            self._make(each)
        try:
            _write_file(scratch, data)
            os.link(scratch, path)
        finally:
            with suppress(OSError):
                os.unlink(scratch)
        _sync_name(path, os.unlink)

    def read(self, names: Sequence[str]) -> dict[str, bytes]:
        found: dict[str, bytes] = {}
        for name in names:
            with suppress(FileNotFoundError), open(self._path(name), "rb") as file:
                found[name] = file.read()
        return found

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        parts: list[bytes] = []
        with open(self._path(name), "rb", buffering=0) as file:
            for start, end in ranges:
                file.seek(start)
                parts.append(file.read(end - start))
        return parts

    def names(self, folder: str) -> list[str]:
        with suppress(FileNotFoundError):
            return os.listdir(self._path(folder))
        return []

    def sync(self, folder: str) -> None:
        with suppress(FileNotFoundError):
            sync_directory(self._path(folder))

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._path(name))

    def _path(self, name: str) -> str:
        return os.path.join(self._root, name) if name else self._root

    def _make(self, folder: str) -> None:
        if folder not in self._made:
            make_directory(self._path(folder))
            self._made.add(folder)


class FsspecFiles:
    """Files of any file system that fsspec knows: object stores, `memory://` and the like.

    Several writers of one ref need a file system that creates a file only where there is none, in one step: S3, GCS
    and `memory://` do.
    """

    def __init__(self, url: str) -> None:
        try:
            from fsspec.core import url_to_fs
        except ModuleNotFoundError:
            raise StoreError(f"a store at an address needs fsspec; {install_hint('fs')}") from None
        try:
            found: tuple[Any, str] = url_to_fs(url)
        except (ValueError, ImportError) as error:
            raise StoreError(f"no store at {url}: {error}") from error
        self._fs, root = found
        self._root = root.rstrip("/")
        self._made: set[str] = set()

    def create(self, name: str, data: bytes) -> None:
        path = self._path(name)
        folder = path.rpartition("/")[0]
        if folder not in self._made:
            _call(lambda: self._fs.makedirs(folder, exist_ok=True))
            self._made.add(folder)
        _call(lambda: self._fs.pipe_file(path, data, mode="create"))

    def read(self, names: Sequence[str]) -> dict[str, bytes]:
        found = _call(lambda: self._fs.cat_ranges([self._path(name) for name in names], 0, None, on_error="return"))
        read: dict[str, bytes] = {}
        for name, data in zip(names, found, strict=True):
            if isinstance(data, BaseException):
                with suppress(FileNotFoundError):
                    raise _os_error(data)
            else:
                read[name] = data
        return read

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        starts, ends = [start for start, _ in ranges], [end for _, end in ranges]
        paths = [self._path(name)] * len(ranges)
        parts: list[bytes] = _call(lambda: self._fs.cat_ranges(paths, starts, ends, on_error="raise"))
        return parts

    def names(self, folder: str) -> list[str]:
        self._fs.invalidate_cache()
        try:
            found: list[str] = _call(lambda: self._fs.ls(self._path(folder), detail=False))
        except FileNotFoundError:
            return []
        return [path.rstrip("/").rpartition("/")[2] for path in found]

    def sync(self, folder: str) -> None:
        return

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            _call(lambda: self._fs.rm_file(self._path(name)))

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"


def _call(ask: Callable[[], _Result]) -> _Result:
    """Ask a file system that somebody else wrote. OSError, whatever it raises."""
    try:
        return ask()
    except Exception as error:
        raise _os_error(error) from error


def _os_error(error: BaseException) -> OSError:
    return error if isinstance(error, OSError) else OSError(f"{type(error).__name__}: {error}")


def make_directory(path: str) -> None:
    """Make a directory, and those above it. They are durable when it returns."""
    parent = os.path.dirname(path)
    if not os.path.isdir(path):
        if parent != path:
            make_directory(parent)
        with suppress(FileExistsError):
            os.mkdir(path, 0o700)
    _sync_name(path, os.rmdir)  # though it was there: whoever made it may not have come so far


def make_file(path: str) -> None:
    """Make an empty file in an existing directory, if there is none of that name. It is durable when it returns."""
    with suppress(FileExistsError):
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        _sync_name(path, os.unlink)


def _sync_name(path: str, remove: Callable[[str], None]) -> None:
    """Make durable that a directory has a name; take the name back if that fails: a later sync would not fail again,
    and whoever finds the name would take it for durable.
    """
    try:
        sync_directory(os.path.dirname(path))
    except OSError:
        with suppress(OSError):
            remove(path)
        raise


def sync_directory(path: str) -> None:
    if sys.platform != "win32":  # which has no such call
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            _sync(directory)
        finally:
            os.close(directory)


def _write_file(path: str, data: bytes) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(file, rest) :]
        _sync(file)
    finally:
        os.close(file)


def _sync(descriptor: int) -> None:
    if sys.platform == "darwin":  # fsync(2) leaves the data in the drive's cache
        import fcntl

        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)
