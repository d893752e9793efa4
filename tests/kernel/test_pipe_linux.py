"""Random calls on pipes and FIFOs, ours and Linux's: every answer must be the same, errno and poll events included."""

import errno
import os
import select
import tempfile
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from belljar.abi.errors import SysError
from belljar.abi.flags import O_NONBLOCK, O_RDONLY, O_RDWR, O_WRONLY, POLLIN, POLLOUT, S_IFIFO, S_IFMT
from belljar.abi.signals import Signal
from belljar.kernel.process import IGNORE, Process
from tests.kernel.rig import new_kernel, result

Answer = Any
SLOTS = range(6)


class Linux:
    """Descriptors by slot, all nonblocking; the files are in a directory of the host."""

    def __init__(self, directory: str) -> None:
        self._directory = directory
        self.files: dict[int, int] = {}

    def call(self, operation: str, *arguments: Any) -> Answer:
        method: Callable[..., Answer] = getattr(self, operation)
        try:
            return method(*arguments)
        except OSError as error:
            return errno.errorcode[error.errno or 0]

    def _path(self, name: str) -> str:
        return f"{self._directory}/{name}"

    def pipe(self, one: int, two: int) -> None:
        self.files[one], self.files[two] = os.pipe2(os.O_NONBLOCK)

    def mkfifo(self, name: str) -> None:
        os.mkfifo(self._path(name))

    def unlink(self, name: str) -> None:
        os.unlink(self._path(name))

    def open(self, slot: int, name: str, access: int) -> None:
        self.files[slot] = os.open(self._path(name), access | os.O_NONBLOCK)

    def reopen(self, old: int, slot: int, access: int) -> None:
        self.files[slot] = os.open(f"/proc/self/fd/{self.files[old]}", access | os.O_NONBLOCK)

    def dup(self, old: int, slot: int) -> None:
        self.files[slot] = os.dup(self.files[old])

    def close(self, slot: int) -> None:
        os.close(self.files.pop(slot))

    def read(self, slot: int, size: int) -> bytes:
        return os.read(self.files[slot], size)

    def write(self, slot: int, data: bytes) -> int:
        return os.write(self.files[slot], data)

    def poll(self, slot: int) -> int:
        poller = select.poll()
        poller.register(self.files[slot], POLLIN | POLLOUT)
        found = poller.poll(0)
        return found[0][1] if found else 0

    def seek(self, slot: int) -> int:
        return os.lseek(self.files[slot], 0, os.SEEK_CUR)

    def pread(self, slot: int) -> bytes:
        return os.pread(self.files[slot], 1, 0)

    def truncate(self, slot: int) -> None:
        os.ftruncate(self.files[slot], 0)

    def stat(self, slot: int) -> Answer:
        found = os.fstat(self.files[slot])
        return found.st_mode & S_IFMT, found.st_nlink, found.st_size


class Ours(Linux):
    """The same calls of one of our processes."""

    def __init__(self, process: Process) -> None:
        super().__init__("/tmp")
        self._process = process

    def call(self, operation: str, *arguments: Any) -> Answer:
        try:
            return super().call(operation, *arguments)
        except SysError as error:
            return error.name

    def pipe(self, one: int, two: int) -> None:
        self.files[one], self.files[two] = self._process.pipe()
        for slot in (one, two):
            file = self._process.fds[self.files[slot]]
            file.set_flags(file.flags | O_NONBLOCK)

    def mkfifo(self, name: str) -> None:
        self._process.fs.mknod(self._path(name), S_IFIFO | 0o666)

    def unlink(self, name: str) -> None:
        self._process.fs.unlink(self._path(name))

    def open(self, slot: int, name: str, access: int) -> None:
        self.files[slot] = self._process.open(self._path(name), access | O_NONBLOCK)

    def reopen(self, old: int, slot: int, access: int) -> None:
        self.files[slot] = self._process.open(f"/proc/self/fd/{self.files[old]}", access | O_NONBLOCK)

    def dup(self, old: int, slot: int) -> None:
        self.files[slot] = self._process.dup(self.files[old])

    def close(self, slot: int) -> None:
        self._process.close(self.files.pop(slot))

    def read(self, slot: int, size: int) -> bytes:
        return self._process.read(self.files[slot], size)

    def write(self, slot: int, data: bytes) -> int:
        return self._process.write(self.files[slot], data)

    def poll(self, slot: int) -> int:
        fd = self.files[slot]
        return self._process.poll({fd: POLLIN | POLLOUT}, 0).get(fd, 0)

    def seek(self, slot: int) -> int:
        return self._process.seek(self.files[slot], 0, os.SEEK_CUR)

    def pread(self, slot: int) -> bytes:
        return self._process.fds[self.files[slot]].pread(1, 0)

    def truncate(self, slot: int) -> None:
        self._process.fds[self.files[slot]].truncate(0)

    def stat(self, slot: int) -> Answer:
        found = self._process.fstat(self.files[slot])
        return found.mode & S_IFMT, found.nlink, found.size


names = st.sampled_from("ab")
picks = st.integers(0, 5)
accesses = st.sampled_from([O_RDONLY, O_WRONLY, O_RDWR])
# What a pipe surely has room for: we take a piece whole, where Linux takes a part.
data = st.sampled_from([b"", b"x", b"hello", b"y" * 1000])

CALLS = st.lists(
    st.one_of(
        st.tuples(st.just("pipe")),
        st.tuples(st.just("mkfifo"), names),
        st.tuples(st.just("unlink"), names),
        st.tuples(st.just("open"), names, accesses),
        st.tuples(st.just("open"), names, accesses),
        st.tuples(st.just("reopen"), picks, accesses),
        st.tuples(st.just("dup"), picks),
        st.tuples(st.just("close"), picks),
        st.tuples(st.just("read"), picks, st.sampled_from([0, 1, 7, 1 << 16])),
        st.tuples(st.just("write"), picks, data),
        st.tuples(st.sampled_from(["seek", "pread", "truncate", "stat"]), picks),
    ),
    min_size=30,
    max_size=50,
)


@given(calls=CALLS)
@settings(max_examples=120)
def test_no_difference_to_linux(calls: list[tuple[Any, ...]]) -> None:
    result(new_kernel(), lambda process: compare(process, calls))


def compare(process: Process, calls: list[tuple[Any, ...]]) -> None:
    process.catch(Signal.PIPE, IGNORE)
    ours = Ours(process)
    with tempfile.TemporaryDirectory() as directory:
        linux = Linux(directory)

        def do(*call: Any) -> None:
            expected = linux.call(*call)
            assert ours.call(*call) == expected, call

        try:
            for operation, *arguments in calls:
                used, free = sorted(linux.files), [slot for slot in SLOTS if slot not in linux.files]
                match operation:
                    case "pipe" if len(free) > 1:
                        do("pipe", *free[:2])
                    case "mkfifo" | "unlink":
                        do(operation, *arguments)
                    case "open" if free:
                        do("open", free[0], *arguments)
                    case "reopen" | "dup" if used and free:
                        do(operation, used[arguments[0] % len(used)], free[0], *arguments[1:])
                    case "close" | "read" | "write" | "seek" | "pread" | "truncate" | "stat" if used:
                        do(operation, used[arguments[0] % len(used)], *arguments[1:])
                for slot in linux.files:
                    do("poll", slot)
        finally:
            for slot in list(linux.files):
                linux.close(slot)
