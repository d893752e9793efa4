"""The world of an awk program that runs as a process of the virtual kernel."""

from __future__ import annotations

from belljar.abi.errno import EISDIR
from belljar.abi.errors import SysError
from belljar.abi.flags import O_APPEND, O_CLOEXEC, O_CREAT, O_EXCL, O_TRUNC, O_WRONLY
from belljar.bin.awk.io import Child, Sink
from belljar.bin.awk.reader import Source
from belljar.kernel.process import Process


class Descriptor:
    """A file descriptor as a source or a sink; the standard ones are never closed."""

    __slots__ = ("_first", "fd", "process")

    def __init__(self, process: Process, fd: int) -> None:
        self.process = process
        self.fd = fd
        self._first: bytes | None = None

    def read(self, size: int) -> bytes:
        if self._first is not None:
            first, self._first = self._first, None
            return first
        return self.process.read(self.fd, size)

    def is_directory(self) -> bool:
        """Tried by reading, as gawk does."""
        if self.fd <= 2:
            return False
        try:
            self._first = self.process.read(self.fd, 1 << 18)
        except SysError as error:
            if error.errno == EISDIR:
                return True
            raise
        return False

    def write(self, data: bytes) -> None:
        self.process.write_all(self.fd, data)

    def close(self) -> None:
        if self.fd > 2 and self.fd in self.process.fds:
            self.process.close(self.fd)


class Command:
    """A shell command running beside the program."""

    __slots__ = ("child", "process")

    def __init__(self, process: Process, child: Process) -> None:
        self.process = process
        self.child = child

    def wait(self) -> int:
        status = self.process.wait_for(self.child)
        return 256 + status.signal if status.signal else status.code


class ProcessWorld:
    """awk's view of a Process."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.environment = process.env
        self.pid = process.pid
        self.ppid = process.parent.pid if process.parent is not None else 0
        self.charge = process.budget.charge
        self.charge_size = process.budget.charge_size

    def now(self) -> float:
        return self.process.kernel.now() / 1e9

    def timezone(self) -> str:
        return self.environment.get("TZ", "UTC0")

    def is_terminal(self, fd: int) -> bool:
        return self.process.isatty(fd)

    def descriptor_source(self, fd: int) -> Source:
        return Descriptor(self.process, fd)

    def descriptor_sink(self, fd: int) -> Sink:
        return Descriptor(self.process, fd)

    def open_source(self, path: str) -> Source:
        return Descriptor(self.process, self.process.open(path, O_CLOEXEC))

    def open_sink(self, path: str, append: bool) -> Sink:
        how = O_APPEND if append else O_TRUNC
        return Descriptor(self.process, self.process.open(path, O_WRONLY | O_CREAT | O_CLOEXEC | how))

    def start(self, command: str, *, feed: bool, take: bool) -> tuple[Sink | None, Source | None, Child]:
        process = self.process
        to_child = process.pipe(cloexec=True) if feed else None
        from_child = process.pipe(cloexec=True) if take else None
        try:
            child = process.spawn(
                ["sh", "-c", command],
                stdin=process.fds[to_child[0]] if to_child else None,
                stdout=process.fds[from_child[1]] if from_child else None,
            )
        except SysError:
            for pair in (to_child, from_child):
                for fd in pair or ():
                    process.close(fd)
            raise
        sink: Sink | None = None
        source: Source | None = None
        if to_child:
            process.close(to_child[0])
            sink = Descriptor(process, to_child[1])
        if from_child:
            process.close(from_child[1])
            source = Descriptor(process, from_child[0])
        return sink, source, Command(process, child)

    def system(self, command: str) -> int:
        status = self.process.run(["sh", "-c", command])
        return 256 + status.signal if status.signal else status.code

    def replace_file(self, path: str, backup: str) -> Sink:
        """A new file beside `path`, to take its place when it is complete."""
        mode = self.process.fs.stat(path).mode & 0o7777
        fd = self.process.open(_beside(path), O_WRONLY | O_CREAT | O_TRUNC | O_EXCL | O_CLOEXEC, mode)
        return Descriptor(self.process, fd)

    def finish_replacement(self, path: str, backup: str) -> None:
        if backup:
            saved = backup if "/" in backup else path + backup
            self.process.fs.rename(path, saved)
        self.process.fs.rename(_beside(path), path)


def _beside(path: str) -> str:
    folder, slash, name = path.rpartition("/")
    return f"{folder}{slash}.{name}.awk-inplace"
