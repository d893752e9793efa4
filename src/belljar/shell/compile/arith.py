"""Arithmetic compiled: a tree becomes a closure that gives an int, reduced to 64 bits.

Variables that hold a canonical number are kept as Python ints in the shell's table, so a counting loop never converts.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from belljar.shell.arrays import Array, Assoc
from belljar.shell.control import ArithError, ExpansionError
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
from belljar.shell.parse.arith import parse_number, wrap
from belljar.shell.parse.errors import ArithSyntaxError
from belljar.shell.variables import ASSOC, Var

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

Number = Callable[["Shell"], int]
Location = tuple[str, "str | int"]
"""A variable and the key or index of one of its elements."""

MAX: Final = 0x7FFFFFFFFFFFFFFF
MIN: Final = -0x8000000000000000
CACHED_LENGTH: Final = 500
"""Longer texts aren't worth keeping."""
NESTING: Final = 1024
"""How deep a variable's value may name further variables, as in bash."""


class NotPlain(Exception):
    """A substitution inside an expression gave something else than a plain number: expand the text and parse it."""


# --- entry points --------------------------------------------------------------------------------------------------


def compile_arith(arith: Arith) -> Number:
    """The value of an expression found in a script."""
    from belljar.shell.compile.words import compile_quoted

    source = compile_quoted(arith.source.parts)

    def reparse(shell: Shell) -> int:
        return evaluate(shell, source(shell))

    node = arith.expr
    if node is None:
        return reparse
    substitutions = _substitutions(node)
    if not all(_is_pure(leaf) for leaf in substitutions):
        return reparse
    changed = _changed(node) if substitutions else set()
    if any(isinstance(leaf.part, Param) and leaf.part.name in changed for leaf in substitutions):
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

        return tree if _cannot_fail(node) else exact
    checks = tuple(_compile_subst(leaf) for leaf in substitutions) if _has_effects(node) else ()

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
    from belljar.shell.parse import parse_arith

    return compile_node(parse_arith(text))


def locate(error: ArithError, text: str) -> ArithError:
    """Put the expression in front of a message that lacks it, with the token bash shows."""
    if not isinstance(error, BareArithError):
        return error
    shown = text.lstrip(" \t")
    return ArithError(f'{shown}: {error.args[0]} (error token is "{error.token(shown)}")')


LAST_TOKEN: Final = re.compile(r"(?:[A-Za-z0-9_#@]+|\S)\s*\Z")


class BareArithError(ArithError):
    """An error found while evaluating; the whole expression is added further out."""

    def __init__(self, message: str, after: str = "", *, last: bool = False) -> None:
        super().__init__(message)
        self.after = after
        self.last = last

    def token(self, text: str) -> str:
        if self.last and (match := LAST_TOKEN.search(text)):
            return match.group()
        if not self.after:
            return text
        place = max(text.rfind(char) for char in self.after)
        return text[place + 1 :].lstrip() if place >= 0 else text


def _children(node: ArithNode) -> tuple[ArithNode, ...]:
    match node:
        case ArithUnary(_, operand):
            return (operand,)
        case ArithBinary(_, left, right):
            return (left, right)
        case ArithConditional(test, then, otherwise):
            return (test, then, otherwise)
        case ArithAssign(_, target, value):
            return (target, value)
        case ArithIncrement(target):
            return (target,)
        case ArithVariable(_, Subscript(_, Arith(_, expr))) if expr is not None:
            return (expr,)
        case _:
            return ()


def _substitutions(node: ArithNode) -> list[ArithSubst]:
    found: list[ArithSubst] = []
    stack: list[ArithNode] = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, ArithSubst):
            found.append(item)
        stack += _children(item)
    return found


def _changed(node: ArithNode) -> set[str]:
    """The variables that something inside the expression assigns to (what it as a whole assigns comes last)."""
    found: set[str] = set()
    stack: list[ArithNode] = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, ArithAssign | ArithIncrement) and item is not node:
            found.add(item.target.name)
        stack += _children(item)
    return found


