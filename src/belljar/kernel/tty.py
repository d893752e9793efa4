"""Pseudo-terminals: pairs of a master (the user's side) and a slave (the programs'), with job control."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from belljar.abi import termios as t
from belljar.abi.errno import EAGAIN, EINTR, EINVAL, EIO, ENOTTY, EPERM
from belljar.abi.errors import SysError
from belljar.abi.flags import POLLHUP, POLLIN, POLLOUT
from belljar.abi.signals import Signal
from belljar.abi.termios import Termios, WinSize
from belljar.kernel.discipline import INPUT_MAX, Discipline
from belljar.kernel.fiber import WaitQueue
from belljar.kernel.vfs.server import Handle

if TYPE_CHECKING:
    from belljar.kernel.kernel import Kernel
    from belljar.kernel.pids import Session
    from belljar.kernel.process import Process

OUTPUT_MAX: Final = 1 << 16
"""Programs wait while this much output is unread; echo is dropped past twice as much."""
PTS_MAJOR: Final = 136


class Terminal:
    """One pair: its line discipline, unread output, and the session it controls."""

    def __init__(self, kernel: Kernel, number: int, on_close: Callable[[], None]) -> None:
        self.kernel = kernel
        self.number = number
        self.discipline = Discipline()
        self.winsize = WinSize()
        self.session: Session | None = None
        self.output = bytearray()
        self.slaves = 0
        self.slave_was_open = False
        self.hung_up = False
        self.waiters = WaitQueue(kernel.hub)
        self._on_close = on_close

    # The master's side.

    def write_master(self, data: bytes, *, nonblocking: bool) -> int:
        """Write to the master: keyboard input. EAGAIN."""
        taken = 0
        while taken < len(data):
            if self.discipline.full:
                if taken and nonblocking:
                    break
                self._wait(nonblocking=nonblocking)
                continue
            piece = data[taken : taken + INPUT_MAX]
            self.discipline.receive(piece)
            taken += len(piece)
            self._apply_discipline()
        return taken

    def _apply_discipline(self) -> None:
        """Flush output, append echo and send signals as the discipline decided."""
        discipline = self.discipline
        if discipline.flush_output:
            self.output.clear()
            discipline.flush_output = False
        if len(self.output) < 2 * OUTPUT_MAX:
            self.output += discipline.echoed
        discipline.echoed.clear()
        signals, discipline.signals = discipline.signals, []
        self.waiters.wake_all()
        for number in signals:
            self._signal_foreground(number)

    def read_master(self, size: int, *, nonblocking: bool) -> bytes:
        """Read from the master: the programs' output. EIO once no program has the terminal open any more, EAGAIN."""
        while not self.output:
            if self.slaves == 0 and self.slave_was_open:
                raise SysError(EIO)
            self._wait(nonblocking=nonblocking)
        data = bytes(memoryview(self.output)[:size])
        del self.output[: len(data)]
        self.waiters.wake_all()
        return data

    def hang_up(self) -> None:
        """Hang up: the master was closed."""
        self.hung_up = True
        self._on_close()
        session = self.session
        if session is not None:
            self.release()
            groups = dict.fromkeys((session.leader, session.foreground))
            for group in groups:
                self.kernel.signal_group(group, Signal.HUP, space=session.space)
                self.kernel.signal_group(group, Signal.CONT, space=session.space)
        self.waiters.wake_all()

    # The slave's side.

    def read(self, size: int, *, nonblocking: bool) -> bytes:
        """A line, or without ICANON what VMIN and VTIME ask for; b"" after ^D or a hangup. EAGAIN, EINTR, EIO."""
        if size <= 0:
            return b""
        process = self.kernel.caller()
        process.interrupted = False
        self._check_job(process, Signal.TTIN)
        discipline = self.discipline
        if not discipline.canonical:
            self._wait_raw(process, size, nonblocking=nonblocking)
        while not discipline.ready:
            if self.hung_up or not discipline.canonical:
                return b""
            self._wait(nonblocking=nonblocking)
            self._check_interrupted(process)
            self._check_job(process, Signal.TTIN)
        data = discipline.take(size)
        self.waiters.wake_all()
        return data

    def _wait_raw(self, process: Process, size: int, *, nonblocking: bool) -> None:
        """Wait as VMIN and VTIME say; on return, what there is (perhaps nothing) is the answer."""
        discipline = self.discipline
        cc = discipline.termios.cc
        least, delay = min(cc[t.VMIN], size), cc[t.VTIME] / 10
        clock = self.kernel.hub.clock
        if nonblocking and not discipline.ready and cc[t.VMIN]:
            raise SysError(EAGAIN)
        if nonblocking or (not least and not delay):
            return
        until = clock.monotonic() + delay if not least else None
        while discipline.ready_bytes < max(least, 1) and not self.hung_up and not discipline.canonical:
            before = discipline.ready_bytes
            if least and delay and before:
                until = clock.monotonic() + delay  # between bytes
            self._wait(until=until)
            self._check_interrupted(process)
            self._check_job(process, Signal.TTIN)
            if until is not None and discipline.ready_bytes == before and clock.monotonic() >= until:
                return

    def write(self, data: bytes, *, nonblocking: bool) -> int:
        """A program's output. EIO after a hangup, EAGAIN."""
        process = self.kernel.caller()
        process.interrupted = False
        taken = 0
        if self.discipline.termios.lflag & t.TOSTOP:
            self._check_job(process, Signal.TTOU)
        while taken < len(data):
            if self.hung_up:
                raise SysError(EIO)
            if self.discipline.stopped or len(self.output) >= OUTPUT_MAX:
                if taken and nonblocking:
                    break
                self._wait(nonblocking=nonblocking)
                if process.interrupted and taken:
                    break
                self._check_interrupted(process)
                continue
            piece = data[taken : taken + OUTPUT_MAX]
            self.output += self.discipline.process_output(piece)
            taken += len(piece)
            self.waiters.wake_all()
        return taken

    def open_slave(self) -> None:
        self.slaves += 1
        self.slave_was_open = True

    def close_slave(self) -> None:
        self.slaves -= 1
        self.waiters.wake_all()

    # Waiting.

    def _wait(self, *, nonblocking: bool = False, until: float | None = None) -> None:
        if nonblocking:
            raise SysError(EAGAIN)
        hub = self.kernel.hub
        fiber = hub.current
        if until is None or fiber is None:
            self.waiters.wait()
            return
        timer = hub.call_at(until, lambda: hub.unpark(fiber))
        try:
            self.waiters.wait()
        finally:
            timer.cancel()

    def _check_interrupted(self, process: Process) -> None:
        if process.interrupted:
            process.interrupted = False
            raise SysError(EINTR)

    # Job control.

    def _is_controlling(self, process: Process) -> bool:
        return self.session is not None and process.session is self.session

    def _check_job(self, process: Process, number: int) -> None:
        """Hold a process of a background group until it is in the foreground. EIO, EINTR."""
        while self._is_controlling(process) and process.pgid != process.session.foreground:
            handler = process.handlers.get(number)
            if number in process.blocked or (handler is not None and not callable(handler)):
                if number == Signal.TTIN:
                    raise SysError(EIO)
                return
            if self.kernel.is_orphaned(process):
                raise SysError(EIO)
            self.kernel.signal_group(process.pgid, number, space=process.space)
            process.check_fatal()
            self._check_interrupted(process)

    def _signal_foreground(self, number: int) -> None:
        if self.session is not None:
            self.kernel.signal_group(self.session.foreground, number, space=self.session.space)

    def acquire(self, process: Process) -> None:
        """Become the controlling terminal of a process's session. EPERM."""
        session = process.session
        if session.tty is self and process.pid == session.leader:
            return
        if process.pid != session.leader or session.tty is not None or self.session is not None:
            raise SysError(EPERM)
        self.session = session
        session.tty = self
        session.space = process.space
        session.foreground = process.pgid

    def may_acquire(self, process: Process) -> bool:
        """Whether opening it makes it a process's controlling terminal."""
        session = process.session
        return (
            process is not self.kernel.init
            and process.pid == session.leader
            and session.tty is None
            and self.session is None
        )

    def release(self) -> None:
        """Stop being a controlling terminal."""
        if self.session is not None:
            self.session.tty = None
            self.session = None

    # Control.

    def ioctl(self, request: str, argument: object, *, master: bool) -> object:
        process = self.kernel.caller()
        match request:
            case "isatty":
                return True
            case "termios":
                return self.discipline.termios
            case "set_termios":
                if not isinstance(argument, Termios):
                    raise SysError(EINVAL)
                self._check_change(process)
                self.discipline.set_termios(argument)
                self.waiters.wake_all()
            case "flush":
                self._flush(argument)
            case "winsize":
                return self.winsize
            case "set_winsize":
                self._resize(argument)
            case "pgrp":
                if not master and not self._is_controlling(process):
                    raise SysError(ENOTTY)
                return self.session.foreground if self.session is not None else 0
            case "set_pgrp":
                self._set_foreground(process, argument)
            case "session":
                if not (master or self._is_controlling(process)) or self.session is None:
                    raise SysError(ENOTTY)
                return self.session.leader
            case "set_controlling":
                self.acquire(process)
            case "release_controlling":
                if not self._is_controlling(process):
                    raise SysError(ENOTTY)
                if process.pid == process.session.leader:
                    self._signal_foreground(Signal.HUP)
                    self._signal_foreground(Signal.CONT)
                    self.release()
            case "tty_name":
                return "/dev/ptmx" if master else f"/dev/pts/{self.number}"
            case "pty_number" if master:
                return self.number
            case "unread":
                return len(self.output) if master else self.discipline.ready_bytes
            case _:
                raise SysError(ENOTTY)
        return None

    def _check_change(self, process: Process) -> None:
        """Stop a background process that changes the terminal (SIGTTOU)."""
        self._check_job(process, Signal.TTOU)

    def _flush(self, which: object) -> None:
        if which not in ("input", "output", "both"):
            raise SysError(EINVAL)
        if which != "output":
            self.discipline.flush_input()
        if which != "input":
            self.output.clear()
        self.waiters.wake_all()

    def _resize(self, size: object) -> None:
        if not isinstance(size, WinSize) or not all(0 <= value < 65536 for value in size):
            raise SysError(EINVAL)
        if size != self.winsize:
            self.winsize = size
            self._signal_foreground(Signal.WINCH)

    def _set_foreground(self, process: Process, pgid: object) -> None:
        if not isinstance(pgid, int) or pgid < 0:
            raise SysError(EINVAL)
        if not self._is_controlling(process):
            raise SysError(ENOTTY)
        self._check_change(process)
        session = process.session
        members = (p for p in process.space.table.values() if p.pgid == pgid and p.space is process.space)
        if not any(member.session is session for member in members):
            raise SysError(EPERM)
        session.foreground = pgid


