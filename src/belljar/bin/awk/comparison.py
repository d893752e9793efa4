"""Compiles awk's comparisons, by what is known of the types of both sides."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from belljar.bin.awk import nodes as n
from belljar.bin.awk.scope import NUM, STR, TEST, Compiled, ExpressionCompiler, Frame, Scope, TestCode
from belljar.bin.awk.values import looks_numeric

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}
_SWAPPED = {"<": ">", "<=": ">=", "==": "==", "!=": "!=", ">": "<", ">=": "<="}


def _expr_compare(scope: Scope, node: n.Compare, want: str) -> Compiled:
    left_kind, right_kind = scope.kind(node.left), scope.kind(node.right)
    compare = COMPARISONS[node.operator]
    if left_kind == NUM and right_kind == NUM:
        return TEST, _compare_numbers(scope, node)
    if scope.runtime.cases_matter:
        one, other, by_rule = scope.value(node.left), scope.value(node.right), scope.runtime.compare
        return TEST, lambda frame: by_rule(compare, one(frame), other(frame))
    if left_kind == STR or right_kind == STR:
        left_text, right_text = scope.string(node.left), scope.string(node.right)
        if node.operator == "==":
            return TEST, lambda frame: left_text(frame) == right_text(frame)
        if node.operator == "!=":
            return TEST, lambda frame: left_text(frame) != right_text(frame)
        return TEST, lambda frame: compare(left_text(frame), right_text(frame))
    if right_kind == NUM:
        return TEST, _compare_to_number(scope, node.operator, node.left, node.right)
    if left_kind == NUM:
        return TEST, _compare_to_number(scope, _SWAPPED[node.operator], node.right, node.left, swapped=True)
    left, right = scope.value(node.left), scope.value(node.right)
    slow = scope.runtime.compare

    def compare_any(frame: Frame) -> bool:
        first = left(frame)
        second = right(frame)
        if type(first) is float and type(second) is float:
            return compare(first, second)
        return slow(compare, first, second)

    return TEST, compare_any


def _compare_numbers(scope: Scope, node: n.Compare) -> TestCode:
    left, right = scope.num(node.left), scope.num(node.right)
    match node.operator:
        case "<":
            return lambda frame: left(frame) < right(frame)
        case "<=":
            return lambda frame: left(frame) <= right(frame)
        case ">":
            return lambda frame: left(frame) > right(frame)
        case ">=":
            return lambda frame: left(frame) >= right(frame)
        case "==":
            return lambda frame: left(frame) == right(frame)
    return lambda frame: left(frame) != right(frame)


def _compare_to_number(scope: Scope, symbol: str, node: n.Expr, number: n.Expr, *, swapped: bool = False) -> TestCode:
    """A value of unknown type against one that is surely a number."""
    compare, slow = COMPARISONS[symbol], scope.runtime.compare
    node = n.ungroup(node)
    if isinstance(number, n.Num):
        constant = number.value
        if (field := n.constant_field(node)) > 0:
            return _compare_field(scope, compare, field - 1, constant)
        if (cell := scope.global_cell(node)) is not None:

            def compare_global(_frame: Frame) -> bool:
                value = cell[0]
                return compare(value, constant) if type(value) is float else slow(compare, value, constant)

            return compare_global
        load = scope.value(node)

        def compare_constant(frame: Frame) -> bool:
            value = load(frame)
            return compare(value, constant) if type(value) is float else slow(compare, value, constant)

        return compare_constant
    left, right = scope.value(node), scope.num(number)

    def compare_mixed(frame: Frame) -> bool:
        if swapped:
            amount = right(frame)
            value = left(frame)
        else:
            value = left(frame)
            amount = right(frame)
        return compare(value, amount) if type(value) is float else slow(compare, value, amount)

    return compare_mixed


def _compare_field(scope: Scope, compare: Callable[[Any, Any], bool], place: int, constant: float) -> TestCode:
    record = scope.record
    get = record.get
    slow = scope.runtime.compare
    spelled = scope.conversion.string

    def compare_field(_frame: Frame) -> bool:
        fields = record.fields
        if fields is None:
            fields = record.split()
        try:
            text = fields[place]
        except IndexError:
            return compare("", spelled(constant))
        if type(text) is str:
            try:
                number = float(text)
            except ValueError:
                return compare(text, spelled(constant))
            if number - number == 0.0 and "_" not in text and text.isascii():
                return compare(number, constant)
            found = looks_numeric(text)
            return compare(text, spelled(constant)) if found is None else compare(found, constant)
        return slow(compare, get(place + 1), constant)

    return compare_field


EXPRESSIONS: dict[type, ExpressionCompiler] = {
    n.Compare: _expr_compare,
}