def _is_pure(leaf: ArithSubst) -> bool:
    part = leaf.part
    return isinstance(part, Param) and part.op is None and not part.indirect and part.index is None


def _has_effects(node: ArithNode) -> bool:
    stack: list[ArithNode] = [node]
    while stack:
        match stack.pop():
            case ArithAssign() | ArithIncrement():
                return True
            case ArithUnary(_, operand):
                stack.append(operand)
            case ArithBinary(_, left, right):
                stack += (left, right)
            case ArithConditional(test, then, otherwise):
                stack += (test, then, otherwise)
            case _:
                pass
    return False


def _cannot_fail(node: ArithNode) -> bool:
    """Whether the evaluation itself raises no BareArithError (variables' values report their own errors)."""
    stack: list[ArithNode] = [node]
    while stack:
        match stack.pop():
            case ArithUnary(_, operand):
                stack.append(operand)
            case ArithBinary(op, left, right):
                if op in ("/", "%", "**"):
                    return False
                stack += (left, right)
            case ArithConditional(test, then, otherwise):
                stack += (test, then, otherwise)
            case ArithAssign(op, _, value):
                if op in ("/", "%", "**"):
                    return False
                stack.append(value)
            case _:
                pass
    return True


# --- nodes ---------------------------------------------------------------------------------------------------------


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
            return _compile_binary(node)
        case ArithConditional(test, then, otherwise):
            condition, yes, no = compile_test(test), compile_node(then), compile_node(otherwise)
            return lambda shell: yes(shell) if condition(shell) else no(shell)
        case ArithAssign(op, target, value):
            return _compile_assign(op, target, value)


def _compile_subst(leaf: ArithSubst) -> Number:
    from belljar.shell.compile.params import compile_param

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

        def every(shell: Shell) -> int:
            contents = shell.vars.contents(name)
            values = [contents] if isinstance(contents, str) else contents.values() if contents is not None else []
            return number_of(shell, " ".join(values))

        return every
    position, key = compile_arith(index.arith), _compile_key(index)

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
        return number_of(shell, value) if value is not None else _no_element(shell, name)

    return element


def _unset(shell: Shell, name: str) -> int:
    if shell.nounset:
        raise ExpansionError(f"{name}: unbound variable", 1, exits=True)
    return 0


def _no_element(shell: Shell, name: str) -> int:
    """The value of an element that isn't there: only an array without any value at all is unbound."""
    return 0 if shell.vars.contents(shell.vars.resolve(name)[0]) is not None else _unset(shell, name)


def read_element(shell: Shell, name: str, position: Number, key: Callable[[Shell], str]) -> str | None:
    """An element of whatever `name` is."""
    target, _ = shell.vars.resolve(name)
    contents = shell.vars.contents(target)
    if isinstance(contents, Assoc):
        return contents.get(key(shell))
    place = position(shell)
    if isinstance(contents, Array):
        return contents.get(shell.vars.check_index(target, contents, place))
    return contents if place in (0, -1) else None


def _compile_key(index: Subscript) -> Callable[[Shell], str]:
    from belljar.shell.compile.words import compile_scalar

    return compile_scalar(index.word)


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


# --- operators -----------------------------------------------------------------------------------------------------


def compile_test(node: ArithNode) -> Callable[[Shell], bool | int]:
    """A closure whose result is only looked at for being zero."""
    if isinstance(node, ArithBinary) and node.op in _COMPARISONS:
        return _COMPARISONS[node.op](node)
    return compile_node(node)


def _compile_unary(op: str, operand: ArithNode) -> Number:
    value = compile_node(operand)
    if op == "-":
        return lambda shell: wrap(-value(shell))
    if op == "~":
        return lambda shell: ~value(shell)
    if op == "!":
        return lambda shell: 0 if value(shell) else 1
    return value


