"""Layouts on the host: a directory, or a tar archive, compressed or not. Nothing is unpacked to the disk."""

from __future__ import annotations

import gzip
import io
import os
import shutil
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from belljar.abi.errors import ImageError
from belljar.abi.paths import fsencode
from belljar.image.layer import Meter, members
from belljar.image.oci import Layout, unpacked
from belljar.image.oci_write import LayoutFile, archive_chunks
from belljar.image.tree import show, split_path
from belljar.kernel.fs.archive import unpack
from belljar.libc.tar_header import SYMLINK

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer as Buffer

_OTHER_ARCHIVES: Final = (".zip", ".gz", ".xz", ".zst", ".bz2", ".txz", ".tzst", ".tbz2", ".7z")


@contextmanager
def open_layout(path: str | os.PathLike[str]) -> Iterator[Layout]:
    """The layout at a path. ImageError."""
    place = Path(path).expanduser()
    try:
        if place.is_dir():
            yield _Directory(place)
        else:
            with open(place, "rb") as file:
                yield _Archive(file)
    except OSError as error:
        raise ImageError(f"{place}: {error.strerror or error}") from None
    except ImageError as error:
        raise ImageError(f"{place}: {error}") from None


class _Directory:
    """Files of a directory. Symbolic links are not followed: they could lead anywhere."""

    def __init__(self, root: Path) -> None:
        self._root = root.resolve()

    def has(self, name: str) -> bool:
        return self._path(name).is_file()

    def open(self, name: str) -> IO[bytes]:
        path = self._path(name)
        if not path.is_file() or path.resolve() != path:
            raise ImageError(f"the image has no file {show(fsencode(name))}")
        return open(path, "rb")

    def _path(self, name: str) -> Path:
        return self._root.joinpath(*map(os.fsdecode, split_path(fsencode(name))))


class _Archive:
    """Files of a tar archive, read where they are."""

    def __init__(self, file: IO[bytes]) -> None:
        self._where: dict[bytes, tuple[int, int]] = {}
        self._links: dict[bytes, bytes] = {}
        meter = Meter()
        for member, _, start in members(unpacked(file, meter), meter):
            name = b"/".join(split_path(fsencode(member.name)))
            if name in self._where or name in self._links:
                raise ImageError(f"{show(name)}: the archive has two files of this name")
            if member.is_regular:
                self._where[name] = start, member.size
            elif member.kind == SYMLINK:  # older versions of `docker save`: one layer's file for another's
                self._links[name] = os.path.normpath(os.path.join(os.path.dirname(name), fsencode(member.link)))
        self._stream = unpack(file)

    def has(self, name: str) -> bool:
        return self._find(name) is not None

    def open(self, name: str) -> IO[bytes]:
        found = self._find(name)
        if found is None:
            raise ImageError(f"the image has no file {show(fsencode(name))}")
        return io.BufferedReader(_Region(self._stream, *found))

    def _find(self, name: str) -> tuple[int, int] | None:
        path = b"/".join(split_path(fsencode(name)))
        return self._where.get(self._links.get(path, path))


class _Region(io.RawIOBase):
    """Part of a file, as a file. It shares the file's position: of two regions, one is read at a time."""

    def __init__(self, file: IO[bytes], start: int, size: int) -> None:
        self._file = file
        self._start = start
        self._size = size
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._size}[whence]
        self._position = max(0, base + offset)
        return self._position

    def tell(self) -> int:
        return self._position

    def readinto(self, buffer: Buffer) -> int:
        view = memoryview(buffer)
        self._file.seek(self._start + self._position)
        data = self._file.read(max(0, min(len(view), self._size - self._position)))
        view[: len(data)] = data
        self._position += len(data)
        return len(data)


def write_layout(path: str | os.PathLike[str], files: Sequence[LayoutFile]) -> None:
    """Write a layout: an archive if the path ends with ".tar" (".tar.gz", ".tgz": compressed), else a directory.

    It is whole, or not there. An archive takes the place of a file that is there; a directory must not exist, or be
    empty. ImageError.
    """
    place = Path(path).expanduser()
    packed = place.name.endswith((".tar.gz", ".tgz"))
    archive = packed or place.suffix == ".tar"
    if not archive and (place.suffixes[-2:-1] == [".tar"] or place.suffix in _OTHER_ARCHIVES):
        raise ImageError(f"{place}: an archive ends with .tar, .tar.gz or .tgz")
    scratch = place.parent / f".{place.name}.{uuid.uuid4().hex}"
    try:
        taken = place.is_dir() if archive else place.is_file() or (place.is_dir() and any(place.iterdir()))
        if taken:
            raise ImageError(f"{place} is there already: name a new path")
        if archive:
            with open(scratch, "xb") as file:
                if packed:
                    with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packer:
                        packer.writelines(archive_chunks(files))
                else:
                    file.writelines(archive_chunks(files))
                file.flush()
                os.fsync(file.fileno())
        else:
            for each in files:
                (scratch / each.name).parent.mkdir(parents=True, exist_ok=True)
                with open(scratch / each.name, "xb") as file:
                    for chunk in each.chunks():
                        file.write(chunk)
        scratch.replace(place)
    except OSError as error:
        raise ImageError(f"{place}: {error.strerror or error}") from None
    finally:
        if scratch.is_dir():
            shutil.rmtree(scratch)
        elif scratch.exists():
            scratch.unlink()
