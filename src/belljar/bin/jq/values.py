"""jq's values as Python objects, their order, equality and arithmetic.

null, booleans, strings, arrays and objects are `None`, `bool`, `str`, `list` and `dict`; numbers are in
`numbers`. Values are never changed once another expression can see them.
"""

from collections.abc import Callable
from math import isnan
from typing import Any

from belljar.bin.jq.errors import JqError
from belljar.bin.jq.measure import check_size
from belljar.bin.jq.numbers import (
    EXACT,
    NAN,
    Number,
    absolute,
    decimal_of,
    format_number,
    from_float,
    from_int,
    to_float,
)
from belljar.bin.jq.writer import preview, to_json

Value = Any
MAX_DEPTH = 10_000
MAX_KEY_DEPTH = 2_000
"""Sort keys are compared by C code, which recurses."""
MAX_REPEAT = 2**29
MAX_ARRAY = 2**29 - 1


KIND_NAMES: dict[type, str] = {
    type(None): "null",
    bool: "boolean",
    int: "number",
    float: "number",
    Number: "number",
    str: "string",
    list: "array",
    dict: "object",
}
RANKS: dict[type, int] = {
    type(None): 0,
    bool: 1,
    int: 3,
    float: 3,
    Number: 3,
    str: 4,
    list: 5,
    dict: 6,
}


def kind_name(value: Value) -> str:
    return KIND_NAMES[value.__class__]


def is_number(value: Value) -> bool:
    return RANKS[value.__class__] == 3


def clip(text: str, size: int = 30) -> str:
    """`text`, JSON, cut to fit a C buffer of `size` bytes the way jq's messages are."""
    raw = text.encode("utf-8", "replace")
    if len(raw) <= size - 1:
        return text
    closing = {"[": "]", "{": "}", '"': '"'}.get(text[0], "")
    kept = raw[: size - 4 - len(closing)].decode("utf-8", "ignore")
    return f"{kept}...{closing}"


def describe(value: Value) -> str:
    """`kind (excerpt)`, the way error messages name a value."""
    if value.__class__ is str and len(value) > 30:
        value = value[:30]
    return f"{kind_name(value)} ({clip(preview(value))})"


def type_error(value: Value, message: str) -> JqError:
    return JqError(f"{describe(value)} {message}")


def type_error2(left: Value, right: Value, message: str) -> JqError:
    return JqError(f"{describe(left)} and {describe(right)} {message}")


# Order


def compare_numbers(left: Value, right: Value) -> int:
    """-1, 0 or 1. Two literals compare exactly, anything else as doubles; nan is below everything."""
    if left.__class__ is not Number and right.__class__ is not Number and left.__class__ is right.__class__:
        return int(left > right) - int(left < right)
    if is_literal(left) and is_literal(right):
        a, b = decimal_of(left), decimal_of(right)
        return (a > b) - (a < b)
    x, y = to_float(left), to_float(right)
    if isnan(x):
        return -1
    if isnan(y):
        return 1
    return (x > y) - (x < y)


def is_literal(number: Value) -> bool:
    if number.__class__ is Number:
        return number.literal is not None
    return number.__class__ is int


def compare(left: Value, right: Value, depth: int = 0) -> int:
    """jq's total order: null < false < true < numbers < strings < arrays < objects."""
    a, b = left.__class__, right.__class__
    if a is str and b is str:
        return int(left > right) - int(left < right)
    rank = RANKS[a]
    if rank != RANKS[b]:
        return -1 if rank < RANKS[b] else 1
    if rank == 3:
        return compare_numbers(left, right)
    if rank < 3:
        return (left is True) - (right is True)
    if depth > MAX_DEPTH:
        raise JqError("Comparison too deep")
    if a is list:
        for x, y in zip(left, right, strict=False):
            order = compare(x, y, depth + 1)
            if order:
                return order
        return (len(left) > len(right)) - (len(left) < len(right))
    keys, others = sorted(left), sorted(right)
    if keys != others:
        return -1 if keys < others else 1
    for key in keys:
        order = compare(left[key], right[key], depth + 1)
        if order:
            return order
    return 0


def equal(left: Value, right: Value) -> bool:
    a, b = left.__class__, right.__class__
    if a is b:
        if a is str or a is int or a is float:
            return bool(left == right)
        if a is list or a is dict:
            if len(left) != len(right):
                return False
            check_size(left)
            return compare(left, right) == 0
        if a is Number:
            return compare_numbers(left, right) == 0
        return left is right
    if RANKS[a] == 3 and RANKS[b] == 3:
        return compare_numbers(left, right) == 0
    return False


def sort_key(value: Value, depth: int = 0) -> Any:
    """A Python value that sorts as `value` does in jq."""
    kind = value.__class__
    if kind is str:
        return (4, value)
    if kind is int or kind is float:
        return (3, value)
    if kind is Number:
        if isnan(value.value):
            return (2, 0)
        return (3, decimal_of(value) if value.literal is not None else value.value)
    if kind is list or kind is dict:
        if depth > MAX_KEY_DEPTH:
            raise JqError("Comparison too deep")
        if kind is list:
            return (5, [sort_key(item, depth + 1) for item in value])
        keys = sorted(value)
        return (6, keys, [sort_key(value[key], depth + 1) for key in keys])
    return (0, 0) if value is None else (1, value)


def sorted_values(values: list[Value]) -> list[Value]:
    """`sort`: one-kind lists at the speed of `list.sort`."""
    kinds = set(map(type, values))
    if list in kinds or dict in kinds:
        check_size(values)
    if kinds <= {int, float} or kinds == {str}:
        return sorted(values)
    return sorted(values, key=sort_key)


# Arithmetic


