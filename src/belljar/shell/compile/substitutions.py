"""Command and process substitution compiled."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from belljar.abi.errors import SysError
from belljar.abi.flags import O_RDONLY
from belljar.shell.compile.words import Text, compile_words
from belljar.shell.control import ShellError
from belljar.shell.nodes import (
    ArithSub,
    BackquoteSub,
    Command,
    CommandSub,
    Default,
    DoubleQuoted,
    FileRedirect,
    LocaleQuoted,
    Param,
    ProcSub,
    SimpleCommand,
    Word,
    WordPart,
)
from belljar.shell.substitute import capture_here, capture_output, open_process, tidy

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

PURE_BUILTINS = frozenset({"echo", "printf", "pwd", "true", "false", ":", "type"})
"""Builtins that change nothing in the shell, so a substitution of one needs no subshell."""


def compile_substitution(part: CommandSub | BackquoteSub | ProcSub) -> Text:
    if isinstance(part, ProcSub):
        return _compile_process(part)
    if isinstance(part, BackquoteSub):
        return _compile_backquote(part)
    return compile_command_sub(part.body)


def compile_command_sub(body: Command | None) -> Text:
    from belljar.shell.compile.commands import compile_subshell_body

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
    if isinstance(body, SimpleCommand) and _is_pure_builtin(body):
        name = _name(body)

        def here(shell: Shell) -> str:
            if name in shell.functions or name in shell.disabled or shell.attention:
                return capture_output(shell, run)
            return capture_here(shell, run)

        return here
    return lambda shell: capture_output(shell, run)


def _name(body: SimpleCommand) -> str:
    from belljar.shell.compile.words import constant

    first = body.words[0]
    return (constant(first) or "") if isinstance(first, Word) else ""


def _is_pure_builtin(body: SimpleCommand) -> bool:
    if not body.words or body.assignments or body.redirects or _name(body) not in PURE_BUILTINS:
        return False
    words = [word for word in body.words if isinstance(word, Word)]
    if len(words) != len(body.words) or not all(_is_pure(part) for word in words for part in word.parts):
        return False
    return _name(body) != "printf" or not any(part_text(word).startswith("-v") for word in words[1:2])


def part_text(word: Word) -> str:
    from belljar.shell.compile.words import constant

    return constant(word) or ""


def _is_pure(part: WordPart) -> bool:
    """Whether expanding the part leaves the shell as it was."""
    from belljar.shell.compile.arith import _has_effects

    match part:
        case DoubleQuoted(parts) | LocaleQuoted(parts):
            return all(_is_pure(inner) for inner in parts)
        case Param():
            if part.indirect or part.index is not None:
                return False
            if isinstance(part.op, Default):
                return part.op.op in "-+" and all(_is_pure(inner) for inner in part.op.word.parts)
            return part.op is None
        case ArithSub(arith):
            return arith.expr is not None and not _has_effects(arith.expr)
        case ProcSub():
            return False
        case CommandSub() | BackquoteSub():
            return True
        case _:
            return True


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

    def run(shell: Shell) -> str:
        return _parsed(text, line, shell.parse_key())(shell)

    return run


@lru_cache(maxsize=256)
def _parsed(text: str, line: int, _key: object) -> Text:
    """A backquoted command is parsed when it runs: a syntax error in it is that command's failure."""

    def body(shell: Shell) -> int:
        return shell.run_text(text, line=line)

    return lambda shell: capture_output(shell, body)


def _compile_process(part: ProcSub) -> Text:
    from belljar.shell.compile.commands import compile_subshell_body

    run = compile_subshell_body(part.body) if part.body is not None else lambda _shell: 0
    reads = part.direction == "<"
    return lambda shell: open_process(shell, run, reads=reads)
