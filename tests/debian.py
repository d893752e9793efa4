"""Real tools and files from packages of Debian, for tests: fetched when first needed, and never kept in the tree."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
import tempfile
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

POOL = "http://deb.debian.org/debian/pool/main/"


class Unreachable(Exception):
    """The packages are neither here nor to be had."""


def install(name: str, packages: Mapping[str, str], rename: Callable[[str], str | None]) -> Path:
    """The directory in the tests' cache with files of packages (their places in the pool, with their digests).

    `rename` says where a file of a package goes; None: nowhere. Raises Unreachable.
    """
    cache = os.environ.get("BELLJAR_TEST_CACHE") or os.path.join(os.path.expanduser("~"), ".cache", "belljar-tests")
    directory = Path(cache) / name
    if not directory.exists():
        directory.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=directory.parent) as unpacked:
            for package, digest in packages.items():
                _unpack(_data(_download(package, digest)), Path(unpacked) / "whole", rename)
            with suppress(FileExistsError):  # somebody else was faster
                (Path(unpacked) / "whole").rename(directory)
    return directory


def _download(name: str, digest: str) -> bytes:
    try:
        with urllib.request.urlopen(POOL + name, timeout=60) as response:  # noqa: S310 - http, and the digest is known
            data: bytes = response.read()
    except OSError as error:
        raise Unreachable(f"{POOL}{name}: {error}") from None
    if hashlib.sha256(data).hexdigest() != digest:
        raise Unreachable(f"{POOL}{name}: not the file that was expected")
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


def _unpack(data: bytes, directory: Path, rename: Callable[[str], str | None]) -> None:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        for member in archive:
            name = rename(member.name)
            if name is not None and (member.isfile() or member.isdir() or member.issym()):
                member.name = name
                member.mode |= 0o600
                archive.extract(member, directory, filter="data")
