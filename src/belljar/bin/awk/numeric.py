"""Compiles the calls of awk's numeric functions: mathematics, random numbers and bits."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from functools import reduce

from belljar.bin.awk import nodes as n
from belljar.bin.awk.errors import AwkFatal
from belljar.bin.awk.scope import NUM, TEST, BuiltinCompiler, Compiled, Frame, Scope
from belljar.bin.awk.values import string_number

TOP = 1 << 53
_WORD = (1 << 64) - 1


def _call_atan2(scope: Scope, node: n.Builtin) -> Compiled:
    y, x = scope.num(node.arguments[0]), scope.num(node.arguments[1])
    return NUM, lambda frame: math.atan2(y(frame), x(frame))


def _wave(function: Callable[[float], float]) -> BuiltinCompiler:
    def call(scope: Scope, node: n.Builtin) -> Compiled:
        operand = scope.num(node.arguments[0])

        def compute(frame: Frame) -> float:
            try:
                return function(operand(frame))
            except ValueError:
                return math.copysign(math.nan, -1.0)

        return NUM, compute

    return call


def _call_exp(scope: Scope, node: n.Builtin) -> Compiled:
    operand = scope.num(node.arguments[0])
    warn, line, spell = scope.runtime.warn, node.line, scope.conversion.number

    def compute(frame: Frame) -> float:
        number = operand(frame)
        try:
            result = math.exp(number)
        except OverflowError:
            result = math.inf
        if number - number == 0.0 and result in (0.0, math.inf):
            warn(f"exp: argument {spell(number)} is out of range", line)
        return result

    return NUM, compute


def _root(function: Callable[[float], float], of_zero: float) -> BuiltinCompiler:
    """log and sqrt: negative arguments are warned of."""

    def call(scope: Scope, node: n.Builtin) -> Compiled:
        operand = scope.num(node.arguments[0])
        warn, line, name, spell = scope.runtime.warn, node.line, node.name, scope.conversion.number

        def compute(frame: Frame) -> float:
            number = operand(frame)
            if number < 0:
                warn(f"{name}: received negative argument {spell(number)}", line)
                return math.copysign(math.nan, -1.0)
            return of_zero if of_zero and not number else function(number)

        return NUM, compute

    return call


def _call_int(scope: Scope, node: n.Builtin) -> Compiled:
    operand = scope.num(node.arguments[0])

    def truncate(frame: Frame) -> float:
        number = operand(frame)
        return float(int(number)) if number - number == 0.0 else number

    return NUM, truncate


def _call_rand(scope: Scope, _node: n.Builtin) -> Compiled:
    runtime = scope.runtime
    return NUM, lambda frame: runtime.random.random()


def _call_srand(scope: Scope, node: n.Builtin) -> Compiled:
    runtime = scope.runtime
    seed = scope.num(node.arguments[0]) if node.arguments else None

    def reseed(frame: Frame) -> float:
        return runtime.reseed(float(math.floor(runtime.world.now())) if seed is None else seed(frame))

    return NUM, reseed


def _call_strtonum(scope: Scope, node: n.Builtin) -> Compiled:
    operand = scope.value(node.arguments[0])
    text = scope.conversion.string

    def convert(frame: Frame) -> float:
        value = operand(frame)
        return value if type(value) is float else parse_c_number(text(value))

    return NUM, convert


def _bits(combine: Callable[[int, int], int]) -> BuiltinCompiler:
    """Functions of integers, which are combined from left to right."""

    def call(scope: Scope, node: n.Builtin) -> Compiled:
        operands = [scope.num(argument) for argument in node.arguments]
        name, line, spell = node.name, node.line, scope.conversion.number

        def compute(frame: Frame) -> float:
            values = [operand(frame) for operand in operands]
            for index, value in enumerate(values, 1):
                if value < 0:
                    raise AwkFatal(_negative(name, index, values, spell), line)
            integers = [int(value) & _WORD if value - value == 0.0 else 0 for value in values]
            return float(reduce(combine, integers))

        return NUM, compute

    return call


def _negative(name: str, index: int, values: list[float], spell: Callable[[float], str]) -> str:
    if name in ("lshift", "rshift"):
        return f"{name}({values[0]:f}, {values[1]:f}): negative values are not allowed"
    if name == "compl":
        return f"compl({values[0]:f}): negative value is not allowed"
    return f"{name}: argument {index} negative value {spell(values[index - 1])} is not allowed"


def _call_compl(scope: Scope, node: n.Builtin) -> Compiled:
    kind, identity = _bits(operator.and_)(scope, node)
    return kind, lambda frame: float(~int(identity(frame)) & (TOP - 1))


def _call_mkbool(scope: Scope, node: n.Builtin) -> Compiled:
    return TEST, scope.test(node.arguments[0])


def parse_c_number(text: str) -> float:
    """strtonum: decimal, 0x hexadecimal or 0 octal; the latter two without a sign or space before them."""
    if text[:2] in ("0x", "0X"):
        digits = _leading(text[2:], "0123456789abcdefABCDEF")
        return float(int(digits or "0", 16)) if len(digits) < 256 else math.inf
    if text[:1] == "0" and text[1:2].isdecimal():
        digits = _leading(text, "0123456789")
        if not set(digits) & {"8", "9"} and text[len(digits) : len(digits) + 1] not in (".", "e", "E"):
            return float(int(digits, 8)) if len(digits) < 340 else math.inf
    return string_number(text)


def _leading(text: str, allowed: str) -> str:
    return text[: len(text) - len(text.lstrip(allowed))]


FUNCTIONS: dict[str, BuiltinCompiler] = {
    "and": _bits(operator.and_),
    "atan2": _call_atan2,
    "compl": _call_compl,
    "cos": _wave(math.cos),
    "exp": _call_exp,
    "int": _call_int,
    "log": _root(math.log, -math.inf),
    "lshift": _bits(lambda value, shift: (value << min(shift, 64)) & _WORD),
    "mkbool": _call_mkbool,
    "or": _bits(operator.or_),
    "rand": _call_rand,
    "rshift": _bits(lambda value, shift: value >> min(shift, 64)),
    "sin": _wave(math.sin),
    "sqrt": _root(math.sqrt, 0.0),
    "srand": _call_srand,
    "strtonum": _call_strtonum,
    "xor": _bits(operator.xor),
}
