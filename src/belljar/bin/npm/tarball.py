"""Tarballs of packages: got, checked against their integrity before anything of them is used, and unpacked."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import EEXIST
from belljar.abi.errors import SysError
from belljar.abi.flags import O_CLOEXEC, O_CREAT, O_EXCL, O_NOFOLLOW, O_TRUNC, O_WRONLY
from belljar.bin._compress.codecs import Corrupt
from belljar.bin.npm.fetch import Fetcher, Missing, local_chunks
from belljar.bin.npm.packagejson import load
from belljar.bin.npm.problems import NpmError
from belljar.bin.tar.stream import open_source
from belljar.kernel.process import Process
from belljar.libc.tar_header import BadHeader, Member
from belljar.libc.tar_stream import NotArchive, Reader, UnexpectedEnd

_STRENGTH: Final = ("sha512", "sha384", "sha256", "sha1")
_MANIFEST_MAX: Final = 16 << 20
_FILES_MAX: Final = 200_000
_DAMAGE: Final = (Corrupt, BadHeader, NotArchive, UnexpectedEnd)


@dataclass(frozen=True, slots=True)
class Tarball:
    """One that is here and is what it should be."""

    path: str
    integrity: str


def integrity_of(dist: Any) -> str | None:
    """The integrity that a registry states: `integrity`, or the older `shasum`."""
    if not isinstance(dist, dict):
        return None
    stated = dist.get("integrity")
    if isinstance(stated, str) and stated:
        return stated
    shasum = dist.get("shasum")
    if isinstance(shasum, str) and len(shasum) == 40:
        with suppress(binascii.Error, ValueError):
            return "sha1-" + base64.b64encode(bytes.fromhex(shasum)).decode()
    return None


def strongest(integrity: str) -> tuple[str, list[str]]:
    """The best of the algorithms that an integrity names, and the digests that will do."""
    found: dict[str, list[str]] = {}
    for word in integrity.split():
        algorithm, _, digest = word.partition("?")[0].partition("-")
        if algorithm in _STRENGTH and digest:
            found.setdefault(algorithm, []).append(digest)
    return next(((name, found[name]) for name in _STRENGTH if name in found), ("", []))


class Depot:
    """The directory of one command's tarballs; `close` removes it."""

    def __init__(self, process: Process, fetcher: Fetcher) -> None:
        self._process = process
        self._fetcher = fetcher
        self._directory = f"/tmp/npm-{process.pid}"
        self._count = 0
        self._files: list[str] = []

    def get(self, resolved: str, integrity: str | None, shown: str) -> Tarball:
        """Get a tarball by its URL or `file:` path. EINTEGRITY; E404; what reading it may raise."""
        algorithm, digests = strongest(integrity or "")
        if integrity and not digests:
            raise NpmError("EINTEGRITY", f"{shown}: its integrity {integrity!r} names no algorithm that is known")
        hashes = {name: hashlib.new(name, usedforsecurity=False) for name in {"sha512", algorithm or "sha512"}}
        if resolved.startswith("file:"):
            path = resolved[5:]
            for chunk in local_chunks(self._process, path):
                for digest in hashes.values():
                    digest.update(chunk)
        else:
            path = self._download(resolved, hashes)
        made = {name: base64.b64encode(digest.digest()).decode() for name, digest in hashes.items()}
        if digests and made[algorithm] not in digests:
            raise NpmError(
                "EINTEGRITY",
                f"{algorithm}-{digests[0]} integrity checksum failed when using {algorithm}: "
                f"wanted {algorithm}-{digests[0]} but got {algorithm}-{made[algorithm]}.",
                f"{shown} from {resolved} is not what was promised. Nothing was installed.",
            )
        return Tarball(path, integrity or f"sha512-{made['sha512']}")

    def _download(self, url: str, hashes: dict[str, Any]) -> str:
        process = self._process
        with suppress(SysError):
            process.fs.mkdir(self._directory, 0o700)
        self._count += 1
        path = f"{self._directory}/{self._count}.tgz"
        self._files.append(path)
        try:
            fd = process.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0o600)
            try:
                with self._fetcher.stream(url) as chunks:
                    for chunk in chunks:
                        for digest in hashes.values():
                            digest.update(chunk)
                        process.write_all(fd, chunk)
            finally:
                process.close(fd)
        except Missing as missing:
            raise NpmError("E404", f"404 {missing.reason} - GET {url}") from None
        except SysError as error:
            raise NpmError(errno_name(error), f"could not keep {url}: {error.reason}") from None
        return path

    def forget(self, tarball: Tarball) -> None:
        if tarball.path in self._files:
            self._files.remove(tarball.path)
            with suppress(SysError):
                self._process.fs.unlink(tarball.path)

    def close(self) -> None:
        for path in self._files:
            with suppress(SysError):
                self._process.fs.unlink(path)
        if self._count:
            with suppress(SysError):
                self._process.fs.rmdir(self._directory)


