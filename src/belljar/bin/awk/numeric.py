"""Compiles the calls of awk's numeric functions."""

from __future__ import annotations

import math
from collections.abc import Callable

from belljar.bin.awk import nodes as n
from belljar.bin.awk.errors import AwkFatal
from belljar.bin.awk.operators import Operators
from belljar.bin.awk.scope import NUM, TEST, Compiled, Frame
from belljar.bin.awk.values import string_number

TOP = 1 << 53


class Numeric(Operators):
    """Mathematics, random numbers and bits."""

    def call_atan2(self, node: n.Builtin) -> Compiled:
        y, x = self.num(node.arguments[0]), self.num(node.arguments[1])
        return NUM, lambda frame: math.atan2(y(frame), x(frame))

    def _math(self, node: n.Builtin, function: Callable[[float], float]) -> Compiled:
        operand = self.num(node.arguments[0])

        def compute(frame: Frame) -> float:
            try:
                return function(operand(frame))
            except ValueError:
                return math.copysign(math.nan, -1.0)

        return NUM, compute

    def call_sin(self, node: n.Builtin) -> Compiled:
        return self._math(node, math.sin)

    def call_cos(self, node: n.Builtin) -> Compiled:
        return self._math(node, math.cos)

    def call_exp(self, node: n.Builtin) -> Compiled:
        operand = self.num(node.arguments[0])
        warn, line, spell = self.runtime.warn, node.line, self.conversion.number

        def compute(frame: Frame) -> float:
            number = operand(frame)
            try:
                result = math.exp(number)
                if result == 0.0 and number - number == 0.0:
                    warn(f"exp: argument {spell(number)} is out of range", line)
                return result
            except OverflowError:
                warn(f"exp: argument {spell(number)} is out of range", line)
                return math.inf

        return NUM, compute

    def _checked(self, node: n.Builtin, function: Callable[[float], float], zero: float | None) -> Compiled:
        operand = self.num(node.arguments[0])
        warn, line, name, spell = self.runtime.warn, node.line, node.name, self.conversion.number

        def compute(frame: Frame) -> float:
            number = operand(frame)
            if number < 0:
                warn(f"{name}: received negative argument {spell(number)}", line)
                return math.copysign(math.nan, -1.0)
            if number == 0 and zero is not None:
                return zero
            return function(number)

        return NUM, compute

    def call_log(self, node: n.Builtin) -> Compiled:
        return self._checked(node, math.log, -math.inf)

    def call_sqrt(self, node: n.Builtin) -> Compiled:
        return self._checked(node, math.sqrt, None)

    def call_int(self, node: n.Builtin) -> Compiled:
        operand = self.num(node.arguments[0])

        def truncate(frame: Frame) -> float:
            number = operand(frame)
            return float(int(number)) if number - number == 0.0 else number

        return NUM, truncate

    def call_rand(self, node: n.Builtin) -> Compiled:
        runtime = self.runtime
        return NUM, lambda frame: runtime.random.random()

    def call_srand(self, node: n.Builtin) -> Compiled:
        runtime = self.runtime
        seed = self.num(node.arguments[0]) if node.arguments else None

        def reseed(frame: Frame) -> float:
            return runtime.reseed(float(math.floor(runtime.world.now())) if seed is None else seed(frame))

        return NUM, reseed

    def call_strtonum(self, node: n.Builtin) -> Compiled:
        operand = self.value(node.arguments[0])
        text = self.conversion.string

        def convert(frame: Frame) -> float:
            value = operand(frame)
            return value if type(value) is float else parse_c_number(text(value))

        return NUM, convert

    def _integers(self, node: n.Builtin, combine: Callable[[list[int]], int]) -> Compiled:
        operands = [self.num(argument) for argument in node.arguments]
        name, line, spell = node.name, node.line, self.conversion.number

        def compute(frame: Frame) -> float:
            values = [operand(frame) for operand in operands]
            for index, value in enumerate(values):
                if value < 0:
                    if len(values) == 2 and name in ("lshift", "rshift"):
                        shown = ", ".join(f"{value:f}" for value in values)
                        raise AwkFatal(f"{name}({shown}): negative values are not allowed", line)
                    which = f"argument {index + 1} " if name != "compl" else f"({value:f}): "
                    if name == "compl":
                        raise AwkFatal(f"compl({value:f}): negative value is not allowed", line)
                    raise AwkFatal(f"{name}: {which}negative value {spell(value)} is not allowed", line)
            integers = [int(value) & ((1 << 64) - 1) if value - value == 0.0 else 0 for value in values]
            return float(combine(integers))

        return NUM, compute

    def call_and(self, node: n.Builtin) -> Compiled:
        return self._integers(node, lambda values: _reduce(values, lambda a, b: a & b))

    def call_or(self, node: n.Builtin) -> Compiled:
        return self._integers(node, lambda values: _reduce(values, lambda a, b: a | b))

    def call_xor(self, node: n.Builtin) -> Compiled:
        return self._integers(node, lambda values: _reduce(values, lambda a, b: a ^ b))

    def call_compl(self, node: n.Builtin) -> Compiled:
        return self._integers(node, lambda values: ~values[0] & (TOP - 1))

    def call_lshift(self, node: n.Builtin) -> Compiled:
        return self._integers(node, lambda values: (values[0] << min(values[1], 64)) & ((1 << 64) - 1))

    def call_rshift(self, node: n.Builtin) -> Compiled:
        return self._integers(node, lambda values: values[0] >> min(values[1], 64))

    def call_mkbool(self, node: n.Builtin) -> Compiled:
        return TEST, self.test(node.arguments[0])


def _reduce(values: list[int], combine: Callable[[int, int], int]) -> int:
    result = values[0]
    for value in values[1:]:
        result = combine(result, value)
    return result


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
