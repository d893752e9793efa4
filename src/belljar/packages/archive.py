"""Archives of packages: a tar of plain files in order of their names, the same bytes for the same files.

The digest of a package is that of the tar, before compression: what zlib makes of it differs between machines.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Iterable, Iterator
from typing import Final

from belljar.abi.dataclass import dataclass
from belljar.libc.tar_header import BLOCK, BadHeader, Member, encode, pad
from belljar.libc.tar_stream import Meter, NotArchive, Reader, Source, UnexpectedEnd
from belljar.packages.errors import PackageError
from belljar.packages.layout import lay_out
from belljar.packages.manifest import FILE, SIZE_MAX, Manifest, PackedFile, check_files, is_inner, parse_manifest

ENDING: Final = ".tar.gz"
FILES_MAX: Final = 50_000
TAR_MAX: Final = 1 << 30
"""Bytes of the largest package, unpacked."""
_PIECE: Final = 1 << 18


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file to be packed."""

    path: str
    data: bytes
    executable: bool


def file_name(name: str, version: str) -> str:
    return f"{name}-{version}{ENDING}"


def pack(files: Iterable[SourceFile]) -> bytes:
    """The tar of a package: package.toml first, then all else by name."""
    ordered = sorted(files, key=lambda file: (file.path != FILE, file.path))
    pieces: list[bytes] = []
    for file in ordered:
        mode = 0o755 if file.executable else 0o644
        pieces += [encode(Member(file.path, mode=mode, size=len(file.data)), "posix"), pad(file.data)]
    return b"".join([*pieces, bytes(2 * BLOCK)])


def compress(tar: bytes) -> bytes:
    # No name and no time in the header: the same bytes each time.
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    return packer.compress(tar) + packer.flush()


def digest_of(tar: bytes) -> str:
    return "sha256:" + hashlib.sha256(tar).hexdigest()


def inflate(chunks: Iterable[bytes], limit: int, shown: str) -> Iterator[bytes]:
    """Uncompress an archive as it comes, in bounded pieces; no more than `limit` bytes of it. PackageError."""
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    total = 0
    try:
        for chunk in chunks:
            data = chunk
            while data:
                if unpacker.eof:
                    raise PackageError(f"{shown}: there is something behind the end of the archive")
                piece = unpacker.decompress(data, _PIECE)
                data = unpacker.unconsumed_tail or unpacker.unused_data
                total += len(piece)
                if total > limit:
                    raise PackageError(f"{shown} unpacks to more than the {limit:,} bytes that it should have")
                if piece:
                    yield piece
    except zlib.error as error:
        raise PackageError(f"{shown} is no archive of a package, or damaged: {error}") from None
    while not unpacker.eof:
        piece = unpacker.decompress(b"", _PIECE)
        total += len(piece)
        if not piece or total > limit:
            raise PackageError(f"{shown} is damaged: it ends too early")
        yield piece


class _NoMeter:
    def charge(self, steps: int, /) -> None: ...
    def charge_size(self, size: int, /) -> None: ...


def members(
    pieces: Iterable[bytes], shown: str, meter: Meter | None = None
) -> Iterator[tuple[Member, Iterator[bytes]]]:
    """The files of a tar, checked: plain files and nothing else, each within the package, each once. PackageError."""
    reader = Reader(Source(pieces), meter or _NoMeter())
    seen: set[str] = set()
    try:
        for member in reader:
            if member.is_dir:
                continue
            if not member.is_regular or member.sparse is not None:
                raise PackageError(
                    f"{shown} has {member.name[:200]!r}, which is no plain file: packages have no others"
                )
            if not is_inner(member.name):
                raise PackageError(f"{shown} has a file {member.name[:200]!r}, which would be outside of it")
            if member.name in seen or len(seen) >= FILES_MAX:
                why = f"two files {member.name[:200]!r}" if member.name in seen else f"more than {FILES_MAX:,} files"
                raise PackageError(f"{shown} has {why}")
            seen.add(member.name)
            yield member, reader.data()
    except (BadHeader, NotArchive, UnexpectedEnd):
        raise PackageError(f"{shown} is no archive of a package, or damaged") from None


def manifest_of(member: Member, data: Iterable[bytes], shown: str) -> Manifest:
    """The manifest, which is an archive's first file. PackageError."""
    if member.name != FILE or member.size > SIZE_MAX:
        raise PackageError(f"{shown} is no archive of a package: it does not begin with {FILE}")
    try:
        return parse_manifest(b"".join(data).decode())
    except UnicodeDecodeError:
        raise PackageError(f"{shown}: {FILE} is not UTF-8") from None


@dataclass(frozen=True, slots=True)
class Package:
    """A package that was packed or read, in memory: the owner's side of things."""

    manifest: Manifest
    files: tuple[SourceFile, ...]
    tar: bytes

    @property
    def digest(self) -> str:
        return digest_of(self.tar)


def packed(files: Iterable[SourceFile]) -> Package:
    """Check files and make a package of them. PackageError."""
    kept = tuple(files)
    manifest = next((parse_manifest(_text(file)) for file in kept if file.path == FILE), None)
    if manifest is None:
        raise PackageError(f"there is no {FILE}: `belljar package new NAME` makes one")
    known = [PackedFile(file.path, file.executable, file.data[:256]) for file in kept]
    check_files(manifest, known)
    lay_out(manifest, known)
    tar = pack(kept)
    if len(tar) > TAR_MAX or len(kept) > FILES_MAX:
        raise PackageError(f"{manifest.name}: a package has at most {FILES_MAX:,} files and {TAR_MAX >> 20} MB")
    return Package(manifest, kept, tar)


def _text(file: SourceFile) -> str:
    try:
        return file.data.decode()
    except UnicodeDecodeError:
        raise PackageError(f"{FILE} is not UTF-8") from None


def unpacked(archive: bytes, shown: str) -> Package:
    """Read an archive. PackageError."""
    tar = b"".join(inflate([archive], TAR_MAX, shown))
    files = [SourceFile(m.name, b"".join(data), bool(m.mode & 0o100)) for m, data in members([tar], shown)]
    if not files or files[0].path != FILE:
        raise PackageError(f"{shown} is no archive of a package: it does not begin with {FILE}")
    made = packed(files)
    if made.tar != tar:
        raise PackageError(f"{shown} was not made by `belljar package build`: build it anew")
    return made
