"""Control-flow builtins: loops, functions, exit, and text run as commands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from belljar.abi.errno import EISDIR, ENOENT
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.libc.numbers import parse_integer
from belljar.shell.arrays import Array
from belljar.shell.builtins.registry import Options, Usage, builtin
from belljar.shell.control import Break, Continue, Discard, ExitShell, Return

if TYPE_CHECKING:
    from belljar.shell.shell import Shell


@builtin(":", special=True)
def colon(_shell: Shell, _args: list[str]) -> int:
    """:
    Do nothing; the arguments are expanded and that is all.
    """
    return 0


@builtin("true")
def true(_shell: Shell, _args: list[str]) -> int:
    """true
    Succeed.
    """
    return 0


@builtin("false")
def false(_shell: Shell, _args: list[str]) -> int:
    """false
    Fail.
    """
    return 1


def _operands(shell: Shell, name: str, args: list[str]) -> list[str]:
    """The arguments after an optional `--`; more than one abandons the command."""
    if args and args[0] == "--":
        args = args[1:]
    if len(args) > 1:
        shell.error(f"{name}: too many arguments")
        raise Discard(1)
    return args


def _levels(shell: Shell, name: str, args: list[str]) -> int:
    """The number of loops to leave; 0 if there is none to leave, or the count is wrong."""
    if args and args[0] == "--":
        args = args[1:]
    if shell.loops == 0 and shell.posix:  # which is silent about it
        return 0
    if shell.loops == 0:
        shell.error(f"{name}: only meaningful in a `for', `while', or `until' loop")
        return 0
    if not args:
        return 1
    count = parse_integer(args[0])
    if count is None:
        shell.error(f"{name}: {args[0]}: numeric argument required")
        raise ExitShell(128)
    if len(args) > 1:
        shell.error(f"{name}: too many arguments")
        raise Discard(1)
    if count <= 0:
        shell.error(f"{name}: {args[0]}: loop count out of range")
        raise Break(shell.loops, 1)
    return min(count, shell.loops)


@builtin("break", special=True)
def break_(shell: Shell, args: list[str]) -> int:
    """break [n]
    Leave a for, while, until or select loop; with N, that many enclosing loops.
    """
    levels = _levels(shell, "break", args)
    if levels:
        shell.status = 0
        raise Break(levels)
    return 0


@builtin("continue", special=True)
def continue_(shell: Shell, args: list[str]) -> int:
    """continue [n]
    Go on with the next turn of the loop; with N, of the Nth enclosing loop.
    """
    levels = _levels(shell, "continue", args)
    if levels:
        shell.status = 0
        raise Continue(levels)
    return 0


def _return_status(shell: Shell) -> int:
    """The status of the last command; in a trap, of the last one before it."""
    inside = shell.in_trap and shell.in_trap != "DEBUG" and shell.trap_level == shell.subshell
    return shell.trap_status if inside else shell.status


def _exit_status(shell: Shell) -> int:
    """The status of the last command; in the EXIT trap, of the last one before it."""
    inside = shell.in_trap == "EXIT" and shell.trap_level == shell.subshell
    return shell.trap_status if inside else shell.status


@builtin("return", special=True)
def return_(shell: Shell, args: list[str]) -> int:
    """return [n]
    Leave a function or a sourced file with status N, or that of the last command.
    """
    if not shell.vars.frames:
        _operands(shell, "return", args)
        shell.error("return: can only `return' from a function or sourced script")
        if shell.posix and not shell.interactive and not shell.spared:
            raise ExitShell(2)
        return 2
    args = _operands(shell, "return", args)
    if not args:
        raise Return(_return_status(shell))
    status = parse_integer(args[0])
    if status is None:
        shell.error(f"return: {args[0]}: numeric argument required")
        raise Return(2)
    raise Return(status & 0xFF)


def _leave(shell: Shell, name: str, args: list[str]) -> int:
    args = _operands(shell, name, args)
    if not args:
        raise ExitShell(_exit_status(shell))
    status = parse_integer(args[0])
    if status is None:
        shell.error(f"{name}: {args[0]}: numeric argument required")
        raise ExitShell(2)
    raise ExitShell(status & 0xFF)


@builtin("exit", special=True)
def exit_(shell: Shell, args: list[str]) -> int:
    """exit [n]
    End the shell with status N, or that of the last command.
    """
    if shell.interactive:
        shell.process.error("exit\n")
        if shell.jobs.holds_back():
            return 1
    return _leave(shell, "exit", args)


@builtin("logout")
def logout(shell: Shell, args: list[str]) -> int:
    """logout [n]
    End a login shell.
    """
    if not shell.login:
        shell.error("logout: not login shell: use `exit'")
        return 1
    return _leave(shell, "logout", args)


@builtin("shift", special=True)
def shift(shell: Shell, args: list[str]) -> int:
    """shift [n]
    Drop the first N positional parameters (one, if N isn't given).
    """
    args = _operands(shell, "shift", args)
    count = 1
    if args:
        number = parse_integer(args[0])
        if number is None:
            shell.error(f"shift: {args[0]}: numeric argument required")
            return 1
        count = number
        if count < 0:
            shell.error(f"shift: {args[0]}: shift count out of range")
            return 1
    if count > len(shell.args):
        if shell.shopts["shift_verbose"] or shell.posix:
            shell.error(f"shift: {count}: shift count out of range")
        return 1
    if count:
        shell.args = shell.args[count:]
    return 0


@builtin("eval", "", special=True)
def eval_(shell: Shell, _options: Options, args: list[str]) -> int:
    """eval [arg ...]
    Join the arguments with spaces and run them as commands.
    """
    if not args:
        return 0
    text = args[0] if len(args) == 1 else " ".join(args)
    process = shell.process
    process.enter()
    try:
        return shell.run_text(text, line=shell.line, what="eval")
    finally:
        process.leave()


def _source(shell: Shell, name: str, args: list[str]) -> int:
    if not args:
        raise Usage("filename argument required")
    path = _find_source(shell, args[0])
    process = shell.process
    try:
        if path is None:
            raise SysError(ENOENT, args[0])
        if process.fs.stat(path).is_dir:
            raise SysError(EISDIR, path)
        data = process.read_file(path)
    except SysError as error:
        if error.errno == EISDIR:
            shell.error(f"{name}: {args[0]}: is a directory")
            return 1
        shell.error(f"{name}: {args[0]}: file not found" if path is None else f"{args[0]}: {error.reason}")
        if shell.posix and not shell.interactive and not shell.spared:
            raise ExitShell(1) from None
        return 1
    if b"\0" in data[:80] and b"\n" not in data[: data.index(b"\0")]:
        shell.error(f"{name}: {path}: cannot execute binary file")
        return 126
    return shell.source(path, fsdecode(data.replace(b"\0", b"")), args[1:] or None)


def _find_source(shell: Shell, name: str) -> str | None:
    """A name without a slash is looked for in PATH (readable is enough), then here unless in POSIX mode."""
    if "/" in name:
        return name
    if shell.shopts["sourcepath"]:
        for directory in (shell.vars.get("PATH") or "").split(":"):
            path = f"{directory or '.'}/{name}"
            if shell.process.fs.is_file(path):
                return path
    return None if shell.posix else name


@builtin(".", "", special=True)
def dot(shell: Shell, _options: Options, args: list[str]) -> int:
    """. filename [arguments]
    Read a file and run its commands in this shell; the arguments, if any, are its $1, $2 ... meanwhile.
    """
    return _source(shell, ".", args)


@builtin("source", "", special=True)
def source(shell: Shell, _options: Options, args: list[str]) -> int:
    """source filename [arguments]
    Read a file and run its commands in this shell; the arguments, if any, are its $1, $2 ... meanwhile.
    """
    return _source(shell, "source", args)


@builtin("caller", "")
def caller(shell: Shell, _options: Options, args: list[str]) -> int:
    """caller [expr]
    Show from where the running function was called: line and file; with N, line, function and file of that frame.
    """
    lines, names, files = (_elements(shell, name) for name in ("BASH_LINENO", "FUNCNAME", "BASH_SOURCE"))
    level = 0
    if args:
        number = parse_integer(args[0])
        if number is None:
            raise Usage(f"{args[0]}: invalid number")
        level = number
    if not shell.vars.frames or not 0 <= level < len(lines):
        return 1
    outer = level + 1
    if not args:
        shell.write(f"{lines[0]} {files[1] if len(files) > 1 else 'NULL'}\n")
        return 0
    if outer >= len(names) or outer >= len(files):
        return 1
    shell.write(f"{lines[level]} {names[outer]} {files[outer]}\n")
    return 0


def _elements(shell: Shell, name: str) -> list[str]:
    contents = shell.vars.contents(name)
    return contents.values() if isinstance(contents, Array) else []