class MasterHandle(Handle):
    """An open master."""

    __slots__ = ("terminal",)
    seekable = False

    def __init__(self, terminal: Terminal) -> None:
        self.nonblocking = False
        self.terminal = terminal

    def read(self, offset: int, size: int) -> bytes:
        return self.terminal.read_master(size, nonblocking=self.nonblocking)

    def write(self, offset: int | None, data: bytes) -> int:
        return self.terminal.write_master(data, nonblocking=self.nonblocking)

    def ioctl(self, request: str, argument: object = None) -> object:
        return self.terminal.ioctl(request, argument, master=True)

    def poll(self) -> int:
        terminal = self.terminal
        events = POLLIN if terminal.output else 0
        if terminal.slaves == 0 and terminal.slave_was_open:
            events |= POLLHUP
        return events if terminal.discipline.full else events | POLLOUT

    @property
    def waiters(self) -> WaitQueue:
        return self.terminal.waiters

    def close(self) -> None:
        self.terminal.hang_up()


class SlaveHandle(Handle):
    """An open slave."""

    __slots__ = ("terminal",)
    seekable = False

    def __init__(self, terminal: Terminal) -> None:
        self.nonblocking = False
        self.terminal = terminal
        terminal.open_slave()

    def read(self, offset: int, size: int) -> bytes:
        return self.terminal.read(size, nonblocking=self.nonblocking)

    def peek(self) -> bytes:
        ready = self.terminal.discipline.ready
        return ready[0] if ready else b""

    def write(self, offset: int | None, data: bytes) -> int:
        return self.terminal.write(data, nonblocking=self.nonblocking)

    def ioctl(self, request: str, argument: object = None) -> object:
        if self.terminal.hung_up:
            raise SysError(ENOTTY if request == "isatty" else EIO)
        return self.terminal.ioctl(request, argument, master=False)

    def poll(self) -> int:
        terminal = self.terminal
        if terminal.hung_up:
            return POLLIN | POLLOUT | POLLHUP
        events = POLLIN if terminal.discipline.ready else 0
        blocked = terminal.discipline.stopped or len(terminal.output) >= OUTPUT_MAX
        return events if blocked else events | POLLOUT

    @property
    def waiters(self) -> WaitQueue:
        return self.terminal.waiters

    def close(self) -> None:
        self.terminal.close_slave()
