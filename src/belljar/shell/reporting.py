"""Messages on stderr: errors in bash's wording, `set -x` traces; and the effect of an error on the command."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.libc import quote
from belljar.shell.control import (
    Abandon,
    ArithError,
    Discard,
    ExitShell,
    ExpansionError,
    KilledBySignal,
    Return,
    ShellError,
    SubscriptError,
    SubstringError,
)
from belljar.shell.nodes import Case, Command, For, Select, SimpleCommand
from belljar.shell.parse import ShellSyntaxError
from belljar.shell.print import print_command, print_word
from belljar.shell.state import State

if TYPE_CHECKING:
    from belljar.shell.shell import ArrayItem, AssignmentArg, Shell


class Reporting(State):
    """Messages of a shell."""

    def error(self: Shell, message: str) -> None:  # type: ignore[misc]
        """`bash: line N: message` (or `script: line N: `) on stderr."""
        if self.interactive:
            self.process.error(f"{self.message_name()}: {message}\n")
        else:
            self.report_line(self.line, message)

    def warn(self: Shell, message: str) -> None:  # type: ignore[misc]
        """As `error`, for what does not make a command fail."""
        self.error(message)

    def message_name(self: Shell) -> str:  # type: ignore[misc]
        """The prefix of messages: $0, or inside a sourced file or function the file it is from."""
        for frame in reversed(self.vars.frames):
            if frame.source:
                return frame.source
        return self.name

    def report_line(self: Shell, line: int, message: str) -> None:  # type: ignore[misc]
        self.process.error(f"{self.message_name()}: line {line}: {message}\n")

    def report_syntax(self: Shell, error: ShellSyntaxError, what: str) -> None:  # type: ignore[misc]
        prefix = f"{what}: " if what else ""
        for message in error.messages()[: 1 if self.errexit else None]:  # under `set -e` the first one ends it
            self.process.error(f"{self.message_name()}: {prefix}line {error.line}: {message}\n")
        self.status = 2

    def abandon(self: Shell, error: ShellError) -> NoReturn:  # type: ignore[misc]
        """An expansion or assignment failed: report it, and end the command, or the shell where bash does."""
        self.error(str(error))
        self.status = 1
        exits = self.posix or (isinstance(error, ExpansionError) and error.exits)
        if self.errexit and not isinstance(error, ArithError | SubscriptError | SubstringError):  # whatever the context
            raise ExitShell(1) from None
        if exits and not self.interactive:
            raise ExitShell(127 if self.from_argument and not self.subshell_process else 1) from None
        raise Abandon(1) from None

    # `set -x`

    def trace(self: Shell, text: str) -> None:  # type: ignore[misc]
        """One line of `set -x` output, behind the expanded PS4."""
        prompt = self.vars.get("PS4")
        shown = ""
        if prompt:
            tracing: bool = self.xtrace
            self.xtrace = False
            status, subst_status = self.status, self.subst_status
            try:
                shown = self.expand_prompt(prompt) if "\\" in prompt else self.expand_string(prompt)
            except (ShellError, ShellSyntaxError):
                shown = prompt
            finally:
                self.xtrace = tracing
                self.status, self.subst_status = status, subst_status
            shown = shown[:1] * self.trace_depth + shown
        fd = self.trace_fd()
        try:
            self.process.write_all(fd, fsencode(f"{shown}{text}\n"))
        except SysError:
            return

    def trace_fd(self: Shell) -> int:  # type: ignore[misc]
        text = self.vars.get("BASH_XTRACEFD")
        if text and text.isdecimal() and int(text) in self.process.fds:
            return int(text)
        return 2

    def trace_command(self: Shell, temporary: list[AssignmentArg], argv: list[str]) -> None:  # type: ignore[misc]
        for arg in temporary:
            self.trace(assignment_text(arg))
        words = []
        arguments: list[str | AssignmentArg] = list(argv)  # those of a declaration builtin may be assignments
        for word in arguments:
            if isinstance(word, str):
                words.append(quote.for_trace(word))
            elif isinstance(word.value, str):
                words.append(quote.for_trace(str(word)))
            else:
                self.trace(assignment_text(word))
                words.append(word.name)
        self.trace(" ".join(words))
        if argv[0] in ("export", "readonly"):
            for word in arguments[1:]:
                if not isinstance(word, str) and isinstance(word.value, str):
                    self.trace(assignment_text(word))

    def command_text(self: Shell) -> str:  # type: ignore[misc]
        """BASH_COMMAND."""
        node = self.command
        match node:
            case None:
                return self.trap_command
            case For() | Select():
                kind = "for" if isinstance(node, For) else "select"
                return f"{kind} {node.name} in {' '.join([print_word(word) for word in node.words])}"
            case Case():
                return f"case {print_word(node.subject)} in "
            case _:
                return print_command(node)

    # Between commands.

    def before(self: Shell, node: Command) -> bool:  # type: ignore[misc]
        """Slow path in front of a simple command: ^C, pending signals and the DEBUG trap.

        True if the command is not to run: under `shopt -s extdebug` that is the trap's to say, by a status.
        """
        skipped = False
        if self.fatal:
            raise KilledBySignal(self.fatal)
        if self.interrupted:
            self.check_interrupt()
        if self.traps.pending:
            self.run_pending_traps()
        debug = self.traps.commands.get("DEBUG")
        if not self.in_trap:
            self.command = node
        if debug and "DEBUG" not in self.active_traps:
            refused = self.run_trap("DEBUG", debug)
            if refused and self.shopts["extdebug"]:
                if refused == 2 and self.vars.frames:
                    raise Return(2)
                self.status = 0
                skipped = True
        if not self.in_trap:
            self.command = node
        self.update_attention()
        return skipped

    def check_interrupt(self: Shell) -> None:  # type: ignore[misc]
        """Abandon the command at hand if ^C was typed."""
        if self.interrupted:
            self.interrupted = False
            self.update_attention()
            self.process.error("\n")
            raise Discard(130)

    def before_stage(self: Shell, node: Command) -> None:  # type: ignore[misc]
        """The DEBUG trap runs here for a simple command that a pipeline runs elsewhere."""
        if isinstance(node, SimpleCommand):
            self.line = node.line
            self.before(node)

    def before_compound(self: Shell, node: Command) -> None:  # type: ignore[misc]
        self.before(node)


def assignment_text(arg: AssignmentArg) -> str:
    """An assignment as `set -x` shows it."""
    if isinstance(arg.value, str):
        value = quote.for_trace_value(arg.value)
    else:
        value = "(" + " ".join([_item_text(item) for item in arg.value]) + ")"
    subscript = f"[{arg.subscript}]" if arg.subscript is not None else ""
    return f"{arg.name}{subscript}{'+' if arg.append else ''}={value}"


def _item_text(item: ArrayItem) -> str:
    value = quote.single(item.value)
    return value if item.key is None else f"[{quote.single(item.key)}]{'+' if item.append else ''}={value}"
