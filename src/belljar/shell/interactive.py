"""The interactive loop: prompt, read a command, run it, report jobs, until the input ends."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.shell import history_file, terminal
from belljar.shell.compile.commands import compile_command
from belljar.shell.control import Break, Continue, Discard, Return
from belljar.shell.editor import Editor
from belljar.shell.input import read_line
from belljar.shell.jobs import describe
from belljar.shell.parse import ParseOptions, Parser, ShellSyntaxError
from belljar.shell.programs import options_for

if TYPE_CHECKING:
    from belljar.shell.shell import Shell


class LineSource:
    """Lines for the parser, each asked for with PS1, or PS2 inside a command."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.read = ""
        """The text read so far of the current command."""
        self.editor = Editor(shell)

    def __call__(self) -> str | None:
        while True:
            line = self._ask()
            if line is not None and (line := history_file.substitute(self.shell, line)) is None:
                continue
            self.read += line or ""
            return line

    def _ask(self) -> str | None:
        shell = self.shell
        if not self.read.strip():
            before_prompt(shell)
        prompt = shell.expand_prompt(shell.vars.get("PS2" if self.read.strip() else "PS1") or "")
        if self._edits():
            return self.editor.read(prompt)
        shell.process.error(prompt)
        while True:
            try:
                data = read_line(shell.process, 0)
                break
            except SysError as error:
                if error.name != "EINTR":
                    return None
                shell.run_pending_traps()
                shell.status = 130
                shell.check_interrupt()
        return fsdecode(data.replace(b"\0", b"")) if data else None

    def _edits(self) -> bool:
        """Whether lines are edited: on a terminal that can, unless the user prefers not to."""
        shell = self.shell
        return (
            (shell.options["emacs"] or shell.options["vi"])
            and shell.process.isatty(0)
            and shell.process.isatty(2)
            and (shell.vars.get("TERM") or "dumb") != "dumb"
        )


def run_interactive(shell: Shell) -> int:
    """Read and run commands until the input ends or `exit`."""
    source = LineSource(shell)
    options = options_for(shell)
    parser = Parser(source, options)
    history_file.begin(shell)
    terminal.take_terminal(shell)
    try:
        return _loop(shell, source, parser, options)
    finally:
        history_file.end(shell)


def _loop(shell: Shell, source: LineSource, parser: Parser, options: ParseOptions) -> int:
    while True:
        source.read = ""
        options_for(shell, options)
        try:
            node = parser.next_command()
        except Discard as interrupted:
            shell.status = interrupted.status
            parser = Parser(source, options)
            continue
        except ShellSyntaxError as error:
            history_file.note(shell, source.read)
            shell.process.error(f"{shell.name}: {error.message}\n")
            shell.status = 2
            continue
        if node is None:
            if shell.options["ignoreeof"]:
                shell.process.error('Use "exit" to leave the shell.\n')
            else:
                shell.process.error("exit\n")
                shell.command_number += 1
                if not shell.jobs.holds_back():
                    return shell.status
            parser = Parser(source, options)
            continue
        history_file.note(shell, source.read)
        shell.command_number += 1
        try:
            compile_command(node)(shell)
            shell.check_interrupt()
        except (Return, Discard) as end:
            shell.status = end.status
        except (Break, Continue):
            shell.status = 0
        shell.loops = 0


def before_prompt(shell: Shell) -> None:
    """Report changed jobs, then run PROMPT_COMMAND."""
    notify(shell)
    contents = shell.vars.contents("PROMPT_COMMAND")
    commands = [contents] if isinstance(contents, str) else contents.values() if contents is not None else []
    status = shell.status
    for command in commands:
        with suppress(Return, Discard):
            shell.run_text(command)
    shell.status = status


def notify(shell: Shell) -> None:
    """Report background jobs that ended."""
    shell.jobs.refresh()
    for job in list(shell.jobs.jobs.values()):
        if job.notified:
            continue
        job.notified = True
        shell.process.error(describe(shell.jobs, job) + "\n")
        if job.done:
            shell.jobs.remove(job)
