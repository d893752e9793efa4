"""Job control on a terminal: whose turn it is to read and be interrupted, and which signals the shell keeps away."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from belljar.abi.errors import SysError
from belljar.abi.signals import Signal
from belljar.kernel.process import IGNORE, Handler, Ignore, Process

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

JOB_SIGNALS: Final = frozenset({Signal.TSTP, Signal.TTIN, Signal.TTOU})
KEPT_AWAY: Final = JOB_SIGNALS | {Signal.QUIT, Signal.TERM}
"""What an interactive shell ignores and its children don't."""


def begin(shell: Shell) -> None:
    """Make an interactive shell safe from the keyboard, and its group the foreground one."""
    process = shell.process
    for number in KEPT_AWAY:
        process.catch(number, IGNORE)
    process.catch(Signal.INT, shell.interrupt)
    if shell.monitor:
        if process.pgid != process.pid and process.pid != process.session.leader:
            process.setpgid(0, 0)
        give(shell, process.pgid)


def default_handler(shell: Shell, number: int) -> Handler | Ignore | None:
    """What a signal without trap does to this shell."""
    if not shell.interactive:
        return None
    if number in KEPT_AWAY:
        return IGNORE
    return shell.interrupt if number == Signal.INT else None


def release(shell: Shell, child: Process) -> None:
    """Give a child back the default signals that an interactive shell took from itself."""
    if shell.interactive:
        child.handlers = {
            number: handler
            for number, handler in child.handlers.items()
            if handler is IGNORE and not (number in KEPT_AWAY and shell.traps.get(Signal(number).name) is None)
        }


def give(shell: Shell, pgid: int) -> None:
    """Make a group the terminal's foreground one; without a terminal there is nothing to give."""
    if shell.interactive and shell.monitor:
        with suppress(SysError):
            shell.process.ioctl(0, "set_pgrp", pgid)
