"""Command and process substitution compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from belljar.abi.errors import SysError
from belljar.abi.flags import O_RDONLY
from belljar.shell.capture import capture_here, capture_output, open_process, tidy
from belljar.shell.compile.direct import direct_program, pure_builtin
from belljar.shell.compile.fields import compile_words
from belljar.shell.compile.relocate import layout, relocate, single_line
from belljar.shell.compile.words import Text
from belljar.shell.control import ShellError
from belljar.shell.nodes import BackquoteSub, Command, CommandSub, FileRedirect, ProcSub, SimpleCommand
from belljar.shell.parse import Parser, ShellSyntaxError

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

KEPT_LINES: Final = 8
"""Number of lines for which one substitution is kept compiled; more than one come only from traps and `eval`."""


def compile_substitution(part: CommandSub | BackquoteSub | ProcSub) -> Text:
    if isinstance(part, ProcSub):
        return _compile_process(part)
    if isinstance(part, BackquoteSub):
        return _compile_backquote(part)
    return _numbered(part, _compile_body) if part.body is not None else _nothing


def _nothing(shell: Shell) -> str:
    shell.status = shell.subst_status = 0
    return ""


def _numbered(part: CommandSub | ProcSub, compiled: Callable[[Command], Text]) -> Text:
    """Apply `compiled` to the commands, renumbered by the line of the command around the substitution.

    It is made when first run: a word is compiled in several ways, which would multiply with each level of nesting.
    """
    body = part.body
    assert body is not None
    home = single_line(part)
    text = ""
    here: Text | None = None
    elsewhere: dict[int, Text] = {}

    def run(shell: Shell) -> str:
        nonlocal text, here
        line = shell.line
        if line == home:
            if here is None:
                here = compiled(body)
            return here(shell)
        found = elsewhere.get(line)
        if found is None:
            text = text or layout(part)
            shell.budget.charge(len(text) >> 4)
            if len(elsewhere) >= KEPT_LINES:
                elsewhere.clear()
            found = elsewhere[line] = compiled(relocate(body, text, line))
        return found(shell)

    return run


def _compile_body(body: Command) -> Text:
    from belljar.shell.compile.commands import compile_subshell_body
    from belljar.shell.compile.simple import compile_simple

    if (redirect := _file_read(body)) is not None:
        return _compile_file(redirect)
    run = compile_subshell_body(body)
    name = pure_builtin(body)
    if name is not None:
        assert isinstance(body, SimpleCommand)
        quick = compile_simple(body, checks=False)

        def here(shell: Shell) -> str:
            if name in shell.functions or name in shell.disabled or shell.attention or shell.err_traced:
                return capture_output(shell, run)
            return capture_here(shell, quick)

        return here
    direct = direct_program(body, run)
    return lambda shell: capture_output(shell, run, direct)


def _file_read(body: Command | None) -> FileRedirect | None:
    """The redirection, if it is all there is: `< file`."""
    if isinstance(body, SimpleCommand) and not body.words and not body.assignments and len(body.redirects) == 1:
        redirect = body.redirects[0]
        if isinstance(redirect, FileRedirect) and redirect.op == "<" and redirect.fd == 0:
            return redirect
    return None


def _compile_file(redirect: FileRedirect) -> Text:
    """`$(< file)`: the file itself, no process."""
    target = compile_words([redirect.target])

    def read(shell: Shell) -> str:
        shell.status = shell.subst_status = 0
        names = target(shell)
        if len(names) != 1:
            from belljar.shell.print import print_word

            raise ShellError(f"{print_word(redirect.target)}: ambiguous redirect")
        try:
            file = shell.process.fs.open(names[0], O_RDONLY).retain()
        except SysError as error:
            shell.error(f"{names[0]}: {error.reason}")
            shell.status = shell.subst_status = 1
            return ""
        parts: list[bytes] = []
        size = 0
        try:
            while data := file.read(1 << 20):
                size += len(data)
                shell.budget.charge_size(size)
                parts.append(data)
        except SysError as error:
            shell.error(f"{names[0]}: {error.reason}")
            shell.status = shell.subst_status = 1
        finally:
            file.release()
        return tidy(shell, b"".join(parts))

    return read


def _compile_backquote(part: BackquoteSub) -> Text:
    text = part.text
    if text.lstrip(" \t").startswith("<"):
        try:
            command = Parser(text).next_command()
        except ShellSyntaxError:
            command = None
        if (redirect := _file_read(command)) is not None:
            return _compile_file(redirect)

    def body(shell: Shell) -> int:
        """A backquoted command is parsed when it runs: a syntax error in it is that command's failure."""
        return shell.run_text(text, line=shell.line, verbose=False)

    return lambda shell: capture_output(shell, body)


def _compile_process(part: ProcSub) -> Text:
    from belljar.shell.compile.commands import compile_subshell_body

    reads = part.direction == "<"
    if part.body is None:
        return lambda shell: open_process(shell, lambda _shell: 0, reads=reads)

    def compiled(body: Command) -> Text:
        run = compile_subshell_body(body)
        return lambda shell: open_process(shell, run, reads=reads)

    return _numbered(part, compiled)
