"""The binary operators as functions of two values, with what they build paid for first."""

from collections.abc import Callable

from belljar.bin.jq.code import Runtime
from belljar.bin.jq.numbers import EXACT
from belljar.bin.jq.values import Value, add, compare, divide, equal, kind_name, modulo, multiply, subtract

__all__ = ["kind_name", "table"]

LARGE = 4096


def table(runtime: Runtime) -> dict[str, Callable[[Value, Value], Value]]:
    charge, charge_size = runtime.charge, runtime.charge_size

    def plus(a: Value, b: Value) -> Value:
        kind = a.__class__
        if kind is int and b.__class__ is int:
            total = a + b
            if -EXACT <= total <= EXACT:
                return total
        elif kind is b.__class__ and (kind is str or kind is list or kind is dict):
            size = len(a) + len(b)
            if size > LARGE:
                charge(size >> 6)
                charge_size(size if kind is str else size * 8)
        return add(a, b)

    def minus(a: Value, b: Value) -> Value:
        if a.__class__ is list and b.__class__ is list:
            charge(len(a) * (1 + (len(b) >> 4)))
        return subtract(a, b)

    def times(a: Value, b: Value) -> Value:
        if a.__class__ is str or b.__class__ is str:
            text, count = (a, b) if a.__class__ is str else (b, a)
            if count.__class__ is int and 0 < count < 2**29 and len(text) * count < 2**29:
                charge_size(len(text) * count)
        return multiply(a, b, charge)

    def divided(a: Value, b: Value) -> Value:
        return divide(a, b)

    return {
        "+": plus,
        "-": minus,
        "*": times,
        "/": divided,
        "%": modulo,
        "==": equal,
        "!=": not_equal,
        "<": less,
        ">": greater,
        "<=": less_or_equal,
        ">=": greater_or_equal,
    }


def not_equal(a: Value, b: Value) -> bool:
    return not equal(a, b)


def less(a: Value, b: Value) -> bool:
    kind = a.__class__
    if kind is b.__class__ and (kind is int or kind is float or kind is str):
        return bool(a < b)
    return compare(a, b) < 0


def greater(a: Value, b: Value) -> bool:
    kind = a.__class__
    if kind is b.__class__ and (kind is int or kind is float or kind is str):
        return bool(a > b)
    return compare(a, b) > 0


def less_or_equal(a: Value, b: Value) -> bool:
    kind = a.__class__
    if kind is b.__class__ and (kind is int or kind is float or kind is str):
        return bool(a <= b)
    return compare(a, b) <= 0


def greater_or_equal(a: Value, b: Value) -> bool:
    kind = a.__class__
    if kind is b.__class__ and (kind is int or kind is float or kind is str):
        return bool(a >= b)
    return compare(a, b) >= 0
