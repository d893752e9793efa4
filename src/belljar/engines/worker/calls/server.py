"""The kernel's side of a connection: takes an engine process's calls and does them as a virtual process."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, NoReturn, Protocol

import msgspec

from belljar.abi.errno import EINVAL, EIO, ENOSYS
from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.abi.signals import Signal
from belljar.engines.wire.calls import (
    ANSWER,
    ANSWER_MAX,
    BACKGROUND,
    CALLS,
    DEFAULT,
    IGNORED,
    LIMITS,
    NO_ANSWER,
    REPORTED,
    REQUEST,
    REQUEST_MAX,
    SIGNAL,
    START,
    BadFrame,
    Start,
    decode,
    encode,
)
from belljar.engines.worker.calls import files, processes, terminal
from belljar.engines.worker.calls.edit import LineEditor
from belljar.kernel.fiber import Timer
from belljar.kernel.process import IGNORE, Process
from belljar.kernel.status import ExitStatus, ProcessExit

DESCRIBED: Final = (0, 1, 2, 3)
"""The descriptors of which START tells: the standard streams, and what a WASI program finds its files by."""
BACKGROUND_MAX: Final = 256
"""Calls of one process under way at a time."""


class Link(Protocol):
    """A byte stream to an engine process (`kernel.engines.EngineLink`); all but `close` may wait."""

    waits: bool

    def recv(self, size: int = ..., /) -> bytes: ...
    def send(self, data: bytes, /) -> None: ...
    def close(self) -> None: ...


Handler = Callable[..., tuple[Any, ...] | None]

_FILES: Final = {
    name: getattr(files, {"open": "open_"}.get(name, name))
    for name, call in CALLS.items()
    if call.number < 40 or name in ("isatty", "winsize", "flock")
}
_PROCESSES: Final = {
    name: getattr(processes, name)
    for name in "chdir getcwd umask sleep poll spawn wait kill ids hostname getrlimit setrlimit".split()
}
_TERMINALS: Final = {name: getattr(terminal, name) for name, call in CALLS.items() if call.number >= 65}


def _by_number(handlers: Mapping[str, Handler]) -> dict[int, tuple[str, str, Handler]]:
    """Map call numbers to argument signature, result signature and handler."""
    return {CALLS[name].number: (CALLS[name].takes, CALLS[name].gives, handler) for name, handler in handlers.items()}


_SHARED: Final = _by_number({**_FILES, **_PROCESSES, **_TERMINALS})


class CallServer:
    """Serves one connection, on the fiber of the process it belongs to."""

    def __init__(self, process: Process, link: Link, extra: Mapping[str, Handler] | None = None) -> None:
        self._process = process
        self.link = link
        self._buffer = bytearray()
        self._background = 0
        self._events = b""
        """Frames of signals and limits, still to be sent."""
        self._alarm: Timer | None = None
        self._alarm_interval = 0.0
        editor = LineEditor(process)
        own: dict[str, Handler] = {
            "raw": terminal.RawMode().set,
            "edit": editor.edit,
            "history": editor.history,
            "setitimer": self._setitimer,
            "catch": self._catch,
            "exit": self._exit,
            "finish": self._finish,
            "exceeded": self._exceeded,
        }
        self._own = _by_number({**own, **(extra or {})})

    def start(self, options: Mapping[str, Any]) -> None:
        """Tell the engine process what to run: the process's own argv, environment and directory."""
        process = self._process
        budget = process.budget
        parent = process.parent
        ttys = sum(1 << fd for fd in (0, 1, 2) if process.isatty(fd))
        left = max(0.0, budget.limits.cpu_seconds - budget.cpu)
        numbers = Start(
            process.pid,
            parent.pids.get(process.space, 0) if parent is not None else 0,
            process.fs.credentials.uid,
            process.fs.credentials.gid,
            process.fs.umask,
            ttys,
            int(left * 1e9),
            budget.limits.memory_bytes,
        )
        machine = process.kernel.machine
        if machine.replays:
            options = {**options, "replay": [machine.clock.time_ns(), machine.entropy.random_bytes(16).hex()]}
        try:
            cwd = process.fs.getcwd()
        except SysError:
            cwd = "/"  # it was removed
        body = encode(
            "llssQQ",
            [
                [fsencode(word) for word in process.argv],
                [fsencode(f"{name}={value}") for name, value in process.env.items()],
                fsencode(cwd),
                msgspec.json.encode(options),
                numbers,
                [number for fd in DESCRIBED for number in _description(process, fd)],
            ],
        )
        self.link.send(ANSWER.pack(len(body) + 8, 0, START) + body)

    def limit(self, cpu_seconds: float, memory_bytes: int) -> None:
        """Queue a LIMITS event, for an interpreter's next run; it is sent with the next answer."""
        body = encode("qq", [int(cpu_seconds * 1e9), memory_bytes])
        self._events += ANSWER.pack(len(body) + 8, 0, LIMITS) + body

    def serve(self) -> NoReturn:
        """Serve calls until the process ends: by its own call, a signal, a limit, or the loss of its engine process."""
        try:
            while True:
                self._serve_one()
        except BadFrame:
            # Our own engine speaks correctly: whoever this is has taken it over.
            raise ProcessExit(ExitStatus(0, Signal.SYS)) from None
        finally:
            if self._alarm is not None:
                self._alarm.cancel()
            self.link.close()

    def _serve_one(self) -> None:
        buffer = self._buffer
        while len(buffer) < REQUEST.size:
            self._more()
        length, id, number, flags = REQUEST.unpack_from(buffer)
        if not REQUEST.size - 4 <= length <= REQUEST_MAX or id == 0:
            raise BadFrame(f"a request claims {length} bytes")
        while len(buffer) < length + 4:
            self._more()
        body = bytes(memoryview(buffer)[REQUEST.size : length + 4])
        del buffer[: length + 4]
        self._process.budget.charge()
        if flags & BACKGROUND:
            if self._background >= BACKGROUND_MAX:
                raise BadFrame("too many calls under way")
            self._background += 1
            self._process.add_fiber(lambda: self._later(id, number, body))
            # It begins before the next call does: that may close its descriptor, and give the number to another file.
            self._process.kernel.hub.pause()
        else:
            self.link.waits = not flags & NO_ANSWER and not buffer
            answer = self._answer(id, number, body)
            if not flags & NO_ANSWER:
                self._send(answer)
                self.link.waits = False

    def _more(self) -> None:
        data = self.link.recv(1 << 20 if self._buffer else 1 << 16)
        if not data:
            self._lost()
        self._buffer += data

    def _lost(self) -> NoReturn:
        """Handle an engine process that died without `exit`: killed by a resource limit, or from outside."""
        raise ProcessExit(ExitStatus(0, Signal.KILL))

    def _later(self, id: int, number: int, body: bytes) -> None:
        try:
            answer = self._answer(id, number, body)
        except BadFrame:
            raise ProcessExit(ExitStatus(0, Signal.SYS)) from None
        finally:
            self._background -= 1
        self._send(answer)

    def _answer(self, id: int, number: int, body: bytes) -> bytes:
        found = self._own.get(number) or _SHARED.get(number)
        if found is None:
            return ANSWER.pack(8, id, ENOSYS)
        takes, gives, handler = found
        arguments = decode(takes, body)
        try:
            values = handler(self._process, *arguments)
        except SysError as error:
            self._process.check_fatal()
            return ANSWER.pack(8, id, error.errno if 0 < error.errno < 4096 else EIO)
        self._process.check_fatal()
        results = encode(gives, values) if values is not None else b""
        if len(results) + 8 > ANSWER_MAX:
            return ANSWER.pack(8, id, EIO)
        return ANSWER.pack(len(results) + 8, id, 0) + results

    def _send(self, frame: bytes) -> None:
        try:
            self.link.send(self._take_events() + frame)
        except SysError:
            self._lost()

    # Calls that concern the connection itself.

    def _catch(self, process: Process, number: int, how: int) -> None:
        processes.check_signal(number)
        if how == REPORTED:
            process.catch(number, self.report)
        elif how in (DEFAULT, IGNORED):
            process.catch(number, IGNORE if how == IGNORED else None)
        else:
            raise SysError(EINVAL)

    def _setitimer(self, process: Process, value: int, interval: int) -> tuple[int, int]:
        if not -1 <= value <= processes.SLEEP_MAX or not 0 <= interval <= processes.SLEEP_MAX:
            raise SysError(EINVAL)
        alarm = self._alarm
        left = 0.0 if alarm is None else max(alarm.when - process.kernel.hub.clock.monotonic(), 1e-6)
        before = int(left * 1e9), int(self._alarm_interval * 1e9)
        if value >= 0:
            if alarm is not None:
                alarm.cancel()
            self._alarm, self._alarm_interval = None, interval / 1e9
            if value:
                self._alarm = process.kernel.hub.call_later(value / 1e9, self._ring)
        return before

    def _ring(self) -> None:
        hub = self._process.kernel.hub
        self._alarm = hub.call_later(self._alarm_interval, self._ring) if self._alarm_interval else None
        self._process.deliver(Signal.ALRM)

    def report(self, number: int) -> None:
        """Send a caught signal from a fiber of the process: the sender of the signal must not block.

        The answer of a call that it interrupts must not overtake it: then it goes along with that answer.
        """
        self._events += ANSWER.pack(16, 0, SIGNAL) + encode("q", [number])

        def tell() -> None:
            with suppress(SysError):
                self.link.send(self._take_events())

        self._process.add_fiber(tell)

    def _take_events(self) -> bytes:
        events, self._events = self._events, b""
        return events

    def _exit(self, process: Process, code: int, signal: int, cpu_ns: int) -> NoReturn:
        self._charge(cpu_ns)
        raise ProcessExit(ExitStatus(code & 0xFF, signal if 0 < signal <= 64 else 0))

    def _finish(self, process: Process, fd: int, data: bytes, code: int, signal: int, cpu_ns: int) -> tuple[int]:
        written = process.write(fd, data)
        if written < len(data):
            return (written,)
        self._exit(process, code, signal, cpu_ns)

    def _exceeded(self, process: Process, limit: bytes, cpu_ns: int) -> NoReturn:
        self._charge(cpu_ns)
        name = limit.decode("ascii", "replace")
        if name not in ("cpu_seconds", "memory_bytes"):
            raise BadFrame(f"no limit {name!r}")
        process.budget.exceed(name)
        raise AssertionError("unreachable")

    def _charge(self, cpu_ns: int) -> None:
        seconds = max(0, cpu_ns) / 1e9
        self._process.cpu += seconds
        self._process.kernel.cpu += seconds
        self._process.budget.charge_time(seconds)


def _description(process: Process, fd: int) -> tuple[int, int]:
    file = process.fds.get(fd)
    return (0, 0) if file is None else (file.stat().mode, file.flags)
