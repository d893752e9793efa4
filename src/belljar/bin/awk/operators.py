"""Compiles awk's operators: arithmetic, matching, logic, concatenation and assignment."""

from __future__ import annotations

import math
from collections.abc import Callable

from belljar.bin.awk import nodes as n
from belljar.bin.awk.errors import AwkFatal
from belljar.bin.awk.lvalues import key_code, place_code, store_code
from belljar.bin.awk.patterns import Pattern, compile_pattern
from belljar.bin.awk.scope import NUM, STR, TEST, VAL, Compiled, ExpressionCompiler, Frame, NumberCode, Scope
from belljar.bin.awk.values import UNINIT, RegexValue, StrNum, Uninit, Value, to_number

LARGE = 1 << 16
"""Strings longer than this are charged for when they are built."""


# -- constants ----------------------------------------------------------------------------------------------


def _expr_num(scope: Scope, node: n.Num, want: str) -> Compiled:
    number = node.value
    if want == STR:
        return VAL, lambda frame: number
    return NUM, lambda frame: number


def _expr_str(scope: Scope, node: n.Str, want: str) -> Compiled:
    text = node.value
    return STR, lambda frame: text


def _expr_group(scope: Scope, node: n.Group, want: str) -> Compiled:
    return scope.compile(node.inner, want)


def _expr_regex(scope: Scope, node: n.Regex, want: str) -> Compiled:
    """A bare `/re/` matches $0."""
    record = scope.record
    if not scope.runtime.cases_matter:
        found = scope.runtime.compile_constant(node.source, node.line).test

        def matches(_frame: Frame) -> object:
            text = record.text
            return found(record.rebuild() if text is None else text)

        return TEST, matches
    pattern = pattern_code(scope, node, node.line)
    return TEST, lambda frame: pattern(frame).test(record.get_text())


def _expr_typedregex(scope: Scope, node: n.TypedRegex, want: str) -> Compiled:
    scope.runtime.compile_constant(node.source, node.line)
    value = RegexValue(node.source)
    return VAL, lambda frame: value


# -- patterns -----------------------------------------------------------------------------------------------


def pattern_code(scope: Scope, node: n.Expr, line: int) -> Callable[[Frame], Pattern]:
    """Code that gives the compiled pattern `node` stands for."""
    node = n.ungroup(node)
    runtime = scope.runtime
    if isinstance(node, (n.Regex, n.TypedRegex)):
        constant = scope.runtime.compile_constant(node.source, node.line)
        source = node.source
        if not runtime.cases_matter:
            return lambda frame: constant
        return lambda frame: compile_pattern(source, runtime.ignore_case)
    text = scope.string(node)
    dynamic = runtime.dynamic_pattern
    return lambda frame: dynamic(text(frame), line)


def _expr_match(scope: Scope, node: n.Match, want: str) -> Compiled:
    subject = scope.string(node.left)
    right = n.ungroup(node.right)
    if isinstance(right, n.Regex) and not scope.runtime.cases_matter:
        found = scope.runtime.compile_constant(right.source, right.line).test
        if node.negated:
            return TEST, lambda frame: not found(subject(frame))
        return TEST, lambda frame: found(subject(frame))
    pattern = pattern_code(scope, right, node.line)
    negated = node.negated

    def matches(frame: Frame) -> bool:
        text = subject(frame)
        return bool(pattern(frame).test(text)) is not negated

    return TEST, matches


# -- arithmetic ---------------------------------------------------------------------------------------------


def _expr_binary(scope: Scope, node: n.Binary, _want: str) -> Compiled:
    left, line = scope.num(node.left), node.line
    right_node = n.ungroup(node.right)
    if isinstance(right_node, n.Num) and (found := _with_constant(node.operator, left, right_node.value)) is not None:
        return NUM, found
    right = scope.num(right_node)
    match node.operator:
        case "+":
            return NUM, lambda frame: left(frame) + right(frame)
        case "-":
            return NUM, lambda frame: left(frame) - right(frame)
        case "*":
            return NUM, lambda frame: left(frame) * right(frame)
        case "/":

            def quotient(frame: Frame) -> float:
                numerator = left(frame)
                divisor = right(frame)
                if divisor == 0.0:
                    raise AwkFatal("division by zero attempted", line)
                return numerator / divisor

            return NUM, quotient
        case "%":
            return NUM, lambda frame: modulo(left(frame), right(frame), line)
    return NUM, lambda frame: power(left(frame), right(frame))


def _with_constant(symbol: str, left: NumberCode, constant: float) -> NumberCode | None:
    """A number and a constant, for which some operators need no checks."""
    if symbol == "+":
        return lambda frame: left(frame) + constant
    if symbol == "-":
        return lambda frame: left(frame) - constant
    if symbol == "*":
        return lambda frame: left(frame) * constant
    if not constant or constant - constant != 0.0:
        return None
    if symbol == "/":
        return lambda frame: left(frame) / constant
    if symbol != "%":
        return None

    def remainder(frame: Frame) -> float:
        number = left(frame)
        return math.fmod(number, constant) if number - number == 0.0 else math.nan

    return remainder


def _expr_unary(scope: Scope, node: n.Unary, want: str) -> Compiled:
    if node.operator == "!":
        inner = scope.test(node.operand)
        return TEST, lambda frame: not inner(frame)
    operand = scope.num(node.operand)
    if node.operator == "-":
        return NUM, lambda frame: -operand(frame)
    return NUM, operand


# -- logic --------------------------------------------------------------------------------------------------


def _expr_and(scope: Scope, node: n.And, want: str) -> Compiled:
    left, right = scope.test(node.left), scope.test(node.right)
    return TEST, lambda frame: left(frame) and right(frame)


