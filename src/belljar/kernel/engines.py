"""Programs that run outside the kernel, in engine processes: how a process of the kernel gets one and talks to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import ENOEXEC, ENOSYS
from belljar.abi.errors import SysError
from belljar.abi.wire import Exited, Failure, Output, Plain, Start


class EngineUnavailable(SysError):
    """No engine process could be had; `reason` says why and what to do."""

    def __init__(self, errno: int, message: str) -> None:
        super().__init__(errno)
        self._message = message

    @property
    def reason(self) -> str:
        return self._message


class NotCompilable(EngineUnavailable):
    """A program that can't be compiled; `reason` says why. `seconds` of processor time went into it."""

    def __init__(self, message: str, seconds: float = 0.0, *, spent: bool = False) -> None:
        super().__init__(ENOEXEC, message)
        self.seconds = seconds
        self.spent = spent
        """Whether the compiler used up its processor time."""


class EngineLink(Protocol):
    """A byte stream to an engine process. The opener closes it, in a `finally`: that ends the process."""

    number: int
    waits: bool
    """Whether the process waits for an answer to a request; maintained by the code that answers."""

    def recv(self, size: int = 1 << 16) -> bytes:
        """Receive at most `size` bytes; waits for at least one. b"" when the process is gone."""

    def send(self, data: bytes) -> None:
        """Send all of `data`; waits while the process does not read. EPIPE when it is gone."""

    def kill(self) -> None:
        """End the process, whatever it does; what it sent before can still be received."""

    def close(self) -> None:
        """End the process and close the stream. Idempotent."""


@dataclass(frozen=True, slots=True)
class EngineProgram:
    """The interpreter that runs a process's program, driven by the sandbox's owner."""

    link: EngineLink
    limit: Callable[[float, int], None]
    """Sets the processor seconds and the further bytes of memory that it may use for its next run."""


class Engines(Protocol):
    """Starts engine processes."""

    def hold(self) -> tuple[set[int], set[int]]:
        """Hold back what is to be sent to the processes that wait, until `release`. Of those that can be copied, gives
        the numbers of the ones that are held, and of those that are at work."""

    def release(self) -> None:
        """End the hold: send what was held back."""

    def fork(self, link: EngineLink, options: Mapping[str, Plain]) -> EngineLink:
        """A copy of a process that was opened as `forkable`, made where it waits for that. Raises EngineUnavailable."""

    def open(self, kind: str, options: Mapping[str, Plain]) -> EngineLink:
        """A new process of a kind. Raises EngineUnavailable.

        The options `memory_bytes` and `cpu_seconds` ask for less than the sandbox may use; the others are the kind's.
        ENOENT: of the kind "wasm", that the `program` of this digest is not compiled.
        """

    def compile(self, pieces: Iterable[bytes], options: Mapping[str, Plain]) -> float:
        """Have a WebAssembly program compiled: the seconds of processor time it took.

        Raises NotCompilable, EngineUnavailable, and whatever `pieces` does.
        """


class NativeProgram(Protocol):
    """A program that runs in the companion. Whoever started it closes it, in a `finally`: that kills what runs of it.

    All but `wait` and `give` return at once.
    """

    def wait(self) -> Output | Exited | Failure | None:
        """Wait for what it writes, and for its end. None: it was killed with its companion."""

    def give(self, data: bytes) -> bool:
        """Give it input; waits until it is taken. False: nobody will."""

    def end_input(self) -> None: ...

    def credit(self, stream: int, count: int) -> None:
        """So much of its output was taken: as much again may follow."""

    def signal(self, number: int) -> None: ...

    def resize(self, rows: int, columns: int) -> None: ...

    def close(self) -> None:
        """Idempotent."""


class Companion(Protocol):
    """The native sandbox beside this one, in which native programs run on this sandbox's files."""

    def start(self, start: Start) -> NativeProgram:
        """Start a program, and first of all the companion. Raises EngineUnavailable."""


class NoEngines:
    """Engines of a kernel without an owner: none can be started."""

    def hold(self) -> tuple[set[int], set[int]]:
        return set(), set()

    def release(self) -> None:
        return

    def open(self, kind: str, options: Mapping[str, Plain]) -> EngineLink:
        raise EngineUnavailable(ENOSYS, f"no {kind} engine: this sandbox runs without engine processes")

    def fork(self, link: EngineLink, options: Mapping[str, Plain]) -> EngineLink:
        raise EngineUnavailable(ENOSYS, "this sandbox runs without engine processes")

    def compile(self, pieces: Iterable[bytes], options: Mapping[str, Plain]) -> float:
        raise EngineUnavailable(ENOSYS, "this sandbox runs without engine processes")
