"""The cache of unpacked roots: each made once, checked when it is used, never removed while it is used.

Of an entry KEY there are: `KEY/` (the root), `KEY.json` (written last: what it must look like), `KEY.lock` (flock(2):
shared by users, exclusive for who makes or removes it) and, while it is made, `work/KEY/`. A process that is killed
leaves locks free and remains in `work/`, or a root without `KEY.json`: whoever comes next removes both.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import hashlib
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from math import inf
from typing import Final

import msgspec
from msgspec import Struct

from belljar.abi.cache_host import cache_directory, private_directory
from belljar.abi.errors import ImageError
from belljar.abi.limits import GIB
from belljar.native.unpack_host import Way, open_way, remove_tree

BYTES_MAX: Final = 16 * GIB
"""Of all roots; those in use are kept even so."""
_TRIES: Final = 5
_COPIES: Final = 8
"""Of one root: another one is made if the first is damaged while somebody uses it."""
_CHECKED_SECONDS: Final = 30.0
"""For so long a process believes that a root it has checked is intact: checking takes 7 us for each file."""
_DIRECTORY: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class _Mark(Struct, frozen=True):
    """Contents of `KEY.json`."""

    bytes: int
    entries: int
    fingerprint: str
    skipped: list[str]


class Lease(Struct):
    """The use of a root: it stays until `release`, or until the process ends."""

    path: str
    skipped: list[str]
    lock: int

    def release(self) -> None:
        fd, self.lock = self.lock, -1
        if fd >= 0:
            os.close(fd)


class RootCache:
    """Roots in one directory, which belongs to this user alone."""

    def __init__(self, directory: str, bytes_max: int = BYTES_MAX) -> None:
        self._directory = directory
        self._bytes_max = bytes_max
        self._checked: dict[str, tuple[float, str]] = {}
        """When roots were found intact last, and their fingerprints."""
        if private_directory(directory) is None or private_directory(os.path.join(directory, "work")) is None:
            raise ImageError(
                f"{directory} can't be written to, or others can write to it: images are unpacked there. "
                "Repair its mode, or set BELLJAR_CACHE to another directory"
            )

    def use(self, key: str, size: int, make: Callable[[int], list[str]]) -> Lease:
        """The root of a key. If it is not there, or damaged, `make` fills an empty directory, about `size` bytes; it
        gives what it has left out. ImageError.
        """
        try:
            for copy in range(_COPIES):
                lease = self._use(f"{key}-{copy}" if copy else key, size, make)
                if lease is not None:
                    return lease
        except OSError as error:
            raise ImageError(f"the image could not be unpacked into {self._directory}: {error}") from error
        raise ImageError(f"all copies of the image in {self._directory} are damaged, and used by other sandboxes")

    def _use(self, key: str, size: int, make: Callable[[int], list[str]]) -> Lease | None:
        """None if the root is damaged, and somebody uses it."""
        for _ in range(_TRIES):
            lock = self._lock(key, fcntl.LOCK_SH)  # waits for whoever makes it
            assert lock is not None
            try:
                mark = self._intact(key)
                if mark is not None:
                    lease, lock = Lease(self._path(key), mark.skipped, lock), None
                    return lease
            finally:
                if lock is not None:
                    os.close(lock)
            lock = self._lock(key, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if lock is None:  # somebody else has it: makes it, or found it damaged, too, or uses it
                time.sleep(0.02)
                continue
            try:
                if self._intact(key) is None:
                    self._discard(key)
                    self.trim(size)
                    self._make(key, make)
            finally:
                os.close(lock)
        return None

    def trim(self, room: int = 0) -> None:
        """Remove remains, and the roots used least recently, until there is room for so many bytes."""
        marks = {name.removesuffix(".json") for name in os.listdir(self._directory) if name.endswith(".json")}
        names = {name.partition(".")[0] for name in os.listdir(self._directory)} - {"work"}
        with self._open_work() as work:
            for name in os.listdir(work):
                if "." in name:  # no longer anybody's
                    remove_tree(work, name)
                else:
                    names.add(name)
        for key in names - marks:
            self._remove(key)
        found = []
        for key in marks:
            with suppress(OSError, msgspec.DecodeError, msgspec.ValidationError):
                found.append((os.stat(self._path(key, ".json")).st_mtime_ns, self._mark(key).bytes, key))
        total = sum(size for _, size, _ in found) + room
        for _, size, key in sorted(found):
            if total <= self._bytes_max:
                break
            if self._remove(key):
                total -= size

    def _make(self, key: str, make: Callable[[int], list[str]]) -> None:
        with self._open_work() as work:
            os.mkdir(key, 0o700, dir_fd=work)
            root = os.open(key, _DIRECTORY, dir_fd=work)
            try:
                skipped = make(root)
                _sync_file_system(root)
            finally:
                os.close(root)
            os.rename(key, self._path(key), src_dir_fd=work)
        size, entries, fingerprint = _inspect(self._path(key))
        temporary = self._path(key, ".new")
        with open(temporary, "wb") as file:
            file.write(msgspec.json.encode(_Mark(size, entries, fingerprint, skipped)))
            file.flush()
            os.fsync(file.fileno())
        os.rename(temporary, self._path(key, ".json"))
        directory = os.open(self._directory, _DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)

    def _intact(self, key: str) -> _Mark | None:
        """What is known of a root that is as it was made, and note that it was used."""
        try:
            mark = self._mark(key)
            since, fingerprint = self._checked.get(key, (-inf, ""))
            now = time.monotonic()
            if now - since > _CHECKED_SECONDS or fingerprint != mark.fingerprint:
                if _inspect(self._path(key))[2] != mark.fingerprint:
                    return None
                self._checked[key] = now, mark.fingerprint
            os.utime(self._path(key, ".json"))
        except (OSError, msgspec.DecodeError, msgspec.ValidationError):
            return None
        return mark

    def _mark(self, key: str) -> _Mark:
        with open(self._path(key, ".json"), "rb") as file:
            return msgspec.json.decode(file.read(), type=_Mark)

    def _remove(self, key: str) -> bool:
        """Remove a root that nobody uses."""
        lock = self._lock(key, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if lock is None:
            return False
        try:
            self._discard(key)
            os.unlink(self._path(key, ".lock"))
        finally:
            os.close(lock)
        return True

    def _discard(self, key: str) -> None:
        """Remove what there is of a root whose lock is held, but the lock."""
        for ending in (".json", ".new"):
            with suppress(FileNotFoundError):
                os.unlink(self._path(key, ending))
        with self._open_work() as work:
            for place in (None, work):
                gone = uuid.uuid4().hex + ".gone"
                with suppress(FileNotFoundError):
                    os.rename(self._path(key) if place is None else key, gone, src_dir_fd=place, dst_dir_fd=work)
                    remove_tree(work, gone)

    def _lock(self, key: str, how: int) -> int | None:
        """Lock an entry; None if it can't be had at once and `how` does not wait."""
        path = self._path(key, ".lock")
        while True:
            fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(fd, how)
                if os.path.samestat(os.fstat(fd), os.stat(path)):
                    return fd
            except FileNotFoundError:  # it was removed with its root: the next one counts
                pass
            except BlockingIOError:
                os.close(fd)
                return None
            except BaseException:
                os.close(fd)
                raise
            os.close(fd)

    @contextmanager
    def _open_work(self) -> Iterator[int]:
        fd = os.open(os.path.join(self._directory, "work"), _DIRECTORY)
        try:
            yield fd
        finally:
            os.close(fd)

    def _path(self, key: str, ending: str = "") -> str:
        return os.path.join(self._directory, key + ending)


