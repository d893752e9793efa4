"""Parameters and what they hold: one value, or the values of a list, before any operator."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, TypeAlias

from belljar.shell.arrays import Array, Assoc
from belljar.shell.compile.arith import compile_arith
from belljar.shell.compile.words import Text, compile_later
from belljar.shell.control import ExpansionError, ShellError
from belljar.shell.nodes import AllElements, Index, Param, ParamKeys, ParamNames, Subscript
from belljar.shell.variables import ASSOC, NAMEREF, Var

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

Value: TypeAlias = "Callable[[Shell], str | None]"
Values: TypeAlias = "Callable[[Shell], list[str]]"
AnyParam: TypeAlias = "Param | ParamNames | ParamKeys"
TARGET = re.compile(r"(?:([A-Za-z_][A-Za-z0-9_]*)(?:\[(.*)\])?|([0-9]+|[@*#?$!_-]))\Z", re.DOTALL)


def label(part: Param) -> str:
    """The parameter as messages name it."""
    if isinstance(part.index, AllElements):
        return f"{part.name}[{'*' if part.index.joined else '@'}]"
    if isinstance(part.index, Subscript):
        from belljar.shell.print import print_word

        return f"{part.name}[{print_word(part.index.word)}]"
    return part.name


def unbound(shell: Shell, part: Param) -> str:
    """The value of an unset parameter: empty, or an error under `set -u`."""
    if shell.nounset:
        bare = not part.braced and (part.name.isdecimal() or part.name == "!")
        shown = f"${part.name}" if bare else label(part)
        raise ExpansionError(f"{shown}: unbound variable", exits=True)
    return ""


def compile_value(part: Param) -> Value:
    """The value of a single parameter or element, None if unset."""
    name, index = part.name, part.index
    if isinstance(index, Subscript):
        if not index.word.parts:
            return _bad_subscript(name)
        return compile_element(name, index)
    if name.isdecimal():
        return _compile_positional(int(name) if len(name) < 9 else 10**9)
    match name:
        case "?":
            return lambda shell: str(shell.status)
        case "#":
            return lambda shell: str(len(shell.args))
        case "$":
            return lambda shell: str(shell.shell_pid)
        case "!":
            return lambda shell: str(shell.jobs.last_pid) if shell.jobs.last_pid is not None else None
        case "-":
            return lambda shell: shell.option_letters()
        case "@":
            return lambda shell: " ".join(shell.args) if shell.args else None
        case "*":
            return lambda shell: shell.ifs.joiner.join(shell.args) if shell.args else None
        case _:
            pass

    def variable(shell: Shell) -> str | None:
        value = shell.table.get(name)
        if type(value) is str or value is None:
            return value
        if type(value) is int:
            return str(value)
        return shell.vars.get(name)

    return variable


def _bad_subscript(name: str) -> Value:
    def bad(_shell: Shell) -> str | None:
        raise ExpansionError(f"${{{name}[]}}: bad substitution")

    return bad


def _compile_positional(number: int) -> Value:
    if number == 0:
        return lambda shell: shell.name
    place = number - 1

    def positional(shell: Shell) -> str | None:
        args = shell.args
        return args[place] if place < len(args) else None

    return positional


def compile_element(name: str, index: Subscript) -> Value:
    position, key = compile_arith(index.arith), compile_later(index.word.parts)

    def element(shell: Shell) -> str | None:
        entry = shell.table.get(name)
        if isinstance(entry, Var):
            contents = entry.value
            if type(contents) is Array:
                place = position(shell)
                if place < 0:
                    place += contents.last + 1
                    if place < 0:
                        shell.error(f"{name}: bad array subscript")
                        return None
                return contents.items.get(place)
            if type(contents) is Assoc:
                return contents.items.get(_checked_key(shell, name, key(shell)))
            if entry.attrs & NAMEREF:
                target, inner = shell.vars.resolve(name)
                if inner is not None:
                    raise ExpansionError(f"{entry.value}: bad array subscript")
                return _element_of(shell, target, position, key)
            return _element_of(shell, name, position, key)
        if entry is None:
            position(shell)
            return None
        return str(entry) if position(shell) in (0, -1) else None

    return element


def _checked_key(shell: Shell, name: str, key: str) -> str:
    if not key:
        shell.error(f"{name}: bad array subscript")
    return key


def _element_of(shell: Shell, name: str, position: Callable[[Shell], int], key: Text) -> str | None:
    contents = shell.vars.contents(name)
    if isinstance(contents, Assoc):
        return contents.get(key(shell))
    if contents is None and shell.vars.attrs(name) & ASSOC:  # declared, and nothing in it yet
        key(shell)
        return None
    place = position(shell)
    if isinstance(contents, Array):
        if place < 0:
            place += contents.last + 1
            if place < 0:
                shell.error(f"{name}: bad array subscript")
                return None
        return contents.get(place)
    return contents if place in (0, -1) else None


def compile_base_values(part: AnyParam) -> Values:
    """The values of `@`, `*`, `name[@]` or names and keys, without operator."""
    match part:
        case ParamNames(prefix):
            return lambda shell: shell.vars.names(prefix)
        case ParamKeys(name):
            return lambda shell: _keys(shell, name)
        case Param(name) if name in ("@", "*"):
            return lambda shell: shell.args
        case Param(name):

            def elements(shell: Shell) -> list[str]:
                entry = shell.table.get(name)
                if isinstance(entry, Var):
                    contents = entry.value
                    if type(contents) is Array and contents.ordered:
                        return list(contents.items.values())
                    return _elements(shell, name)
                return [] if entry is None else [str(entry)]

            return elements


def _elements(shell: Shell, name: str) -> list[str]:
    entry = shell.table.get(name)
    if isinstance(entry, Var) and entry.attrs & NAMEREF:
        target, inner = shell.vars.resolve(name)
        if inner is not None:
            return compile_base_values(indirect_param(f"{target}[{inner}]", None))(shell)
    contents = shell.vars.contents(name)
    if contents is None:
        return []
    return [contents] if isinstance(contents, str) else contents.values()


def _keys(shell: Shell, name: str) -> list[str]:
    contents = shell.vars.contents(name)
    if contents is None:
        return []
    return ["0"] if isinstance(contents, str) else contents.keys()


def is_list(part: Param) -> bool:
    return part.name in ("@", "*") or isinstance(part.index, AllElements)


@lru_cache(maxsize=512)
def indirect_param(target: str, op: object) -> Param:
    from belljar.shell.parse import ShellSyntaxError, parse_subscript

    match = TARGET.match(target)
    if match is None:
        raise ShellError(f"{target}: invalid variable name")
    name, subscript, special = match.groups()
    try:
        index: Index | None = parse_subscript(subscript) if subscript is not None else None
    except ShellSyntaxError:
        raise ExpansionError(f"{target}: bad substitution") from None
    return Param(name or special, index, op=op)  # type: ignore[arg-type]


def is_joined(part: Param) -> bool:
    return part.name == "*" or (isinstance(part.index, AllElements) and part.index.joined)
