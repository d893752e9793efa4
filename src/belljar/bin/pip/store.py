"""Files on their way to being installed: downloaded into a temporary directory, their hashes checked, opened."""

from __future__ import annotations

import hashlib
import tarfile
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from io import BufferedReader
from typing import Final

from belljar.abi.errors import SysError
from belljar.abi.flags import O_CLOEXEC, O_CREAT, O_RDONLY, O_TRUNC, O_WRONLY
from belljar.bin._guestfile import GuestFile
from belljar.bin.pip.fetch import NotFound, fetch
from belljar.bin.pip.index import Link
from belljar.bin.pip.problems import PipError, Unbuildable
from belljar.bin.pip.sources import Tree
from belljar.bin.pip.wheel import FILE_MAX
from belljar.kernel.process import Process

_NAMES_MAX: Final = 100_000


def format_size(size: float) -> str:
    """As pip shows it."""
    if size > 1_000_000:
        return f"{size / 1_000_000:.1f} MB"
    if size > 10_000:
        return f"{int(size / 1000)} kB"
    return f"{size / 1000:.1f} kB" if size > 1000 else f"{int(size)} bytes"


class Store:
    """The downloads of one command; `close` removes them."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._directory = f"/tmp/pip-{process.pid}"
        self._made = False
        self.paths: dict[str, str] = {}
        self._fds: list[int] = []

    def download(self, link: Link, wanted: tuple[str, ...] = ()) -> str:
        """The path of a link's file, checked against the hashes of the index and those that were asked for."""
        path = self.paths.get(link.url)
        if path is None:
            self._make()
            path = f"{self._directory}/{link.filename}"
            self._write(link, path, wanted)
            self.paths[link.url] = path
        elif wanted:
            self._check(link, self._digests(path), wanted)
        return path

    def _make(self) -> None:
        if not self._made:
            with suppress(SysError):
                self._process.fs.mkdir(self._directory, 0o700)
            self._made = True

    def _write(self, link: Link, path: str, wanted: tuple[str, ...]) -> None:
        """Fetch and check a file. One that is not whole, or not the one meant, is removed."""
        process = self._process
        hashes = {name: hashlib.new(name) for name in ("sha256", "sha384", "sha512")}
        try:
            with fetch(process, link.url) as response:
                fd = process.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
                try:
                    for chunk in response.chunks:
                        for digest in hashes.values():
                            digest.update(chunk)
                        process.write_all(fd, chunk)
                    self._check(link, {name: digest.hexdigest() for name, digest in hashes.items()}, wanted)
                except BaseException:
                    with suppress(SysError):
                        process.fs.unlink(path)
                    raise
                finally:
                    process.close(fd)
        except NotFound:
            raise PipError(f"HTTP error 404 while getting {link.url}") from None
        except SysError as error:
            raise PipError(
                f"Could not install packages due to an OSError: [Errno {error.errno}] {error.reason}"
            ) from None

    def _digests(self, path: str) -> dict[str, str]:
        hashes = {name: hashlib.new(name) for name in ("sha256", "sha384", "sha512")}
        for chunk in self._process.chunks(path):
            for digest in hashes.values():
                digest.update(chunk)
        return {name: digest.hexdigest() for name, digest in hashes.items()}

    def check_local(self, path: str, wanted: tuple[str, ...]) -> None:
        if wanted:
            self._check(Link(path.rpartition("/")[2], path), self._digests(path), wanted)

    def _check(self, link: Link, digests: Mapping[str, str], wanted: tuple[str, ...]) -> None:
        offered = {name: value.lower() for name, value in link.hashes.items() if name in digests}
        wrong = next((name for name, value in offered.items() if digests[name] != value), None)
        if wrong is not None:
            self._mismatch(link, [f"{wrong}:{offered[wrong]}"], digests[wrong])
        if wanted and not any(f"{name}:{value}" in wanted for name, value in digests.items()):
            self._mismatch(link, list(wanted), digests["sha256"])

    def _mismatch(self, link: Link, expected: list[str], got: str) -> None:
        raise PipError(
            "THESE PACKAGES DO NOT MATCH THE HASHES FROM THE REQUIREMENTS FILE. If you have updated the package "
            "versions, please update the hashes. Otherwise, examine the package contents carefully; someone may have "
            "tampered with them.",
            f"    {link.filename}:",
            *(f"        Expected {value.replace(':', ' ')}" for value in expected),
            f"             Got        {got}",
        )

    def metadata(self, link: Link) -> bytes:
        """The metadata file beside a wheel (PEP 658)."""
        try:
            with fetch(self._process, f"{link.url}.metadata") as response:
                data = response.text()
        except NotFound:
            raise PipError(f"HTTP error 404 while getting {link.url}.metadata") from None
        expected = (link.metadata or {}).get("sha256")
        if expected is not None and hashlib.sha256(data).hexdigest() != expected.lower():
            raise PipError(f"the metadata of {link.filename} is not what the index says")
        return data

    def open_zip(self, path: str) -> zipfile.ZipFile:
        try:
            archive = zipfile.ZipFile(self._file(path))
        except (zipfile.BadZipFile, OSError, ValueError) as error:
            raise PipError(f"Wheel {path.rpartition('/')[2]!r} is invalid: {error}") from None
        if sum(entry.file_size for entry in archive.infolist()) > self._process.kernel.limits.file_bytes:
            raise PipError(f"{path.rpartition('/')[2]} unpacks to more than this sandbox may hold")
        return archive

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Close what is opened in here, when it ends: hundreds of archives may be looked into."""
        kept = len(self._fds)
        try:
            yield
        finally:
            for fd in self._fds[kept:]:
                self._process.close(fd)
            del self._fds[kept:]

    def _file(self, path: str) -> BufferedReader:
        fd = self._process.open(path, O_RDONLY | O_CLOEXEC)
        self._fds.append(fd)
        return BufferedReader(GuestFile(self._process, fd), 1 << 16)

    def open_tree(self, path: str) -> Tree:
        """The files of a source archive, without the directory around them. Unbuildable if it is damaged."""
        if path.endswith(".zip"):
            archive = self.open_zip(path)
            files = {name: name for name in archive.namelist() if not name.endswith("/")}
            return _tree(files, archive.read)
        try:
            tar = tarfile.open(fileobj=self._file(path), mode="r:*")  # noqa: SIM115 - read for as long as the store is open
            members: dict[str, tarfile.TarInfo] = {}
            for member in tar:
                self._process.budget.charge()
                if member.isfile() and member.size <= FILE_MAX and len(members) < _NAMES_MAX:
                    members[member.name.removeprefix("./")] = member
        except (tarfile.TarError, EOFError, OSError, zlib.error, ValueError) as error:
            raise Unbuildable(f"the archive is damaged: {error}") from None

        def read(name: str) -> bytes:
            file = tar.extractfile(members[name])
            return file.read() if file is not None else b""

        return _tree({name: name for name in members}, read)

    def open_directory(self, path: str) -> Tree:
        """The files of a project's directory."""
        names = tuple(self._walk(path, ""))
        return Tree(names, lambda name: self._process.read_file(f"{path}/{name}"))

    def _walk(self, root: str, below: str, depth: int = 0) -> Iterator[str]:
        for entry in sorted(self._process.fs.readdir(f"{root}/{below}" if below else root), key=lambda e: e.name):
            self._process.budget.charge()
            if entry.name in (".", "..", ".git", ".venv", "venv", "node_modules", "__pycache__", ".tox") or depth > 30:
                continue
            name = f"{below}/{entry.name}" if below else entry.name
            stat = self._process.fs.stat(f"{root}/{name}", follow=False)
            if stat.is_dir:
                yield from self._walk(root, name, depth + 1)
            elif stat.is_regular:
                yield name

    def close(self) -> None:
        for fd in self._fds:
            with suppress(SysError):
                self._process.close(fd)
        if self._made:
            for path in self.paths.values():
                if path.startswith(self._directory):
                    with suppress(SysError):
                        self._process.fs.unlink(path)
            with suppress(SysError):
                self._process.fs.rmdir(self._directory)


def _tree(files: Mapping[str, str], read: object) -> Tree:
    tops = {name.partition("/")[0] for name in files}
    strip = f"{next(iter(tops))}/" if len(tops) == 1 else ""
    inner = {name.removeprefix(strip): name for name in files if ".." not in name.split("/")}
    assert callable(read)
    return Tree(tuple(sorted(inner)), lambda name: bytes(read(inner[name])))
