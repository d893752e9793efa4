"""Files of the owner's machine, for upload, download and changes: the only place the API reads or writes them."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from errno import EISDIR, ELOOP, ENOTDIR
from stat import S_ISDIR, S_ISLNK, S_ISREG
from typing import BinaryIO, Final, NamedTuple

from belljar.api.errors import ConflictError, SandboxError

_HAS_OPENAT: Final = {os.open, os.mkdir, os.stat, os.rename, os.unlink} <= os.supports_dir_fd
FILE: Final = 0o100644
EXECUTABLE: Final = 0o100755
SYMLINK: Final = 0o120000
DIRECTORY: Final = 0o040000
TYPES: Final = {FILE: "file", EXECUTABLE: "file", SYMLINK: "symlink", DIRECTORY: "directory"}
_NOFOLLOW: Final[int] = getattr(os, "O_NOFOLLOW", 0)
_NONBLOCK: Final[int] = getattr(os, "O_NONBLOCK", 0)
_DIRECTORY: Final[int] = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0)
_NEW: Final[int] = os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NOFOLLOW | getattr(os, "O_BINARY", 0)


def walk_local(top: str | os.PathLike[str]) -> Iterator[tuple[str, bool, int | None]]:
    """Relative path, whether it is a directory, and mode; the top itself is "". Symlinks below it are left out."""
    from pathlib import Path  # not at the top: it is slow to load, and few programs transfer files

    root = Path(top)
    if not root.is_dir():
        yield "", False, root.stat().st_mode & 0o777
        return
    yield "", True, None
    for directory, names, files in os.walk(root):
        for name in sorted(names):
            yield str((Path(directory) / name).relative_to(root)), True, None
        for name in sorted(files):
            path = Path(directory) / name
            if path.is_file() and not path.is_symlink():
                yield str(path.relative_to(root)), False, path.stat().st_mode & 0o777


def read_local(top: str | os.PathLike[str], relative: str, size: int) -> Iterator[bytes]:
    """A file in pieces of at most `size` bytes; one at least, if an empty one."""
    with open(os.path.join(top, relative) if relative else top, "rb") as file:
        yield file.read(size)
        while data := file.read(size):
            yield data


class Found(NamedTuple):
    """A file of the owner's machine: its mode as git writes it, the SHA-256 of its contents, and its version."""

    mode: int
    digest: bytes
    permissions: int
    version: tuple[int, ...]

    @property
    def type(self) -> str:
        return TYPES[self.mode]

    def permissions_if(self, executable: bool) -> int:
        """Its permissions, with execution for all who may read, or for nobody."""
        return self.permissions | (self.permissions & 0o444) >> 2 if executable else self.permissions & ~0o111


