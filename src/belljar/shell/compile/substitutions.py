"""Command and process substitution compiled."""

from __future__ import annotations

from typing import TYPE_CHECKING

from belljar.abi.errors import SysError
from belljar.abi.flags import O_RDONLY
from belljar.shell.compile.direct import direct_program, pure_builtin
from belljar.shell.compile.words import Text, compile_words
from belljar.shell.control import ShellError
from belljar.shell.nodes import BackquoteSub, Command, CommandSub, FileRedirect, ProcSub, SimpleCommand
from belljar.shell.substitute import capture_here, capture_output, open_process, tidy

if TYPE_CHECKING:
    from belljar.shell.shell import Shell


def compile_substitution(part: CommandSub | BackquoteSub | ProcSub) -> Text:
    if isinstance(part, ProcSub):
        return _compile_process(part)
    if isinstance(part, BackquoteSub):
        return _compile_backquote(part)
    return compile_command_sub(part.body)


def compile_command_sub(body: Command | None) -> Text:
    from belljar.shell.compile.commands import compile_subshell_body
    from belljar.shell.compile.simple import compile_simple

    if body is None:

        def nothing(shell: Shell) -> str:
            shell.subst_status = 0
            return ""

        return nothing
    if isinstance(body, SimpleCommand) and not body.words and not body.assignments and len(body.redirects) == 1:
        redirect = body.redirects[0]
        if isinstance(redirect, FileRedirect) and redirect.op == "<" and redirect.fd == 0:
            return _compile_file(redirect)
    run = compile_subshell_body(body)
    name = pure_builtin(body)
    if name is not None:
        assert isinstance(body, SimpleCommand)
        quick = compile_simple(body, checks=False)

        def here(shell: Shell) -> str:
            if name in shell.functions or name in shell.disabled or shell.attention:
                return capture_output(shell, run)
            return capture_here(shell, quick)

        return here
    direct = direct_program(body, run)
    return lambda shell: capture_output(shell, run, direct)


def _compile_file(redirect: FileRedirect) -> Text:
    """`$(< file)`: the file itself, no process."""
    target = compile_words([redirect.target])

    def read(shell: Shell) -> str:
        shell.subst_status = 0
        names = target(shell)
        if len(names) != 1:
            from belljar.shell.print import print_word

            raise ShellError(f"{print_word(redirect.target)}: ambiguous redirect")
        try:
            file = shell.process.fs.open(names[0], O_RDONLY).retain()
        except SysError as error:
            shell.error(f"{names[0]}: {error.reason}")
            shell.subst_status = 1
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
            shell.subst_status = 1
        finally:
            file.release()
        return tidy(shell, b"".join(parts))

    return read


def _compile_backquote(part: BackquoteSub) -> Text:
    text, line = part.text, part.line

    def body(shell: Shell) -> int:
        """A backquoted command is parsed when it runs: a syntax error in it is that command's failure."""
        return shell.run_text(text, line=line)

    return lambda shell: capture_output(shell, body)


def _compile_process(part: ProcSub) -> Text:
    from belljar.shell.compile.commands import compile_subshell_body

    run = compile_subshell_body(part.body) if part.body is not None else lambda _shell: 0
    reads = part.direction == "<"
    return lambda shell: open_process(shell, run, reads=reads)
