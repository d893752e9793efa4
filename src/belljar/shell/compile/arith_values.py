"""Variables as numbers: what their text evaluates to, and how a number is stored."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from belljar.shell.arrays import Array, Assoc
from belljar.shell.compile.arith_operators import locate
from belljar.shell.control import ArithError, ExpansionError
from belljar.shell.parse.arith import parse_number, wrap
from belljar.shell.parse.errors import ArithSyntaxError
from belljar.shell.variables import ASSOC

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

Number = Callable[["Shell"], int]

CACHED_LENGTH: Final = 500
"""Longer texts aren't worth keeping."""
NESTING: Final = 1024
"""Maximum depth of variables whose value names further variables, as in bash."""


def evaluate(shell: Shell, text: str) -> int:
    """The value of an expression given as text. ArithError."""
    if text.isdecimal() and text.isascii() and text[0] != "0" and len(text) < 19:
        return int(text)
    try:
        if len(text) > CACHED_LENGTH:
            shell.budget.charge(len(text) // 100)
            return _parse(text)(shell)
        return _parsed(text)(shell)
    except ArithSyntaxError as error:
        raise ArithError(str(error)) from None
    except ArithError as error:
        raise locate(error, text) from None


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Number:
    return _parse(text)


def _parse(text: str) -> Number:
    from belljar.shell.compile.arith import compile_node
    from belljar.shell.parse import parse_arith

    return compile_node(parse_arith(text))


def _unset(shell: Shell, name: str) -> int:
    if shell.nounset:
        raise ExpansionError(f"{name}: unbound variable", 1, exits=True)
    return 0


def no_element(shell: Shell, name: str) -> int:
    """The value of an element that isn't there: only an array without any value at all is unbound."""
    return 0 if shell.vars.contents(shell.vars.resolve(name)[0]) is not None else _unset(shell, name)


def read_element(shell: Shell, name: str, position: Number, key: Callable[[Shell], str]) -> str | None:
    """An element of whatever `name` is."""
    target, _ = shell.vars.resolve(name)
    contents = shell.vars.contents(target)
    if isinstance(contents, Assoc):
        return contents.get(key(shell))
    if contents is None and shell.vars.attrs(target) & ASSOC:
        return None
    place = position(shell)
    if isinstance(contents, Array):
        return contents.get(shell.vars.check_index(target, contents, place))
    return contents if place in (0, -1) else None


def read_variable(shell: Shell, name: str) -> int:
    """A variable that isn't kept as an int: its value is an expression."""
    table = shell.table
    text = table.get(name)
    if type(text) is str:
        if text.isdecimal() and text.isascii() and (text[0] != "0" or text == "0") and len(text) < 19:
            number = table[name] = int(text)
            return number
    else:
        text = shell.vars.get(name)
    if text is None:
        return _unset(shell, name)
    value = number_of(shell, text)
    if type(shell.table.get(name)) is str and str(value) == text:
        shell.table[name] = value
    return value


def number_of(shell: Shell, text: str) -> int:
    """The value of a variable's text: a number, or an expression in its turn."""
    if text.isdecimal() and text.isascii() and (text[0] != "0" or text == "0") and len(text) < 19:
        return int(text)
    stripped = text.strip(" \t\n")
    if not stripped:
        return 0
    if stripped.isascii() and stripped.isdecimal():
        try:
            return parse_number(stripped)
        except ValueError as error:
            raise ArithError(f'{stripped}: {error} (error token is "{stripped}")') from None
    if stripped[0] == "-" and stripped[1:].isdecimal() and stripped.isascii() and stripped[1] != "0":
        return wrap(-parse_number(stripped[1:]))
    if shell.arith_depth >= NESTING:
        raise ArithError(f'{text}: expression recursion level exceeded (error token is "{text}")')
    shell.arith_depth += 1
    shell.budget.charge()
    try:
        return evaluate(shell, text)
    finally:
        shell.arith_depth -= 1


def store(shell: Shell, name: str, value: int) -> None:
    """Assign a number to a variable by arithmetic."""
    table = shell.table
    kind = type(table.get(name))
    if kind is int or kind is str or (kind is type(None) and not shell.allexport and name not in shell.vars.HOOKS):
        table[name] = value
    else:
        shell.vars.set(name, str(value))
