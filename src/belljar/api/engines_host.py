"""The owner's broker of engine processes: forks them when a sandbox asks, and ends them when it is told or gone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from belljar.abi.errno import EAGAIN, ENOENT, ENOEXEC, ENOMEM
from belljar.abi.limits import Limits
from belljar.abi.native import KIND
from belljar.abi.wire import FDS_MAX, Answer, Ask, WireError, encode
from belljar.engines.errors import EngineUnavailable
from belljar.engines.owner.template_host import EngineLimits, EngineProcess, Template, template
from belljar.engines.wire.wasm import PROGRAM_MAX, CompilerRefused, NotCompiled

if TYPE_CHECKING:
    from belljar.native.companion_host import CompanionProcess

ENGINES_MAX: Final = 16
"""Engine processes that one sandbox may have at a time."""


SESSION_SECONDS: Final = 24 * 3600.0
"""Processor time of an interpreter that its owner drives: each of its runs is limited by itself."""


CLOSE_SECONDS: Final = 1.0


class Opening(Struct, frozen=True):
    """A question for an engine process, checked; `EngineBroker.open` answers it."""

    ask: int
    number: int
    origin: str | int
    """A kind, or the number of the engine process to copy."""
    options: dict[str, Any]
    program: bytearray | None = None
    """To compile instead."""


class EngineCopies:
    """Engine processes of a branch that is being made, by the numbers of their originals."""

    def __init__(self) -> None:
        self.made: dict[int, EngineProcess] = {}
        self.failed: dict[int, str] = {}
        """Why there is no copy."""

    def descriptors(self) -> list[int]:
        """Their connections, for the branch, in order."""
        return [process.connection.detach() for process in self.made.values()]

    def close(self) -> None:
        """Nothing comes of it. Idempotent."""
        for process in self.made.values():
            process.kill()


class EngineBroker:
    """The engine processes of one sandbox, by the numbers it gave them."""

    def __init__(self, limits: Limits, confine: Callable[[int], None] | None = None) -> None:
        self._limits = limits
        self._confine = confine
        """Puts a process into the sandbox's control group, where it has one. OSError."""
        self._lock = threading.Lock()
        self._one_companion = threading.Lock()
        """Held while the sandbox's only companion is started."""
        self._engines: dict[int, EngineProcess | CompanionProcess | None] = {}
        """None while it is being made."""
        self._programs: dict[int, bytearray] = {}
        """Received pieces of programs to compile."""
        self._program_bytes = 0
        self._opening_now = 0
        """How many are being made, those included that are not wanted any more: a thread is at work for each."""
        self._closed = False
        self.start_companion: Callable[[dict[str, Any]], CompanionProcess] | None = None
        """Starts the sandbox's companion, if it may have one."""

    def pids(self) -> list[int]:
        """Of those that are there now."""
        with self._lock:
            return [process.pid for process in self._engines.values() if process is not None]

    def take(self, ask: Ask) -> Opening | bytes:
        """Take a question: gives an engine to open (this takes a while), or the answering frame. Raises WireError."""
        match ask.operation, ask.arguments:
            case "kill", [int(number)]:
                self.kill(number)
                return encode(Answer(ask.id, None))
            case "open", [int(number), str(kind), dict(options)]:
                return self._opening(ask.id, number, kind, options)
            case "fork", [int(number), int(original), dict(options)]:
                return self._opening(ask.id, number, original, options)
            case "piece", [int(number), bytes(piece)] if piece:
                return self._collect(ask.id, number, piece)
            case "compile", [int(number), dict(options)]:
                return self._opening(ask.id, number, "wasm", options, self._take_program(number))
        raise WireError(f"asked the engines for {ask.operation!r}")

    def _collect(self, ask: int, number: int, piece: bytes) -> bytes:
        if self._program_bytes + len(piece) > PROGRAM_MAX or len(self._programs) > ENGINES_MAX:
            return _refusal(ask, ENOMEM, "programs to compile are over the limit")
        self._programs.setdefault(number, bytearray()).extend(piece)
        self._program_bytes += len(piece)
        return encode(Answer(ask, None))

    def _take_program(self, number: int) -> bytearray:
        program = self._programs.pop(number, bytearray())
        self._program_bytes -= len(program)
        return program

    def _opening(
        self, ask: int, number: int, origin: str | int, options: dict[str, Any], program: bytearray | None = None
    ) -> Opening | bytes:
        with self._lock:
            if number in self._engines:
                raise WireError(f"engine {number} is open already")
            if self._count() >= ENGINES_MAX or self._opening_now >= ENGINES_MAX:
                return _refusal(ask, EAGAIN, f"a sandbox may run {ENGINES_MAX} engine processes at a time")
            self._engines[number] = None
            self._opening_now += 1
        return Opening(ask, number, origin, options, program)

    def _count(self) -> int:
        for number, process in list(self._engines.items()):
            if process is not None and not process.alive:
                process.kill()
                del self._engines[number]
        return len(self._engines)

    def open(self, opening: Opening) -> tuple[bytes, list[int]]:
        """The frame that answers, and the descriptors that go with it. Blocks while the template forks."""
        try:
            return self._open(opening)
        finally:
            self._opened()

    def _opened(self) -> None:
        with self._lock:
            self._opening_now -= 1

    def _open(self, opening: Opening) -> tuple[bytes, list[int]]:
        try:
            if opening.program is not None:
                return self._compile(opening, opening.program), []
            if opening.origin == KIND:
                return self._companion(opening)
            process = self._fork(opening)
            self._bound(process)
        except NotCompiled:
            with self._lock:
                self._engines.pop(opening.number, None)
            return _refusal(opening.ask, ENOENT, "not compiled"), []
        except Exception as error:  # noqa: BLE001 - whatever it is, the sandbox must not wait for ever
            with self._lock:
                self._engines.pop(opening.number, None)
            import logging  # takes long to load, and is hardly ever needed

            logging.getLogger("belljar").warning("%s: %s", opening.origin, error)
            said = error.for_guest if isinstance(error, EngineUnavailable) else "its engine did not start"
            return _refusal(opening.ask, ENOEXEC, said), []
        return self._hand_over(opening, process)

    def give(self, opening: Opening) -> tuple[bytes, list[int]] | None:
        """As `open`, without waiting, where a process was made ahead; None where not."""
        if opening.program is not None or opening.origin in ("wasm", KIND):
            return None
        try:
            process = self._origin(opening.origin).take_spare(self._narrow(opening.options), opening.options)
            if process is None:
                return None
            self._bound(process)
        except EngineUnavailable:
            return None  # `open` says why
        self._opened()
        return self._hand_over(opening, process)

    def _hand_over(self, opening: Opening, process: EngineProcess) -> tuple[bytes, list[int]]:
        if not self._keep(opening, process):
            return _refusal(opening.ask, ENOEXEC, "it is not wanted any more"), []
        return encode(Answer(opening.ask, process.pid, fds=1)), [process.connection.detach()]

    def _keep(self, opening: Opening, process: EngineProcess | CompanionProcess) -> bool:
        """Whether it is still wanted; else it is ended."""
        with self._lock:
            wanted = opening.number in self._engines and not self._closed
            if wanted:
                self._engines[opening.number] = process
        if not wanted:
            process.kill()
        return wanted

    def _companion(self, opening: Opening) -> tuple[bytes, list[int]]:
        if self.start_companion is None:
            raise EngineUnavailable("this sandbox may not run native programs")
        if "of" in opening.options:
            return self._further_devices(opening)
        with self._one_companion:
            self._end_companions()
            process = self.start_companion(opening.options)
            if not self._keep(opening, process):
                return _refusal(opening.ask, ENOEXEC, "it is not wanted any more"), []
        fds = process.hand_over()
        return encode(Answer(opening.ask, int(process.only), fds=len(fds))), fds

    def _further_devices(self, opening: Opening) -> tuple[bytes, list[int]]:
        with self._lock:
            self._engines.pop(opening.number, None)
            process = self._engines.get(opening.options["of"])
        count = opening.options.get("devices")
        if process is None or isinstance(process, EngineProcess) or not isinstance(count, int):
            raise EngineUnavailable("there is no such companion")
        fds = process.take_devices(min(count, FDS_MAX))
        return encode(Answer(opening.ask, None, fds=len(fds))), fds

    def _end_companions(self) -> None:
        with self._lock:
            found = [n for n, each in self._engines.items() if each is not None and not isinstance(each, EngineProcess)]
        for number in found:
            self.kill(number)

    def _fork(self, opening: Opening) -> EngineProcess:
        limits = self._narrow(opening.options)
        if opening.origin == "wasm":
            from belljar.engines.owner.wasm_start_host import start  # with the cache behind it; few programs need them

            return start(limits, opening.options.get("program"))
        return self._origin(opening.origin).fork(limits, opening.options)

    def _compile(self, opening: Opening, program: bytearray) -> bytes:
        from belljar.engines.owner.wasm_start_host import compile_program

        def begun(process: EngineProcess) -> None:
            self._bound(process)
            with self._lock:
                wanted = opening.number in self._engines and not self._closed
                if wanted:
                    self._engines[opening.number] = process
            if not wanted:
                raise CompilerRefused("it is not wanted any more")

        try:
            seconds = compile_program(program, self._narrow(opening.options), begun)
            return encode(Answer(opening.ask, [True, seconds, False]))
        except CompilerRefused as error:
            return encode(Answer(opening.ask, [False, error.seconds, error.spent], 0, str(error).encode()))
        finally:
            with self._lock:
                self._engines.pop(opening.number, None)

    def _bound(self, process: EngineProcess) -> None:
        try:
            if self._confine is not None:
                self._confine(process.pid)
        except OSError as error:
            process.kill()
            raise EngineUnavailable(f"can't put the engine process into the control group: {error}") from error

    def _origin(self, origin: str | int) -> Template | EngineProcess:
        if isinstance(origin, str):
            return template(origin)
        with self._lock:
            process = self._engines.get(origin)
        if not isinstance(process, EngineProcess):
            raise EngineUnavailable("the engine process to copy is gone")
        return process

    def _narrow(self, options: dict[str, Any]) -> EngineLimits:
        """The sandbox's limits, or less where that was asked for."""
        memory, cpu = self._limits.memory_bytes, self._limits.cpu_seconds
        wanted_memory, wanted_cpu = options.get("memory_bytes"), options.get("cpu_seconds")
        if isinstance(wanted_memory, int) and wanted_memory > 0:
            memory = min(memory, wanted_memory)
        if options.get("session"):
            cpu = SESSION_SECONDS
        elif isinstance(wanted_cpu, int | float) and wanted_cpu > 0:
            cpu = min(cpu, wanted_cpu)
        return EngineLimits(memory, cpu, self._limits.wall_seconds)

    @property
    def busy(self) -> bool:
        """Whether there are any."""
        with self._lock:
            return self._count() > 0

    def copy(self, numbers: Iterable[int]) -> EngineCopies:
        """Copies of those that can be copied where they are, for a branch. Blocks until they are made."""
        copies = EngineCopies()
        for number in numbers:
            with self._lock:
                process = self._engines.get(number)
            if not isinstance(process, EngineProcess) or process.control is None:
                continue
            try:
                copies.made[number] = process.copy()
            except EngineUnavailable as error:
                copies.failed[number] = str(error)
            except BaseException:
                copies.close()
                raise
        return copies

    def adopt(self, copies: EngineCopies) -> None:
        """In a branch: these are its engine processes. Raises EngineUnavailable if they can't be bounded as it is."""
        with self._lock:
            self._engines.update(copies.made)
        for process in copies.made.values():
            self._bound(process)

    def kill(self, number: int) -> None:
        with self._lock:
            process = self._engines.pop(number, None)
            self._take_program(number)
        if process is not None:
            _kill(process, 0.0)

    def disown(self) -> None:
        """In a forked child of the owner: close the descriptors. Locks may be held by threads that are not here."""
        self._lock = threading.Lock()
        self._closed = True
        engines, self._engines = self._engines, {}
        for process in engines.values():
            if process is not None:
                process.kill()  # which only lets go, here

    def close(self) -> None:
        """The sandbox is gone: so are its engines. Idempotent."""
        with self._lock:
            self._closed = True
            engines, self._engines = self._engines, {}
        for process in engines.values():
            if process is not None:
                _kill(process, CLOSE_SECONDS)


def _kill(process: EngineProcess | CompanionProcess, seconds: float) -> None:
    """End it. A companion's programs may wait for files of a worker that does not answer: wait so long at most."""
    if isinstance(process, EngineProcess):
        process.kill()
        return
    ending = threading.Thread(target=process.kill, name="belljar-companion", daemon=True)
    ending.start()
    ending.join(seconds)


def _refusal(ask: int, errno: int, message: str) -> bytes:
    return encode(Answer(ask, None, errno, message.encode()))
