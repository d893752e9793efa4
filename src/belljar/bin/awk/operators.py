"""Compiles awk's operators: arithmetic, matching, logic, concatenation and assignment."""

from __future__ import annotations

import math
from collections.abc import Callable

from belljar.bin.awk import nodes as n
from belljar.bin.awk.comparison import Comparison
from belljar.bin.awk.errors import AwkFatal
from belljar.bin.awk.patterns import Pattern, compile_pattern
from belljar.bin.awk.scope import NUM, STR, TEST, VAL, Compiled, Frame, NumberCode
from belljar.bin.awk.values import UNINIT, RegexValue, StrNum, Uninit, Value, to_number

LARGE = 1 << 16
"""Strings longer than this are charged for when they are built."""


class Operators(Comparison):
    """Everything between operands."""

    # -- constants ----------------------------------------------------------------------------------------------

    def expr_num(self, node: n.Num, want: str) -> Compiled:
        number = node.value
        if want == STR:
            return VAL, lambda frame: number
        return NUM, lambda frame: number

    def expr_str(self, node: n.Str, want: str) -> Compiled:
        text = node.value
        return STR, lambda frame: text

    def expr_group(self, node: n.Group, want: str) -> Compiled:
        return self.compile(node.inner, want)

    def expr_regex(self, node: n.Regex, want: str) -> Compiled:
        """A bare `/re/` matches $0."""
        record = self.record
        if not self.runtime.cases_matter:
            found = self.constant_pattern(node.source, node.line).test

            def matches(_frame: Frame) -> object:
                text = record.text
                return found(record.rebuild() if text is None else text)

            return TEST, matches
        pattern = self.pattern(node, node.line)
        return TEST, lambda frame: pattern(frame).test(record.get_text())

    def expr_typedregex(self, node: n.TypedRegex, want: str) -> Compiled:
        self.constant_pattern(node.source, node.line)
        value = RegexValue(node.source)
        return VAL, lambda frame: value

    # -- patterns -----------------------------------------------------------------------------------------------

    def constant_pattern(self, source: str, line: int) -> Pattern:
        return self.runtime.compile_constant(source, line)

    def pattern(self, node: n.Expr, line: int) -> Callable[[Frame], Pattern]:
        """Code that gives the compiled pattern `node` stands for."""
        while isinstance(node, n.Group):
            node = node.inner
        runtime = self.runtime
        if isinstance(node, (n.Regex, n.TypedRegex)):
            constant = self.constant_pattern(node.source, node.line)
            source = node.source
            if not runtime.cases_matter:
                return lambda frame: constant
            return lambda frame: compile_pattern(source, runtime.ignore_case)
        text = self.string(node)
        dynamic = runtime.dynamic_pattern
        return lambda frame: dynamic(text(frame), line)

    def expr_match(self, node: n.Match, want: str) -> Compiled:
        subject = self.string(node.left)
        right = node.right
        while isinstance(right, n.Group):
            right = right.inner
        if isinstance(right, n.Regex) and not self.runtime.cases_matter:
            found = self.constant_pattern(right.source, right.line).test
            if node.negated:
                return TEST, lambda frame: not found(subject(frame))
            return TEST, lambda frame: found(subject(frame))
        pattern = self.pattern(right, node.line)
        negated = node.negated

        def matches(frame: Frame) -> bool:
            text = subject(frame)
            return bool(pattern(frame).test(text)) is not negated

        return TEST, matches

    # -- arithmetic ---------------------------------------------------------------------------------------------

    def expr_binary(self, node: n.Binary, want: str) -> Compiled:
        left_node, right_node = node.left, node.right
        while isinstance(right_node, n.Group):
            right_node = right_node.inner
        cell = self.global_cell(left_node)
        if cell is not None and isinstance(right_node, n.Num) and node.operator in "+-*":
            return NUM, _cell_arithmetic(node.operator, cell, right_node.value)
        left = self.num(left_node)
        if isinstance(right_node, n.Num):
            found = self._with_constant(node.operator, left, right_node.value)
            if found is not None:
                return NUM, found
        right = self.num(right_node)
        line = node.line
        match node.operator:
            case "+":
                return NUM, lambda frame: left(frame) + right(frame)
            case "-":
                return NUM, lambda frame: left(frame) - right(frame)
            case "*":
                return NUM, lambda frame: left(frame) * right(frame)
            case "/":

                def divide(frame: Frame) -> float:
                    numerator = left(frame)
                    divisor = right(frame)
                    if divisor == 0.0:
                        raise AwkFatal("division by zero attempted", line)
                    return numerator / divisor

                return NUM, divide
            case "%":
                return NUM, lambda frame: modulo(left(frame), right(frame), line)
        return NUM, lambda frame: power(left(frame), right(frame))

    def _with_constant(self, symbol: str, left: NumberCode, constant: float) -> NumberCode | None:
        if symbol == "+":
            return lambda frame: left(frame) + constant
        if symbol == "-":
            return lambda frame: left(frame) - constant
        if symbol == "*":
            return lambda frame: left(frame) * constant
        if constant == 0.0 or constant - constant != 0.0:
            return None
        if symbol == "/":
            return lambda frame: left(frame) / constant
        if symbol == "%":

            def remainder(frame: Frame) -> float:
                number = left(frame)
                if number - number == 0.0:
                    return math.fmod(number, constant)
                return math.nan

            return remainder
        if symbol == "^" and constant == 2.0:

            def square(frame: Frame) -> float:
                number = left(frame)
                return number * number

            return square
        return None

    def expr_unary(self, node: n.Unary, want: str) -> Compiled:
        if node.operator == "!":
            inner = self.test(node.operand)
            return TEST, lambda frame: not inner(frame)
        operand = self.num(node.operand)
        if node.operator == "-":
            return NUM, lambda frame: -operand(frame)
        return NUM, operand

    # -- logic --------------------------------------------------------------------------------------------------

    def expr_and(self, node: n.And, want: str) -> Compiled:
        left, right = self.test(node.left), self.test(node.right)
        return TEST, lambda frame: left(frame) and right(frame)

    def expr_or(self, node: n.Or, want: str) -> Compiled:
        left, right = self.test(node.left), self.test(node.right)
        return TEST, lambda frame: left(frame) or right(frame)

    def expr_ternary(self, node: n.Ternary, want: str) -> Compiled:
        test = self.test(node.test)
        if want == NUM:
            yes_number, no_number = self.num(node.yes), self.num(node.no)
            return NUM, lambda frame: yes_number(frame) if test(frame) else no_number(frame)
        if want == STR:
            yes_text, no_text = self.string(node.yes), self.string(node.no)
            return STR, lambda frame: yes_text(frame) if test(frame) else no_text(frame)
        yes, no = self.value(node.yes), self.value(node.no)
        return VAL, lambda frame: yes(frame) if test(frame) else no(frame)

    # -- concatenation ------------------------------------------------------------------------------------------

    def expr_concat(self, node: n.Concat, want: str) -> Compiled:
        parts = [self.string(part) for part in node.parts]
        large = self.runtime.large_string
        if len(parts) == 2:
            first, second = parts

            def join_two(frame: Frame) -> str:
                text = first(frame) + second(frame)
                if len(text) > LARGE:
                    large(len(text))
                return text

            return STR, join_two
        if len(parts) == 3:
            first, second, third = parts

            def join_three(frame: Frame) -> str:
                text = f"{first(frame)}{second(frame)}{third(frame)}"
                if len(text) > LARGE:
                    large(len(text))
                return text

            return STR, join_three

        def join(frame: Frame) -> str:
            pieces = [part(frame) for part in parts]
            total = sum(map(len, pieces))
            if total > LARGE:
                large(total)
            return "".join(pieces)

        return STR, join

    # -- assignment ---------------------------------------------------------------------------------------------

    def expr_assign(self, node: n.Assign, want: str) -> Compiled:
        kind = self.kind(node.value)
        code = (
            self.num(node.value) if kind == NUM else self.string(node.value) if kind == STR else self.value(node.value)
        )
        target = node.target
        cell = self.global_cell(target)
        if cell is not None:
            plain = cell

            def assign_global(frame: Frame) -> Value:
                plain[0] = value = code(frame)
                return value

            return kind, assign_global
        store = self.store(target)

        def assign(frame: Frame) -> Value:
            value = code(frame)
            store(frame, value)
            return value

        return kind, assign

    def expr_augassign(self, node: n.AugAssign, want: str) -> Compiled:
        target = node.target
        amount = self.num(node.value)
        line = node.line
        if node.operator == "+" and isinstance(target, n.Var) and self._plain_global(target.name):
            cell = self.runtime.cell(target.name)

            def add(frame: Frame) -> float:
                more = amount(frame)
                value = cell[0]
                total = (value if type(value) is float else to_number(value)) + more
                cell[0] = total
                return total

            return NUM, add
        combine = ARITHMETIC[node.operator]
        if isinstance(target, n.Index) and (array := self.constant_array(target.array)) is not None:
            key = self.subscript_key(target.subscripts)

            def combine_element(frame: Frame) -> float:
                more = amount(frame)
                subscript = key(frame)
                value = array.get(subscript, UNINIT)
                total = combine(value if type(value) is float else to_number(value), more, line)
                array[subscript] = total
                return total

            return NUM, combine_element
        locate, load, save = self.place(target)

        def combine_any(frame: Frame) -> float:
            more = amount(frame)
            where = locate(frame)
            total = combine(to_number(load(frame, where)), more, line)
            save(frame, where, total)
            return total

        return NUM, combine_any

    def expr_incr(self, node: n.Incr, want: str) -> Compiled:
        target, delta, prefix = node.target, node.delta, node.prefix
        if isinstance(target, n.Var) and self._plain_global(target.name):
            cell = self.runtime.cell(target.name)
            if prefix:

                def before(_frame: Frame) -> float:
                    value = cell[0]
                    total = (value if type(value) is float else to_number(value)) + delta
                    cell[0] = total
                    return total

                return NUM, before

            def after(_frame: Frame) -> float:
                value = cell[0]
                if type(value) is not float:
                    value = to_number(value)
                cell[0] = value + delta
                return value

            return NUM, after
        if isinstance(target, n.Var) and target.name in self.locals and not self.is_array(target.name):
            index = self.locals[target.name]

            def step_local(frame: Frame) -> float:
                value = frame[index]
                if type(value) is not float:
                    value = to_number(value)
                total = value + delta
                frame[index] = total
                return total if prefix else value

            return NUM, step_local
        if isinstance(target, n.Index) and (array := self.constant_array(target.array)) is not None:
            key = self.subscript_key(target.subscripts)

            def step_element(frame: Frame) -> float:
                subscript = key(frame)
                value = array.get(subscript, 0.0)
                if type(value) is not float:
                    value = to_number(value)
                total = value + delta
                array[subscript] = total
                return total if prefix else value

            return NUM, step_element
        locate, load, save = self.place(target)

        def step(frame: Frame) -> float:
            where = locate(frame)
            value = to_number(load(frame, where))
            total = value + delta
            save(frame, where, total)
            return total if prefix else value

        return NUM, step


