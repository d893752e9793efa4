"""Running of an expanded command: as a function, builtin or program, with its redirections."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from belljar.abi.errno import EACCES, ELOOP, ENOENT, ENOEXEC, ENOTDIR
from belljar.abi.errors import SysError
from belljar.kernel.loader import load
from belljar.kernel.process import Process
from belljar.shell.control import (
    ArithError,
    BadElementError,
    Discard,
    ExitShell,
    KilledBySignal,
    ReadonlyError,
    ShellError,
    SubscriptError,
)
from belljar.shell.nodes import Assignment, SimpleCommand
from belljar.shell.redirections import RedirectError, Saved
from belljar.shell.shell import AssignmentArg
from belljar.shell.variables import ARRAY, ASSOC, CASE, EXPORT, INTEGER, READONLY, Entry, Frame, Var

if TYPE_CHECKING:
    from belljar.shell.builtins import Builtin
    from belljar.shell.compile.redirects import Apply
    from belljar.shell.functions import FunctionDef
    from belljar.shell.shell import Shell

RUNNING = frozenset({"eval", "source", ".", "command", "builtin"})
"""Builtins that run commands in this shell, where an outer condition still protects from `set -e`."""
NOT_FOUND = 127
NOT_EXECUTABLE = 126


class Call:
    """The compiled parts of one simple command."""

    __slots__ = ("apply", "assigned", "assignments", "checks", "last", "node")

    def __init__(
        self,
        node: SimpleCommand | None,
        assignments: Sequence[Assignment],
        assigned: Sequence[Callable[[Shell], AssignmentArg]],
        apply: Apply | None,
        *,
        checks: bool,
        last: bool,
    ) -> None:
        self.node = node
        self.assignments = assignments
        self.assigned = assigned
        self.apply = apply
        self.checks = checks
        self.last = last


_EXEC_WORDS = frozenset({"command", "builtin", "exec", "--"})
"""Words of a command that keeps its redirections: `exec` without a program."""


def invoke(shell: Shell, call: Call, argv: list[str]) -> int:
    """Run an expanded command."""
    if not argv:
        return _run_nothing(shell, call)
    try:
        temporary = _expand_temporary(shell, call.assigned)
    except ShellError as error:
        shell.abandon(error)
    if shell.xtrace:
        shell.trace_command(temporary, argv)
    name = argv[0]
    if type(name) is str and name[:1] == "%" and shell.monitor:
        name, argv = "fg", ["fg", *argv]
    function = shell.functions.get(name) if type(name) is str else None
    builtin = shell.find_builtin(name)
    if function is not None and not (shell.posix and builtin is not None and builtin.special):
        builtin = None
    else:
        function = None
    if call.apply is None:
        return _dispatch(shell, call, argv, function, builtin, temporary)
    saved = Saved(shell)
    try:
        call.apply(shell, saved)
    except RedirectError as error:
        shell.error(str(error))  # where the redirections before it say
        saved.restore()
        if builtin is not None and builtin.special and shell.posix and not shell.interactive:
            raise ExitShell(1) from None
        return 1
    except ShellError as error:
        try:
            shell.abandon(error)
        finally:
            saved.restore()
    except BaseException:
        saved.restore()
        raise
    shell.holds_notice = function is None and builtin is None
    try:
        status = _dispatch(shell, call, argv, function, builtin, temporary)
        if builtin is not None and "exec" in argv and all(word in _EXEC_WORDS for word in argv):
            saved.keep()
        return status
    finally:
        saved.restore()
        shell.holds_notice = False
        if shell.held_notice:
            shell.process.error(shell.held_notice)
            shell.held_notice = ""


def _expand_temporary(shell: Shell, builders: Sequence[Callable[[Shell], AssignmentArg]]) -> list[AssignmentArg]:
    """The assignments in front of a command, each seeing those before it."""
    if len(builders) < 2:
        return [build(shell) for build in builders]
    saved: list[tuple[str, Entry | None]] = []
    temporary: list[AssignmentArg] = []
    try:
        for build in builders:
            arg = build(shell)
            temporary.append(arg)
            # A readonly variable is reported when the command runs.
            with suppress(ReadonlyError):
                bind_temporary(shell, arg, saved)
    finally:
        _unbind(shell, saved)
    return temporary


def _unbind(shell: Shell, saved: list[tuple[str, Entry | None]]) -> None:
    for name, entry in reversed(saved):
        if entry is None:
            shell.table.pop(name, None)
        else:
            shell.table[name] = entry
        shell.vars.changed(name)


def _run_nothing(shell: Shell, call: Call) -> int:
    """All words expanded to nothing: assignments and redirections are done, the status is the last substitution's."""
    try:
        for build in call.assigned:
            build(shell).assign(shell)
    except ShellError as error:
        shell.abandon(error)
    if call.apply is not None:
        saved = Saved(shell)
        try:
            call.apply(shell, saved)
        except ShellError as error:
            shell.error(str(error))
            return 1
        finally:
            saved.restore()
    return shell.subst_status


