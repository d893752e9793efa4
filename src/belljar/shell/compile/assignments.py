"""Assignments compiled: statements, arguments of declaration builtins, and the environment of one command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from belljar.shell.arrays import Array, Assoc
from belljar.shell.compile.arith import compile_arith
from belljar.shell.compile.arith_values import store
from belljar.shell.compile.fields import compile_words
from belljar.shell.compile.words import compile_scalar, constant
from belljar.shell.control import ShellError
from belljar.shell.nodes import AllElements, ArithSub, ArrayElement, ArrayLiteral, Assignment, Subscript, Word
from belljar.shell.print import print_word
from belljar.shell.shell import ArrayItem, AssignmentArg
from belljar.shell.variables import ASSOC, READONLY, Var

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

Assign: TypeAlias = "Callable[[Shell], None]"


def compile_assignment(node: Assignment) -> Assign:
    """The statement `name=value`."""
    if isinstance(node.value, ArrayLiteral):
        return _compile_compound(node, node.value)
    if node.index is not None:
        return _compile_element(node, node.value)
    if node.append:
        return _compile_append(node.name, node.value)
    return _compile_scalar(node.name, node.value)


def _compile_scalar(name: str, word: Word) -> Assign:
    fixed = constant(word)
    if fixed is not None:

        def assign_fixed(shell: Shell) -> None:
            table = shell.table
            kind = type(table.get(name))
            if kind is str or kind is int:
                table[name] = fixed
            else:
                shell.vars.set(name, fixed)

        return assign_fixed
    if len(word.parts) == 1 and isinstance(word.parts[0], ArithSub):
        number = compile_arith(word.parts[0].arith)

        def assign_number(shell: Shell) -> None:
            value = number(shell)
            table = shell.table
            kind = type(table.get(name))
            if kind is int or kind is str:
                table[name] = value
            else:
                store(shell, name, value)

        return assign_number
    text = compile_scalar(word)

    def assign(shell: Shell) -> None:
        value = text(shell)
        table = shell.table
        kind = type(table.get(name))
        if kind is str or kind is int:
            table[name] = value
        else:
            shell.vars.set(name, value)

    return assign


def _compile_append(name: str, word: Word) -> Assign:
    text = compile_scalar(word)

    def append(shell: Shell) -> None:
        added = text(shell)
        table = shell.table
        value = table.get(name)
        if type(value) is str:
            if len(value) > 65536:
                shell.budget.charge_size(len(value) + len(added))
            table[name] = ""  # so that nobody else holds the string and it grows in place
            value += added
            table[name] = value
        else:
            shell.vars.append(name, added)

    return append


def _compile_element(node: Assignment, word: Word) -> Assign:
    name, index, append = node.name, node.index, node.append
    if not isinstance(index, Subscript):
        star = "*" if isinstance(index, AllElements) and index.joined else "@"

        def whole(shell: Shell) -> None:
            target, _ = shell.vars.resolve(name)
            if shell.vars.attrs(target) & ASSOC:
                shell.vars.set_key(target, star, compile_scalar(word)(shell), append=append)
                return
            raise ShellError(f"{name}[{star}]: bad array subscript")

        return whole
    position, key, text = compile_arith(index.arith), compile_scalar(index.word), compile_scalar(word)
    shown = print_word(index.word)

    def assign(shell: Shell) -> None:
        entry = shell.table.get(name)
        if isinstance(entry, Var):
            variables = shell.vars
            if entry.attrs & ASSOC:
                where = key(shell)
                if not where:
                    raise ShellError(f"{name}[{shown}]: bad array subscript")
                variables.set_key(name, where, text(shell), append=append)
                return
            contents = entry.value
            if type(contents) is Array and entry.attrs == 256 and not append and shown:
                place = position(shell)
                if place >= 0:
                    value = text(shell)
                    array = variables.own(name, entry).value
                    assert isinstance(array, Array)
                    array.set(place, value)
                    return
                variables.set_index(name, place, text(shell), subscript=shown)
                return
        base, inner = shell.vars.resolve(name)
        if inner is not None:
            raise ShellError(f"{base}[{inner}]: bad array subscript")
        found = shell.table.get(base)
        if isinstance(found, Var) and found.attrs & ASSOC:
            where = key(shell)
            if not where:
                raise ShellError(f"{name}[{shown}]: bad array subscript")
            shell.vars.set_key(base, where, text(shell), append=append)
            return
        if not shown:
            raise ShellError(f"{name}[{shown}]: bad array subscript")
        place = position(shell)
        shell.vars.set_index(base, place, text(shell), append=append, subscript=shown)

    return assign


# --- compound -------------------------------------------------------------------------------------------------------


def compile_items(literal: ArrayLiteral) -> Callable[[Shell], list[ArrayItem]]:
    """The expanded elements of `(...)`, whatever kind of array they will make."""
    makers = [_compile_item(element) for element in literal.elements]

    def build(shell: Shell) -> list[ArrayItem]:
        items: list[ArrayItem] = []
        for make in makers:
            make(shell, items)
        return items

    return build


def _compile_item(element: ArrayElement) -> Callable[[Shell, list[ArrayItem]], None]:
    index = element.index
    if index is None:
        fields = compile_words([element.value])

        def plain(shell: Shell, items: list[ArrayItem]) -> None:
            items += [ArrayItem(None, False, value) for value in fields(shell)]

        return plain
    text, append = compile_scalar(element.value), element.append
    if isinstance(index, AllElements):
        star = "*" if index.joined else "@"

        def all_elements(shell: Shell, items: list[ArrayItem]) -> None:
            items.append(ArrayItem(star, append, text(shell)))

        return all_elements
    key = compile_scalar(index.word)

    def keyed(shell: Shell, items: list[ArrayItem]) -> None:
        where = key(shell)
        items.append(ArrayItem(where, append, text(shell)))

    return keyed


def _compile_compound(node: Assignment, literal: ArrayLiteral) -> Assign:
    name, append = node.name, node.append
    if node.index is not None:

        def refuse(_shell: Shell) -> None:
            raise ShellError(f"{name}[...]: cannot assign list to array member")

        return refuse
    items = compile_items(literal)
    if any(element.index is not None for element in literal.elements):
        return lambda shell: assign_items(shell, name, items(shell), append=append)
    fields = compile_words([element.value for element in literal.elements])

    def assign(shell: Shell) -> None:
        entry = shell.table.get(name)
        if isinstance(entry, Var):
            if entry.attrs == 256 and type(entry.value) is Array:
                values = fields(shell)
                var = shell.vars.own(name, entry)
                if not append:
                    var.value = Array.of(values)
                    return
                array = var.value
                assert isinstance(array, Array)
                for value in values:
                    array.append(value)
                if len(array.items) > 100_000:
                    shell.budget.charge_size(len(array.items) * 64)
                return
            assign_items(shell, name, items(shell), append=append)
            return
        values = fields(shell)
        if entry is not None and append:
            values.insert(0, str(entry))
        shell.vars.set_array(name, values)

    return assign


def assign_items(shell: Shell, name: str, items: Sequence[ArrayItem], *, append: bool) -> None:
    """`name=(...)` or `name+=(...)` with elements already expanded."""
    variables = shell.vars
    target, inner = variables.resolve(name)
    if inner is not None:
        raise ShellError(f"{name}: cannot assign list to array member")
    if variables.attrs(target) & ASSOC:
        _assign_assoc(shell, target, items, append=append)
        return
    var = variables.own_array(target)
    if var.attrs & READONLY:
        from belljar.shell.control import ReadonlyError

        raise ReadonlyError(target)
    old = var.value
    assert isinstance(old, Array)
    if not append:
        # Subscripts may refer to the array's old elements no more: bash empties it first.
        var.value = Array()
    place = var.value.last + 1 if isinstance(var.value, Array) else 0
    for item in items:
        if item.key is not None:
            if item.key in ("*", "@"):
                raise ShellError(f"[{item.key}]={item.value}: cannot assign to non-numeric index")
            if not item.key:
                shell.error(f"[]={item.value}: bad array subscript")
                continue
            place = shell.arith(item.key)
            if place < 0:
                array = var.value
                assert isinstance(array, Array)
                place += array.last + 1
                if place < 0:
                    shell.error(f"[{item.key}]={item.value}: bad array subscript")
                    place = 0
                    continue
        variables.set_index(target, place, item.value, append=item.append)
        place += 1
    variables.changed(target)


def _assign_assoc(shell: Shell, name: str, items: Sequence[ArrayItem], *, append: bool) -> None:
    variables = shell.vars
    if variables.attrs(name) & READONLY:
        from belljar.shell.control import ReadonlyError

        raise ReadonlyError(name)
    var = variables.own_assoc(name)
    old = var.value
    assert isinstance(old, Assoc)
    if not append:
        var.value = Assoc()
    if items and items[0].key is None:
        for place in range(0, len(items), 2):
            value = items[place + 1].value if place + 1 < len(items) else ""
            variables.set_key(name, items[place].value, value)
        return
    for item in items:
        if item.key is None:
            shell.error(f"{name}: {item.value}: must use subscript when assigning associative array")
        elif not item.key:
            shell.error(f"[]={item.value}: bad array subscript")
        elif item.append and not append:
            # What `+=` adds to is the array as it was before this assignment.
            variables.set_key(name, item.key, (old.get(item.key) or "") + item.value)
        else:
            variables.set_key(name, item.key, item.value, append=item.append)


# --- arguments and environments -------------------------------------------------------------------------------------


def compile_argument(node: Assignment) -> Callable[[Shell], AssignmentArg]:
    """`name=value` as the argument of a declaration builtin, its value expanded."""
    name, append = node.name, node.append
    subscript: Callable[[Shell], str] | None = None
    if isinstance(node.index, Subscript):
        subscript = compile_scalar(node.index.word)
    elif isinstance(node.index, AllElements):
        star = "*" if node.index.joined else "@"
        subscript = lambda _shell: star  # noqa: E731
    value = compile_items(node.value) if isinstance(node.value, ArrayLiteral) else compile_scalar(node.value)

    def build(shell: Shell) -> AssignmentArg:
        return AssignmentArg(name, subscript(shell) if subscript is not None else None, append, value(shell))

    return build
