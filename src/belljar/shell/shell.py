"""One bash process: its state, and the interface for builtins and compiled commands.

For builtins
------------
A builtin is `def name(shell: Shell, args: list[str]) -> int`; `args` excludes its name, the result is `$?`.

* Output goes through `shell.write(text)` (fd 1) and `shell.process` for other descriptors; redirections of the command
  are already in place. A SysError that a builtin lets through is reported as `name: write error: reason`, status 1.
* `shell.error(message)` prints `bash: line N: message`; begin the message with the builtin's name (`cd: x: ...`).
* A `ShellError` a builtin lets through (readonly variable, bad arithmetic, bad subscript) is reported by `shell.error`,
  with the builtin's name in front, and the builtin fails with its status.
* `break`, `continue`, `return`, `exit` raise `Break`, `Continue`, `Return`, `ExitShell` from `control`.
* Declaration builtins (declare typeset local export readonly) get `args: list[str | AssignmentArg]`: an argument
  written as an assignment arrives as an `AssignmentArg` with its value expanded already. Give the variable its scope
  and attributes first, then call `arg.assign(shell)`. An assignment that comes in as a `str` (`declare "$x=1"`) is made
  one by `shell.parse_assignment(text)`. Any other builtin only ever gets `str`.

Patterns (`libc/pattern.py`) and globs are written in bash's own syntax; a backslash in front of a character quotes it.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from belljar.abi.paths import fsencode
from belljar.kernel.budget import Budget
from belljar.kernel.process import Process
from belljar.kernel.vfs.openfile import OpenFile
from belljar.shell import terminal
from belljar.shell.capture import close_process_files
from belljar.shell.control import (
    Abandon,
    ArithError,
    BadElementError,
    Discard,
    ExitShell,
    Return,
    ShellError,
    SubscriptError,
)
from belljar.shell.expand_text import Expansion
from belljar.shell.functions import FunctionDef
from belljar.shell.history import History
from belljar.shell.input import read_line
from belljar.shell.jobs import JobTable
from belljar.shell.nodes import ArrayLiteral, SimpleCommand, Subscript
from belljar.shell.options import LETTERS
from belljar.shell.print import print_function
from belljar.shell.processes import Processes
from belljar.shell.reporting import Reporting
from belljar.shell.run_traps import Trapping
from belljar.shell.state import SAME, State
from belljar.shell.traps import Traps
from belljar.shell.variables import ASSOC, Entry, Frame, Var, Variables, is_name

if TYPE_CHECKING:
    from belljar.shell.builtins import Builtin

ACTIVE: Final = re.compile(r"[\[\]$`\"'\\]")
"""Characters that make a subscript more than plain text."""
ASSIGNMENT: Final = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(?:\[(.*?)\])?(\+?)=", re.DOTALL)

INVALID_NAME: Final = re.compile(r"[$`\"'\\<>]")


@cache
def builtins() -> dict[str, Builtin]:
    """The builtins; imported late, as they import the shell."""
    from belljar.shell.builtins import BUILTINS

    return BUILTINS


@cache
def _new_state() -> Shell:
    """The initial state, copied by every new shell."""
    pattern = Shell.__new__(Shell)
    State.__init__(pattern)
    return pattern


class ArrayItem(Struct):
    """One expanded element of `name=(...)`; `key` None: the next index."""

    key: str | None
    append: bool
    value: str


class AssignmentArg(Struct):
    """An expanded `name[subscript]=value` given to a declaration builtin. `value` is a list for `name=(...)`."""

    name: str
    subscript: str | None
    append: bool
    value: str | list[ArrayItem]

    def assign(self, shell: Shell) -> None:
        """Assign to the variable now visible, as an assignment statement would. ShellError."""
        shell.assign_arg(self)

    def __str__(self) -> str:
        subscript = f"[{self.subscript}]" if self.subscript is not None else ""
        value = self.value if isinstance(self.value, str) else "(...)"
        return f"{self.name}{subscript}{'+' if self.append else ''}={value}"


_OWN: Final = (
    *("process", "budget", "vars", "table", "functions", "aliases", "traps", "jobs", "hash", "located", "directories"),
    *("disabled", "coprocs", "process_files", "shell_pid", "seconds_base", "history"),
)
"""Attributes that each shell creates itself."""


class Shell(Expansion, Reporting, Processes, Trapping):
    """The state of one bash process. `fork` makes that of a subshell, sharing everything until it changes."""

    __slots__ = (*SAME, *_OWN)

    process: Process
    jobs: JobTable
    history: History

    def __init__(self, process: Process) -> None:
        self.copy(_new_state())
        self.process = process
        process.reaps_at_once = True
        self.budget: Budget = process.budget
        self.vars = Variables(self)
        """See `variables`: `get`, `set`, `contents`, `set_array`, `set_element`, `unset`, `set_attrs` ..."""
        self.table = self.vars.table
        """The variables as they are stored, for compiled code; builtins use `vars`."""
        self.functions: dict[str, FunctionDef] = {}
        self.aliases: dict[str, str] = {}
        self.traps = Traps(self)
        self.jobs = JobTable(self)
        self.hash: dict[str, tuple[str, int]] = {}
        """The hash table: command name -> (path, hits)."""
        self.located: dict[str, str] = {}
        """Paths of commands found by PATH, shared with the forks; replaced when PATH changes."""
        self.directories: list[str] = []
        """The directory stack below the current directory (`pushd` puts the old directory at index 0)."""
        self.disabled: set[str] = set()
        """Builtins switched off by `enable -n`."""
        self.coprocs: dict[int, tuple[str, int, int]] = {}
        self.process_files: list[tuple[int, OpenFile]] = []
        """Files opened for the process substitutions of running commands."""
        self.shell_pid = process.pid
        """$$"""
        self.seconds_base = process.kernel.hub.clock.monotonic()
        self.history = History()

    def fork(self, process: Process, *, substitution: bool = False) -> Shell:
        """The state of a subshell that runs in `process`."""
        child = Shell.__new__(Shell)
        child.copy(self)
        child.holds_notice, child.held_notice = False, ""
        child.process = process
        process.reaps_at_once = True
        child.budget = self.budget
        child.vars = self.vars.fork(child)
        child.table = child.vars.table
        child.functions = self.functions.copy()
        child.aliases = self.aliases.copy()
        child.hash = self.hash.copy()
        child.directories = self.directories.copy()
        child.disabled = self.disabled.copy()
        child.history = self.history.copy() if self.history.lines else self.history
        child.located = self.located
        child.shell_pid = self.shell_pid
        child.seconds_base = self.seconds_base
        child.process_files = []
        child.coprocs = {}
        child.traps = self.traps.fork(child)
        child.jobs = JobTable(child)
        child.jobs.last_pid = self.jobs.last_pid
        if self.jobs.jobs:
            child.jobs.jobs = self.jobs.jobs.copy()
            child.jobs.current, child.jobs.previous = self.jobs.current, self.jobs.previous
        child.fatal = 0
        child.outer_loops = self.loops
        child.loops = self.loops if substitution else 0
        child.subshell = self.subshell + 1
        child.subshell_process = True
        child.random_seed = self.random_seed ^ process.pid
        terminal.reset_signals(self, process)
        child.interactive = False
        child.interrupted = False
        if self.monitor:
            child.set_option("monitor", False)
        if substitution:
            child.trace_depth = self.trace_depth + 1
            if child.errexit and not self.shopts["inherit_errexit"] and not self.posix:
                child.set_option("errexit", False)
        child.traps_changed()
        return child

    def end(self) -> None:
        """Break the reference cycles when the process has ended, so that everything is freed at once."""
        self.vars.epoch.end()
        del self.vars, self.traps, self.jobs

    # --- options -------------------------------------------------------------------------------------------------

    def set_option(self, name: str, on: bool) -> None:
        """`set -o name` or `set +o name`."""
        if self.options[name] == on:
            return
        self.options = {**self.options, name: on}  # forks share the old one
        if name == "allexport" and on:
            for plain in [key for key, entry in self.table.items() if not isinstance(entry, Var)]:
                self.vars.own_var(plain)
        if name == "posix":
            strict = {"expand_aliases": on or self.interactive, "inherit_errexit": on, "shift_verbose": on}
            self.shopts = {**self.shopts, **strict}
            self.special_names = frozenset(k for k, v in builtins().items() if v.special) if on else frozenset()
            if not on:
                self.vars.unset("POSIXLY_CORRECT")
            elif self.vars.get("POSIXLY_CORRECT") is None:
                self.vars.set("POSIXLY_CORRECT", "y")
        if name in ("emacs", "vi") and on:
            self.options["vi" if name == "emacs" else "emacs"] = False
        self.mirror_options()
        self.traps_changed()
        if name == "noexec" and on and self.started and not self.interactive:
            raise Abandon(0)

    def set_shopt(self, name: str, on: bool) -> None:
        self.shopts = {**self.shopts, name: on}
        self.mirror_options()
        if name == "extdebug":  # what a debugger needs besides
            self.set_option("functrace", on)
            self.set_option("errtrace", on)

    def option_letters(self) -> str:
        """`$-`."""
        letters = "".join(sorted(letter for letter, name in LETTERS.items() if self.options[name]))
        letters = "".join(sorted([c for c in letters if c.islower()] + (["i"] if self.interactive else []))) + "".join(
            sorted(c for c in letters if c.isupper())
        )
        return letters + self.invocation_letters

    # --- variables -----------------------------------------------------------------------------------------------

    def get(self, name: str) -> str | None:
        """`$name` for any parameter: a variable, a digit, `@ * # ? - $ ! _`, or `name[subscript]`."""
        if is_name(name):
            return self.vars.get(name)
        from belljar.shell.compile.params import TARGET, compile_value, indirect_param

        return compile_value(indirect_param(name, None))(self) if TARGET.match(name) else None

    def assign(self, target: str, value: str) -> None:
        """Assign to `name` or `name[subscript]` as read, printf -v and friends do. ShellError."""
        if is_name(target):
            self.vars.set(target, value)
            return
        found = self.split_element(target)
        if found is None:
            raise ShellError(f"`{target}': not a valid identifier")
        name, subscript = found
        self.vars.set_element(name, self.subscript_text(name, subscript), value)

    def split_element(self, text: str) -> tuple[str, str] | None:
        """`name[subscript]` given at run time in its two parts; None if the text is anything else."""
        name, bracket, rest = text.partition("[")
        if not bracket or len(rest) < 2 or rest[-1] != "]" or not is_name(name):
            return None
        subscript = rest[:-1]
        if self._is_final_key(name):
            return None if "]" in subscript else (name, subscript)
        if ACTIVE.search(subscript):
            from belljar.shell.parse import ShellSyntaxError, read_subscript

            try:
                _, end = read_subscript(text, len(name))
            except ShellSyntaxError:
                return None
            if end != len(text) - 1:
                return None
        return name, subscript

    def _is_final_key(self, name: str) -> bool:
        return self.shopts["assoc_expand_once"] and bool(self.vars.attrs(name) & ASSOC)

    def subscript_text(self, name: str, text: str) -> str:
        """A subscript given at run time, expanded: a key loses its quotes, an index is evaluated."""
        if not ACTIVE.search(text) or self._is_final_key(name):
            return text
        from belljar.shell.compile.arith import compile_arith
        from belljar.shell.compile.words import compile_scalar
        from belljar.shell.parse import ShellSyntaxError, parse_subscript

        try:
            index = parse_subscript(text)
        except ShellSyntaxError:
            raise ShellError(f"{name}[{text}]: bad array subscript") from None
        if not isinstance(index, Subscript):
            return text
        if not self.vars.attrs(name) & ASSOC:
            try:
                return str(compile_arith(index.arith)(self))
            except ArithError as error:
                raise SubscriptError(str(error)) from None
        key = compile_scalar(index.word)(self)
        if not key:
            raise BadElementError(f"{name}[{text}]: bad array subscript")
        return key

    def assign_arg(self, arg: AssignmentArg) -> None:
        from belljar.shell.compile.assignments import assign_items

        if not isinstance(arg.value, str):
            if arg.subscript is not None:
                raise ShellError(f"{arg.name}[{arg.subscript}]: cannot assign list to array member")
            assign_items(self, arg.name, arg.value, append=arg.append)
        elif arg.subscript is not None:
            self.vars.set_element(arg.name, arg.subscript, arg.value, append=arg.append)
        elif arg.append:
            self.vars.append(arg.name, arg.value)
        else:
            self.vars.set(arg.name, arg.value)

    def parse_assignment(self, text: str) -> AssignmentArg | None:
        """`name=value`, `name+=value`, `name[sub]=value`, and `name=(...)` (expanded as bash does for `declare`).

        None if the text is no assignment to a valid name.
        """
        match = ASSIGNMENT.match(text)
        if match is None:
            return None
        name, subscript, plus = match.groups()
        value = text[match.end() :]
        if subscript is None and value.startswith("(") and value.endswith(")"):
            items = self._parse_compound(text[match.end() :])
            if items is not None:
                return AssignmentArg(name, None, bool(plus), items)
        if subscript is not None:
            subscript = self.subscript_text(name, subscript)
        return AssignmentArg(name, subscript, bool(plus), value)

    def _parse_compound(self, text: str) -> list[ArrayItem] | None:
        from belljar.shell.compile.assignments import compile_items
        from belljar.shell.parse import Parser, ShellSyntaxError

        try:
            node = Parser(f"x={text}\n").next_command()
        except ShellSyntaxError:
            return None
        if isinstance(node, SimpleCommand) and len(node.assignments) == 1:
            value = node.assignments[0].value
            if isinstance(value, ArrayLiteral):
                return compile_items(value)(self)
        return None

    # --- running -------------------------------------------------------------------------------------------------

    def parse_key(self) -> object:
        """Cache key of a parse beside the text; None if it shouldn't be cached."""
        if self.expand_aliases and self.aliases:
            return None
        return (self.extglob, self.posix, self.interactive)

    def run_text(self, text: str, *, line: int = 1, what: str = "", verbose: bool = True) -> int:
        """Parse and run commands in this shell, as `eval` does; returns the status. Control flow passes through.

        `what` is put into syntax errors as `bash: WHAT: line N:` (eval gives "eval"). The compiled form is kept.
        `verbose`: the text is one that `set -v` shows.
        """
        from belljar.shell.programs import SyntaxFailure, run_script

        try:
            return run_script(self, text, line=line, what=what, verbose=verbose)
        except Abandon as end:
            if what != "eval":
                raise
            self.status = end.status
            return end.status
        except SyntaxFailure:
            self.status = 2
            if self.posix and what == "eval" and not self.interactive and not self.spared:
                raise ExitShell(2) from None
            return self.status

    def source(self, path: str, text: str, args: list[str] | None) -> int:
        """Run a file's text in this shell as `.` does, in a `source` frame; `args` replaces $@ meanwhile."""
        from belljar.shell.programs import SyntaxFailure, run_script

        process = self.process
        process.enter()
        frame = Frame("source", path, self.line, function=False)
        outer_args, outer_line, outer_loops = self.args, self.line, self.loops
        if args is not None:
            self.args = args
            frame.args = args
        self.vars.push(frame)
        try:
            try:
                status = run_script(self, text, line=1, what="")
            except Return as end:
                status = end.status
            except SyntaxFailure:
                status = 1
                if self.posix and not self.interactive and not self.spared:
                    raise ExitShell(2) from None
            self.status = status
            command = self.traps.commands.get("RETURN")
            if command:
                self.run_trap("RETURN", command)
            return status
        finally:
            self.vars.pop()
            if args is not None:
                self.args = outer_args
            self.line, self.loops = outer_line, outer_loops
            process.leave()

    def call_function(self, name: str, args: list[str]) -> int:
        """Call a function that exists."""
        return self.call(self.functions[name], [name, *args], True)

    def call(
        self,
        function: FunctionDef,
        argv: list[str],
        checks: bool,
        temporary: list[AssignmentArg] | None = None,
    ) -> int:
        """Call a function; `checks` False: as a condition, so that `set -e` doesn't act inside."""
        process = self.process
        if process.depth >= self.budget.limits.depth:
            self.budget.exceed("depth")
        nest = self.table.get("FUNCNEST")
        if nest is not None:
            self._check_nesting(function.name)
        process.depth += 1
        variables = self.vars
        frame = Frame(function.name, function.source, self.line, function=True)
        outer_args, outer_loops = self.args, self.loops
        self.args = frame.args = argv[1:]
        self.line = function.line
        self.loops = 0
        variables.frames.append(frame)
        hidden = self.hide_traps(function.traced) if self.traps.commands else None
        if not checks:
            self.suppressed += 1
        try:
            if temporary:
                self._bind_arguments(frame, temporary)
            if self.attention:
                self.enter_function()
            try:
                return function.body(self)
            except Return as end:
                return end.status
        finally:
            command = self.traps.commands.get("RETURN") if self.traps.commands else None
            if command and "RETURN" not in self.active_traps:
                self.run_return_trap(command)
            if not checks:
                self.suppressed -= 1
            self.loops = outer_loops
            self.args = outer_args
            self.line = frame.line
            variables.pop()
            if frame.options is not None:
                self._restore_options(frame.options)
            if hidden is not None:
                self.show_traps(hidden)
            process.depth -= 1

    def _check_nesting(self, name: str) -> None:
        limit = self.vars.get("FUNCNEST") or ""
        depth = sum(1 for frame in self.vars.frames if frame.function)
        if limit.isdecimal() and 0 < int(limit[:9]) <= depth:
            self.error(f"{name}: maximum function nesting level exceeded ({limit})")
            raise Discard(1)

    def _bind_arguments(self, frame: Frame, temporary: list[AssignmentArg]) -> None:
        """`name=value function`: the variables are local to the call, and exported."""
        from belljar.shell.invoke import bind_temporary

        hidden: list[tuple[str, Entry | None]] = []
        for arg in temporary:
            try:
                bind_temporary(self, arg, hidden)
            except ShellError as error:
                self.error(str(error))
        for name, entry in hidden:
            frame.saved.setdefault(name, entry)
        frame.temporary = frozenset(name for name, _ in hidden)

    def save_options(self) -> object:
        """Copy the options for `local -`, to be stored in the frame's `options`."""
        return self.options.copy()

    def _restore_options(self, saved: object) -> None:
        assert isinstance(saved, dict)
        for name, on in saved.items():
            self.set_option(name, on)

    def define_function(self, function: FunctionDef) -> None:
        old = self.functions.get(function.name)
        if old is not None and old.readonly:
            self.error(f"{function.name}: readonly function")
            self.status = 1
            return
        if INVALID_NAME.search(function.name):
            self.error(f"`{function.name}': not a valid identifier")
            self.status = 1
            return
        if self.posix and function.name in self.special_names:
            self.error(f"`{function.name}': is a special builtin")
            raise ExitShell(2)
        if old is not None and old.exported:
            function.exported = True
        self.functions[function.name] = function
        self.status = 0

    def source_name(self) -> str:
        """The file that the running code was read from (BASH_SOURCE of a function defined now)."""
        if self.vars.frames:
            return self.vars.frames[-1].source
        if self.script is not None:
            return self.script
        return "environment" if self.from_argument else "main"

    def run_command(
        self, argv: list[str], *, functions: bool = True, builtins: bool = True, path: str | None = None
    ) -> int:
        """Run an expanded command here, in the foreground, as `command` and `builtin` need: function, builtin or file.

        `path`: where to look for files instead of PATH.
        """
        from belljar.shell.invoke import run_builtin, run_program

        if not argv:
            return 0
        name = argv[0]
        if functions and name in self.functions:
            return self.call(self.functions[name], argv, True)
        entry = self.find_builtin(name) if builtins else None
        if entry is not None:
            return run_builtin(self, entry, argv, True)
        return run_program(self, argv, [], path=path)

    def environment(self) -> dict[str, str]:
        """The environment of a program: the exported variables and functions. Not to be changed."""
        env = self.vars.exported()
        exported = [function for function in self.functions.values() if function.exported]
        if not exported:
            return env
        bodies = {f.name: print_function(f.node).removeprefix(f"{f.name} () ").lstrip("\n") for f in exported}
        return env | {f"BASH_FUNC_{name}%%": f"() {body}" for name, body in bodies.items()}

    def find_builtin(self, name: str) -> Builtin | None:
        entry = builtins().get(name)
        return entry if entry is not None and name not in self.disabled else None

    def child_ended(self, pid: int) -> None:
        """Close the descriptors and unset the variables of a coprocess that ended."""
        found = self.coprocs.pop(pid, None)
        if found is None:
            return
        name, *fds = found
        for fd in fds:
            if fd in self.process.fds:
                self.process.fds.close(fd)
        for variable in (name, f"{name}_PID"):
            self.vars.unset(variable)

    # --- input and output ----------------------------------------------------------------------------------------

    def write(self, text: str) -> None:
        """Write text to fd 1, unbuffered."""
        self.process.write_all(1, fsencode(text))

    def close_process_files(self, mark: int) -> None:
        close_process_files(self, mark)

    def read_line(self, fd: int, delimiter: str = "\n") -> bytes:
        """Bytes up to and including the delimiter, leaving the descriptor's position right after it. SysError."""
        return read_line(self.process, fd, fsencode(delimiter))
