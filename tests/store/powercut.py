"""A disk that forgets: what a program does to files is recorded, and every state that a power cut may leave is made.

Until it is synced, a write may be on disk, or not, or some of its sectors of 512 bytes, or garbage in their place; a
name may be in its directory, or not. These are independent: nothing says in which order they get there. What was
written before a sync that failed is never known to be on disk, whatever later syncs say; with `dooms_names` the same
holds for names, though file systems with a journal are better than that.
"""

from __future__ import annotations

import itertools
import os
import random
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from belljar.abi.dataclass import dataclass

SECTOR = 512
ALL_OF = 5
"""Changes that are not synced, of which every subset is tried; of more, samples."""


@dataclass(slots=True)
class Change:
    """A write (`offset`, `data`), a truncation (`offset`), or a name (`name`, `inode`; None: it was removed)."""

    where: int
    """The inode of the file, or of the directory."""
    offset: int = 0
    data: bytes | None = None
    name: str = ""
    inode: int | None = None
    synced_at: float = float("inf")
    """Position in the record of the sync that made it durable."""


class Fault(Exception):
    """The call at hand is to fail with this errno."""


class Disk:
    """Changes to the files below a directory, which are made there as well, and the syncs between them."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.record: list[Change | None] = []
        """None: a sync."""
        self.acknowledged: list[tuple[int, Any]] = []
        self.calls = 0
        self.fails_at = 0
        self.errno = 0
        self.lasts = False
        self.dooms_names = False
        self._inodes: dict[str, int] = {str(root): 0}
        self._numbers = itertools.count(1)
        self._doomed: set[int] = set()
        self._directories = {0}
        for path in sorted(root.rglob("*")):  # what is there already is durable
            self.named(str(path), is_directory=path.is_dir())
            if path.is_file():
                self.wrote(self._inodes[str(path)], 0, path.read_bytes())
        for change in self.record:
            assert change is not None
            change.synced_at = -1

    def covers(self, path: str) -> bool:
        return path.startswith(f"{self.root}/") or path == str(self.root)

    def inode(self, path: str) -> int:
        return self._inodes[path]

    def call(self) -> None:
        """Count a call that changes the disk. Fault, if it is the one that fails."""
        self.calls += 1
        if self.fails_at and (self.calls >= self.fails_at if self.lasts else self.calls == self.fails_at):
            raise Fault(self.errno)

    def acknowledge(self, state: Any) -> None:
        self.acknowledged.append((len(self.record), state))

    def named(self, path: str, inode: int | None = None, *, is_directory: bool = False) -> None:
        number = next(self._numbers) if inode is None else inode
        if is_directory:
            self._directories.add(number)
        self._inodes[path] = number
        parent, _, name = path.rpartition("/")
        self.record.append(Change(self._inodes[parent], name=name, inode=number))

    def removed(self, path: str) -> None:
        del self._inodes[path]
        parent, _, name = path.rpartition("/")
        self.record.append(Change(self._inodes[parent], name=name, inode=None))

    def wrote(self, inode: int, offset: int, data: bytes) -> None:
        self.record.append(Change(inode, offset, bytes(data)))

    def truncated(self, inode: int, size: int) -> None:
        self.record.append(Change(inode, size))

    def synced(self, inode: int, *, failed: bool = False) -> None:
        here = len(self.record)
        for position, change in enumerate(self.record):
            if change is not None and change.where == inode and change.synced_at == float("inf"):
                if failed and (self.dooms_names or not change.name):
                    self._doomed.add(position)
                elif not failed and position not in self._doomed:
                    change.synced_at = here
        self.record.append(None)

    def cuts(self) -> list[int]:
        """Moments just before a sync, and the end."""
        return [position for position, change in enumerate(self.record) if change is None] + [len(self.record)]

    def known(self, cut: int) -> tuple[Any, Any]:
        """The state that was acknowledged before a cut, and the one that was next."""
        before = [state for at, state in self.acknowledged if at <= cut]
        after = [state for at, state in self.acknowledged if at > cut]
        return before[-1] if before else None, after[0] if after else None

    def states(self, cut: int, rng: random.Random, samples: int) -> Iterator[dict[str, bytes | None]]:
        """Files (None: directories) that may be on disk after a power cut just before a position of the record."""
        free = [
            position
            for position, change in enumerate(self.record[:cut])
            if change is not None and not change.synced_at < cut
        ]
        if len(free) <= ALL_OF:
            choices = [
                dict(zip(free, kept, strict=True)) for kept in itertools.product((True, False), repeat=len(free))
            ]
            rng.shuffle(choices)
            choices = choices[: max(samples, 2)]
        else:
            rates = [1.0, 0.0, *(rng.choice((0.1, 0.5, 0.9)) for _ in range(samples))]
            choices = [{position: rng.random() < rate for position in free} for rate in rates]
        for kept in choices:
            yield self._state(cut, kept, rng)

    def _state(self, cut: int, kept: dict[int, bool], rng: random.Random) -> dict[str, bytes | None]:
        contents: dict[int, bytearray] = {}
        names: dict[int, dict[str, int]] = {}
        for position, change in enumerate(self.record[:cut]):
            if change is None or not kept.get(position, True):
                continue
            if change.name:
                names.setdefault(change.where, {}).pop(change.name, None)
                if change.inode is not None:
                    names[change.where][change.name] = change.inode
            elif change.data is None:
                content = contents.setdefault(change.where, bytearray())
                content[:] = content[: change.offset].ljust(change.offset, b"\0")
            else:
                torn = position in kept and rng.random() < 0.3
                _write(contents.setdefault(change.where, bytearray()), change, rng if torn else None)
        found: dict[str, bytes | None] = {}
        waiting = [("", 0)]
        while waiting:
            path, directory = waiting.pop()
            for name, inode in names.get(directory, {}).items():
                is_directory = inode in self._directories
                found[f"{path}{name}"] = None if is_directory else bytes(contents.get(inode, b""))
                if is_directory:
                    waiting.append((f"{path}{name}/", inode))
        return found


def _write(content: bytearray, change: Change, torn: random.Random | None) -> None:
    data = change.data or b""
    end = change.offset + len(data)
    content.extend(bytes(max(0, end - len(content))))
    if torn is None:
        content[change.offset : end] = data
        return
    start = 0
    while start < len(data):
        size = SECTOR - (change.offset + start) % SECTOR
        part = data[start : start + size]
        fate = torn.random()
        if fate < 0.2:
            part = torn.randbytes(len(part))
        if fate < 0.6:
            content[change.offset + start : change.offset + start + len(part)] = part
        start += size


def materialise(state: dict[str, bytes | None], root: Path) -> None:
    root.mkdir(parents=True)
    for name in sorted(state):
        data = state[name]
        if data is None:
            (root / name).mkdir()
        else:
            (root / name).write_bytes(data)


class RecordingOs:
    """The module `os`, for a module under test: changes below the root of a disk are recorded, or fail."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._open: dict[int, tuple[int, int]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def _call(self, path: str) -> None:
        try:
            self._disk.call()
        except Fault as fault:
            raise OSError(fault.args[0], os.strerror(fault.args[0]), path) from None

    def open(self, path: str, flags: int, mode: int = 0o777) -> int:
        covered = self._disk.covers(path)
        creates = covered and flags & os.O_CREAT and not os.path.exists(path)
        if creates:
            self._call(path)
        descriptor = os.open(path, flags, mode)
        if creates:
            self._disk.named(path)
        if covered:
            self._open[descriptor] = self._disk.inode(path), 0
        return descriptor

    def close(self, descriptor: int) -> None:
        self._open.pop(descriptor, None)
        os.close(descriptor)

    def write(self, descriptor: int, data: bytes) -> int:
        inode, offset = self._open[descriptor]
        self._call("")
        written = os.write(descriptor, data[:3000])  # a short write, where it is longer
        self._disk.wrote(inode, offset, data[:written])
        self._open[descriptor] = inode, offset + written
        return written

    def fsync(self, descriptor: int) -> None:
        if descriptor in self._open:
            inode = self._open[descriptor][0]
            try:
                self._call("")
            except OSError:
                self._disk.synced(inode, failed=True)
                raise
            self._disk.synced(inode)
        assert stat.S_IFMT(os.fstat(descriptor).st_mode)

    def link(self, source: str, target: str) -> None:
        self._call(target)
        os.link(source, target)
        self._disk.named(target, self._disk.inode(source))

    def unlink(self, path: str) -> None:
        if os.path.exists(path):
            self._call(path)
        os.unlink(path)
        self._disk.removed(path)

    def mkdir(self, path: str, mode: int = 0o777) -> None:
        self._call(path)
        os.mkdir(path, mode)
        self._disk.named(path, is_directory=True)

    def rmdir(self, path: str) -> None:
        self._call(path)
        os.rmdir(path)
        self._disk.removed(path)
