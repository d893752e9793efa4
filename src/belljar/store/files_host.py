"""Whole files under a directory or a bucket, each written once: all that a store of packs needs of its backend."""

from __future__ import annotations

import os
import uuid
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from belljar.store.errors import StoreError


class Files(Protocol):
    """Files by name; `/` separates folders. Methods raise OSError; FileNotFoundError if there is no such file."""

    def create(self, name: str, data: bytes) -> None:
        """Write a file that does not exist, whole and durable when it returns. FileExistsError if it exists."""

    def read(self, name: str) -> bytes: ...

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        """Parts of a file, each from a start to an end."""

    def names(self, folder: str) -> list[str]:
        """Names of the files in a folder, without the folder; none if it does not exist."""

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
        self._root = Path(root).expanduser()

    def create(self, name: str, data: bytes) -> None:
        path = self._root / name
        self._make_directory(path.parent)
        scratch = path.parent / f".{uuid.uuid4().hex}"
        try:
            with open(scratch, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.link(scratch, path)
        finally:
            with suppress(FileNotFoundError):
                scratch.unlink()
        _sync_directory(path.parent)

    def read(self, name: str) -> bytes:
        return (self._root / name).read_bytes()

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        with open(self._root / name, "rb") as file:
            return [os.pread(file.fileno(), end - start, start) for start, end in ranges]

    def names(self, folder: str) -> list[str]:
        with suppress(FileNotFoundError):
            return [name for name in os.listdir(self._root / folder) if not name.startswith(".")]
        return []

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            (self._root / name).unlink()

    def _make_directory(self, path: Path) -> None:
        if not path.is_dir():
            self._make_directory(path.parent)
            with suppress(FileExistsError):
                path.mkdir(mode=0o700)
            _sync_directory(path.parent)


class FsspecFiles:
    """Files of any file system that fsspec knows: object stores, `memory://` and the like."""

    def __init__(self, url: str) -> None:
        try:
            from fsspec.core import url_to_fs
        except ModuleNotFoundError:
            raise StoreError("a store at an address needs fsspec: pip install 'belljar[fs]'") from None
        try:
            found: tuple[Any, str] = url_to_fs(url)
        except (ValueError, ImportError) as error:
            raise StoreError(f"no store at {url}: {error}") from error
        self._fs, root = found
        self._root = root.rstrip("/")

    def create(self, name: str, data: bytes) -> None:
        self._fs.makedirs(self._path(name).rpartition("/")[0], exist_ok=True)
        self._fs.pipe_file(self._path(name), data, mode="create")

    def read(self, name: str) -> bytes:
        data: bytes = self._fs.cat_file(self._path(name))
        return data

    def read_ranges(self, name: str, ranges: Sequence[tuple[int, int]]) -> list[bytes]:
        path = self._path(name)
        parts: list[bytes] = self._fs.cat_ranges(
            [path] * len(ranges), [start for start, _ in ranges], [end for _, end in ranges], on_error="raise"
        )
        return parts

    def names(self, folder: str) -> list[str]:
        self._fs.invalidate_cache()
        try:
            found: list[str] = self._fs.ls(self._path(folder), detail=False)
        except FileNotFoundError:
            return []
        return [path.rstrip("/").rpartition("/")[2] for path in found]

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            self._fs.rm_file(self._path(name))

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"


def _sync_directory(path: Path) -> None:
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
