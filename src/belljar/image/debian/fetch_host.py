"""Packages of a Debian archive, fetched over HTTP and checked: the signature of Release, then digests all the way.

What was fetched is kept in the cache directory by its SHA-256, which is checked again whenever it is read.
"""

from __future__ import annotations

import hashlib
import logging
import lzma
import os
import platform
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from http.client import HTTPException
from typing import Final
from urllib.error import HTTPError

from msgspec import Struct

from belljar.abi.cache_host import cache_directory, draft_directory, private_directory
from belljar.abi.errors import ImageError
from belljar.abi.limits import GIB, MIB
from belljar.image.debian.archive import Release, parse_release, signed_text
from belljar.image.debian.configure import file_name
from belljar.image.debian.control import Package, PackageIndex

_HOST: Final = "deb.debian.org"
_KEYRINGS: Final = ("/usr/share/keyrings/debian-archive-keyring.gpg", "/usr/share/keyrings/debian-archive-keyring.pgp")
_ARCHITECTURES: Final = {"x86_64": "amd64", "aarch64": "arm64"}
_SECONDS: Final = 60
_RELEASE_MAX: Final = 16 * MIB
_LIST_MAX: Final = 512 * MIB
"""Bytes of a list of packages, uncompressed."""
_CACHE_MAX: Final = 4 * GIB
_WORKERS: Final = 4
_TRIES: Final = 4
_FINAL: Final = (400, 401, 403, 404, 410)
"""HTTP's ways to say that asking again is of no use."""


_GONE: Final = (404, 410)


class NotThere(ImageError):
    """A mirror answered that it has no such file."""


class Unreachable(ImageError):
    """A mirror did not answer."""


class Gone(Struct, frozen=True):
    """A package of which the first mirror does not have the pinned version any more, nor any other one."""

    name: str
    version: str
    answers: tuple[str, ...]
    """What each mirror said."""


class PinsGone(ImageError):
    """Packages can't be had in the versions that are pinned."""

    def __init__(self, gone: Sequence[Gone]) -> None:
        super().__init__("\n".join(f"{each.name} {each.version}: {'; '.join(each.answers)}" for each in gone))
        self.gone = tuple(gone)


class Archive(Struct, frozen=True):
    """Where packages come from. Without a mirror: Debian's own, with its updates and security fixes."""

    suite: str
    mirror: str = ""
    keyring: str = ""
    """The keys that may sign it; "": those of Debian that this machine has."""
    trusted: bool = False
    """Whether it need not be signed."""


def host_architecture() -> str:
    """Debian's name for this machine's processor. ImageError."""
    machine = platform.machine()
    if machine not in _ARCHITECTURES:
        raise ImageError(f"Image.debian() knows the processors {', '.join(_ARCHITECTURES)}, and this is {machine}")
    return _ARCHITECTURES[machine]


def fetch_index(archive: Archive, architecture: str) -> PackageIndex:
    """The lists of packages of an archive. ImageError."""
    index = PackageIndex()
    for mirror, suite in _pockets(archive):
        index.add(_fetch_list(archive, mirror, suite, architecture), mirror)
    return index


def sources(archive: Archive) -> str:
    """The archive for apt (sources.list(5)): over http as apt's own default is, since apt checks signatures."""
    signed = "Trusted: yes" if archive.trusted else "Signed-By: /usr/share/keyrings/debian-archive-keyring.gpg"
    return "\n".join(
        f"Types: deb\nURIs: {mirror.replace(f'https://{_HOST}/', f'http://{_HOST}/')}\nSuites: {suite}\n"
        f"Components: main\n{signed}\n"
        for mirror, suite in _pockets(archive)
    )


def _pockets(archive: Archive) -> list[tuple[str, str]]:
    """The mirrors and suites that packages are looked for in."""
    if archive.mirror:
        return [(archive.mirror.rstrip("/"), archive.suite)]
    scheme = "http" if archive.trusted or _verifier(archive) else "https"
    mirror, security = f"{scheme}://{_HOST}/debian", f"{scheme}://{_HOST}/debian-security"
    suite = archive.suite
    return [(mirror, suite), (mirror, f"{suite}-updates"), (security, f"{suite}-security")]


