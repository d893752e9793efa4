"""Wheels: their files checked against their own RECORD, and where each of them goes."""

from __future__ import annotations

import base64
import binascii
import configparser
import csv
import hashlib
import io
import re
import zipfile
import zlib
from collections.abc import Callable, Iterator
from typing import Final

from belljar.abi.dataclass import dataclass
from belljar.bin.pip.metadata import Metadata, parse_headers, parse_metadata
from belljar.bin.pip.problems import PipError

FILE_MAX: Final = 256 << 20
"""Bytes of one file in an archive."""
_UNSIGNED: Final = ("RECORD", "RECORD.jws", "RECORD.p7s")
_SCHEMES: Final = ("purelib", "platlib", "scripts", "data", "headers")
_DAMAGE: Final = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError, OSError)


@dataclass(frozen=True, slots=True)
class Item:
    """A file to install: `scheme` says below what (purelib, scripts, data, headers)."""

    scheme: str
    path: str
    data: bytes
    executable: bool = False


@dataclass(frozen=True, slots=True)
class Package:
    """Something to install, whatever it was made from."""

    info: str
    """The name of its .dist-info directory."""
    metadata_text: bytes
    entry_points: str
    items: Callable[[], Iterator[Item]]
    """Everything but RECORD; reading it checks it."""
    editable_root: str | None = None

    def check(self) -> None:
        """Look at every file and entry point once. PipError for what may not be installed."""
        for item in self.items():
            check_path(item.path, self.info)
        list(self.console_scripts())

    @property
    def metadata(self) -> Metadata:
        return parse_metadata(self.metadata_text)

    def console_scripts(self) -> Iterator[tuple[str, str, str]]:
        """Name, module and attribute of each command."""
        parser = configparser.RawConfigParser(delimiters=("=",), strict=False)
        parser.optionxform = str  # type: ignore[assignment,method-assign]
        try:
            parser.read_string(self.entry_points)
        except configparser.Error as error:
            raise PipError(f"{self.info}: bad entry points: {error.message.splitlines()[0]}") from None
        for section in ("console_scripts", "gui_scripts"):
            if not parser.has_section(section):
                continue
            for name, target in parser.items(section):
                found = re.fullmatch(r"([\w.]+)\s*:\s*([\w.]+)\s*(\[.*\])?", target.strip())
                if found is None or "/" in name or name in ("", ".", ".."):
                    raise PipError(f"{self.info}: bad entry point: {name} = {target}")
                yield name, found[1], found[2]


def check_path(path: str, archive: str) -> None:
    """PipError for a path that would leave the place it is unpacked to."""
    parts = path.split("/")
    if path.startswith("/") or "\0" in path or "\\" in path or ".." in parts or "" in parts[:-1]:
        raise PipError(
            f"{archive} has a file {path!r} that would be outside of where it is installed. Nothing was installed."
        )


def read_metadata(archive: zipfile.ZipFile, filename: str) -> bytes:
    """The METADATA of a wheel. PipError if it is not exactly one."""
    return _read(archive, f"{_info_of(archive, filename)}/METADATA", filename)


def open_wheel(archive: zipfile.ZipFile, filename: str) -> Package:
    """A wheel, ready to install: every file is checked as it is read. PipError for one that is not as it should be."""
    info = _info_of(archive, filename)
    version = dict(parse_headers(_read(archive, f"{info}/WHEEL", filename))).get("wheel-version")
    if version is None or not version.startswith("1."):
        raise PipError(f"{filename}: its Wheel-Version {version!r} is not known")
    names = [entry.filename for entry in archive.infolist()]
    if len(set(names)) != len(names):
        raise PipError(f"{filename} has two files of one name")
    for name in names:
        check_path(name, filename)
    points = f"{info}/entry_points.txt"
    text = _read(archive, points, filename).decode("utf-8", "replace") if points in names else ""
    return Package(info, _read(archive, f"{info}/METADATA", filename), text, lambda: _items(archive, info, filename))


