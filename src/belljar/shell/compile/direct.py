"""Pipeline stages and substitutions that need no subshell: a program started straight away, a builtin run right here.

Both are short cuts: the words must be free of effects, and whatever is unusual (a function of that name, `set -x`, an
error in an expansion) is left to a real subshell.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from belljar.abi.errors import SysError
from belljar.kernel.loader import load
from belljar.kernel.process import IGNORE, Process
from belljar.kernel.vfs.openfile import OpenFile
from belljar.shell import terminal
from belljar.shell.compile.arith_shape import has_effects
from belljar.shell.compile.fields import FieldList, compile_words
from belljar.shell.compile.redirects import compile_target, place
from belljar.shell.compile.words import Text, constant
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
    Redirect,
    SimpleCommand,
    Word,
    WordPart,
)
from belljar.shell.redirections import FLAGS, bad_descriptor, open_target

if TYPE_CHECKING:
    from belljar.shell.processes import Run
    from belljar.shell.shell import Shell

PURE_BUILTINS = frozenset({"echo", "printf", "pwd", "true", "false", ":", "type"})
"""Builtins that change nothing in the shell."""
OF_PROCESS = frozenset({"BASHPID", "BASH_SUBSHELL", "RANDOM", "SRANDOM", "_"})
"""Variables that are different in a subshell."""


def is_pure(part: WordPart, *, runs: bool) -> bool:
    """Whether expanding the part leaves the shell as it was; `runs`: it may run commands."""
    match part:
        case DoubleQuoted(parts) | LocaleQuoted(parts):
            return all(is_pure(inner, runs=runs) for inner in parts)
        case Param():
            if part.indirect or part.index is not None or part.name in OF_PROCESS:
                return False
            if isinstance(part.op, Default):
                return part.op.op in "-+" and all(is_pure(inner, runs=runs) for inner in part.op.word.parts)
            return part.op is None
        case ArithSub(arith):
            return arith.expr is not None and not has_effects(arith.expr)
        case ProcSub():
            return False
        case CommandSub() | BackquoteSub():
            return runs
        case _:
            return True


def _pure_words(command: SimpleCommand, *, runs: bool) -> list[Word] | None:
    words = [word for word in command.words if isinstance(word, Word)]
    if len(words) != len(command.words) or not words:
        return None
    if not all(is_pure(part, runs=runs) for word in words for part in word.parts):
        return None
    return words if not any(word.braces for word in words) else None


def pure_builtin(command: Command) -> str | None:
    """The builtin's name, if the command is one that may run in the shell itself for its output."""
    if not isinstance(command, SimpleCommand) or command.assignments or command.redirects:
        return None
    words = _pure_words(command, runs=True)
    name = constant(words[0]) if words is not None else None
    if words is None or name not in PURE_BUILTINS:
        return None
    if name == "printf" and len(words) > 1 and (constant(words[1]) or "-").startswith("-"):
        return None
    return name


class _Redirection(Struct, frozen=True):
    """One redirection of a plain kind: a file by name (`&>` sets both outputs), or `n>&m`."""

    fds: tuple[int, ...]
    op: str
    target: Text

    def apply(self, child: Process, target: str, *, noclobber: bool) -> None:
        """Done by the child, to which /dev/stdin means its own and which alone waits for a FIFO's other end."""
        if self.op in ("<&", ">&"):
            file = child.fds.get(int(target))
            if file is None:
                raise bad_descriptor(target)
        else:
            file = open_target(child, target, self.op, noclobber=noclobber)
        for fd in self.fds:
            place(child, fd, file)


class DirectProgram(Struct, frozen=True):
    """A simple command that is likely to be a program. `run` is the same command for a subshell."""

    arguments: FieldList
    redirections: tuple[_Redirection, ...]
    run: Run

    def start(self, shell: Shell, files: Mapping[int, OpenFile], pgid: int | None = None) -> Process | None:
        """Start it with these descriptors; None if it needs a subshell."""
        if shell.attention:
            return None
        process = shell.process
        try:
            argv = self.arguments(shell)
            if not argv or argv[0] in shell.functions or shell.find_builtin(argv[0]) is not None:
                return None
            path = shell.find_command(argv[0], hashes=False)
            if path is None:
                return None
            program, full = load(process, path, argv)
            targets = [redirection.target(shell) for redirection in self.redirections]
        except ShellError:
            return None
        except SysError:
            shell.located.clear()
            return None
        environment = {**shell.environment(), "_": path}
        child = process.kernel.fork(process, argv)
        fds = child.fds
        for fd, file in files.items():
            fds.put(fd, file)
        if child.handlers:
            child.handlers = {n: h for n, h in child.handlers.items() if h is IGNORE}
            terminal.reset_signals(shell, child)
        if pgid is not None:
            child.pgid = pgid or child.pid
        noclobber = shell.noclobber

        def body(child: Process) -> int:
            try:
                for redirection, target in zip(self.redirections, targets, strict=True):
                    redirection.apply(child, target, noclobber=noclobber)
            except ShellError:
                # The shell waits for us, as it was: a subshell of it says what is wrong.
                return shell.fork(child).run_as_process(self.run)
            child.prepare_exec(path, full, environment)
            return program(child)

        child.start_fiber(body)
        return child


def direct_program(command: Command, run: Run) -> DirectProgram | None:
    """The short cut for a simple command, if it may have one; `run` is the command for a subshell."""
    if not isinstance(command, SimpleCommand) or command.assignments:
        return None
    words = _pure_words(command, runs=False)
    if words is None:
        return None
    redirections: list[_Redirection] = []
    for redirect in command.redirects:
        plain = _plain_redirection(redirect)
        if plain is None:
            return None
        redirections.append(plain)
    return DirectProgram(compile_words(words), tuple(redirections), run)


def _plain_redirection(redirect: Redirect) -> _Redirection | None:
    if not isinstance(redirect, FileRedirect) or not isinstance(redirect.fd, int):
        return None
    word, op = redirect.target, redirect.op
    if op in ("<&", ">&"):
        number = constant(word)
        if number is None or not (number.isascii() and number.isdecimal() and len(number) < 10):
            return None
        return _Redirection((redirect.fd,), op, lambda _shell: number)
    if op not in FLAGS or not all(is_pure(part, runs=False) for part in word.parts):
        return None
    return _Redirection((1, 2) if op in ("&>", "&>>") else (redirect.fd,), op, compile_target(word))
