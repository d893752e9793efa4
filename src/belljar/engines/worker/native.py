"""Native programs: each runs in the sandbox's companion, with descriptors, environment and limits of a process here"""

from __future__ import annotations

from contextlib import suppress
from math import isfinite
from typing import Final

from belljar.abi.dataclass import replace
from belljar.abi.errno import EINTR
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode, fsencode
from belljar.abi.signals import Signal
from belljar.abi.termios import ECHO, ICANON, ICRNL, IEXTEN, IXON, OPOST, VMIN, VTIME, Termios, WinSize
from belljar.abi.wire import Exited, Failure, Output, Start
from belljar.kernel.engines import EngineUnavailable, NativeProgram
from belljar.kernel.fiber import Fiber, WaitQueue
from belljar.kernel.loader import Program
from belljar.kernel.pipe import PipeEnd
from belljar.kernel.process import IGNORE, Process
from belljar.kernel.status import ExitStatus, ProcessExit

CANNOT_EXECUTE: Final = 126
_FORWARDED: Final = (
    Signal.HUP, Signal.INT, Signal.QUIT, Signal.ABRT, Signal.USR1, Signal.USR2, Signal.ALRM, Signal.TERM, Signal.CONT,
    Signal.TSTP, Signal.WINCH,
)  # fmt: skip
_GRACE: Final = 1.0
"""Seconds that a program has after its exec's deadline, which this side sees to."""


def load_native(path: str) -> Program:
    """The program that is in an ELF file."""
    return lambda process: main(process, path)


def main(process: Process, path: str = "") -> int:
    """Run the program that argv names, or the one in the file `path`."""
    companion = process.kernel.companion
    argv = [fsencode(word) for word in process.argv]
    if path and b"/" not in argv[0]:
        argv[0] = fsencode(process.absolute(path))
    terminal = _Terminal(process) if all(process.isatty(fd) for fd in (0, 1, 2)) else None
    merged = process.fds.get(1) is process.fds.get(2) is not None
    start = Start(
        0,
        argv,
        {fsencode(name): fsencode(value) for name, value in process.env.items()},
        fsencode(_directory(process)),
        b"" if terminal is None and 0 in process.fds else None,
        merged,
        True,
        _limits(process),
        size=None if terminal is None else terminal.size(),
        follows=0 in process.fds,
        returns=terminal is None and 0 in process.fds,
    )
    try:
        if companion is None:
            raise EngineUnavailable(0, "this sandbox runs without native programs")
        program = companion.start(start)
    except EngineUnavailable as error:
        process.warn(error.reason)
        return CANNOT_EXECUTE
    try:
        return _Run(process, program, terminal).finish()
    finally:
        program.close()
        if terminal is not None:
            terminal.restore()


def _directory(process: Process) -> str:
    try:
        return process.fs.getcwd()
    except SysError:
        return "/"  # it was removed


def _limits(process: Process) -> dict[str, int | float]:
    budget = process.budget
    given: dict[str, int | float] = {
        "cpu_seconds": max(budget.limits.cpu_seconds - budget.cpu, 0.001),
        "processes": budget.limits.processes,
        "open_files": budget.limits.open_files,
    }
    if isfinite(budget.deadline):
        given["wall_seconds"] = max(budget.deadline - process.kernel.hub.clock.monotonic(), 0.0) + _GRACE
    return given


