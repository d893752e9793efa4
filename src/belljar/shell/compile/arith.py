"""Arithmetic compiled: a tree becomes a closure that gives an int, reduced to 64 bits.

Variables that hold a canonical number are kept as Python ints in the shell's table, so a counting loop never converts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from belljar.shell.arrays import Array, Assoc
from belljar.shell.compile.arith_binary import compile_binary, compile_truth
from belljar.shell.compile.arith_operators import MAX, MIN, OPERATORS, apply, locate
from belljar.shell.compile.arith_shape import (
    cannot_fail,
    changed_inside,
    expanded_subscripts,
    has_effects,
    is_pure,
    substitutions_of,
)
from belljar.shell.compile.arith_source import compile_arith_source, quote_brackets
from belljar.shell.compile.arith_values import (
    Number,
    evaluate,
    no_element,
    number_of,
    read_element,
    read_variable,
    store,
)
from belljar.shell.compile.words import Text, compile_later
from belljar.shell.control import ArithError, BadElementError, SubscriptError
from belljar.shell.nodes import (
    AllElements,
    Arith,
    ArithAssign,
    ArithBinary,
    ArithConditional,
    ArithIncrement,
    ArithNode,
    ArithNumber,
    ArithSubst,
    ArithUnary,
    ArithVariable,
    Param,
    Subscript,
)
from belljar.shell.parse.arith import wrap
from belljar.shell.variables import ASSOC, Var

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

Location = tuple[str, "str | int"]
"""A variable and the key or index of one of its elements."""


class NotPlain(Exception):
    """A substitution inside an expression gave something else than a plain number: expand the text and parse it."""


def compile_arith(arith: Arith) -> Number:
    """The value of an expression found in a script."""
    made: Text | None = None

    def source(shell: Shell) -> str:
        nonlocal made
        if made is None:  # mostly the tree is enough
            made = compile_arith_source(arith.source.parts)
        return made(shell)

    def reparse(shell: Shell) -> int:
        text = source(shell)
        return evaluate(shell, quote_brackets(text) if arith.nested else text)

    node = arith.expr
    if node is None:
        return reparse
    substitutions = substitutions_of(node)
    expanded = [leaf.part for leaf in substitutions] + expanded_subscripts(node)
    if not all(is_pure(part) for part in expanded):
        return reparse
    changed = changed_inside(node) if expanded else set()
    if any(isinstance(part, Param) and part.name in changed for part in expanded):
        return reparse  # `n++ + $n`: what `$` stands for is known before anything changes
    if isinstance(node, ArithNumber):
        value = node.value
        return lambda _shell: value
    tree = compile_node(node)
    if not substitutions:

        def exact(shell: Shell) -> int:
            try:
                return tree(shell)
            except ArithError as error:
                raise locate(error, source(shell)) from None

        return tree if cannot_fail(node) else exact
    checks = tuple(_compile_subst(leaf) for leaf in substitutions) if has_effects(node) else ()

    def mixed(shell: Shell) -> int:
        try:
            for check in checks:
                check(shell)
            return tree(shell)
        except NotPlain:
            return reparse(shell)
        except ArithError as error:
            raise locate(error, source(shell)) from None

    return mixed


def compile_node(node: ArithNode) -> Number:
    match node:
        case ArithNumber(number):
            return lambda _shell: number
        case ArithSubst():
            return _compile_subst(node)
        case ArithVariable():
            return _compile_variable(node)
        case ArithUnary(op, operand):
            return _compile_unary(op, operand)
        case ArithIncrement(target, delta, prefix):
            return _compile_increment(target, delta, prefix)
        case ArithBinary():
            return compile_binary(node, compile_node)
        case ArithConditional(test, then, otherwise):
            condition = compile_test(test)
            yes, no = compile_node(then), compile_node(otherwise)
            return lambda shell: yes(shell) if condition(shell) else no(shell)
        case ArithAssign(op, target, value):
            return _compile_assign(op, target, value)


def compile_test(node: ArithNode) -> Callable[[Shell], bool | int]:
    """A closure whose result is only looked at for being zero."""
    return compile_truth(node, compile_node)


def _compile_subst(leaf: ArithSubst) -> Number:
    from belljar.shell.compile.param_text import compile_param

    part = leaf.part
    assert isinstance(part, Param)
    read = compile_param(part)
    name = part.name if part.name.isidentifier() else ""

    def subst(shell: Shell) -> int:
        value: object = shell.table.get(name)
        if type(value) is int:
            if value >= 0:
                return value
            raise NotPlain
        text = read(shell)
        if text.isdecimal() and text.isascii() and (text[0] != "0" or text == "0") and len(text) < 19:
            return int(text)
        raise NotPlain

    return subst


def _compile_variable(node: ArithVariable) -> Number:
    name, index = node.name, node.index
    if index is None:

        def variable(shell: Shell) -> int:
            value = shell.table.get(name)
            if type(value) is int:
                return value
            return read_variable(shell, name)

        return variable
    if isinstance(index, AllElements):
        star = "*" if index.joined else "@"

        def every(shell: Shell) -> int:
            contents = shell.vars.contents(name)
            if isinstance(contents, Assoc):
                return number_of(shell, contents.get(star) or "0")
            values = [contents] if isinstance(contents, str) else contents.values() if contents is not None else []
            return number_of(shell, " ".join(values))

        return every
    position, key = _compile_position(index), _compile_key(index)

    def element(shell: Shell) -> int:
        entry = shell.table.get(name)
        if isinstance(entry, Var):
            contents = entry.value
            if type(contents) is Array:
                place = position(shell)
                if place < 0:
                    place += contents.last + 1
                    if place < 0:
                        shell.error(f"{name}: bad array subscript")
                        return 0
                value = contents.items.get(place)
                return number_of(shell, value) if value is not None else 0
            if type(contents) is Assoc:
                value = contents.items.get(key(shell))
                return number_of(shell, value) if value is not None else 0
        value = read_element(shell, name, position, key)
        return number_of(shell, value) if value is not None else no_element(shell, name)

    return element


def _compile_position(index: Subscript) -> Number:
    """The index of an element; bash abandons the command if it can't be evaluated."""
    value = compile_arith(index.arith)

    def position(shell: Shell) -> int:
        try:
            return value(shell)
        except ArithError as error:
            raise SubscriptError(str(error)) from None

    return position