class LocalTree:
    """A directory of the owner's machine that guests' files are written to, whatever their names are; or one file.

    Paths are components below it; the empty one is the top itself.

    Each step down is an openat(2) that follows no symlink: a name that would leave the directory, or lead through a
    symlink below it, is refused (ValueError), also if somebody puts one there meanwhile. Where Python has no openat
    (Windows), the way is looked at before it is gone.
    """

    def __init__(self, top: str | os.PathLike[str]) -> None:
        self.top = os.fspath(top)
        self.above = [part for part in os.path.realpath(self.top).split(os.sep) if part]

    @contextmanager
    def _parent(self, path: Sequence[str], *, make: bool = False) -> Iterator[tuple[str, int | None]]:
        """The last name of a path, and a descriptor of the directory it is in; None: the name is a whole path."""
        for part in path:
            if part in ("", ".", "..") or "\0" in part or os.sep in part or (os.altsep and os.altsep in part):
                raise ValueError(f"refusing to write {'/'.join(path)!r}: it would leave {self.top}")
        directory, *below, name = [self.top, *path] if path else os.path.split(os.path.abspath(self.top))
        if make:
            os.makedirs(directory, exist_ok=True)
        if not _HAS_OPENAT:
            for part in below:
                directory = os.path.join(directory, part)
                if os.path.islink(directory):
                    raise ValueError(f"refusing to go through the symlink {directory}")
                if make:
                    os.makedirs(directory, exist_ok=True)
            yield os.path.join(directory, name), None
            return
        fd = os.open(directory, _DIRECTORY)
        try:
            for part in below:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=fd)
                above, fd = fd, _open_directory(part, fd)
                os.close(above)
            yield name, fd
        finally:
            os.close(fd)

    def make_directory(self, path: Sequence[str]) -> None:
        """Make a directory, and those above it."""
        if not path:
            os.makedirs(self.top, exist_ok=True)
            return
        with self._parent(path, make=True) as (name, fd):
            try:
                os.mkdir(name, dir_fd=fd)
            except FileExistsError:
                if not S_ISDIR(os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode):
                    raise

    def stat(self, path: Sequence[str]) -> os.stat_result | None:
        """The file at a path, not followed if it is a symlink; None if there is none."""
        try:
            with self._parent(path) as (name, fd):
                return os.stat(name, dir_fd=fd, follow_symlinks=False)
        except (FileNotFoundError, NotADirectoryError):
            return None

    # Applying changes.

    def check_usable(self) -> None:
        """NotADirectoryError; SandboxError where there is no openat(2)."""
        if not _HAS_OPENAT:
            raise SandboxError("changes can't be applied on this system, which has no openat(2): read diff() instead")
        os.close(os.open(self.top, _DIRECTORY))

    def look(self, path: Sequence[str]) -> Found | None:
        """The file at a path, read to its end; None if there is none. ValueError for a device and the like."""
        from hashlib import file_digest, sha256  # few programs apply changes

        try:
            with self._parent(path) as (name, fd):
                found = os.stat(name, dir_fd=fd, follow_symlinks=False)
                mode, data = git_mode(found.st_mode), b""
                if mode == SYMLINK:
                    data = os.fsencode(os.readlink(name, dir_fd=fd))
                elif mode in (FILE, EXECUTABLE):
                    opened = os.open(name, os.O_RDONLY | _NOFOLLOW | _NONBLOCK, dir_fd=fd)
                    with os.fdopen(opened, "rb") as file:
                        if not S_ISREG(os.fstat(opened).st_mode):
                            raise ValueError(f"{name!r} is no longer a regular file")
                        return Found(mode, file_digest(file, "sha256").digest(), found.st_mode & 0o777, _version(found))
                elif mode != DIRECTORY:
                    raise ValueError(f"{name!r} is neither a file, a symlink nor a directory")
                return Found(mode, sha256(data).digest(), found.st_mode & 0o777, _version(found))
        except (FileNotFoundError, NotADirectoryError):
            return None

    def check_version(self, path: Sequence[str], found: Found) -> None:
        """ConflictError if the file is no longer the one that was found."""
        now = self.stat(path)
        if now is None or _version(now) != found.version:
            raise ConflictError(["/".join(path)])

    def list(self, path: Sequence[str]) -> list[str]:
        with self._parent([*path, "-"]) as (_, fd):
            assert fd is not None
            return os.listdir(fd)

    def make_symlink(self, path: Sequence[str], target: bytes) -> None:
        with self._parent(path, make=True) as (name, fd):
            os.symlink(target, os.fsencode(name), dir_fd=fd)

    def remove(self, path: Sequence[str]) -> None:
        with self._parent(path) as (name, fd):
            os.unlink(name, dir_fd=fd)

    def remove_directory(self, path: Sequence[str]) -> None:
        """One that is not empty stays."""
        with self._parent(path) as (name, fd), suppress(OSError):
            os.rmdir(name, dir_fd=fd)

    def move(self, old: Sequence[str], new: Sequence[str]) -> None:
        """Put a file in place of another, or where there is none."""
        with self._parent(old) as (name, fd), self._parent(new, make=True) as (target, into):
            os.replace(name, target, src_dir_fd=fd, dst_dir_fd=into)

    def count_names(self, path: Sequence[str]) -> int:
        """Names of the regular file at a path; 0 if there is none."""
        found = self.stat(path)
        return found.st_nlink if found is not None and S_ISREG(found.st_mode) else 0

    def has(self, directory: Sequence[str], name: str) -> bool:
        """Whether there is such a file; also if that can't be known."""
        try:
            return self.stat([*directory, name]) is not None
        except (OSError, ValueError):
            return True

    @contextmanager
    def replacing(self, path: Sequence[str], mode: int) -> Iterator[BinaryIO]:
        """A new file below the top, in place of what is there once it is complete.

        What is there may be a regular file only: ValueError, IsADirectoryError.
        """
        with self._parent(path, make=True) as (name, fd):
            before = _stat(name, fd)
            if before is not None and not S_ISREG(before.st_mode):
                if S_ISDIR(before.st_mode):
                    raise IsADirectoryError(EISDIR, os.strerror(EISDIR), "/".join([self.top, *path]))
                raise ValueError(f"refusing to replace {'/'.join([self.top, *path])}: it is not a regular file")
            new = os.path.join(os.path.dirname(name), f".belljar-{os.urandom(8).hex()}")
            with os.fdopen(os.open(new, _NEW, mode & 0o777 | 0o600, dir_fd=fd), "wb") as file:
                try:
                    yield file
                    file.close()
                    os.replace(new, name, src_dir_fd=fd, dst_dir_fd=fd)
                except BaseException:
                    file.close()
                    os.unlink(new, dir_fd=fd)
                    raise


def git_mode(mode: int) -> int:
    """A mode as git writes it; 0 for what is neither a file, a symlink nor a directory."""
    if S_ISREG(mode):
        return EXECUTABLE if mode & 0o100 else FILE
    return SYMLINK if S_ISLNK(mode) else DIRECTORY if S_ISDIR(mode) else 0


def _version(found: os.stat_result) -> tuple[int, ...]:
    return found.st_dev, found.st_ino, found.st_mtime_ns, found.st_size


def _open_directory(name: str, fd: int) -> int:
    """ValueError for a symlink."""
    try:
        return os.open(name, _DIRECTORY | _NOFOLLOW, dir_fd=fd)
    except OSError as error:
        if error.errno == ELOOP or (error.errno == ENOTDIR and S_ISLNK(_mode(name, fd))):
            raise ValueError(f"refusing to go through the symlink {name!r}") from None
        raise


def _stat(name: str, fd: int | None) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=fd, follow_symlinks=False)
    except FileNotFoundError:
        return None


def _mode(name: str, fd: int | None) -> int:
    found = _stat(name, fd)
    return 0 if found is None else found.st_mode
