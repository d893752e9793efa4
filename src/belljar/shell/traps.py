"""Traps: the commands to run on signals and on EXIT, ERR, DEBUG and RETURN."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from belljar.abi.signals import Signal, parse_signal, signal_name
from belljar.kernel.process import IGNORE, Handler, Ignore
from belljar.shell.control import KilledBySignal
from belljar.shell.terminal import default_handler

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

PSEUDO = ("EXIT", "DEBUG", "ERR", "RETURN")
FATAL: Final = frozenset(
    parse_signal(name) or 0
    for name in "HUP INT ILL TRAP ABRT BUS FPE SEGV SYS PIPE ALRM TERM XCPU XFSZ VTALRM USR1 USR2".split()
)
"""Signals that end a shell, but not before its EXIT trap."""


def trap_name(spec: str) -> str | None:
    """`EXIT`, `ERR`, `INT` ... for `0`, `exit`, `SIGINT`, `2`; None if there is no such signal."""
    upper = spec.upper()
    if upper in PSEUDO or upper.removeprefix("SIG") in ("DEBUG", "ERR", "RETURN"):
        return upper.removeprefix("SIG")
    number = parse_signal(spec)
    if number is None:
        return None
    return "EXIT" if number == 0 else signal_name(number)


class Traps:
    """Commands by trap name (`EXIT ERR DEBUG RETURN INT TERM ...`); "" means the signal is ignored."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.commands: dict[str, str] = {}
        self.shown: dict[str, str] | None = None
        """In a subshell: its parent's traps, which `trap -p` still lists until one is set here."""
        self.pending: list[str] = []
        self.inherited_ignores: frozenset[str] = frozenset()

    def get(self, name: str) -> str | None:
        return self.commands.get(name)

    def listing(self) -> dict[str, str]:
        """The traps for `trap -p`: in a subshell its parent's, until one is set here."""
        return self.shown if self.shown is not None else self.commands

    def set(self, name: str, command: str | None) -> None:
        """Set a trap; "" ignores the signal, None restores its default."""
        if self.shown is not None:
            self.commands = {k: v for k, v in self.commands.items() if v == ""}
            self.shown = None
        if name in self.inherited_ignores:
            return
        if command is None:
            self.commands.pop(name, None)
        else:
            self.commands[name] = command
        if name == "EXIT":
            self._guard()
        if name in PSEUDO:
            self.shell.traps_changed()
            return
        number = parse_signal(name)
        assert number is not None
        process = self.shell.process
        if number in (Signal.KILL, Signal.STOP):
            return
        if command is None:
            process.catch(number, self._default(number))
        elif command == "":
            process.catch(number, IGNORE)
        else:
            process.catch(number, self.note)

    def _default(self, number: int) -> Handler | Ignore | None:
        """The handler of a signal without a trap: a fatal one must not skip the EXIT trap."""
        usual = default_handler(self.shell, number)
        return self.note_fatal if usual is None and number in FATAL and self.commands.get("EXIT") else usual

    def _guard(self) -> None:
        """Catch fatal signals without a handler while there is an EXIT trap; restore them when it is removed."""
        process = self.shell.process
        for number in FATAL:
            if process.handlers.get(number) in (None, self.note_fatal):
                process.catch(number, self._default(number))

    def note_fatal(self, number: int) -> None:
        """Record a fatal signal and interrupt the shell's main fiber."""
        shell = self.shell
        shell.fatal = number
        shell.signalled()
        hub, fibers = shell.process.kernel.hub, shell.process.fibers
        if fibers and hub.current is not fibers[0]:
            hub.interrupt(fibers[0], KilledBySignal(number))

    def note(self, number: int) -> None:
        """Record a caught signal: its trap runs between two commands."""
        self.pending.append(signal_name(number))
        self.shell.signalled()

    def inherited(self, name: str) -> bool:
        return self.shown is not None and name in self.shown

    def fork(self, shell: Shell) -> Traps:
        """The traps of a subshell: signals are reset to their default, ignored ones stay ignored."""
        child = Traps(shell)
        child.inherited_ignores = self.inherited_ignores
        if not self.commands:
            return child
        child.shown = self.listing().copy()
        options = shell.options
        keep = {"DEBUG", "RETURN"} if options["functrace"] else set()
        if options["errtrace"]:
            keep.add("ERR")
        child.commands = {k: v for k, v in self.commands.items() if v == "" or k in keep}
        process = shell.process
        process.handlers = {n: h for n, h in process.handlers.items() if h is IGNORE}
        return child
