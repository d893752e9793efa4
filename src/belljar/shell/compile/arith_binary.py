"""Arithmetic operators between two operands, compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from belljar.shell.compile.arith_operators import COMPARISONS, MAX, MIN, OPERATORS, remainder
from belljar.shell.compile.arith_values import Number, read_variable
from belljar.shell.nodes import ArithBinary, ArithNode, ArithNumber, ArithVariable
from belljar.shell.parse.arith import wrap

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

Compile = Callable[[ArithNode], Number]
"""Compiles an operand."""


def compile_truth(node: ArithNode, operand: Compile) -> Callable[[Shell], bool | int]:
    """A closure whose result is only looked at for being zero."""
    if isinstance(node, ArithBinary) and node.op in _TESTS:
        return _TESTS[node.op](node, operand)
    return operand(node)


def _less(node: ArithBinary, operand: Compile) -> Callable[[Shell], bool]:
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
        other = operand(right)

        def below_other(shell: Shell) -> bool:
            value = shell.table.get(name)
            if type(value) is not int:
                value = read_variable(shell, name)
            return value < other(shell)

        return below_other
    first, second = operand(node.left), operand(right)
    return lambda shell: first(shell) < second(shell)


def _comparison(op: str) -> Callable[[ArithBinary, Compile], Callable[[Shell], bool]]:
    def build(node: ArithBinary, operand: Compile) -> Callable[[Shell], bool]:
        left, right = operand(node.left), operand(node.right)
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


def _and(node: ArithBinary, operand: Compile) -> Callable[[Shell], bool]:
    left, right = compile_truth(node.left, operand), compile_truth(node.right, operand)
    return lambda shell: bool(left(shell) and right(shell))


def _or(node: ArithBinary, operand: Compile) -> Callable[[Shell], bool]:
    left, right = compile_truth(node.left, operand), compile_truth(node.right, operand)
    return lambda shell: bool(left(shell) or right(shell))


_TESTS: Final[dict[str, Callable[[ArithBinary, Compile], Callable[[Shell], bool]]]] = {
    "<": _less,
    **{op: _comparison(op) for op in ("<=", ">", ">=", "==", "!=")},
    "&&": _and,
    "||": _or,
}


def compile_binary(node: ArithBinary, operand: Compile) -> Number:
    spine: list[ArithBinary] = []
    first: ArithNode = node
    while isinstance(first, ArithBinary) and len(spine) < 100_000:
        spine.append(first)
        first = first.left
    if len(spine) > 40:
        return _compile_spine(first, spine, operand)
    op = node.op
    if op in _TESTS:
        test = _TESTS[op](node, operand)
        return lambda shell: 1 if test(shell) else 0
    if op == ",":
        before, after = operand(node.left), operand(node.right)

        def comma(shell: Shell) -> int:
            before(shell)
            return after(shell)

        return comma
    left, right = operand(node.left), operand(node.right)
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
        bitwise = OPERATORS[op]
        return lambda shell: bitwise(left(shell), right(shell))
    operate = OPERATORS[op]
    return lambda shell: wrap(operate(left(shell), right(shell)))


def _variable_plus(name: str, delta: int) -> Number:
    def variable_plus(shell: Shell) -> int:
        value = shell.table.get(name)
        if type(value) is not int:
            value = read_variable(shell, name)
        value += delta
        return value if MIN <= value <= MAX else wrap(value)

    return variable_plus


def _compile_spine(first: ArithNode, spine: list[ArithBinary], operand: Compile) -> Number:
    """A sum of thousands of terms: by a loop, as nested closures would exhaust the stack."""
    start = operand(first)
    steps = [(node.op, operand(node.right)) for node in reversed(spine)]

    def run(shell: Shell) -> int:
        value = start(shell)
        for op, value_of in steps:
            if op == "&&":
                value = 1 if value and value_of(shell) else 0
            elif op == "||":
                value = 1 if value or value_of(shell) else 0
            elif op == ",":
                value = value_of(shell)
            elif op in COMPARISONS:
                value = 1 if COMPARISONS[op](value, value_of(shell)) else 0
            else:
                value = wrap(OPERATORS[op](value, value_of(shell)))
        return value

    return run