def add(left: Value, right: Value) -> Value:
    a, b = left.__class__, right.__class__
    if a is int and b is int:
        total = left + right
        if -EXACT <= total <= EXACT:
            return total
        return from_float(to_float(left) + to_float(right))
    if a is str and b is str:
        return left + right
    if left is None:
        return right
    if right is None:
        return left
    if RANKS[a] == 3 and RANKS[b] == 3:
        return from_float(to_float(left) + to_float(right))
    if a is list and b is list:
        return left + right
    if a is dict and b is dict:
        return {**left, **right}
    raise type_error2(left, right, "cannot be added")


def subtract(left: Value, right: Value) -> Value:
    a, b = left.__class__, right.__class__
    if a is int and b is int:
        total = left - right
        if -EXACT <= total <= EXACT:
            return total
        return from_float(to_float(left) - to_float(right))
    if RANKS[a] == 3 and RANKS[b] == 3:
        return from_float(to_float(left) - to_float(right))
    if a is list and b is list:
        if all(item.__class__ is str for item in right):
            unwanted = set(right)
            return [item for item in left if item.__class__ is not str or item not in unwanted]
        return [item for item in left if not any(equal(item, other) for other in right)]
    raise type_error2(left, right, "cannot be subtracted")


def multiply(left: Value, right: Value, charge: Callable[[int], None]) -> Value:
    a, b = left.__class__, right.__class__
    if a is int and b is int:
        total = left * right
        if -EXACT <= total <= EXACT and (total or (left >= 0 and right >= 0)):
            return total
        return from_float(to_float(left) * to_float(right))
    x, y = RANKS[a], RANKS[b]
    if x == 3 and y == 3:
        return from_float(to_float(left) * to_float(right))
    if (a is str and y == 3) or (b is str and x == 3):
        text, count = (left, to_float(right)) if a is str else (right, to_float(left))
        return repeat(text, count, charge)
    if a is dict and b is dict:
        return merge(left, right)
    raise type_error2(left, right, "cannot be multiplied")


def repeat(text: str, count: float, charge: Callable[[int], None]) -> Value:
    if not count >= 0:
        return None
    if not text:
        return ""
    times = int(min(count, MAX_REPEAT + 1))
    if len(text) * times > MAX_REPEAT:
        raise JqError("Repeat string result too long")
    charge(len(text) * times // 64)
    return text * times


def merge(left: dict[str, Value], right: dict[str, Value]) -> dict[str, Value]:
    """`*` of objects: a deep merge, without recursion in Python."""
    result = dict(left)
    work = [(result, right, 0)]
    while work:
        into, new, depth = work.pop()
        if depth > MAX_DEPTH:
            raise JqError("Object merge too deep")
        for key, value in new.items():
            old = into.get(key)
            if value.__class__ is dict and old.__class__ is dict:
                copy = dict(old)
                into[key] = copy
                work.append((copy, value, depth + 1))
            else:
                into[key] = value
    return result


def divide(left: Value, right: Value) -> Value:
    a, b = left.__class__, right.__class__
    if RANKS[a] == 3 and RANKS[b] == 3:
        divisor = to_float(right)
        if divisor == 0:
            raise type_error2(left, right, "cannot be divided because the divisor is zero")
        return from_float(to_float(left) / divisor)
    if a is str and b is str:
        return split(left, right)
    raise type_error2(left, right, "cannot be divided")


def split(text: str, separator: str) -> list[str]:
    if not text:
        return []
    return text.split(separator) if separator else list(text)


def to_machine_int(value: float) -> int:
    """C's conversion to int64, saturating."""
    if value >= 2**63:
        return 2**63 - 1
    return max(int(value), -(2**63)) if value > -(2**64) else -(2**63)


def modulo(left: Value, right: Value) -> Value:
    if not (is_number(left) and is_number(right)):
        raise type_error2(left, right, "cannot be divided (remainder)")
    a, b = to_float(left), to_float(right)
    if isnan(a) or isnan(b):
        return NAN
    divisor = to_machine_int(b)
    if divisor == 0:
        raise type_error2(left, right, "cannot be divided (remainder) because the divisor is zero")
    dividend = to_machine_int(a)
    remainder = abs(dividend) % abs(divisor)
    return from_int(-remainder if dividend < 0 else remainder)


def length(value: Value) -> Value:
    kind = value.__class__
    if kind is str or kind is list or kind is dict:
        return len(value)
    if value is None:
        return 0
    if kind is bool:
        raise type_error(value, "has no length")
    return absolute(value)


def contains(outer: Value, inner: Value, depth: int = 0) -> bool:
    if RANKS[outer.__class__] != RANKS[inner.__class__]:
        raise type_error2(outer, inner, "cannot have their containment checked")
    if outer.__class__ in (str, list, dict):
        check_size(outer)
        return contained(outer, inner, depth)
    return equal(outer, inner)


def contained(outer: Value, inner: Value, depth: int) -> bool:
    if depth > MAX_DEPTH:
        raise JqError("Containment check too deep")
    kind = inner.__class__
    if outer.__class__ is not kind:
        return equal(outer, inner)
    if kind is dict:
        # Loops, not all() and any(): those would take C stack at every level.
        for key, part in inner.items():  # noqa: SIM110
            if key not in outer or not contained(outer[key], part, depth + 1):
                return False
        return True
    if kind is list:
        for part in inner:
            for whole in outer:
                if contained(whole, part, depth + 1):
                    break
            else:
                return False
        return True
    if kind is str:
        return inner in outer
    return equal(outer, inner)


def to_text(value: Value) -> str:
    """`tostring`."""
    if value.__class__ is str:
        return str(value)
    if is_number(value):
        return format_number(value)
    return to_json(value)
