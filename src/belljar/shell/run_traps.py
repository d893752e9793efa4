"""Running of traps: between commands, after failures, around functions and at the end of the shell."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from belljar.kernel.status import ExitStatus, ProcessExit
from belljar.shell.control import Break, Continue, Discard, ExitShell, Return
from belljar.shell.nodes import Command
from belljar.shell.state import State
from belljar.shell.traps import PSEUDO

if TYPE_CHECKING:
    from belljar.shell.shell import Shell


class Trapping(State):
    """A shell's reactions to signals, failures and its own end."""

    def update_attention(self: Shell) -> None:  # type: ignore[misc]
        traps = self.traps
        self.attention = (
            bool(traps.pending)
            or self.interrupted
            or bool(self.fatal)
            or self.xtrace
            or ("DEBUG" in traps.commands and "DEBUG" not in self.active_traps)
        )

    def traps_changed(self: Shell) -> None:  # type: ignore[misc]
        """Recompute what is checked between commands, after traps or options changed."""
        self.update_attention()
        self.watching = self.errexit or "ERR" in self.traps.commands
        self.err_traced = self.options["errtrace"] and "ERR" in self.traps.commands

    def interrupt(self: Shell, _number: int) -> None:  # type: ignore[misc]
        """Handle ^C at an interactive shell: abandon the running command before its next step."""
        self.interrupted = True
        self.attention = True

    def signalled(self: Shell) -> None:  # type: ignore[misc]
        """Have the traps of pending signals run before the next command."""
        self.attention = True

    def enter_function(self: Shell) -> None:  # type: ignore[misc]
        """Under `set -T` the DEBUG trap also runs when a function begins."""
        command = self.traps.commands.get("DEBUG")
        if command and "DEBUG" not in self.active_traps:
            self.run_trap("DEBUG", command)

    def run_return_trap(self: Shell, command: str) -> None:  # type: ignore[misc]
        status = self.status
        self.run_trap("RETURN", command)
        self.status = status

    def failed(self: Shell, status: int, node: Command | None) -> None:  # type: ignore[misc]
        """A command outside any condition failed: the ERR trap, then `set -e`."""
        if self.suppressed:
            return
        command = self.traps.commands.get("ERR")
        if command and "ERR" not in self.active_traps:
            if node is not None:
                self.command = node
            self.status = status
            self.run_trap("ERR", command)
            self.status = status
        if self.errexit:
            raise ExitShell(status)

    def hide_traps(self: Shell, traced: bool) -> dict[str, str] | None:  # type: ignore[misc]
        """Hide the DEBUG, RETURN and ERR traps in a function that is not `traced`, as functrace and errtrace say."""
        commands = self.traps.commands
        names = [] if traced or self.options["functrace"] else ["DEBUG", "RETURN"]
        if not self.options["errtrace"]:
            names.append("ERR")
        hidden = {name: commands.pop(name) for name in names if name in commands}
        if hidden:
            self.traps_changed()
        return hidden or None

    def show_traps(self: Shell, hidden: dict[str, str]) -> None:  # type: ignore[misc]
        for name, command in hidden.items():
            self.traps.commands.setdefault(name, command)
        self.traps_changed()

    def run_trap(self: Shell, name: str, command: str) -> int:  # type: ignore[misc]
        """Run a trap's command; `$?` is afterwards what it was before."""
        status, pipestatus, line = self.status, self.pipestatus, self.line
        outer, outer_active = self.in_trap, self.active_traps
        self.in_trap, self.active_traps = name, outer_active | {name}
        outer_status, self.trap_status = self.trap_status, status
        self.trap_level = self.subshell
        process = self.process
        process.enter()
        self.update_attention()
        try:
            return self.run_text(command, line=line if name in PSEUDO else 1)
        finally:
            process.leave()
            self.in_trap, self.active_traps = outer, outer_active
            self.trap_status = outer_status
            self.status, self.pipestatus, self.line = status, pipestatus, line
            self.update_attention()

    def run_pending_traps(self: Shell) -> None:  # type: ignore[misc]
        """Run the commands of the signals that arrived."""
        pending, self.traps.pending = self.traps.pending, []
        for name in pending:
            command = self.traps.commands.get(name)
            if command:
                self.run_trap(name, command)
        self.update_attention()

    def die_of_signal(self: Shell) -> NoReturn:  # type: ignore[misc]
        """Die of a fatal signal, after the EXIT trap."""
        number, self.fatal = self.fatal, 0
        process = self.process
        process.handlers = {n: h for n, h in process.handlers.items() if h != self.traps.note_fatal}
        self.loops = 0
        self.update_attention()
        self.finish(self.status)
        raise ProcessExit(ExitStatus(0, number))

    def finish(self: Shell, status: int) -> int:  # type: ignore[misc]
        """The end of the shell process: the EXIT trap may still change the status."""
        self.status = status
        try:
            if self.traps.pending:
                self.run_pending_traps()
            command = self.traps.commands.get("EXIT")
            if command and not self.traps.inherited("EXIT"):
                self.vars.frames.clear()
                self.loops = 0
                self.suppressed = 0
                self.in_trap = "EXIT"
                self.active_traps |= {"EXIT"}
                self.trap_status = status
                self.trap_level = self.subshell
                self.update_attention()
                self.run_text(command, line=1)
        except (ExitShell, Return, Discard) as end:
            return end.status
        except (Break, Continue):
            return self.status
        finally:
            self.traps.commands.pop("EXIT", None)
        return status