def _dispatch(
    shell: Shell,
    call: Call,
    argv: list[str],
    function: FunctionDef | None,
    builtin: Builtin | None,
    temporary: list[AssignmentArg],
) -> int:
    if temporary and shell.posix:
        _check_writable(shell, temporary, special=builtin is not None and builtin.special)
    if function is not None:
        return shell.call(function, argv, call.checks, temporary)
    if builtin is not None:
        if not temporary:
            return run_builtin(shell, builtin, argv, call.checks)
        if builtin.special and shell.posix:
            try:
                for arg in temporary:
                    arg.assign(shell)
                    shell.vars.set_attrs(arg.name, EXPORT)
            except ShellError as error:
                shell.error(str(error))
                raise ExitShell(1) from None
            return run_builtin(shell, builtin, argv, call.checks)
        with Environment(shell, temporary) as frame:
            status = run_builtin(shell, builtin, argv, call.checks)
            if builtin.name in _LASTING:
                _keep_exported(frame, argv[1:], lasting=builtin.name in ("export", "readonly"))
            return status
    return run_program(shell, argv, temporary, last=call.last)


_LASTING = frozenset({"export", "readonly", "declare", "typeset"})


def _keep_exported(frame: Frame, args: list[str], *, lasting: bool) -> None:
    """`x=1 export x`: the variable stays (for declare, only with -x or -r)."""
    options = "".join(arg[1:] for arg in args if type(arg) is str and arg.startswith("-"))
    if lasting or "x" in options or "r" in options:
        for arg in args:
            frame.saved.pop(str(arg), None)


def _check_writable(shell: Shell, temporary: list[AssignmentArg], *, special: bool) -> None:
    """In POSIX mode an assignment in front of any command that can't be made ends the shell, or the typed line."""
    for arg in temporary:
        if shell.vars.attrs(arg.name) & READONLY:
            shell.error(str(ReadonlyError(arg.name)))
            if shell.interactive:
                raise Discard(1)
            raise ExitShell(127 if special and shell.from_argument and not shell.subshell_process else 1)


class Environment:
    """Variables bound for the time of one builtin: `IFS=: read x`."""

    def __init__(self, shell: Shell, args: list[AssignmentArg]) -> None:
        self.shell = shell
        self.args = args

    def __enter__(self) -> Frame:
        shell = self.shell
        saved: list[tuple[str, Entry | None]] = []
        for arg in self.args:
            try:
                bind_temporary(shell, arg, saved)
            except ShellError as error:
                shell.error(str(error))
        frame = Frame("", "", 0, function=False)
        for name, entry in saved:
            frame.saved.setdefault(name, entry)
        frame.temporary = frozenset(frame.saved)
        shell.vars.push(frame)
        return frame

    def __exit__(self, *_: object) -> None:
        self.shell.vars.pop()


def bind_temporary(shell: Shell, arg: AssignmentArg, saved: list[tuple[str, Entry | None]]) -> None:
    """Bind `name=value` in front of a command, exported, remembering what it hides."""
    name = shell.vars.resolve(arg.name)[0]
    entry = shell.table.get(name)
    if isinstance(entry, Var) and entry.attrs & READONLY:
        raise ReadonlyError(name)
    if arg.subscript is not None:
        return
    value = arg.value if isinstance(arg.value, str) else f"({' '.join([item.value for item in arg.value])})"
    attrs = entry.attrs & ~(ARRAY | ASSOC) if isinstance(entry, Var) else 0
    if arg.append:
        value = (shell.vars.get(name) or "") + value
    if attrs & (INTEGER | CASE):
        value = shell.vars.convert(attrs, value)
    saved.append((name, entry))
    shell.table[name] = Var(value, attrs | EXPORT)
    shell.vars.changed(name)


