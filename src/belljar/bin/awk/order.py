"""The order of array elements: as gawk's tables happen to hold them, or sorted as PROCINFO["sorted_in"] says."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from functools import cmp_to_key
from typing import Any

from belljar.bin.awk.errors import AwkFatal
from belljar.bin.awk.values import Array, Conversion, Value, numeric, string_number, to_number

_SIZES = (13, 127, 1021, 8191)
"""The sizes gawk's string tables grow through; larger arrays keep the order of insertion."""

_LARGE = 20_000


def table_order(array: Array) -> list[str]:
    """The order of an unsorted traversal, as gawk's tables give it.

    An array whose first subscript is a whole number holds such subscripts apart and in order, after the others;
    strings are in the order of a hash table with chains.
    """
    if len(array) < 2 or len(array) > _LARGE:
        return list(array)
    if not _is_whole(next(iter(array))):
        return _hash_order(array)
    whole: list[tuple[int, str]] = []
    others: list[str] = []
    for key in array:
        if _is_whole(key):
            whole.append((int(key), key))
        else:
            others.append(key)
    whole.sort()
    return _hash_order(others) + [key for _, key in whole]


def _is_whole(key: str) -> bool:
    """Is this the spelling of a 32-bit integer?"""
    digits = key[1:] if key[:1] == "-" else key
    if not digits.isdecimal() or not digits.isascii() or len(digits) > 10:
        return False
    return (digits[0] != "0" or key == "0") and -(1 << 31) <= int(key) < 1 << 31


def _hash(text: str) -> int:
    """The sdbm hash, as gawk computes it (its characters are signed)."""
    value = 0
    for byte in text.encode("utf-8", "surrogateescape"):
        value = value * 65599 + (byte if byte < 128 else byte - 256) & 0xFFFFFFFF
    return value


def _hash_order(keys: Iterable[str]) -> list[str]:
    size = _SIZES[0]
    # In each chain the last is the head: that is where gawk inserts.
    table: list[list[tuple[int, str]]] = [[] for _ in range(size)]
    for count, key in enumerate(keys):
        if count // size > 2 and size < _SIZES[-1]:
            size = next(larger for larger in _SIZES if larger > size)
            grown: list[list[tuple[int, str]]] = [[] for _ in range(size)]
            for chain in table:
                for entry in reversed(chain):
                    grown[entry[0] % size].append(entry)
            table = grown
        code = _hash(key)
        table[code % size].append((code, key))
    return [key for chain in table for _, key in reversed(chain)]


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
