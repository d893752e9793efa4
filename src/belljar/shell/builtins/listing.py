"""Listings of variables and functions, in a form the shell can read back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from belljar.libc.quote import for_declare, for_key, for_set
from belljar.shell import print as printing
from belljar.shell.arrays import Array, Assoc
from belljar.shell.variables import LETTERS, Contents, Var

if TYPE_CHECKING:
    from belljar.shell.functions import FunctionDef
    from belljar.shell.shell import Shell


UNLISTED: Final = frozenset(
    "BASHPID BASH_ARGV0 BASH_COMMAND BASH_SUBSHELL EPOCHREALTIME EPOCHSECONDS HISTCMD".split()
    + "LINENO RANDOM SECONDS SRANDOM".split()
)


def flags(attrs: int) -> str:
    """`ix` and the like, or `-` where there are no attributes."""
    return "".join(letter for bit, letter in LETTERS if attrs & bit) or "-"


def array_text(contents: Array | Assoc) -> str:
    """`([0]="a" [1]="b")`"""
    if isinstance(contents, Assoc):
        body = "".join(f"[{for_key(key)}]={for_declare(value)} " for key, value in contents.pairs())
    else:
        body = " ".join(f"[{key}]={for_declare(value)}" for key, value in contents.pairs())
    return f"({body})"


def _own_contents(shell: Shell, name: str) -> tuple[Contents, int]:
    """A variable's own value and attributes; a nameref's value is the name it holds."""
    entry = shell.vars.table.get(name)
    if isinstance(entry, Var):
        return entry.contents(shell), entry.attrs
    return (None if entry is None else str(entry)), 0


def describe(shell: Shell, name: str) -> str:
    """The line of `declare -p name`."""
    contents, attrs = _own_contents(shell, name)
    start = f"declare -{flags(attrs)} {name}"
    if contents is None:
        return start
    if isinstance(contents, str):
        return f"{start}={for_declare(contents)}"
    return f"{start}={array_text(contents)}"


def listing_line(shell: Shell, name: str) -> str | None:
    """The line of `set` for a variable; None if it has no value, or one that is made only when asked for."""
    if name in UNLISTED:
        return None
    contents, _ = _own_contents(shell, name)
    if contents is None:
        return None
    if isinstance(contents, str):
        return f"{name}={for_set(contents, posix=shell.posix)}"
    return f"{name}={array_text(contents)}"


def print_function(definition: FunctionDef) -> str:
    return printing.print_function(definition.node)


def function_flags(definition: FunctionDef) -> str:
    """`frtx`: what `declare -F` shows."""
    marks = ("r", definition.readonly), ("t", definition.traced), ("x", definition.exported)
    return "f" + "".join(letter for letter, on in marks if on)


def describe_function(definition: FunctionDef, *, names_only: bool) -> str:
    line = f"declare -{function_flags(definition)} {definition.name}"
    if names_only:
        return line
    return print_function(definition) + (f"\n{line}" if function_flags(definition) != "f" else "")
