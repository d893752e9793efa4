"""Archives as trees: every format, hostile names, limits, damage."""

import bz2
import gzip
import io
import lzma
import random
import stat
import tarfile
import zipfile
from collections.abc import Callable
from errno import EACCES, EIO, ENOENT, EROFS

import pytest
import zstandard

from belljar.abi.flags import O_CREAT, O_WRONLY
from belljar.abi.records import Owner
from belljar.kernel.fs import archive as archive_module
from belljar.kernel.fs.archive import ArchiveError, ArchiveLimits, ArchiveServer, safe_parts
from belljar.kernel.vfs.view import View
from tests.contract.servers import view_of
from tests.kernel.rig import errno_of


def tar(*members: tuple[tarfile.TarInfo, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for info, data in members:
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def member(
    name: str, data: bytes = b"", *, kind: bytes = tarfile.REGTYPE, link: str = "", mode: int = 0o644
) -> tuple[tarfile.TarInfo, bytes]:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.mode, info.size, info.mtime = kind, link, mode, len(data), 1000
    return info, data


def view(source: bytes, **options: object) -> View:
    return view_of(ArchiveServer(source, **options))  # type: ignore[arg-type]


def read(fs: View, path: str) -> bytes:
    file = fs.open(path, 0).retain()
    parts = []
    while data := file.read(100_000):
        parts.append(data)
    file.release()
    return b"".join(parts)


def names(fs: View, path: str = "/") -> list[str]:
    return sorted(entry.name for entry in fs.readdir(path))


PLAIN = tar(member("d/f", b"content", mode=0o640), member("big", b"0123456789" * 10_000))


@pytest.mark.parametrize(
    "pack",
    [bytes, gzip.compress, bz2.compress, lzma.compress, zstandard.compress],
    ids=["plain", "gz", "bz2", "xz", "zst"],
)
def test_every_compression(pack: object, monkeypatch: pytest.MonkeyPatch) -> None:
    assert callable(pack)
    monkeypatch.setattr(archive_module, "WHOLE_MAX", 50_000)
    fs = view(pack(PLAIN))
    assert read(fs, "/d/f") == b"content"
    found = fs.stat("/d/f")
    assert (found.mode, found.size, found.mtime) == (stat.S_IFREG | 0o640, 7, 1000 * 10**9)
    big = fs.open("/big", 0).retain()
    assert big.pread(10, 50_000) == b"0123456789"
    assert big.pread(10, 3) == b"3456789012"
    assert big.pread(10, 99_995) == b"56789"
    assert big.pread(10, 100_000) == b""
    big.release()
    assert errno_of(fs.open, "/new", O_CREAT | O_WRONLY) == EROFS


def test_zip() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("d/f", b"content")
        archive.writestr("empty/", b"")
        archive.writestr("caf\u00e9", b"x")
        run = zipfile.ZipInfo("run", (2020, 2, 3, 4, 5, 6))
        run.external_attr = (stat.S_IFREG | 0o4755) << 16
        archive.writestr(run, b"#!/bin/sh\n")
        link = zipfile.ZipInfo("link")
        link.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(link, b"d/f")
        undated = zipfile.ZipInfo("undated", (1980, 0, 0, 0, 0, 0))
        archive.writestr(undated, b"")
    fs = view(buffer.getvalue(), owner=Owner(1000, 1000))
    assert names(fs) == ["caf\u00e9", "d", "empty", "link", "run", "undated"]
    assert read(fs, "/link") == b"content"
    found = fs.stat("/run")
    assert (found.mode & 0o7777, found.mtime, found.uid) == (0o755, 1580702706 * 10**9, 1000)


def test_names_that_lead_out_are_not_there() -> None:
    source = tar(
        member("../up", b"x"),
        member("a/../../up", b"x"),
        member("/abs", b"abs"),
        member("./dot/./f", b"dot"),
        member("x" * 300, b"long"),
        member("..", kind=tarfile.DIRTYPE),
        member("device", kind=tarfile.CHRTYPE),
        member("fifo", kind=tarfile.FIFOTYPE),
        member("suid", b"", mode=0o6755),
    )
    fs = view(source)
    assert names(fs) == ["abs", "dot", "suid"]
    assert read(fs, "/abs") == b"abs"
    assert read(fs, "/dot/f") == b"dot"
    assert fs.stat("/suid").mode & 0o7777 == 0o755


def test_a_member_behind_a_symlink_goes_nowhere_else() -> None:
    source = tar(
        member("out", kind=tarfile.SYMTYPE, link="/etc"),
        member("out/passwd", b"root"),
        member("etc/passwd", b"real"),
        member("loop", kind=tarfile.SYMTYPE, link="loop"),
    )
    fs = view(source)
    assert read(fs, "/etc/passwd") == b"real"
    assert read(fs, "/out/passwd") == b"root"
    assert not fs.stat("/out", follow=False).is_symlink


def test_hard_links_and_duplicates() -> None:
    source = tar(
        member("a", b"first"),
        member("b", kind=tarfile.LNKTYPE, link="a"),
        member("a", b"second"),
        member("c", kind=tarfile.LNKTYPE, link="a"),
        member("outside", kind=tarfile.LNKTYPE, link="../../etc/passwd"),
        member("nothing", kind=tarfile.LNKTYPE, link="missing"),
        member("dir", kind=tarfile.DIRTYPE, mode=0o755),
        member("dirlink", kind=tarfile.LNKTYPE, link="dir"),
    )
    fs = view(source)
    assert names(fs) == ["a", "b", "c", "dir"]
    assert (read(fs, "/a"), read(fs, "/b"), read(fs, "/c")) == (b"second", b"first", b"second")
    assert fs.stat("/a").ino == fs.stat("/c").ino != fs.stat("/b").ino
    assert [fs.stat(path).nlink for path in ("/a", "/b", "/c")] == [2, 1, 2]


def test_names_that_are_not_utf8_are_kept() -> None:
    source = tar(member("caf\udce9", b"latin"))
    assert names(view(source)) == ["caf\udce9"]


def test_limits() -> None:
    many = tar(*(member(f"f{number}") for number in range(20)))
    with pytest.raises(ArchiveError, match="entries"):
        ArchiveServer(many, limits=ArchiveLimits(entries=10))
    deep = tar(member("/".join("d" * 50)))
    with pytest.raises(ArchiveError, match="entries"):
        ArchiveServer(deep, limits=ArchiveLimits(entries=10))
    large = tar(member("f", b"x" * 1000))
    with pytest.raises(ArchiveError, match="bytes"):
        ArchiveServer(large, limits=ArchiveLimits(member_bytes=999))
    with pytest.raises(ArchiveError, match="bytes"):
        ArchiveServer(tar(member("f", b"x" * 600), member("g", b"x" * 600)), limits=ArchiveLimits(total_bytes=1000))
    assert safe_parts("/".join("d" * 1001)) == []


@pytest.mark.parametrize(
    "source", [b"", b"hello", b"\x1f\x8b\x08 broken", b"PK\x03\x04", PLAIN[:100], b"\x28\xb5\x2f\xfd?"]
)
def test_what_is_no_archive(source: bytes) -> None:
    with pytest.raises(ArchiveError):
        ArchiveServer(source)


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress, zstandard.compress])
def test_a_damaged_archive_is_none(pack: Callable[[bytes], bytes]) -> None:
    packed = pack(random.Random(1).randbytes(50_000) + PLAIN)
    for damaged in (packed[:200] + bytes(50) + packed[250:], packed[: len(packed) // 2]):
        with pytest.raises(ArchiveError):
            view(damaged)


def test_damage_shows_when_read() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("f", b"content of f")
    broken = buffer.getvalue().replace(b"content", b"CONTENT")
    assert errno_of(view(broken).open, "/f", 0) == EIO
    encrypted = bytearray(buffer.getvalue())
    encrypted[6] |= 1
    encrypted[encrypted.index(b"PK\x01\x02") + 8] |= 1
    assert errno_of(view(bytes(encrypted)).open, "/f", 0) == EACCES


def test_open_members_hold_a_bounded_amount(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive_module, "HELD_MAX", 250_000)
    server = ArchiveServer(PLAIN)
    fs = view_of(server)
    files = [fs.open("/big", 0).retain() for _ in range(10)]
    assert server.held == 200_000
    assert {file.pread(10, 99_995) for file in files} == {b"56789"}
    for file in files:
        file.release()
    assert server.held == 0


def test_a_file_object_is_read_lazily_and_closed() -> None:
    source = io.BytesIO(PLAIN)
    server = ArchiveServer(source)
    fs = view_of(server)
    assert read(fs, "/d/f") == b"content"
    assert errno_of(fs.stat, "/none") == ENOENT
    server.close()
    assert source.closed