def _less(node: ArithBinary) -> Callable[[Shell], bool]:
    right = node.right
    if isinstance(node.left, ArithVariable) and node.left.index is None:
        name = node.left.name
        if isinstance(right, ArithNumber):
            limit = right.value

            def below(shell: Shell) -> bool:
                value = shell.table.get(name)
                if type(value) is not int:
                    value = read_variable(shell, name)
                return value < limit

            return below
        other = compile_node(right)

        def below_other(shell: Shell) -> bool:
            value = shell.table.get(name)
            if type(value) is not int:
                value = read_variable(shell, name)
            return value < other(shell)

        return below_other
    first, second = compile_node(node.left), compile_node(right)
    return lambda shell: first(shell) < second(shell)


def _comparison(op: str) -> Callable[[ArithBinary], Callable[[Shell], bool]]:
    def build(node: ArithBinary) -> Callable[[Shell], bool]:
        left, right = compile_node(node.left), compile_node(node.right)
        if isinstance(node.right, ArithNumber):
            limit = node.right.value
            match op:
                case "<=":
                    return lambda shell: left(shell) <= limit
                case ">":
                    return lambda shell: left(shell) > limit
                case ">=":
                    return lambda shell: left(shell) >= limit
                case "==":
                    return lambda shell: left(shell) == limit
                case _:
                    return lambda shell: left(shell) != limit
        match op:
            case "<=":
                return lambda shell: left(shell) <= right(shell)
            case ">":
                return lambda shell: left(shell) > right(shell)
            case ">=":
                return lambda shell: left(shell) >= right(shell)
            case "==":
                return lambda shell: left(shell) == right(shell)
            case _:
                return lambda shell: left(shell) != right(shell)

    return build


def _and(node: ArithBinary) -> Callable[[Shell], bool]:
    left, right = compile_test(node.left), compile_test(node.right)
    return lambda shell: bool(left(shell) and right(shell))


def _or(node: ArithBinary) -> Callable[[Shell], bool]:
    left, right = compile_test(node.left), compile_test(node.right)
    return lambda shell: bool(left(shell) or right(shell))


_COMPARISONS: Final[dict[str, Callable[[ArithBinary], Callable[[Shell], bool]]]] = {
    "<": _less,
    **{op: _comparison(op) for op in ("<=", ">", ">=", "==", "!=")},
    "&&": _and,
    "||": _or,
}


def divide(left: int, right: int) -> int:
    if right == 0:
        raise BareArithError("division by 0", "/")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def remainder(left: int, right: int) -> int:
    if right == 0:
        raise BareArithError("division by 0", "%")
    result = abs(left) % abs(right)
    return result if left >= 0 else -result


def power(base: int, exponent: int) -> int:
    if exponent < 0:
        raise BareArithError("exponent less than 0", last=True)
    return pow(base, exponent, 1 << 64)


_OPERATORS: Final[dict[str, Callable[[int, int], int]]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": divide,
    "%": remainder,
    "**": power,
    "<<": lambda a, b: a << (b & 63),
    ">>": lambda a, b: a >> (b & 63),
    "&": lambda a, b: a & b,
    "^": lambda a, b: a ^ b,
    "|": lambda a, b: a | b,
}


def apply(op: str, left: int, right: int) -> int:
    return wrap(_OPERATORS[op](left, right))