def _compile_key(index: Subscript) -> Callable[[Shell], str]:
    return compile_later(index.word.parts)


def _compile_unary(op: str, operand: ArithNode) -> Number:
    value = compile_node(operand)
    if op == "-":
        return lambda shell: wrap(-value(shell))
    if op == "~":
        return lambda shell: ~value(shell)
    if op == "!":
        return lambda shell: 0 if value(shell) else 1
    return value


def _element_writer(
    target: ArithVariable,
) -> tuple[Callable[[Shell], Location], Callable[[Shell, Location, int], None], Callable[[Shell, Location], int]]:
    """Closures that find an element's place, write there and read there (its subscript is evaluated once)."""
    name, index = target.name, target.index
    if not isinstance(index, Subscript):
        star = "*" if index is not None and index.joined else "@"

        def place_of_star(shell: Shell) -> Location:
            base, _ = shell.vars.resolve(name)
            if shell.vars.attrs(base) & ASSOC:
                return (base, star)
            raise ArithError(f"{name}[{star}]: bad array subscript")

        return place_of_star, _write_element, _read_element
    position, key = _compile_position(index), _compile_key(index)

    def find(shell: Shell) -> Location:
        base, _ = shell.vars.resolve(name)
        entry = shell.table.get(base)
        if isinstance(entry, Var) and entry.attrs & ASSOC:
            return (base, key(shell))
        return (base, position(shell))

    return find, _write_element, _read_element


def _write_element(shell: Shell, place: Location, value: int) -> None:
    base, where = place
    if isinstance(where, str):
        if not where:
            raise ArithError(f"`{base}[]': not a valid identifier")
        shell.vars.set_key(base, where, str(value))
    else:
        try:
            shell.vars.set_index(base, where, str(value))
        except BadElementError as error:
            shell.error(str(error))


def _read_element(shell: Shell, place: Location) -> int:
    base, where = place
    contents = shell.vars.contents(base)
    text: str | None
    if isinstance(contents, Assoc):
        text = contents.get(str(where))
    elif isinstance(contents, Array):
        assert isinstance(where, int)
        text = contents.get(shell.vars.check_index(base, contents, where))
    else:
        text = contents if where == 0 else None
    return number_of(shell, text) if text is not None else no_element(shell, base)


def _compile_assign(op: str, target: ArithVariable, value: ArithNode) -> Number:
    new = compile_node(value)
    name = target.name
    if target.index is not None:
        find, write, read = _element_writer(target)

        def assign_element(shell: Shell) -> int:
            place = find(shell)
            result = new(shell) if not op else apply(op, read(shell, place), new(shell))
            write(shell, place, result)
            return result

        return assign_element
    if not op:

        def assign(shell: Shell) -> int:
            result = new(shell)
            table = shell.table
            kind = type(table.get(name))
            if kind is int or kind is str:
                table[name] = result
            else:
                store(shell, name, result)
            return result

        return assign
    if op == "+":

        def increase(shell: Shell) -> int:
            table = shell.table
            value = table.get(name)
            if type(value) is not int:
                value = read_variable(shell, name)
            result = value + new(shell)
            if not MIN <= result <= MAX:
                result = wrap(result)
            kind = type(table.get(name))
            if kind is int or kind is str:
                table[name] = result
            else:
                store(shell, name, result)
            return result

        return increase
    operate = OPERATORS[op]
    current = _compile_variable(target)

    def update(shell: Shell) -> int:
        result = wrap(operate(current(shell), new(shell)))
        store(shell, name, result)
        return result

    return update


def _compile_increment(target: ArithVariable, delta: int, prefix: bool) -> Number:
    name = target.name
    if target.index is not None:
        find, write, read = _element_writer(target)

        def step_element(shell: Shell) -> int:
            place = find(shell)
            old = read(shell, place)
            new = wrap(old + delta)
            write(shell, place, new)
            return new if prefix else old

        return step_element

    def step(shell: Shell) -> int:
        table = shell.table
        old = table.get(name)
        if type(old) is int:
            new = old + delta
            if not MIN <= new <= MAX:
                new = wrap(new)
            table[name] = new
        else:
            old = read_variable(shell, name)
            new = wrap(old + delta)
            store(shell, name, new)
        return new if prefix else old

    return step
