"""What the shell says on stderr: errors in bash's wording, `set -x` traces; and what an error does to the command."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.shell import quote
from belljar.shell.control import Abandon, ExitShell, ExpansionError, ShellError
from belljar.shell.nodes import Assignment, Command
from belljar.shell.parse import ShellSyntaxError
from belljar.shell.print import print_command

if TYPE_CHECKING:
    from belljar.shell.shell import AssignmentArg, Shell


class Reporting:
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
        """What messages begin with: inside a sourced file or function, the file that is being read."""
        for frame in reversed(self.vars.frames):
            if frame.source and frame.source != "environment":
                return frame.source if frame.source != "main" else self.name
            break
        return self.name

    def report_line(self: Shell, line: int, message: str) -> None:  # type: ignore[misc]
        self.process.error(f"{self.message_name()}: line {line}: {message}\n")

    def report_syntax(self: Shell, error: ShellSyntaxError, what: str) -> None:  # type: ignore[misc]
        prefix = f"{what}: " if what else ""
        for message in error.messages():
            self.process.error(f"{self.message_name()}: {prefix}line {error.line}: {message}\n")
        self.status = 2

    def abandon(self: Shell, error: ShellError) -> NoReturn:  # type: ignore[misc]
        """An expansion or assignment failed: report it, and end the command, or the shell where bash does."""
        self.error(str(error))
        self.status = 1
        if isinstance(error, ExpansionError) and error.exits and not self.interactive:
            raise ExitShell(127 if self.from_argument and not self.subshell_process else 1) from None
        raise Abandon(1) from None

    # `set -x`

    def trace(self: Shell, text: str) -> None:  # type: ignore[misc]
        """One line of `set -x` output, behind the expanded PS4."""
        prompt = self.vars.get("PS4")
        shown = ""
        if prompt:
            tracing, self.xtrace = self.xtrace, False
            status = self.status
            try:
                shown = self.expand_prompt(prompt) if "\\" in prompt else self.expand_string(prompt)
            except ShellError:
                shown = prompt
            finally:
                self.xtrace = tracing
                self.status = status
            shown = shown[:1] * self.trace_depth + shown
        fd = self.trace_fd()
        try:
            self.process.write_all(fd, fsencode(f"{shown}{text}\n"))
        except SysError:
            return

    def trace_fd(self: Shell) -> int:  # type: ignore[misc]
        text = self.vars.get("BASH_XTRACEFD")
        if text and text.isdigit() and int(text) in self.process.fds:
            return int(text)
        return 2

    def trace_command(self: Shell, temporary: list[AssignmentArg], argv: list[str]) -> None:  # type: ignore[misc]
        for arg in temporary:
            self.trace(_assignment_text(arg))
        self.trace(" ".join([_argument_text(arg) for arg in argv]))

    def trace_assignment(self: Shell, node: Assignment) -> None:  # type: ignore[misc]
        from belljar.shell.print import print_word

        plus = "+" if node.append else ""
        if node.index is None and hasattr(node.value, "parts"):
            value = self.vars.get(node.name) or ""
            if node.append:
                from belljar.shell.compile.words import compile_scalar

                value = compile_scalar(node.value)(self)
            self.trace(f"{node.name}{plus}={quote.for_trace_value(value)}")
            return
        subscript = ""
        if node.index is not None:
            word = getattr(node.index, "word", None)
            subscript = f"[{print_word(word)}]" if word is not None else "[@]"
        if hasattr(node.value, "parts"):
            from belljar.shell.compile.words import compile_scalar

            self.trace(f"{node.name}{subscript}{plus}={quote.for_trace_value(compile_scalar(node.value)(self))}")
        else:
            words = " ".join(print_word(element.value) for element in node.value.elements)
            self.trace(f"{node.name}{plus}=({words})")

    def command_text(self: Shell) -> str:  # type: ignore[misc]
        """BASH_COMMAND."""
        return print_command(self.command) if self.command is not None else self.trap_command

    # Between commands.

    def before(self: Shell, node: Command) -> None:  # type: ignore[misc]
        """Slow path in front of a simple command: pending signals and the DEBUG trap."""
        if self.traps.pending:
            self.run_pending_traps()
        debug = self.traps.commands.get("DEBUG")
        if debug and not self.in_trap:
            self.command = node
            self.run_trap("DEBUG", debug)
        self.command = node
        self.update_attention()

    def before_compound(self: Shell, node: Command) -> None:  # type: ignore[misc]
        self.before(node)


def _assignment_text(arg: AssignmentArg) -> str:
    value = quote.for_trace_value(arg.value) if isinstance(arg.value, str) else "(...)"
    subscript = f"[{arg.subscript}]" if arg.subscript is not None else ""
    return f"{arg.name}{subscript}{'+' if arg.append else ''}={value}"


def _argument_text(arg: object) -> str:
    return quote.for_trace(arg) if isinstance(arg, str) else _assignment_text(arg)  # type: ignore[arg-type]
