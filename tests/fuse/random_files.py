"""Random operations on one directory of tmpfs and one of FUSE, side by side: every answer must be the same.

Runs inside a namespace: `python -m tests.fuse.random_files TMPFS FUSE SECONDS SEED`. Prints how many operations were
made, or the operations that led to a difference.
"""

import ctypes
import errno
import mmap
import os
import random
import stat
import sys
import time
from collections.abc import Callable
from typing import Any

NAMES = ["a", "b", "c", "d", "e", "long" * 50, "\N{GREEK SMALL LETTER ALPHA}"]
SIZE_MAX = 300_000
FALLOC_KEEP_SIZE, FALLOC_PUNCH_HOLE = 1, 2
LIBC = ctypes.CDLL(None, use_errno=True)


class Side:
    """One of the two directories."""

    def __init__(self, top: str) -> None:
        self.top = top
        self.files: dict[int, int] = {}

    def at(self, path: str) -> str:
        return f"{self.top}/{path}"


def fallocate(fd: int, mode: int, offset: int, length: int) -> None:
    if LIBC.fallocate(fd, mode, ctypes.c_long(offset), ctypes.c_long(length)):
        raise OSError(ctypes.get_errno(), "fallocate")


def renameat2(old: str, new: str, flags: int) -> None:
    if LIBC.renameat2(-100, os.fsencode(old), -100, os.fsencode(new), flags):
        raise OSError(ctypes.get_errno(), "renameat2")


def described(found: os.stat_result) -> tuple[Any, ...]:
    directory = stat.S_ISDIR(found.st_mode)
    return (found.st_mode, found.st_nlink, found.st_uid, found.st_gid, None if directory else found.st_size)


def opened(side: Side, slot: int, path: str, flags: int, mode: int) -> None:
    if slot in side.files:
        os.close(side.files.pop(slot))
    side.files[slot] = os.open(side.at(path), flags | os.O_NONBLOCK, mode)


def length(fd: int) -> int:
    """Of a directory each file system has its own idea."""
    found = os.fstat(fd)
    return 0 if stat.S_ISDIR(found.st_mode) else found.st_size


def write_mapped(side: Side, slot: int, offset: int, data: bytes) -> bool:
    fd = side.files[slot]
    size = length(fd)
    if offset + len(data) > size:
        return False
    with mmap.mmap(fd, size) as view:
        view[offset : offset + len(data)] = data
    return True


def read_mapped(side: Side, slot: int) -> bytes:
    fd = side.files[slot]
    size = length(fd)
    if not size:
        return b""
    with mmap.mmap(fd, size, prot=mmap.PROT_READ) as view:
        return bytes(view)


def tree(side: Side) -> list[Any]:
    found: list[Any] = []
    for top, directories, files in os.walk(side.top):
        for name in sorted(directories + files):
            path = os.path.join(top, name)
            status = os.lstat(path)
            contents = None
            if stat.S_ISREG(status.st_mode):
                with open(path, "rb") as file:
                    contents = file.read()
            elif stat.S_ISLNK(status.st_mode):
                contents = os.fsencode(os.readlink(path))
            found.append((os.path.relpath(path, side.top), described(status), contents))
    return sorted(found, key=lambda entry: entry[0])


def change_times(side: Side, path: str, times: tuple[int, int]) -> tuple[int, int]:
    os.utime(side.at(path), ns=times, follow_symlinks=False)
    found = os.lstat(side.at(path))  # which itself may be an access to a symlink
    return found.st_atime_ns if stat.S_ISREG(found.st_mode) else 0, found.st_mtime_ns


def seek_end(side: Side, slot: int) -> int:
    """Of a directory each file system has its own idea."""
    directory = stat.S_ISDIR(os.fstat(side.files[slot]).st_mode)
    return 0 if directory else os.lseek(side.files[slot], 0, os.SEEK_END)


Operation = tuple[str, Callable[[Side], Any]]