def _expr_or(scope: Scope, node: n.Or, want: str) -> Compiled:
    left, right = scope.test(node.left), scope.test(node.right)
    return TEST, lambda frame: left(frame) or right(frame)


def _expr_ternary(scope: Scope, node: n.Ternary, want: str) -> Compiled:
    test = scope.test(node.test)
    if want == NUM:
        yes_number, no_number = scope.num(node.yes), scope.num(node.no)
        return NUM, lambda frame: yes_number(frame) if test(frame) else no_number(frame)
    if want == STR:
        yes_text, no_text = scope.string(node.yes), scope.string(node.no)
        return STR, lambda frame: yes_text(frame) if test(frame) else no_text(frame)
    yes, no = scope.value(node.yes), scope.value(node.no)
    return VAL, lambda frame: yes(frame) if test(frame) else no(frame)


# -- concatenation ------------------------------------------------------------------------------------------


def _expr_concat(scope: Scope, node: n.Concat, want: str) -> Compiled:
    parts = [scope.string(part) for part in node.parts]
    large = scope.runtime.large_string
    if len(parts) == 2:
        first, second = parts

        def join_two(frame: Frame) -> str:
            text = first(frame) + second(frame)
            if len(text) > LARGE:
                large(len(text))
            return text

        return STR, join_two

    def join(frame: Frame) -> str:
        pieces = [part(frame) for part in parts]
        total = sum(map(len, pieces))
        if total > LARGE:
            large(total)
        return "".join(pieces)

    return STR, join


# -- assignment ---------------------------------------------------------------------------------------------


def _expr_assign(scope: Scope, node: n.Assign, _want: str) -> Compiled:
    kind, code = scope.typed(node.value)
    cell = scope.global_cell(node.target)
    if cell is not None:

        def assign_global(frame: Frame) -> Value:
            value: Value = code(frame)
            cell[0] = value
            return value

        return kind, assign_global
    store = store_code(scope, node.target)

    def assign(frame: Frame) -> Value:
        value: Value = code(frame)
        store(frame, value)
        return value

    return kind, assign


def _expr_augassign(scope: Scope, node: n.AugAssign, want: str) -> Compiled:
    target = node.target
    amount = scope.num(node.value)
    line = node.line
    cell = scope.global_cell(target)
    if node.operator == "+" and cell is not None:

        def add(frame: Frame) -> float:
            more = amount(frame)
            value = cell[0]
            cell[0] = total = (value if type(value) is float else to_number(value)) + more
            return total

        return NUM, add
    combine = ARITHMETIC[node.operator]
    if isinstance(target, n.Index) and (array := scope.global_array(target.array)) is not None:
        key = key_code(scope, target.subscripts)

        def combine_element(frame: Frame) -> float:
            more = amount(frame)
            subscript = key(frame)
            value = array.get(subscript, UNINIT)
            array[subscript] = total = combine(value if type(value) is float else to_number(value), more, line)
            return total

        return NUM, combine_element
    locate, load, save = place_code(scope, target)

    def combine_any(frame: Frame) -> float:
        more = amount(frame)
        where = locate(frame)
        total = combine(to_number(load(frame, where)), more, line)
        save(frame, where, total)
        return total

    return NUM, combine_any


def _expr_incr(scope: Scope, node: n.Incr, _want: str) -> Compiled:
    target, delta, prefix = node.target, node.delta, node.prefix
    if (place := scope.variable_place(target)) is not None:
        cell, index = place

        def step_variable(frame: Frame) -> float:
            held = frame if cell is None else cell
            value = held[index]
            if type(value) is not float:
                value = to_number(value)
            held[index] = total = value + delta
            return total if prefix else value

        return NUM, step_variable
    if isinstance(target, n.Index) and (array := scope.global_array(target.array)) is not None:
        key = key_code(scope, target.subscripts)

        def step_element(frame: Frame) -> float:
            subscript = key(frame)
            value = array.get(subscript, 0.0)
            if type(value) is not float:
                value = to_number(value)
            array[subscript] = total = value + delta
            return total if prefix else value

        return NUM, step_element
    locate, load, save = place_code(scope, target)

    def step(frame: Frame) -> float:
        where = locate(frame)
        value = to_number(load(frame, where))
        total = value + delta
        save(frame, where, total)
        return total if prefix else value

    return NUM, step


def modulo(number: float, divisor: float, line: int, symbol: str = "%") -> float:
    if divisor == 0.0:
        raise AwkFatal(f"division by zero attempted in `{symbol}'", line)
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


ARITHMETIC: dict[str, Callable[[float, float, int], float]] = {
    "+": lambda number, more, line: number + more,
    "-": lambda number, more, line: number - more,
    "*": lambda number, more, line: number * more,
    "/": divide,
    "%": lambda number, more, line: modulo(number, more, line, "%="),
    "^": lambda number, more, line: power(number, more),
}


def type_name(value: Value) -> str:
    """Return typeof() of a scalar."""
    if type(value) is float:
        return "number"
    if type(value) is StrNum:
        return "string" if value.number() is None else "strnum"
    if type(value) is RegexValue:
        return "regexp"
    if isinstance(value, Uninit):
        return "unassigned"
    return "string"


EXPRESSIONS: dict[type, ExpressionCompiler] = {
    n.Num: _expr_num,
    n.Str: _expr_str,
    n.Group: _expr_group,
    n.Regex: _expr_regex,
    n.TypedRegex: _expr_typedregex,
    n.Match: _expr_match,
    n.Binary: _expr_binary,
    n.Unary: _expr_unary,
    n.And: _expr_and,
    n.Or: _expr_or,
    n.Ternary: _expr_ternary,
    n.Concat: _expr_concat,
    n.Assign: _expr_assign,
    n.AugAssign: _expr_augassign,
    n.Incr: _expr_incr,
}