def errno_name(error: SysError) -> str:
    return {28: "ENOSPC", 122: "EDQUOT", 13: "EACCES", 30: "EROFS", 2: "ENOENT", 24: "EMFILE"}.get(error.errno, "EIO")


def members(process: Process, tarball: Tarball, shown: str) -> Iterator[tuple[Member, str, Iterator[bytes]]]:
    """The regular files of a package: member, path without the directory around it, data.

    Links and devices are left out, as npm does. EBADPATH for a path that leads outside.
    """
    count = 0
    try:
        source, _ = open_source(process, tarball.path, None)
        reader = Reader(source, process.budget)
        for member in reader:
            if not member.is_regular or member.sparse is not None:
                continue
            parts = member.name.removeprefix("./").split("/")
            if member.name.startswith("/") or ".." in parts or "\0" in member.name:
                raise NpmError(
                    "EBADPATH",
                    f"{shown} has a file {member.name!r}, which would be outside of it. Nothing was installed.",
                )
            inner = "/".join(part for part in parts[1:] if part not in ("", "."))
            count += 1
            if count > _FILES_MAX:
                raise NpmError("ETOOLARGE", f"{shown} has more than {_FILES_MAX} files")
            if inner:
                yield member, inner, reader.data()
    except _DAMAGE as error:
        raise NpmError("TAR_BAD_ARCHIVE", f"{shown} is no tarball, or a damaged one ({type(error).__name__})") from None


def read_manifest(process: Process, tarball: Tarball, shown: str) -> dict[str, Any]:
    """The package.json in a tarball."""
    for member, path, data in members(process, tarball, shown):
        if path == "package.json" and member.size <= _MANIFEST_MAX:
            try:
                found = load(b"".join(data).removeprefix(b"\xef\xbb\xbf"))
            except (ValueError, RecursionError):
                found = None
            if isinstance(found, dict):
                return found
            break
    raise NpmError("ENOENT", f"Could not read package.json: there is none in {shown}, or it is no JSON")


def unpack(process: Process, tarball: Tarball, folder: str, shown: str) -> str | None:
    """All files of a package into a directory of its own, which is made; the path of machine code for Node, if any."""
    native: str | None = None
    made: set[str] = set()
    make_directories(process, folder, made)
    try:
        for member, path, data in members(process, tarball, shown):
            full = f"{folder}/{path}"
            native = path if native is None and path.endswith(".node") else native
            make_directories(process, full.rpartition("/")[0], made)
            mode = (member.mode | 0o644) & 0o755
            try:
                fd = process.open(full, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)
            except SysError as error:
                if error.errno != EEXIST:
                    raise
                process.fs.unlink(full)
                fd = process.open(full, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode)
            try:
                for piece in data:
                    process.write_all(fd, piece)
            finally:
                process.close(fd)
    except SysError as error:
        raise NpmError(errno_name(error), f"could not unpack {shown}: {error}") from None
    return native


def make_directories(process: Process, path: str, made: set[str] | None = None) -> None:
    """A directory and those above it."""
    if made is not None and path in made:
        return
    missing = []
    where = path
    while where not in ("", "/"):
        try:
            process.fs.mkdir(where, 0o755)
            break
        except SysError as error:
            if error.errno == EEXIST:
                break
            if error.errno != 2:
                raise
            missing.append(where)
            where = where.rpartition("/")[0]
    for directory in reversed(missing):
        with suppress(SysError):
            process.fs.mkdir(directory, 0o755)
    if made is not None:
        made.add(path)
