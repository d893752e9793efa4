"""One bash process: its state, and what builtins and compiled commands may ask of it.

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

Patterns (`shell/pattern.py`) and globs are written in bash's own syntax; a backslash in front of a character quotes it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode, fsencode
from belljar.kernel.process import Process
from belljar.shell.control import ShellError
from belljar.shell.options import LETTERS, SET_DEFAULTS, SET_OPTIONS, SHOPT_DEFAULTS
from belljar.shell.variables import ASSOC, Frame, Variables, is_name

if TYPE_CHECKING:
    from belljar.shell.functions import FunctionDef
    from belljar.shell.jobs import JobTable
    from belljar.shell.traps import Traps


@dataclass(slots=True)
class ArrayItem:
    """One expanded element of `name=(...)`; `key` None: the next index."""

    key: str | None
    append: bool
    value: str


@dataclass(slots=True)
class AssignmentArg:
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


class Shell:
    """The state of one bash process. `fork` makes that of a subshell, sharing everything until it changes."""

    # --- variables ---

    vars: Variables
    """See `variables`. `get`, `set`, `contents`, `set_array`, `set_element`, `unset`, `set_attrs`, `make_local` ..."""

    args: list[str]
    """The positional parameters $1, $2 ...; replace the list (`shell.args = [...]`), don't change it in place."""
    name: str
    """$0."""

    # --- state builtins work on ---

    functions: dict[str, FunctionDef]
    aliases: dict[str, str]
    traps: Traps
    jobs: JobTable
    hash: dict[str, tuple[str, int]]
    """The hash table: command name -> (path, hits)."""
    directories: list[str]
    """The directory stack below the current directory (`pushd` puts the old directory at index 0)."""
    disabled: set[str]
    """Builtins switched off by `enable -n`."""

    options: dict[str, bool]
    """`set -o` options by name; change with `set_option`. The hot ones are attributes too: errexit, nounset, ..."""
    shopts: dict[str, bool]
    """`shopt` options by name; change with `set_shopt`."""

    status: int
    """$?"""
    line: int
    """$LINENO: the line of the running command."""
    loops: int
    """How many loops enclose the running command in this function (what `break` may leave)."""

    interactive: bool
    login: bool
    posix: bool

    # The whole interface; bodies below.

    def get(self, name: str) -> str | None:
        """`$name` for any parameter: a variable, a digit, `@ * # ? - $ ! _`, or `name[subscript]`."""
        raise NotImplementedError

    def assign(self, target: str, value: str) -> None:
        """Assign to `name` or `name[subscript]` as read, printf -v and friends do. ShellError."""
        raise NotImplementedError

    def assign_arg(self, arg: AssignmentArg) -> None:
        raise NotImplementedError

    def parse_assignment(self, text: str) -> AssignmentArg | None:
        """`name=value`, `name+=value`, `name[sub]=value`, and `name=(...)` (expanded as bash does for `declare`).

        None if the text is no assignment to a valid name.
        """
        raise NotImplementedError

    def arith(self, expression: str) -> int:
        """The value of an arithmetic expression given as text (no `$` expansion any more). ArithError."""
        raise NotImplementedError

    def expand_string(self, text: str) -> str:
        """Parameter, command and arithmetic expansion as within double quotes (PS1, PS4, `@P`)."""
        raise NotImplementedError

    def run_text(self, text: str, *, line: int = 1, what: str = "") -> int:
        """Parse and run commands in this shell, as `eval` does; returns the status. Control flow passes through.

        `what` is put into syntax errors as `bash: WHAT: line N:` (eval gives "eval"). The compiled form is cached.
        """
        raise NotImplementedError

    def source(self, path: str, text: str, args: list[str] | None) -> int:
        """Run a file's text in this shell as `.` does, with a `source` frame; `args` replaces $@ meanwhile. RETURN trap."""
        raise NotImplementedError

    def call_function(self, name: str, args: list[str]) -> int:
        """Call a function that exists."""
        raise NotImplementedError

    def run_command(self, argv: list[str], *, functions: bool = True, builtins: bool = True) -> int:
        """Run an expanded command here, in the foreground, as `command` and `builtin` need: finds function, builtin or file."""
        raise NotImplementedError

    def find_command(self, name: str, path: str | None = None) -> str | None:
        """The file a command name means by PATH (or `path`), through the hash table; None if there is none."""
        raise NotImplementedError

    def exec(self, argv: list[str], env: dict[str, str] | None = None) -> int:
        """Replace the shell by a program (`exec`): returns 126/127 only if it can't, with the message printed."""
        raise NotImplementedError

    def error(self, message: str) -> None:
        """`bash: line N: message` (or `script: line N: `) on stderr."""
        raise NotImplementedError

    def warn(self, message: str) -> None:
        """As `error`, for what does not make a command fail."""
        raise NotImplementedError

    def write(self, text: str) -> None:
        """Text to fd 1, at once."""
        raise NotImplementedError

    def set_option(self, name: str, on: bool) -> None:
        raise NotImplementedError

    def set_shopt(self, name: str, on: bool) -> None:
        raise NotImplementedError

    def option_letters(self) -> str:
        """`$-`."""
        raise NotImplementedError

    def read_line(self, fd: int, delimiter: str = "\n") -> bytes:
        """Bytes up to and including the delimiter, leaving the descriptor's position right after it. SysError."""
        raise NotImplementedError

    def fork_run(self, body: object) -> int:
        raise NotImplementedError
