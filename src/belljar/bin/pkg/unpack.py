"""Archives on their way into the sandbox: downloaded to the cache, checked, and staged file by file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final

import msgspec

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.flags import O_CLOEXEC, O_CREAT, O_EXCL, O_WRONLY
from belljar.bin.pkg.database import CACHE, Installed, record_path
from belljar.bin.pkg.fetch import open_url
from belljar.bin.pkg.transaction import Transaction
from belljar.kernel.process import Process
from belljar.packages.archive import TAR_MAX, inflate, manifest_of, members
from belljar.packages.catalog import Offer, archive_path
from belljar.packages.errors import PackageError
from belljar.packages.layout import HOME, Placed, lay_out
from belljar.packages.manifest import Manifest, PackedFile, check_files

_HEAD: Final = 256


@dataclass(frozen=True, slots=True)
class Archive:
    """An archive in the sandbox, and what is promised of it."""

    path: str
    shown: str
    digest: str = ""
    """"": nobody promised one; it is the user's own file."""
    size: int = TAR_MAX


def cached(process: Process, offer: Offer, url: str, shown: str, *, offline: bool) -> tuple[Archive, bool]:
    """The archive of an offer, from the cache or its registry, and whether it is new in the cache. PackageError."""
    path = f"{CACHE}/{offer.digest.replace(':', '-')}.tar.gz"
    archive = Archive(path, shown, offer.digest, offer.size)
    if process.fs.exists(path):
        try:
            for _ in _checked(process.chunks(path), archive):
                pass
            return archive, False
        except PackageError:
            process.fs.unlink(path)  # it is damaged: fetched anew
    if offline:
        raise PackageError(f"{shown} is not in the cache: `pkg fetch` gets it while there is a network")
    process.fs.makedirs(CACHE, 0o755)
    part = f"{CACHE}/.part-{process.pid}"
    try:
        fd = process.open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
        try:
            with open_url(process, f"{url.rstrip('/')}/{archive_path(offer.digest)}", offer.archive_size) as chunks:
                for _ in _checked(_kept(process, fd, chunks), archive):
                    pass
        finally:
            process.close(fd)
        process.fs.rename(part, path)
    finally:
        with suppress(SysError):
            process.fs.unlink(part)
    return archive, True


def _kept(process: Process, fd: int, chunks: Iterable[bytes]) -> Iterator[bytes]:
    for chunk in chunks:
        process.write_all(fd, chunk)
        yield chunk


def _checked(chunks: Iterable[bytes], archive: Archive, seen: list[str] | None = None) -> Iterator[bytes]:
    """The tar in an archive; at its end, its digest is compared with the one that was promised. PackageError."""
    digest = hashlib.sha256()
    for piece in inflate(chunks, archive.size, archive.shown):
        digest.update(piece)
        yield piece
    found = f"sha256:{digest.hexdigest()}"
    if seen is not None:
        seen.append(found)
    if archive.digest and found != archive.digest:
        raise PackageError(
            f"{archive.shown} is not what its registry promised: the archive's digest is {found}, the catalog's "
            f"{archive.digest}. Nothing was installed"
        )


def read_manifest(process: Process, archive: Archive) -> Manifest:
    """The manifest in an archive. PackageError."""
    tar = inflate(process.chunks(archive.path), archive.size, archive.shown)
    for member, data in members(tar, archive.shown, process.budget):
        return manifest_of(member, data, archive.shown)
    raise PackageError(f"{archive.shown} is an empty archive")


@dataclass(frozen=True, slots=True)
class Staged:
    """A package that is ready to be moved into place."""

    manifest: Manifest
    record: Installed
    moves: tuple[tuple[str, str], ...]
    """Paths, and what was staged for them."""


def stage(process: Process, transaction: Transaction, archive: Archive, registry: str) -> Staged:
    """Unpack an archive beside where it goes. PackageError."""
    seen: list[str] = []
    tar = _checked(process.chunks(archive.path), archive, seen)
    manifest: Manifest | None = None
    files: dict[str, PackedFile] = {}
    staged: dict[str, tuple[str, str]] = {}
    for member, data in members(tar, archive.shown, process.budget):
        if manifest is None:
            kept = list(data)
            manifest, data = manifest_of(member, kept, archive.shown), iter(kept)
        place = transaction.stage()
        digest, head = _write(process, place, data, 0o644)
        files[member.name] = PackedFile(member.name, bool(member.mode & 0o100), head)
        staged[member.name] = place, digest
    for _ in tar:  # what is behind the last file counts for the digest
        pass
    if manifest is None:
        raise PackageError(f"{archive.shown} is an empty archive")
    check_files(manifest, files.values())
    placed = lay_out(manifest, files.values())
    return _arrange(process, transaction, manifest, placed, staged, seen[0], registry)


def _arrange(
    process: Process,
    transaction: Transaction,
    manifest: Manifest,
    placed: list[Placed],
    staged: dict[str, tuple[str, str]],
    digest: str,
    registry: str,
) -> Staged:
    """Put staged files as they will be: those of the package's own directory into one, which is moved as a whole."""
    fs = process.fs
    home, own = f"{HOME}/{manifest.name}", transaction.stage()
    fs.mkdir(own, 0o755)
    moves: list[tuple[str, str]] = [(home, own)]
    digests: dict[str, str] = {}
    for item in placed:
        inside = item.path.startswith(home + "/")
        place = own + item.path[len(home) :] if inside else transaction.stage()
        if inside:
            fs.makedirs(place.rpartition("/")[0], 0o755)
        if item.link is not None:
            fs.symlink(item.link, place)
            digests[item.path] = f"link {item.link}"
        elif item.text is not None:
            digests[item.path], _ = _write(process, place, [item.text], item.mode)
        else:
            assert item.source is not None
            before, digests[item.path] = staged[item.source]
            if inside:
                fs.rename(before, place)
            else:
                place = before
            fs.chmod(place, item.mode)
        if not inside:
            moves.append((item.path, place))
    record = Installed(
        manifest.name, manifest.version, digest, registry, dependencies=manifest.dependencies,
        description=manifest.description, permissions=manifest.permissions, commands=sorted(manifest.commands),
        services=sorted([*manifest.services, *manifest.file_servers]),
        mounts=sorted(server.mount for server in manifest.file_servers.values()), files=digests,
    )  # fmt: skip
    return Staged(manifest, record, tuple(moves))


def stage_record(process: Process, transaction: Transaction, record: Installed) -> tuple[str, str]:
    """Where a record goes, and the staged one."""
    place = transaction.stage()
    _write(process, place, [msgspec.json.format(msgspec.json.encode(record), indent=1)], 0o644)
    return record_path(record.name), place


def _write(process: Process, place: str, data: Iterable[bytes], mode: int) -> tuple[str, bytes]:
    """Write a new file; its digest and its first bytes."""
    digest, head = hashlib.sha256(), b""
    fd = process.open(place, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
    try:
        for piece in data:
            process.budget.charge(1 + (len(piece) >> 12))
            digest.update(piece)
            if len(head) < _HEAD:
                head += piece[: _HEAD - len(head)]
            process.write_all(fd, piece)
    finally:
        process.close(fd)
    process.fs.chmod(place, mode)
    return f"sha256:{digest.hexdigest()}", head
