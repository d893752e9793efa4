"""The owner's broker of engine processes: forks them when a sandbox asks, and ends them when it is told or gone."""

from __future__ import annotations

import threading
from collections.abc import Callable
from errno import EAGAIN, ENOEXEC
from typing import Any, Final

from msgspec import Struct

from belljar.abi.limits import Limits
from belljar.abi.wire import Answer, Ask, WireError, encode
from belljar.engines.template_host import EngineLimits, EngineProcess, EngineUnavailable, Template, template

ENGINES_MAX: Final = 16
"""Engine processes that one sandbox may have at a time."""


SESSION_SECONDS: Final = 24 * 3600.0
"""Processor time of an interpreter that its owner drives: each of its runs is limited by itself."""


class Opening(Struct, frozen=True):
    """A question for an engine process, checked; `EngineBroker.open` answers it."""

    ask: int
    number: int
    origin: str | int
    """A kind, or the number of the engine process to copy."""
    options: dict[str, Any]


class EngineBroker:
    """The engine processes of one sandbox, by the numbers it gave them."""

    def __init__(self, limits: Limits, confine: Callable[[int], None] | None = None) -> None:
        self._limits = limits
        self._confine = confine
        """Puts a process into the sandbox's control group, where it has one. OSError."""
        self._lock = threading.Lock()
        self._engines: dict[int, EngineProcess | None] = {}
        """None while it is being made."""
        self._closed = False

    def take(self, ask: Ask) -> Opening | bytes:
        """What is to be opened (this takes a while), or the frame that answers at once. Raises WireError."""
        match ask.operation, ask.arguments:
            case "kill", [int(number)]:
                self.kill(number)
                return encode(Answer(ask.id, None))
            case "open", [int(number), str(kind), dict(options)]:
                return self._opening(ask.id, number, kind, options)
            case "fork", [int(number), int(original), dict(options)]:
                return self._opening(ask.id, number, original, options)
        raise WireError(f"asked the engines for {ask.operation!r}")

    def _opening(self, ask: int, number: int, origin: str | int, options: dict[str, Any]) -> Opening | bytes:
        with self._lock:
            if number in self._engines:
                raise WireError(f"engine {number} is open already")
            if self._count() >= ENGINES_MAX:
                return _refusal(ask, EAGAIN, f"a sandbox may run {ENGINES_MAX} engine processes at a time")
            self._engines[number] = None
        return Opening(ask, number, origin, options)

    def _count(self) -> int:
        for number, process in list(self._engines.items()):
            if process is not None and not process.alive:
                process.kill()
                del self._engines[number]
        return len(self._engines)

    def open(self, opening: Opening) -> tuple[bytes, list[int]]:
        """The frame that answers, and the descriptors that go with it. Blocks while the template forks."""
        try:
            process = self._origin(opening.origin).fork(self._narrow(opening.options), opening.options)
            self._bound(process)
        except Exception as error:  # noqa: BLE001 - whatever it is, the sandbox must not wait for ever
            with self._lock:
                self._engines.pop(opening.number, None)
            import logging  # takes long to load, and is hardly ever needed

            logging.getLogger("belljar").warning("%s: %s", opening.origin, error)
            said = error.for_guest if isinstance(error, EngineUnavailable) else "its engine did not start"
            return _refusal(opening.ask, ENOEXEC, said), []
        with self._lock:
            wanted = opening.number in self._engines and not self._closed
            if wanted:
                self._engines[opening.number] = process
        if not wanted:
            process.kill()
            return _refusal(opening.ask, ENOEXEC, "it is not wanted any more"), []
        return encode(Answer(opening.ask, process.pid, fds=1)), [process.connection.detach()]

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
        if process is None:
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
        return EngineLimits(memory, cpu)

    def kill(self, number: int) -> None:
        with self._lock:
            process = self._engines.pop(number, None)
        if process is not None:
            process.kill()

    def close(self) -> None:
        """The sandbox is gone: so are its engines. Idempotent."""
        with self._lock:
            self._closed = True
            engines, self._engines = self._engines, {}
        for process in engines.values():
            if process is not None:
                process.kill()


def _refusal(ask: int, errno: int, message: str) -> bytes:
    return encode(Answer(ask, None, errno, message.encode()))
