"""Runs awk programs without a kernel: a world in memory, with a bound on work."""

from __future__ import annotations

from collections.abc import Mapping
from errno import ENOENT

from belljar.abi.errors import SysError
from belljar.bin.awk.session import Session


class OutOfSteps(BaseException):
    """The work a test allows is spent."""


class Bytes:
    """A source and a sink in memory."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = data
        self.written = b""

    def read(self, size: int) -> bytes:
        taken, self.data = self.data[:size], self.data[size:]
        return taken

    def write(self, data: bytes) -> None:
        self.written += data

    def close(self) -> None:
        pass


class Ended:
    """A command that has ended well."""

    def wait(self) -> int:
        return 0


class MemoryWorld:
    """Files by name, standard streams, commands that echo what they are called."""

    def __init__(self, stdin: bytes = b"", files: dict[str, bytes] | None = None, steps: int = 1_000_000) -> None:
        self.environment: Mapping[str, str] = {}
        self.pid = 2
        self.ppid = 1
        self.steps = steps
        self.files = dict(files or {})
        self.stdin = Bytes(stdin)
        self.sinks = {1: Bytes(), 2: Bytes()}
        self.made: dict[str, Bytes] = {}

    def charge(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise OutOfSteps

    def charge_size(self, size: int) -> None:
        if size > 1 << 24:
            raise OutOfSteps

    def now(self) -> float:
        return 1_000_000_000.5

    def timezone(self) -> str:
        return self.environment.get("TZ", "UTC0")

    def is_terminal(self, fd: int) -> bool:
        return False

    def descriptor_source(self, fd: int) -> Bytes:
        return self.stdin

    def descriptor_sink(self, fd: int) -> Bytes:
        return self.sinks.setdefault(fd, Bytes())

    def open_source(self, path: str) -> Bytes:
        if path not in self.files:
            raise SysError(ENOENT, path)
        return Bytes(self.files[path])

    def open_sink(self, path: str, append: bool) -> Bytes:
        return self.made.setdefault(path, Bytes())

    def start(self, command: str, *, feed: bool, take: bool) -> tuple[Bytes | None, Bytes | None, Ended]:
        return Bytes() if feed else None, Bytes(f"{command}\n".encode()) if take else None, Ended()

    def system(self, command: str) -> int:
        return len(command)

    def replace_file(self, path: str, backup: str) -> Bytes:
        return self.made.setdefault(path, Bytes())

    def finish_replacement(self, path: str, backup: str) -> None:
        pass


def awk(*args: str, stdin: bytes = b"", files: dict[str, bytes] | None = None) -> tuple[str, str, int]:
    """Standard output, standard error and status of one command line."""
    world = MemoryWorld(stdin, files)
    status = Session(world, "awk").run(list(args))
    return world.sinks[1].written.decode(), world.sinks[2].written.decode(), status