def fetch_packages(packages: Sequence[Package]) -> Iterator[tuple[Package, bytes]]:
    """The packages, in order. ImageError."""
    with ThreadPoolExecutor(_WORKERS) as workers:
        paths = workers.map(
            lambda each: _fetch(f"{each.mirror}/{each.fields['filename']}", each.sha256, each.size), packages
        )
        try:
            yield from zip(packages, paths, strict=True)
        finally:
            workers.shutdown(cancel_futures=True)
    _trim()


def fetch_pinned(packages: Sequence[tuple[Package, Sequence[str]]]) -> Iterator[tuple[Package, bytes]]:
    """Packages that are known by their digests, from the cache, or each from the first of its mirrors that has it.

    Raises ImageError, and PinsGone at the end if the first mirror of some has them no more: others are fetched first.
    """
    unreachable: set[str] = set()
    gone: list[Gone] = []
    with ThreadPoolExecutor(_WORKERS) as workers:
        found = workers.map(lambda each: _fetch_from(each[0], each[1], unreachable), packages)
        try:
            for (package, _), data in zip(packages, found, strict=True):
                if isinstance(data, Gone):
                    gone.append(data)
                else:
                    yield package, data
        finally:
            workers.shutdown(cancel_futures=True)
    if gone:
        raise PinsGone(gone)


def _fetch_from(package: Package, mirrors: Sequence[str], unreachable: set[str]) -> bytes | Gone:
    """`unreachable`: hosts that did not answer for another package; they are not asked again."""
    failures: list[ImageError] = []
    for mirror in mirrors:
        host = mirror.split("/")[2]
        if host in unreachable:
            failures.append(ImageError(f"{host} can't be reached"))
            continue
        try:
            return _fetch(f"{mirror}/{package.fields['filename']}", package.sha256, package.size)
        except NotThere as error:
            failures.append(error)
        except Unreachable as error:
            unreachable.add(host)
            failures.append(error)
        except ImageError as error:
            failures.append(error)
    if isinstance(failures[0], NotThere):
        return Gone(package.name, package.fields["version"], tuple(map(str, failures)))
    raise failures[-1]


@contextmanager
def packages_directory(packages: Sequence[Package]) -> Iterator[str]:
    """A directory with the files of packages, for dpkg. ImageError."""
    try:
        with tempfile.TemporaryDirectory(dir=_drafts()) as directory:
            for package, data in fetch_packages(packages):
                with open(os.path.join(directory, file_name(package)), "wb") as file:
                    file.write(data)
            yield directory
    except OSError as error:
        raise ImageError(f"packages can't be written: {error}") from error


def _fetch_list(archive: Archive, mirror: str, suite: str, architecture: str) -> str:
    release = _fetch_release(archive, mirror, suite)
    directory = f"main/binary-{architecture}"
    for ending in (".xz", ".gz", ""):
        if (known := release.files.get(f"{directory}/Packages{ending}")) is not None:
            break
    else:
        raise ImageError(f"{mirror}: {suite} has no packages for {architecture}")
    digest, size = known
    place = f"{directory}/by-hash/SHA256/{digest}" if release.by_hash else f"{directory}/Packages{ending}"
    data = _fetch(f"{mirror}/dists/{suite}/{place}", digest, size)
    return _unpack_list(data, ending).decode("utf-8", "replace")


def _unpack_list(data: bytes, ending: str) -> bytes:
    try:
        if ending == ".xz":
            decompressor = lzma.LZMADecompressor()
            found = decompressor.decompress(data, _LIST_MAX)
            whole = decompressor.eof
        elif ending == ".gz":
            import zlib

            inflater = zlib.decompressobj(31)
            found = inflater.decompress(data, _LIST_MAX)
            whole = inflater.eof
        else:
            found, whole = data, len(data) <= _LIST_MAX
    except (lzma.LZMAError, OSError, ValueError) as error:
        raise ImageError(f"the archive's list of packages can't be unpacked: {error}") from None
    if not whole:
        raise ImageError("the archive's list of packages is cut, or too large")
    return found