def _compile_binary(node: ArithBinary) -> Number:
    spine: list[ArithBinary] = []
    first: ArithNode = node
    while isinstance(first, ArithBinary) and len(spine) < 100_000:
        spine.append(first)
        first = first.left
    if len(spine) > 40:
        return _compile_spine(first, spine)
    op = node.op
    if op in _COMPARISONS:
        test = _COMPARISONS[op](node)
        return lambda shell: 1 if test(shell) else 0
    if op == ",":
        before, after = compile_node(node.left), compile_node(node.right)

        def comma(shell: Shell) -> int:
            before(shell)
            return after(shell)

        return comma
    left, right = compile_node(node.left), compile_node(node.right)
    if op in ("+", "-") and isinstance(node.right, ArithNumber):
        delta = node.right.value if op == "+" else -node.right.value
        if isinstance(node.left, ArithVariable) and node.left.index is None:
            return _variable_plus(node.left.name, delta)

        def plus(shell: Shell) -> int:
            value = left(shell) + delta
            return value if MIN <= value <= MAX else wrap(value)

        return plus
    if op == "+":

        def add(shell: Shell) -> int:
            value = left(shell) + right(shell)
            return value if MIN <= value <= MAX else wrap(value)

        return add
    if op == "-":

        def subtract(shell: Shell) -> int:
            value = left(shell) - right(shell)
            return value if MIN <= value <= MAX else wrap(value)

        return subtract
    if op == "*":

        def multiply(shell: Shell) -> int:
            value = left(shell) * right(shell)
            return value if MIN <= value <= MAX else wrap(value)

        return multiply
    if op == "%":

        def modulo(shell: Shell) -> int:
            a, b = left(shell), right(shell)
            return a % b if a >= 0 and b > 0 else remainder(a, b)

        return modulo
    if op in ("&", "|", "^"):
        bitwise = _OPERATORS[op]
        return lambda shell: bitwise(left(shell), right(shell))
    operate = _OPERATORS[op]
    return lambda shell: wrap(operate(left(shell), right(shell)))


def _variable_plus(name: str, delta: int) -> Number:
    def variable_plus(shell: Shell) -> int:
        value = shell.table.get(name)
        if type(value) is not int:
            value = read_variable(shell, name)
        value += delta
        return value if MIN <= value <= MAX else wrap(value)

    return variable_plus


def _compile_spine(first: ArithNode, spine: list[ArithBinary]) -> Number:
    """A sum of thousands of terms: by a loop, as nested closures would exhaust the stack."""
    start = compile_node(first)
    steps = [(node.op, compile_node(node.right)) for node in reversed(spine)]

    def run(shell: Shell) -> int:
        value = start(shell)
        for op, operand in steps:
            if op == "&&":
                value = 1 if value and operand(shell) else 0
            elif op == "||":
                value = 1 if value or operand(shell) else 0
            elif op == ",":
                value = operand(shell)
            elif op in _PLAIN_COMPARISONS:
                value = 1 if _PLAIN_COMPARISONS[op](value, operand(shell)) else 0
            else:
                value = wrap(_OPERATORS[op](value, operand(shell)))
        return value

    return run


_PLAIN_COMPARISONS: Final[dict[str, Callable[[int, int], bool]]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}


# --- assignment ----------------------------------------------------------------------------------------------------


def store(shell: Shell, name: str, value: int) -> None:
    """Assign a number to a variable by arithmetic."""
    table = shell.table
    kind = type(table.get(name))
    if kind is int or kind is str or (kind is type(None) and not shell.allexport and name not in shell.vars.HOOKS):
        table[name] = value
    else:
        shell.vars.set(name, str(value))


def _element_writer(
    target: ArithVariable,
) -> tuple[Callable[[Shell], Location], Callable[[Shell, Location, int], None], Callable[[Shell, Location], int]]:
    """For an element: how to find its place, to write there and to read there (its subscript is evaluated once)."""
    name, index = target.name, target.index
    if not isinstance(index, Subscript):

        def no_place(shell: Shell) -> Location:
            raise ArithError(f"{name}[{'*' if index is not None and index.joined else '@'}]: bad array subscript")

        return no_place, lambda _s, _p, _v: None, lambda _s, _p: 0
    position, key = compile_arith(index.arith), _compile_key(index)

    def find(shell: Shell) -> Location:
        base, _ = shell.vars.resolve(name)
        entry = shell.table.get(base)
        if isinstance(entry, Var) and entry.attrs & ASSOC:
            return (base, key(shell))
        return (base, position(shell))

    def write(shell: Shell, place: Location, value: int) -> None:
        base, where = place
        if isinstance(where, str):
            shell.vars.set_key(base, where, str(value))
        else:
            shell.vars.set_index(base, where, str(value))

    def read(shell: Shell, place: Location) -> int:
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
        return number_of(shell, text) if text is not None else _no_element(shell, base)

    return find, write, read


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
    operate = _OPERATORS[op]
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