def _info_of(archive: zipfile.ZipFile, filename: str) -> str:
    project, version = (part.lower().replace("-", "_") for part in filename.split("-")[:2])
    found = {name.split("/")[0] for name in archive.namelist() if name.split("/")[0].endswith(".dist-info")}
    if len(found) != 1:
        raise PipError(f"{filename} has {len(found)} .dist-info directories instead of one")
    (info,) = found
    stem = info.removesuffix(".dist-info").lower().replace("-", "_").replace(".", "_")
    if not stem.startswith(project.replace(".", "_")):
        raise PipError(f"{filename}: {info} is not its own .dist-info directory ({project} {version})")
    return info


def _read(archive: zipfile.ZipFile, name: str, filename: str) -> bytes:
    try:
        if archive.getinfo(name).file_size > FILE_MAX:
            raise PipError(f"{filename}: {name} is larger than {FILE_MAX >> 20} MB")
        return archive.read(name)
    except KeyError:
        raise PipError(f"{filename} has no {name}") from None
    except _DAMAGE as error:
        raise PipError(f"{filename} is damaged: {name}: {error}") from None


def _items(archive: zipfile.ZipFile, info: str, filename: str) -> Iterator[Item]:
    record = _record(archive, info, filename)
    data = info.removesuffix(".dist-info") + ".data/"
    for entry in archive.infolist():
        name = entry.filename
        if name.endswith("/") or name in (f"{info}/{unsigned}" for unsigned in _UNSIGNED):
            continue
        contents = _read(archive, name, filename)
        if name not in record:
            raise PipError(f"{filename}: {name} is not in its RECORD. Nothing was installed.")
        _verify(record[name], contents, f"{filename}: {name}")
        executable = bool(entry.external_attr >> 16 & 0o111)
        if not name.startswith(data):
            yield Item("purelib", name, contents, executable)
            continue
        scheme, _, path = name.removeprefix(data).partition("/")
        if scheme not in _SCHEMES or not path:
            raise PipError(f"{filename}: {name}: no such scheme")
        yield Item("purelib" if scheme == "platlib" else scheme, path, contents, executable)


def _record(archive: zipfile.ZipFile, info: str, filename: str) -> dict[str, str]:
    text = _read(archive, f"{info}/RECORD", filename).decode("utf-8", "replace")
    try:
        return {row[0]: row[1] for row in csv.reader(io.StringIO(text)) if len(row) >= 2}
    except csv.Error as error:
        raise PipError(f"{filename}: its RECORD can't be read: {error}") from None


def _verify(expected: str, contents: bytes, what: str) -> None:
    algorithm, _, digest = expected.partition("=")
    if algorithm not in ("sha256", "sha384", "sha512"):
        raise PipError(f"{what} has no hash in its RECORD. Nothing was installed.")
    try:
        wanted = base64.urlsafe_b64decode(digest + "=" * (-len(digest) % 4))
    except (binascii.Error, ValueError):
        wanted = b""
    if hashlib.new(algorithm, contents).digest() != wanted:
        raise PipError(f"{what} is not what its RECORD says. Nothing was installed.")


def write_wheel(package: Package) -> bytes:
    """A package as the bytes of a wheel, with the same bytes for the same package."""
    out = io.BytesIO()
    rows: list[str] = []
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for item in package.items():
            entry = zipfile.ZipInfo(item.path, (1980, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o755 if item.executable else 0o644) << 16
            archive.writestr(entry, item.data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(item.data).digest()).rstrip(b"=").decode()
            rows.append(f"{item.path},sha256={digest},{len(item.data)}")
        record = f"{package.info}/RECORD"
        archive.writestr(zipfile.ZipInfo(record, (1980, 1, 1, 0, 0, 0)), "\n".join([*rows, f"{record},,"]) + "\n")
    return out.getvalue()