def run_builtin(shell: Shell, builtin: Builtin, argv: list[str], checks: bool) -> int:
    """Run a builtin; its errors become messages and a status."""
    if not checks and builtin.name in RUNNING:
        shell.suppressed += 1
        try:
            return run_builtin(shell, builtin, argv, True)
        finally:
            shell.suppressed -= 1
    try:
        status = builtin.function(shell, argv[1:])
        if shell.misused:
            shell.misused = False
            if checks and shell.posix and not shell.interactive and not shell.spared:
                raise ExitShell(status)
        return status
    except SysError as error:
        if shell.fatal:
            raise KilledBySignal(shell.fatal) from None
        shell.error(f"{builtin.name}: write error: {error.reason}")
        return 1
    except SubscriptError as error:
        shell.abandon(error)
    except ShellError as error:
        text = str(error)
        if text:
            plain = isinstance(error, ReadonlyError | BadElementError) or (
                isinstance(error, ArithError) and builtin.name != "let"
            )
            shell.error(text if plain else f"{builtin.name}: {text}")
        if builtin.special and shell.posix and not shell.interactive:
            raise ExitShell(error.status) from None
        return error.status


# --- programs -------------------------------------------------------------------------------------------------------


def run_program(
    shell: Shell, argv: list[str], temporary: list[AssignmentArg], *, last: bool = False, path: str | None = None
) -> int:
    """Run a program in a process of its own (or, as the `last` thing this process does, in this one).

    `path`: where to look for it instead of PATH.
    """
    argv = argv if all(type(arg) is str for arg in argv) else [str(arg) for arg in argv]
    name = argv[0]
    environment = shell.environment()
    if temporary:
        environment = dict(environment)
        saved: list[tuple[str, Entry | None]] = []
        try:
            for arg in temporary:
                try:
                    bind_temporary(shell, arg, saved)
                except ShellError as error:
                    shell.error(str(error))
                    continue
                target = shell.vars.resolve(arg.name)[0]
                value = shell.vars.get(target)
                if value is not None:
                    environment[target] = value
        finally:
            _unbind(shell, saved)
    if path is None and temporary:
        path = environment.get("PATH")
    path = shell.find_command(name, path)
    if path is None:
        return shell.command_not_found(argv)
    process = shell.process
    environment = {**environment, "_": path}
    try:
        program, full = load(process, path, argv)
    except SysError as error:
        if error.errno == ENOEXEC:
            script = shell.script_program(path, argv)
            if script is None:
                shell.error(f"{path}: cannot execute binary file: Exec format error")
                if process.kernel.companion is not None:
                    process.error(f'{name}: programs that are built here need native="*", by the sandbox\'s owner\n')
                return NOT_EXECUTABLE
            program, full = script
        elif error.errno == ENOENT and shell.located.pop(name, None) is not None and name not in shell.hash:
            return run_program(shell, argv, [], last=last)
        else:
            return report_failure(shell, name, path, error)
    if last and shell.is_throwaway():
        process.prepare_exec(path, full, environment)
        shell.vars.epoch.end()
        return program(process)

    def body(child: Process) -> int:
        child.prepare_exec(path, full, environment)
        return program(child)

    child = shell.start_process(body, argv)
    return shell.wait_foreground(child, shell.command)


def report_failure(shell: Shell, name: str, path: str, error: SysError) -> int:
    """Report a program that can't be run, in bash's words; returns the status."""
    code = error.errno
    if code == ELOOP or (code == EACCES and error.path not in (None, path)):
        interpreter = shell.bad_interpreter(path)
        if interpreter is not None:
            reason = f"{interpreter}: bad interpreter: {error.reason}"
            shell.process.error(f"{shell.message_name()}: {name}: {reason}\n")  # bash names no line here
            return NOT_EXECUTABLE
    if code == EACCES:
        is_dir = shell.process.fs.is_dir(path)
        shell.error(f"{path}: {'Is a directory' if is_dir else error.reason}")
        return NOT_EXECUTABLE
    if code in (ENOENT, ENOTDIR):
        interpreter = shell.bad_interpreter(path)
        if interpreter is not None:
            shell.error(f"{name}: cannot execute: required file not found")
            return NOT_FOUND
        shell.error(f"{name}: {error.reason}")
        return NOT_FOUND if code == ENOENT else NOT_EXECUTABLE
    shell.error(f"{name}: {error.reason}")
    return NOT_EXECUTABLE