def default_cache() -> RootCache:
    """The cache in this user's cache directory. ImageError."""
    directory = cache_directory()
    if directory is None:
        raise ImageError(
            "images can't be unpacked: there is no cache directory that is this user's alone. "
            "Set BELLJAR_CACHE to one, or repair the modes of ~/.cache/belljar"
        )
    return _cache_in(os.path.join(directory, "roots"))


@cache
def _cache_in(directory: str) -> RootCache:
    return RootCache(directory)


def _inspect(path: str) -> tuple[int, int, str]:
    """Bytes, number of entries, and a digest of what changes when anything in a tree is changed: names, inodes, and the
    times of their last change, which no program can set.
    """
    blocks = 0
    lines: list[str] = []
    root = os.open(path, _DIRECTORY)
    waiting: list[Way] = [()]
    try:
        while waiting:
            way = waiting.pop()
            try:
                directory = open_way(root, way)
            except PermissionError:
                continue  # nobody but root sees what is in it
            try:
                inside = os.fstat(directory)
                lines.append(f"{inside.st_ino} {inside.st_ctime_ns}")
                with os.scandir(directory) as entries:
                    for entry in entries:
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append((*way, os.fsencode(entry.name)))
                            lines.append(f"{inside.st_ino} {entry.inode()} {entry.name!r}")
                        else:
                            found = entry.stat(follow_symlinks=False)
                            blocks += found.st_blocks
                            lines.append(f"{inside.st_ino} {found.st_ino} {found.st_ctime_ns} {entry.name!r}")
            finally:
                os.close(directory)
    finally:
        os.close(root)
    lines.sort()
    return blocks * 512, len(lines), hashlib.blake2b("\n".join(lines).encode(), digest_size=16).hexdigest()


def _sync_file_system(fd: int) -> None:
    """Have everything on the disk before it is called complete: a power cut leaves files empty otherwise."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syncfs(fd) != 0 and ctypes.get_errno() != errno.ENOSYS:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
