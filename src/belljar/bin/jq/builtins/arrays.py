"""Builtins on arrays: sort, unique, flatten, transpose and their like."""

import math
from collections.abc import Iterable

from belljar.bin.jq.access import index, iterate
from belljar.bin.jq.builtins.registry import native
from belljar.bin.jq.errors import JqError
from belljar.bin.jq.numbers import to_float
from belljar.bin.jq.values import (
    MAX_DEPTH,
    Value,
    compare,
    equal,
    is_number,
    kind_name,
    length,
    sort_key,
    sorted_values,
    type_error,
)


def need_array(v: Value) -> list[Value]:
    if v.__class__ is not list:
        raise type_error(v, "cannot be sorted, as it is not an array")
    return v


@native("sort")
def sort(v: Value) -> list[Value]:
    return sorted_values(need_array(v))


@native("unique")
def unique(v: Value) -> list[Value]:
    result: list[Value] = []
    for item in sorted_values(need_array(v)):
        if not result or not equal(result[-1], item):
            result.append(item)
    return result


@native("min")
def min_(v: Value) -> Value:
    return min(v, key=sort_key) if need_array(v) else None


@native("max")
def max_(v: Value) -> Value:
    return max(reversed(v), key=sort_key) if need_array(v) else None


@native("reverse")
def reverse(v: Value) -> Value:
    if v.__class__ is str:
        return v[::-1]
    if v.__class__ is list:
        return v[::-1]
    if v is None:
        return []
    if length(v) == 0:
        return []
    raise JqError(f"Cannot index {kind_name(v)} with number")


@native("flatten", 0)
def flatten_all(v: Value) -> list[Value]:
    return flatten_to(iterate(v), MAX_DEPTH + 1)


@native("flatten", 1)
def flatten(v: Value, depth: Value) -> list[Value]:
    if compare(depth, 0) < 0:
        raise JqError("flatten depth must not be negative")
    return flatten_to(iterate(v), to_float(depth) if is_number(depth) else math.inf)


def flatten_to(items: Iterable[Value], depth: float) -> list[Value]:
    result: list[Value] = []
    stack = [iter(items)]
    while stack:
        for item in stack[-1]:
            if item.__class__ is list and len(stack) <= depth:
                stack.append(iter(item))
                break
            result.append(item)
        else:
            stack.pop()
    return result


@native("transpose")
def transpose(v: Value) -> list[Value]:
    rows = list(iterate(v))
    width = max((to_float(length(row)) for row in rows), default=0.0)
    # Only a row that is a number, which no column can be taken from, has a width that is no count.
    columns = math.ceil(min(width, 1e15)) if width > 0 else 0
    return [[index(row, column) for row in rows] for column in range(columns)]


@native("bsearch", 1)
def bsearch(v: Value, target: Value) -> int:
    if v.__class__ is not list:
        raise type_error(v, "cannot be searched from")
    low, high = 0, len(v) - 1
    while low <= high:
        middle = (low + high) // 2
        order = compare(v[middle], target)
        if order == 0:
            return middle
        if order < 0:
            low = middle + 1
        else:
            high = middle - 1
    return -1 - low