def _cell_arithmetic(symbol: str, cell: list[Value], constant: float) -> NumberCode:
    """A global variable and a constant."""
    if symbol == "*":

        def times(_frame: Frame) -> float:
            value = cell[0]
            return (value if type(value) is float else to_number(value)) * constant

        return times
    shift = constant if symbol == "+" else -constant

    def plus(_frame: Frame) -> float:
        value = cell[0]
        return (value if type(value) is float else to_number(value)) + shift

    return plus


def modulo(number: float, divisor: float, line: int) -> float:
    if divisor == 0.0:
        raise AwkFatal("division by zero attempted in `%'", line)
    if number - number != 0.0 or divisor != divisor:
        return math.nan
    return math.fmod(number, divisor)


def power(base: float, exponent: float) -> float:
    try:
        result = base**exponent
    except OverflowError:
        return -math.inf if base < 0 and exponent % 2 == 1 else math.inf
    except ZeroDivisionError:
        return math.inf
    return math.nan if isinstance(result, complex) else result


def divide(number: float, divisor: float, line: int) -> float:
    if divisor == 0.0:
        raise AwkFatal("division by zero attempted in `/='", line)
    return number / divisor


def modulo_assign(number: float, divisor: float, line: int) -> float:
    if divisor == 0.0:
        raise AwkFatal("division by zero attempted in `%='", line)
    return modulo(number, divisor, line)


ARITHMETIC: dict[str, Callable[[float, float, int], float]] = {
    "+": lambda number, more, line: number + more,
    "-": lambda number, more, line: number - more,
    "*": lambda number, more, line: number * more,
    "/": divide,
    "%": modulo_assign,
    "^": lambda number, more, line: power(number, more),
}


def type_name(value: Value) -> str:
    """What typeof() says of a scalar."""
    if type(value) is float:
        return "number"
    if type(value) is StrNum:
        return "string" if value.number() is None else "strnum"
    if type(value) is RegexValue:
        return "regexp"
    if isinstance(value, Uninit):
        return "unassigned"
    return "string"
