"""Compiles awk's comparisons, by what is known of the types of both sides."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from belljar.bin.awk import nodes as n
from belljar.bin.awk.lvalues import Lvalues
from belljar.bin.awk.scope import NUM, STR, TEST, VAL, Compiled, Frame, TestCode
from belljar.bin.awk.values import Value, looks_numeric, numeric

COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
    ">": operator.gt,
    ">=": operator.ge,
}
_SWAPPED = {"<": ">", "<=": ">=", "==": "==", "!=": "!=", ">": "<", ">=": "<="}


class Comparison(Lvalues):
    """Static types, and the comparison each pair of them takes."""

    def _plain_global(self, name: str) -> bool:
        return not (
            self.is_array(name)
            or name in self.locals
            or name in self.tree.functions
            or self.runtime.hook(name) is not None
        )

    def kind(self, node: n.Expr) -> str:
        """The static type of `node`: NUM, STR, or VAL when only the run can tell."""
        match node:
            case n.Group():
                return self.kind(node.inner)
            case n.Num() | n.Binary() | n.Unary() | n.Incr() | n.AugAssign() | n.Compare() | n.Match():
                return NUM
            case n.And() | n.Or() | n.In() | n.Regex() | n.Getline():
                return NUM
            case n.Str() | n.Concat():
                return STR
            case n.Var(name=name):
                special = name in ("NR", "NF", "FNR") and name not in self.locals
                return NUM if special else VAL
            case n.Builtin(name=name):
                if name in ("sprintf", "substr", "tolower", "toupper", "gensub", "strftime", "typeof"):
                    return STR
                return NUM
            case n.Assign():
                return self.kind(node.value)
        return VAL

    def expr_compare(self, node: n.Compare, want: str) -> Compiled:
        left_kind, right_kind = self.kind(node.left), self.kind(node.right)
        compare = COMPARISONS[node.operator]
        if left_kind == NUM and right_kind == NUM:
            return TEST, self._compare_numbers(node)
        if self.runtime.cases_matter:
            one, other, by_rule = self.value(node.left), self.value(node.right), self.compare_values
            return TEST, lambda frame: by_rule(compare, one(frame), other(frame))
        if left_kind == STR or right_kind == STR:
            left_text, right_text = self.string(node.left), self.string(node.right)
            if node.operator == "==":
                return TEST, lambda frame: left_text(frame) == right_text(frame)
            if node.operator == "!=":
                return TEST, lambda frame: left_text(frame) != right_text(frame)
            return TEST, lambda frame: compare(left_text(frame), right_text(frame))
        if right_kind == NUM:
            return TEST, self._compare_to_number(node.operator, node.left, node.right)
        if left_kind == NUM:
            return TEST, self._compare_to_number(_SWAPPED[node.operator], node.right, node.left, swapped=True)
        left, right = self.value(node.left), self.value(node.right)
        slow = self.compare_values

        def compare_any(frame: Frame) -> bool:
            first = left(frame)
            second = right(frame)
            if type(first) is float and type(second) is float:
                return compare(first, second)
            return slow(compare, first, second)

        return TEST, compare_any

    def _compare_numbers(self, node: n.Compare) -> TestCode:
        left, right = self.num(node.left), self.num(node.right)
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

    def _compare_to_number(self, symbol: str, node: n.Expr, number: n.Expr, swapped: bool = False) -> TestCode:
        """A value of unknown type against one that is surely a number."""
        compare = COMPARISONS[symbol]
        slow = self.compare_values
        while isinstance(node, n.Group):
            node = node.inner
        fixed = number.value if isinstance(number, n.Num) else None
        if (
            isinstance(node, n.Field)
            and isinstance(node.index, n.Num)
            and 1 <= node.index.value < 1e9
            and fixed is not None
        ):
            return self._compare_field(compare, int(node.index.value) - 1, fixed)
        cell = self.global_cell(node)
        if cell is not None and fixed is not None:
            return self._compare_cell(symbol, cell, fixed)
        left, right = self.value(node), self.num(number)
        if fixed is not None:

            def compare_constant(frame: Frame) -> bool:
                value = left(frame)
                if type(value) is float:
                    return compare(value, fixed)
                return slow(compare, value, fixed)

            return compare_constant
        if swapped:

            def compare_swapped(frame: Frame) -> bool:
                amount = right(frame)
                value = left(frame)
                if type(value) is float:
                    return compare(value, amount)
                return slow(compare, value, amount)

            return compare_swapped

        def compare_mixed(frame: Frame) -> bool:
            value = left(frame)
            if type(value) is float:
                return compare(value, right(frame))
            return slow(compare, value, right(frame))

        return compare_mixed

    def global_cell(self, node: n.Expr) -> list[Value] | None:
        """The cell of a global scalar without special meaning."""
        if isinstance(node, n.Var) and self._plain_global(node.name):
            return self.runtime.cell(node.name)
        return None

    def _compare_cell(self, symbol: str, cell: list[Value], constant: float) -> TestCode:
        """A global against a constant: what most loops test."""
        slow = self.compare_values
        compare = COMPARISONS[symbol]
        if symbol == "<":

            def less(_frame: Frame) -> bool:
                value = cell[0]
                return value < constant if type(value) is float else slow(compare, value, constant)

            return less
        if symbol == "<=":

            def at_most(_frame: Frame) -> bool:
                value = cell[0]
                return value <= constant if type(value) is float else slow(compare, value, constant)

            return at_most
        if symbol == ">":

            def more(_frame: Frame) -> bool:
                value = cell[0]
                return value > constant if type(value) is float else slow(compare, value, constant)

            return more

        def other(_frame: Frame) -> bool:
            value = cell[0]
            return compare(value, constant) if type(value) is float else slow(compare, value, constant)

        return other

    def _compare_field(self, compare: Callable[[Any, Any], bool], place: int, constant: float) -> TestCode:
        record = self.record
        get = record.get
        slow = self.compare_values
        spelled = self.conversion.string

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

    def compare_values(self, compare: Callable[[Any, Any], bool], left: Value, right: Value) -> bool:
        """awk's rule: as numbers when both are or look like ones, else as strings."""
        if type(left) is not str and type(right) is not str:
            first = numeric(left)
            if first is not None:
                second = numeric(right)
                if second is not None:
                    return compare(first, second)
        text = self.conversion.string
        if self.runtime.ignore_case:
            return compare(text(left).lower(), text(right).lower())
        return compare(text(left), text(right))
