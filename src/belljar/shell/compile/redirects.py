"""Redirections compiled: `apply(shell, saved)` puts them in place, noting in `saved` what was there."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.kernel.process import Process
from belljar.kernel.vfs.openfile import OpenFile
from belljar.shell.compile.fields import compile_words
from belljar.shell.compile.words import Text, compile_quoted, compile_scalar, constant
from belljar.shell.control import ShellError
from belljar.shell.heredoc import here_file
from belljar.shell.nodes import FdVariable, FileRedirect, HereDoc, Redirect, Subscript, Word
from belljar.shell.redirections import LOWEST_NAMED, RedirectError, Saved, bad_descriptor, open_target

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

Apply: TypeAlias = "Callable[[Shell, Saved], None]"
Opener: TypeAlias = "Callable[[Shell], OpenFile]"


def compile_redirects(redirects: Sequence[Redirect]) -> Apply:
    steps = [_compile_one(redirect) for redirect in redirects]
    if len(steps) == 1:
        return steps[0]

    def apply(shell: Shell, saved: Saved) -> None:
        for step in steps:
            step(shell, saved)

    return apply


def _compile_one(redirect: Redirect) -> Apply:
    if isinstance(redirect, HereDoc):
        body = compile_quoted(redirect.body.parts) if not redirect.quoted else _fixed(redirect.text)
        # One that the end of the input cut off still ends its last line.
        end = "\n" if redirect.text and not redirect.text.endswith("\n") else ""
        return _put(redirect.fd, lambda shell: here_file(shell, fsencode(body(shell) + end)))
    match redirect.op:
        case "<<<":
            text = compile_scalar(redirect.target)
            return _put(redirect.fd, lambda shell: here_file(shell, fsencode(text(shell) + "\n")))
        case "<&" | ">&":
            return _compile_duplicate(redirect)
        case "&>" | "&>>":
            return _compile_both(redirect.op, compile_target(redirect.target))
        case op:
            target = compile_target(redirect.target)
            return _put(redirect.fd, lambda shell: _open(shell, target(shell), op))


def _open(shell: Shell, name: str, op: str) -> OpenFile:
    return open_target(shell.process, name, op, noclobber=shell.noclobber)


def _fixed(text: str) -> Text:
    return lambda _shell: text


def compile_target(word: Word) -> Text:
    """The file a redirection names: all expansions, but exactly one word."""
    fixed = constant(word)
    if fixed is not None and word.braces is None and not any(char in fixed for char in "*?["):
        return _fixed(fixed)
    fields = compile_words([word])
    text = compile_scalar(word)

    def target(shell: Shell) -> str:
        if shell.posix and not shell.interactive:
            return text(shell)
        names = fields(shell)
        if len(names) != 1:
            from belljar.shell.print import print_word

            raise RedirectError(f"{print_word(word)}: ambiguous redirect")
        return names[0]

    return target


def _put(fd: int | FdVariable, opener: Opener) -> Apply:
    if isinstance(fd, FdVariable):
        return _put_named(fd, opener)

    def put(shell: Shell, saved: Saved) -> None:
        file = opener(shell)
        saved.save(fd)
        place(shell.process, fd, file)

    return put


def place(process: Process, fd: int, file: OpenFile) -> None:
    """Make a descriptor mean a file, which is closed if that can't be. RedirectError."""
    file.retain()
    try:
        process.fds.put(fd, file)
    except SysError as error:
        raise RedirectError(f"{fd}: {error.reason}") from None
    finally:
        file.release()


def _put_named(variable: FdVariable, opener: Opener) -> Apply:
    write = _variable_writer(variable)

    def put(shell: Shell, saved: Saved) -> None:
        file = opener(shell).retain()
        try:
            fd = shell.process.fds.add(file, lowest=LOWEST_NAMED)
        except SysError as error:
            raise RedirectError(f"cannot duplicate fd: {error.reason}") from None
        finally:
            file.release()
        if shell.shopts["varredir_close"]:
            saved.files.append((fd, None, False))
        write(shell, str(fd))

    return put


def _variable_writer(variable: FdVariable) -> Callable[[Shell, str], None]:
    name, index = variable.name, variable.index
    if isinstance(index, Subscript):
        key = compile_scalar(index.word)
        return lambda shell, value: shell.vars.set_element(name, key(shell), value)
    return lambda shell, value: shell.vars.set(name, value)


def _variable_reader(variable: FdVariable) -> Callable[[Shell], str | None]:
    name, index = variable.name, variable.index
    if isinstance(index, Subscript):
        key = compile_scalar(index.word)
        return lambda shell: shell.vars.get_element(name, key(shell))
    return lambda shell: shell.vars.get(name)


def _compile_both(op: str, target: Text) -> Apply:
    def put(shell: Shell, saved: Saved) -> None:
        file = _open(shell, target(shell), op).retain()
        saved.save(1)
        saved.save(2)
        shell.process.fds.put(1, file)
        shell.process.fds.put(2, file)
        file.release()

    return put


def _compile_duplicate(redirect: FileRedirect) -> Apply:
    """n<&word and n>&word: duplicate, move, close, or (>& with a file name) both outputs to a file."""
    fields = compile_words([redirect.target])
    fd, op, word = redirect.fd, redirect.op, redirect.target

    def duplicate(shell: Shell, saved: Saved) -> None:
        names = fields(shell)
        if len(names) != 1:
            from belljar.shell.print import print_word

            raise RedirectError(f"{print_word(word)}: ambiguous redirect")
        text = names[0]
        if text == "-":
            _close(shell, saved, fd)
            return
        number = text[:-1] if text.endswith("-") else text
        if not (number.isdecimal() and number.isascii()):
            if op == ">&" and fd == 1:
                _compile_both("&>", _fixed(text))(shell, saved)
                return
            from belljar.shell.print import print_word

            raise RedirectError(f"{print_word(word)}: ambiguous redirect")
        source = int(number) if len(number) < 10 else -1
        file = shell.process.fds.get(source)
        if file is None:
            from belljar.shell.print import print_word

            raise bad_descriptor(print_word(word))
        if isinstance(fd, FdVariable):
            _put_named(fd, lambda _shell: file)(shell, saved)
        else:
            saved.save(fd)
            place(shell.process, fd, file)
        if text.endswith("-") and source != fd:
            saved.save(source)
            shell.process.fds.close(source)

    return duplicate


def _close(shell: Shell, saved: Saved, fd: int | FdVariable) -> None:
    fds = shell.process.fds
    if isinstance(fd, FdVariable):
        text = _variable_reader(fd)(shell) or ""
        if not text.isdecimal():
            raise ShellError(f"{fd.name}: ambiguous redirect")
        number = int(text)
        if number in fds:
            fds.close(number)
        return
    if fd in fds:
        saved.save(fd)
        fds.close(fd)
