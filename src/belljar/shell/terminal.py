"""Job control on a terminal: its foreground process group, and the signals an interactive shell ignores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from belljar.abi.errors import SysError
from belljar.abi.signals import Signal
from belljar.kernel.process import IGNORE, Handler, Ignore, Process

if TYPE_CHECKING:
    from belljar.shell.jobs import Job
    from belljar.shell.shell import Shell

JOB_SIGNALS: Final = frozenset({Signal.TSTP, Signal.TTIN, Signal.TTOU})
SHELL_IGNORED: Final = JOB_SIGNALS | {Signal.QUIT, Signal.TERM}
"""Signals an interactive shell ignores and its children don't."""


def take_terminal(shell: Shell) -> None:
    """Ignore keyboard signals and make the shell's group the foreground one."""
    process = shell.process
    for number in SHELL_IGNORED:
        process.catch(number, IGNORE)
    process.catch(Signal.INT, shell.interrupt)
    if shell.monitor:
        if process.pgid != process.pid and process.pid != process.session.leader:
            process.setpgid(0, 0)
        set_foreground_group(shell, process.pgid)


def default_handler(shell: Shell, number: int) -> Handler | Ignore | None:
    """The handler of a signal that has no trap."""
    if not shell.interactive:
        return None
    if number in SHELL_IGNORED:
        return IGNORE
    return shell.interrupt if number == Signal.INT else None


def reset_signals(shell: Shell, child: Process) -> None:
    """Reset in a child the signals that an interactive shell ignores or catches."""
    if shell.interactive:
        child.handlers = {
            number: handler
            for number, handler in child.handlers.items()
            if handler is IGNORE and not (number in SHELL_IGNORED and shell.traps.get(Signal(number).name) is None)
        }


@contextmanager
def foreground(shell: Shell, job: Job) -> Iterator[None]:
    """Put the job in the foreground meanwhile; restore the terminal's settings if it was killed or stopped."""
    settings: object = None
    if shell.interactive and shell.monitor:
        with suppress(SysError):
            settings = shell.process.ioctl(0, "termios")
    set_foreground_group(shell, job.pgid)
    try:
        yield
    finally:
        set_foreground_group(shell, shell.process.pgid)
        if settings is not None and (job.stopped or any(status.signal for status in job.statuses.values())):
            with suppress(SysError):
                shell.process.ioctl(0, "set_termios", settings)


def set_foreground_group(shell: Shell, pgid: int) -> None:
    """Make a group the terminal's foreground one (tcsetpgrp); does nothing without a terminal."""
    if shell.interactive and shell.monitor:
        with suppress(SysError):
            shell.process.ioctl(0, "set_pgrp", pgid)
