"""Real tools and files from packages of Debian, for tests: fetched when first needed, and never kept in the tree."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import tempfile
import urllib.request
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from http.client import HTTPException
from pathlib import Path

from belljar.image.debian.fetch_host import Archive, fetch_index, fetch_packages, host_architecture
from belljar.image.debian.resolve import resolve

POOL = "http://deb.debian.org/debian/pool/main/"


class Unreachable(Exception):
    """The packages are neither here nor to be had."""


def install(name: str, packages: Mapping[str, str], rename: Callable[[str], str | None]) -> Path:
    """The directory in the tests' cache with files of packages (their places in the pool, with their digests).

    `rename` says where a file of a package goes; None: nowhere. Raises Unreachable.
    """

    def make(whole: Path) -> None:
        for package, digest in packages.items():
            unpack(download(package, digest), whole, rename)

    return _made(name, make)


def install_newest(
    name: str,
    packages: Sequence[str],
    left_out: Collection[str],
    rename: Callable[[str], str | None],
    finish: Callable[[Path], None] = lambda _: None,
) -> Path:
    """The same for packages that have a new version every few weeks, and all that they need but for some: found by the
    signed index of the archive, with the code that makes Debian images. `finish` adds to what was unpacked.
    """

    def make(whole: Path) -> None:
        index = fetch_index(Archive("bookworm"), host_architecture())
        needed = [package for package in resolve(index, packages) if package.name not in left_out]
        for _, data in fetch_packages(needed):
            unpack(data, whole, rename)
        finish(whole)

    return _made(name, make)


def _made(name: str, make: Callable[[Path], None]) -> Path:
    directory = cache_directory() / name
    if not directory.exists():
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent) as unpacked:
            make(Path(unpacked) / "whole")
            with suppress(OSError):  # somebody else was faster
                (Path(unpacked) / "whole").rename(directory)
    return directory


def cache_directory() -> Path:
    kept = os.environ.get("BELLJAR_TEST_CACHE") or os.path.join(os.path.expanduser("~"), ".cache", "belljar-tests")
    return Path(kept)


def download(name: str, digest: str) -> bytes:
    """A file of the pool, kept in the tests' cache: only its first test needs the network. Raises Unreachable."""
    place = cache_directory() / "pool" / digest
    with suppress(OSError):
        kept = place.read_bytes()
        if hashlib.sha256(kept).hexdigest() == digest:
            return kept
    try:
        with urllib.request.urlopen(POOL + name, timeout=60) as response:  # noqa: S310 - http, and the digest is known
            data: bytes = response.read()
    except (OSError, HTTPException) as error:
        raise Unreachable(f"{POOL}{name}: {error}") from None
    if hashlib.sha256(data).hexdigest() != digest:
        raise Unreachable(f"{POOL}{name}: not the file that was expected")
    with suppress(OSError):  # there is no room for it
        place.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=place.parent) as directory:
            (Path(directory) / "whole").write_bytes(data)
            (Path(directory) / "whole").rename(place)
    return data


def _data(package: bytes) -> bytes:
    """The files in a Debian package: the last member of an ar archive."""
    at = len(b"!<arch>\n")
    while at < len(package):
        name, size = package[at : at + 16].strip(), int(package[at + 48 : at + 58])
        if name.startswith(b"data.tar"):
            return package[at + 60 : at + 60 + size]
        at += 60 + size + size % 2
    raise Unreachable("a package without files")


def unpack(package: bytes, directory: Path, rename: Callable[[str], str | None]) -> None:
    """Put files of a package into a directory. `rename` says where; None: nowhere."""
    with tarfile.open(fileobj=io.BytesIO(_data(package))) as archive:
        for member in archive:
            name = rename(member.name)
            relative = member.issym() and not member.linkname.startswith("/")
            if name is not None and (member.isfile() or member.isdir() or relative):
                member.name = name
                member.mode |= 0o600
                if hasattr(tarfile, "data_filter"):  # since Python 3.11.4
                    archive.extract(member, directory, filter="data")
                else:
                    archive.extract(member, directory)