def choose(rng: random.Random, slots: list[int]) -> Operation:
    """An operation with its arguments, to be done on both sides."""

    def path() -> str:
        return "/".join(rng.choice(NAMES) for _ in range(rng.choice((1, 1, 1, 2, 2, 3))))

    one, two, slot = path(), path(), rng.choice(slots or [0])
    offset, length = rng.randrange(SIZE_MAX), rng.choice((1, 10, 4096, 5000, 70_000))
    data = rng.randbytes(length)
    access = rng.choice((os.O_RDWR, os.O_RDWR, os.O_RDWR, os.O_WRONLY, os.O_RDONLY))
    flags = access | rng.choice((0, os.O_CREAT, os.O_CREAT, os.O_CREAT | os.O_EXCL))
    flags |= rng.choice((0, 0, 0, os.O_TRUNC, os.O_APPEND))
    mode, number = rng.choice((0o644, 0o600, 0o4755, 0o2755, 0o777)), rng.randrange(6)
    times = (rng.randrange(-(10**18), 10**18), rng.randrange(10**18))
    files: list[Operation] = [
        (f"open {number} {one!r} {flags:o} {mode:o}", lambda s: opened(s, number, one, flags, mode)),
        (f"truncate {one!r} {offset}", lambda s: os.truncate(s.at(one), offset)),
        (f"unlink {one!r}", lambda s: os.unlink(s.at(one))),
        (f"mkdir {one!r} {mode:o}", lambda s: os.mkdir(s.at(one), mode)),
        (f"rmdir {one!r}", lambda s: os.rmdir(s.at(one))),
        (f"rename {one!r} {two!r}", lambda s: os.rename(s.at(one), s.at(two))),
        (f"rename {one!r} {two!r} {number % 3}", lambda s: renameat2(s.at(one), s.at(two), number % 3)),
        (f"link {one!r} {two!r}", lambda s: os.link(s.at(one), s.at(two))),
        (f"symlink {one!r} {two!r}", lambda s: os.symlink(one, s.at(two))),
        (f"readlink {one!r}", lambda s: os.readlink(s.at(one))),
        (f"mkfifo {one!r}", lambda s: os.mkfifo(s.at(one), mode)),
        (f"chmod {one!r} {mode:o}", lambda s: os.chmod(s.at(one), mode)),
        (f"chown {one!r} {number}", lambda s: os.chown(s.at(one), number, number, follow_symlinks=False)),
        (f"utime {one!r} {times}", lambda s: change_times(s, one, times)),
        (f"lstat {one!r}", lambda s: described(os.lstat(s.at(one)))),
        (f"listdir {one!r}", lambda s: sorted(os.listdir(s.at(one)))),
    ]
    contents: list[Operation] = [
        (f"pwrite {slot} {offset} {length}", lambda s: os.pwrite(s.files[slot], data, offset)),
        (f"pread {slot} {offset} {length}", lambda s: os.pread(s.files[slot], length, offset)),
        (f"write {slot} {length}", lambda s: os.write(s.files[slot], data)),
        (f"read {slot} {length}", lambda s: os.read(s.files[slot], length)),
        (f"lseek {slot} {offset}", lambda s: os.lseek(s.files[slot], offset, os.SEEK_SET)),
        (f"seek end {slot}", lambda s: seek_end(s, slot)),
        (f"ftruncate {slot} {offset}", lambda s: os.ftruncate(s.files[slot], offset)),
        (f"fstat {slot}", lambda s: described(os.fstat(s.files[slot]))),
        (f"write mapped {slot} {offset} {length}", lambda s: write_mapped(s, slot, offset, data)),
        (f"read mapped {slot}", lambda s: read_mapped(s, slot)),
        (f"fallocate {slot} {offset} {length}", lambda s: fallocate(s.files[slot], 0, offset, length)),
        (
            f"punch hole {slot} {offset} {length}",
            lambda s: fallocate(s.files[slot], FALLOC_KEEP_SIZE | FALLOC_PUNCH_HOLE, offset, length),
        ),
        (f"keep size {slot}", lambda s: fallocate(s.files[slot], FALLOC_KEEP_SIZE, offset, length)),
        (f"fsync {slot}", lambda s: os.fsync(s.files[slot])),
        (f"close {slot}", lambda s: os.close(s.files.pop(slot))),
    ]
    return rng.choice(contents if slots and rng.random() < 0.6 else files)


def outcome(side: Side, operation: Callable[[Side], Any]) -> Any:
    try:
        return operation(side)
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    except ValueError as error:
        return str(error)


def run(tops: tuple[str, str], seconds: float, seed: int) -> tuple[int, str]:
    """How many operations were made, and the last ones, if the two sides differed after them."""
    rng = random.Random(seed)
    sides = [Side(top) for top in tops]
    done: list[str] = []
    deadline = time.monotonic() + seconds
    os.umask(0o022)
    while time.monotonic() < deadline:
        name, operation = choose(rng, list(sides[0].files))
        done.append(name)
        answers = [outcome(side, operation) for side in sides]
        for side, other in (sides, sides[::-1]):
            for slot in side.files.keys() - other.files.keys():
                os.close(side.files.pop(slot))
        if answers[0] == answers[1] and len(done) % 500 == 0:
            answers = [tree(side) for side in sides]
        if answers[0] != answers[1]:
            shown = [repr(answer)[:300] for answer in answers]
            return len(done), "\n".join([*done[-40:], f"tmpfs: {shown[0]}", f"fuse: {shown[1]}", f"seed {seed}"])
    for side in sides:
        for fd in side.files.values():
            os.close(fd)
    answers = [tree(side) for side in sides]
    return len(done), "" if answers[0] == answers[1] else f"the trees differ in the end: seed {seed}"


if __name__ == "__main__":
    made, difference = run((sys.argv[1], sys.argv[2]), float(sys.argv[3]), int(sys.argv[4]))
    sys.stdout.write(difference or f"{made} operations")
    sys.exit(1 if difference else 0)