class _Terminal:
    """The terminal of a process whose program has one of its own: that one echoes and edits, this one sends signals."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._before = self._settings()

    def _settings(self) -> Termios:
        found = self._process.ioctl(0, "termios")
        assert isinstance(found, Termios)
        return found

    def size(self) -> tuple[int, int]:
        found = self._process.ioctl(0, "winsize")
        assert isinstance(found, WinSize)
        return found.rows, found.columns

    @property
    def in_foreground(self) -> bool:
        return self._process.ioctl(0, "pgrp") == self._process.pgid

    def prepare(self) -> None:
        if self.in_foreground:
            before = self._before
            cc = list(before.cc)
            cc[VMIN], cc[VTIME] = 1, 0
            changed = replace(
                before,
                iflag=before.iflag & ~(ICRNL | IXON),
                oflag=before.oflag & ~OPOST,
                lflag=before.lflag & ~(ICANON | ECHO | IEXTEN),
                cc=tuple(cc),
            )
            self._process.ioctl(0, "set_termios", changed)

    def restore(self) -> None:
        with suppress(SysError):
            if self.in_foreground:
                self._process.ioctl(0, "set_termios", self._before)


class _Run:
    """One program: what it writes goes to this process's descriptors, what this process reads to it."""

    def __init__(self, process: Process, program: NativeProgram, terminal: _Terminal | None) -> None:
        self._process = process
        self._program = program
        self._terminal = terminal
        self._feeder: Fiber | None = None
        self._given = b""
        """Input that is on its way."""
        self._taken = WaitQueue(process.kernel.hub)

    def finish(self) -> int:
        """Wait for its end; the exit code."""
        process = self._process
        for number in _FORWARDED:
            if process.handlers.get(number) is not IGNORE:
                process.catch(number, self._forward)
        if self._terminal is not None:
            self._terminal.prepare()
        if self._reads():
            self._feeder = process.add_fiber(self._feed)
        else:
            self._program.end_input()
        while True:
            message = self._program.wait()
            process.check_fatal()
            match message:
                case Output(stream=stream, data=data):
                    self._write(stream, data)
                    self._program.credit(stream, len(data))
                case Exited():
                    return self._end(message)
                case Failure(message=reason, path=path):
                    about = "" if path is None else f"{fsdecode(path)}: "
                    process.warn(f"{about}{reason.decode('utf-8', 'replace')}")
                    return CANNOT_EXECUTE
                case None:
                    raise ProcessExit(ExitStatus(0, Signal.KILL))

    def _reads(self) -> bool:
        """Whether its input is to be read: not that of a job in the background, which would be stopped for it."""
        process = self._process
        if 0 not in process.fds:
            return False
        return not process.isatty(0) or process.ioctl(0, "pgrp") == process.pgid

    def _feed(self) -> None:
        """Read for it. What it leaves is put back when it has ended."""
        while True:
            try:
                self._given = self._process.read(0)
            except SysError as error:
                if error.errno == EINTR:
                    continue
                break
            if not self._given or not self._program.give(self._given):
                break
            self._given = b""
            self._taken.wake_all()
        self._feeder = None
        self._taken.wake_all()
        self._program.end_input()

    def _write(self, stream: int, data: bytes) -> None:
        try:
            self._process.write_all(stream, data)
        except SysError:
            self._process.check_fatal()
            self._program.signal(Signal.PIPE)

    def _forward(self, number: int) -> None:
        match number:
            case Signal.WINCH:
                if self._terminal is not None:
                    self._program.resize(*self._terminal.size())
            case Signal.TSTP:
                if not self._process.kernel.is_orphaned(self._process):
                    self._program.signal(Signal.STOP)
                    self._process.deliver(Signal.STOP)
            case Signal.CONT:
                if self._terminal is not None:
                    self._terminal.prepare()
                self._program.signal(number)
            case _:
                self._program.signal(number)

    def _end(self, last: Exited) -> int:
        process = self._process
        seconds = max(last.cpu_us, 0) / 1e6
        process.cpu += seconds
        process.kernel.cpu += seconds
        process.budget.charge_time(seconds)
        if last.limit is not None and hasattr(process.budget.limits, last.limit):
            process.budget.exceed(last.limit)
        for stream, data in ((1, last.stdout), (2, last.stderr)):
            if data:
                self._write(stream, data)
        self._put_back(last.unread)
        if last.signal:
            raise ProcessExit(ExitStatus(0, last.signal))
        return last.code

    def _put_back(self, data: bytes) -> None:
        """Give back what it was given and did not read, and what came too late for it."""
        while self._feeder is not None and self._given:
            self._taken.wait()
        data += self._given
        if self._feeder is not None:
            self._process.kernel.hub.kill(self._feeder)
        file = self._process.fds.get(0)
        if file is None or not data:
            return
        if file.handle.seekable:
            file.offset = max(file.offset - len(data), 0)
        elif isinstance(file.handle, PipeEnd):
            file.handle.pipe.unread(data)