def _fetch_release(archive: Archive, mirror: str, suite: str) -> Release:
    url = f"{mirror}/dists/{suite}/InRelease"
    data = _download(url, _RELEASE_MAX)
    if archive.trusted:
        text = data.decode("utf-8", "replace")
        return parse_release(signed_text(text) if text.startswith("-----BEGIN PGP") else text, suite, time.time())
    command = _verifier(archive)
    if command is None:
        if not url.startswith("https:"):
            raise ImageError(
                f"{url} can't be checked: gpgv and Debian's keys are not installed here. Install the packages gpgv and "
                "debian-archive-keyring, give keyring=, use a mirror by https, or say trusted=True"
            )
        logging.getLogger("belljar").warning(
            "%s: its signature is not checked, there is no gpgv; https is trusted", url
        )
        return parse_release(signed_text(data.decode("utf-8", "replace")), suite, time.time())
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        found = subprocess.run(  # noqa: S603 - gpgv, by its path
            [*command, "--output", "-", file.name], capture_output=True, stdin=subprocess.DEVNULL, check=False
        )
    if found.returncode:
        why = found.stderr.decode("utf-8", "replace").strip().splitlines()[-1:]
        raise ImageError(f"{url}: the signature is not good: {' '.join(why)[:300]}")
    return parse_release(found.stdout.decode("utf-8", "replace"), suite, time.time())


def _verifier(archive: Archive) -> list[str] | None:
    """The command that checks a signature; None if this machine has none, or no keys."""
    keyring = archive.keyring or next((path for path in _KEYRINGS if os.path.exists(path)), "")
    if archive.keyring and not os.path.isfile(archive.keyring):
        raise ImageError(f"there is no keyring {archive.keyring}")
    program = shutil.which("gpgv")
    if archive.keyring and program is None:
        raise ImageError("signatures are checked by gpgv, which is not installed: install the package gpgv")
    return [program, "--quiet", "--keyring", os.path.abspath(keyring)] if program and keyring else None


def _fetch(url: str, digest: str, size: int) -> bytes:
    """What is at a URL, from the cache if it has that. ImageError if it is not what it should be."""
    directory = _cache()
    path = os.path.join(directory, digest) if directory else ""
    with suppress(OSError):
        with open(path, "rb") as file:
            data = file.read(size + 1)
        if hashlib.sha256(data).hexdigest() == digest:
            os.utime(path)
            return data
    data = _download(url, size)
    if len(data) != size or hashlib.sha256(data).hexdigest() != digest:
        raise ImageError(f"{url} is not what the archive says it is: it has another size or digest")
    if path:
        with suppress(OSError):  # a cache that is full or read-only costs time, nothing else
            _keep(path, data)
    return data


def _keep(path: str, data: bytes) -> None:
    with tempfile.NamedTemporaryFile(dir=_drafts(), delete=False) as temporary:
        try:
            temporary.write(data)
            temporary.flush()
            os.rename(temporary.name, path)
        except BaseException:
            os.unlink(temporary.name)
            raise


def _download(url: str, size_max: int) -> bytes:
    if not url.startswith(("http://", "https://")):
        raise ImageError(f"{url}: a mirror's address begins with http:// or https://")
    for attempt in range(_TRIES):
        try:
            with urllib.request.urlopen(url, timeout=_SECONDS) as response:  # noqa: S310 - checked above
                data: bytes = response.read(size_max + 1)
            break
        except (OSError, ValueError, HTTPException) as error:
            kind: type[ImageError] = Unreachable
            if isinstance(error, HTTPError):
                error.close()
                kind = NotThere if error.code in _GONE else ImageError
            if attempt == _TRIES - 1 or (isinstance(error, HTTPError) and error.code in _FINAL):
                raise kind(f"{url}: {error}") from None
            time.sleep(2**attempt)
    if len(data) > size_max:
        raise ImageError(f"{url} is larger than the archive says, or than it may be")
    return data


def _cache() -> str | None:
    directory = cache_directory()
    return private_directory(os.path.join(directory, "debian")) if directory else None


def _drafts() -> str | None:
    directory = _cache()
    return draft_directory(directory) if directory else None


def _trim() -> None:
    """Remove what was used least recently from a cache that is too large."""
    directory = _cache()
    if directory is None:
        return
    with suppress(OSError):
        files = [entry for entry in os.scandir(directory) if entry.is_file(follow_symlinks=False)]
        found = sorted((entry.stat().st_mtime_ns, entry.stat().st_size, entry.path) for entry in files)
        total = sum(size for _, size, _ in found)
        for _, size, path in found:
            if total <= _CACHE_MAX:
                break
            with suppress(FileNotFoundError):
                os.unlink(path)
            total -= size
