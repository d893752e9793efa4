"""The order of array elements: as gawk's tables happen to hold them, or sorted as PROCINFO["sorted_in"] says."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cmp_to_key
from typing import Any

from belljar.bin.awk.errors import AwkFatal
from belljar.bin.awk.values import Array, Conversion, Value, numeric, string_number, to_number


def table_order(array: Array) -> list[str]:
    """The order of an unsorted traversal."""
    return list(array)


def sort_keys(array: Array, rule: str, conversion: Conversion, functions: dict[str, Any], line: int) -> list[str]:
    """The subscripts of `array` sorted by a rule: "@val_num_desc" and the like, or a function of the program."""
    keys = list(array)
    if not rule.startswith("@"):
        function = functions.get(rule)
        if function is None:
            raise AwkFatal(f"sort comparison function `{rule}' is not defined", line)

        def compare(first: str, second: str) -> int:
            result = to_number(function.invoke([first, array[first], second, array[second]]))
            return -1 if result < 0 else int(result > 0)

        return sorted(keys, key=cmp_to_key(compare))
    key = _rule_key(rule, array, conversion)
    if key is None:
        raise AwkFatal(f"sort comparison function `{rule}' is not defined", line)
    return sorted(keys, key=key, reverse=rule.endswith("_desc"))


def _rule_key(rule: str, array: Array, conversion: Conversion) -> Callable[[str], Any] | None:
    text = conversion.string
    match rule.removesuffix("_desc").removesuffix("_asc"):
        case "@unsorted":
            return lambda key: 0
        case "@ind_str":
            return lambda key: key
        case "@ind_num":
            return lambda key: (_ordered(string_number(key)), key)
        case "@val_str":
            return lambda key: _value_key(array[key], lambda value: (0, 0.0, text(value)), key)
        case "@val_num":
            return lambda key: _value_key(array[key], lambda value: (0, _ordered(to_number(value)), text(value)), key)
        case "@val_type":
            return lambda key: _value_key(array[key], lambda value: _typed(value, text), key)
    return None


def _ordered(number: float) -> float:
    return -math.inf if number != number else number


def _typed(value: Value, text: Callable[[Value], str]) -> tuple[int, float, str]:
    """Numbers before strings."""
    number = numeric(value)
    return (0, _ordered(number), "") if number is not None else (1, 0.0, text(value))


def _value_key(
    value: Value, scalar: Callable[[Value], tuple[int, float, str]], key: str
) -> tuple[tuple[int, float, str], float, str]:
    """Subarrays come after every scalar; equal values keep the order of their subscripts."""
    first = (2, 0.0, "") if type(value) is dict else scalar(value)
    return first, _ordered(string_number(key)), key
