"""expr - evaluate expressions

Usage: expr EXPRESSION

Print the value of EXPRESSION to standard output. Operators, lowest precedence first: ARG1 | ARG2, ARG1 & ARG2,
comparisons (< <= = != >= >), + and -, * / and %, STRING : REGEXP; and match, substr, index, length, + TOKEN, ( ).
Exit status is 0 if EXPRESSION is neither null nor 0, 1 if it is, 2 if it is syntactically invalid, 3 if an error
occurred.
"""

from __future__ import annotations

import re

from belljar.abi.paths import fsdecode, fsencode
from belljar.bin._kit import UsageError, utility
from belljar.bin._kit.locale import is_utf8
from belljar.bin._kit.program import version
from belljar.bin._kit.quoting import quote
from belljar.kernel.process import Process
from belljar.regex import RegexError, compile

_INTEGER = re.compile(r"-?[0-9]+", re.ASCII)
_COMPARISONS = ("<=", "<", "==", "=", "!=", ">=", ">")
_DEEP = 2000
_LONGEST = 4000
"""Digits of a number: what Python converts without taking quadratic time."""

Value = str | int


class Fault(Exception):
    """A mistake in the expression: what to say, and the exit status."""

    def __init__(self, message: str, status: int = 2) -> None:
        super().__init__(message)
        self.status = status


@utility("expr", usage_status=2)
def main(process: Process, args: list[str]) -> int:
    if args == ["--help"]:
        process.stdout.write(main.help().encode())
        return 0
    if args == ["--version"]:
        process.print(version("expr"))
        return 0
    if args[:1] == ["--"]:
        args = args[1:]
    if not args:
        raise UsageError("missing operand")
    try:
        result = Evaluator(process, args).whole()
    except Fault as fault:
        process.warn(str(fault))
        return fault.status
    process.print(str(result))
    return 1 if is_null(result) else 0


def is_null(value: Value) -> bool:
    text = str(value)
    return not text or re.fullmatch(r"-?0+", text) is not None


class Evaluator:
    """Walks the arguments once; operands that don't count (`0 & x`) are parsed without being computed."""

    def __init__(self, process: Process, args: list[str]) -> None:
        self.process = process
        self.args = args
        self.at = 0
        self.depth = 0
        self.utf8 = is_utf8(process.env)

    def whole(self) -> Value:
        value = self.either(True)
        if self.at < len(self.args):
            raise Fault(f"syntax error: unexpected argument {self._quoted(self.args[self.at])}")
        return value

    def _quoted(self, text: str) -> str:
        return quote(text, self.process.env)

    def accept(self, *words: str) -> str | None:
        if self.at < len(self.args) and self.args[self.at] in words:
            self.at += 1
            return self.args[self.at - 1]
        return None

    def either(self, live: bool) -> Value:
        left = self.both(live)
        while self.accept("|"):
            right = self.both(live and is_null(left))
            if is_null(left):
                left = right if not is_null(right) else 0
        return left

    def both(self, live: bool) -> Value:
        left = self.comparison(live)
        while self.accept("&"):
            right = self.comparison(live and not is_null(left))
            if is_null(left) or is_null(right):
                left = 0
        return left

    def comparison(self, live: bool) -> Value:
        left = self.sum(live)
        while operator := self.accept(*_COMPARISONS):
            right = self.sum(live)
            if live:
                left = int(self._compare(left, operator, right))
        return left

    def _compare(self, left: Value, operator: str, right: Value) -> bool:
        a, b = _integer(left), _integer(right)
        if a is None or b is None:
            one, other = fsencode(str(left)), fsencode(str(right))
            order = (one > other) - (one < other)
        else:
            order = (a > b) - (a < b)
        return {
            "<": order < 0, "<=": order <= 0, "=": order == 0, "==": order == 0,
            "!=": order != 0, ">=": order >= 0, ">": order > 0,
        }[operator]  # fmt: skip

    def sum(self, live: bool) -> Value:
        left = self.product(live)
        while operator := self.accept("+", "-"):
            right = self.product(live)
            if live:
                a, b = self._number(left), self._number(right)
                left = a + b if operator == "+" else a - b
        return left

    def product(self, live: bool) -> Value:
        left = self.matching(live)
        while operator := self.accept("*", "/", "%"):
            right = self.matching(live)
            if live:
                left = self._multiply(self._number(left), operator, self._number(right))
        return left

    def _multiply(self, a: int, operator: str, b: int) -> int:
        self.process.budget.charge((a.bit_length() + b.bit_length()) // 64 + 1)
        if operator == "*":
            if a.bit_length() + b.bit_length() > _LONGEST * 3:
                raise Fault("Numerical result out of range", 3)
            return a * b
        if b == 0:
            raise Fault("division by zero")
        quotient = abs(a) // abs(b)
        if (a < 0) != (b < 0):
            quotient = -quotient
        return quotient if operator == "/" else a - b * quotient

    def _number(self, value: Value) -> int:
        number = _integer(value)
        if number is None:
            raise Fault("non-integer argument")
        return number

    def matching(self, live: bool) -> Value:
        left = self.keyword(live)
        while self.accept(":"):
            right = self.keyword(live)
            if live:
                left = self.match(str(left), str(right))
        return left

    def match(self, text: str, pattern: str) -> Value:
        """The group if the pattern has one, else how many characters match; only at the start."""
        try:
            regex = compile(fsencode(pattern), syntax="bre", utf8=self.utf8)
        except RegexError as error:
            raise Fault(str(error)) from error
        data = fsencode(text)
        found = regex.search(data)
        if found is None or found.start():
            return "" if regex.groups else 0
        if regex.groups:
            return fsdecode(found.group(1) or b"")
        return len(self._characters(fsdecode(found.group())))

    def keyword(self, live: bool) -> Value:
        if self.accept("+"):
            return self._next()
        if self.accept("length"):
            return len(self._characters(str(self.keyword(live))))
        if self.accept("match"):
            text, pattern = str(self.keyword(live)), str(self.keyword(live))
            return self.match(text, pattern) if live else 0
        if self.accept("index"):
            text, wanted = self._characters(str(self.keyword(live))), self._characters(str(self.keyword(live)))
            return next((i for i, char in enumerate(text, 1) if char in wanted), 0)
        if self.accept("substr"):
            text = self._characters(str(self.keyword(live)))
            start, length = _integer(self.keyword(live)), _integer(self.keyword(live))
            if start is None or length is None or start <= 0 or length <= 0:
                return ""
            part = text[start - 1 : start - 1 + length]
            return part if self.utf8 else part.encode("latin-1").decode("utf-8", "surrogateescape")
        return self.primary(live)

    def _characters(self, text: str) -> str:
        """One character for each of the locale's."""
        return text if self.utf8 else fsencode(text).decode("latin-1")

    def _next(self) -> str:
        if self.at >= len(self.args):
            raise Fault(f"syntax error: missing argument after {self._quoted(self.args[-1])}")
        self.at += 1
        return self.args[self.at - 1]

    def primary(self, live: bool) -> Value:
        word = self._next()
        if word == "(":
            self.depth += 1
            if self.depth > _DEEP:
                raise Fault("expression nested too deeply", 3)
            value = self.either(live)
            self.depth -= 1
            if self.at >= len(self.args):
                raise Fault(f"syntax error: expecting ')' after {self._quoted(self.args[-1])}")
            if not self.accept(")"):
                raise Fault(f"syntax error: expecting ')' instead of {self._quoted(self.args[self.at])}")
            return value
        if word == ")":
            raise Fault("syntax error: unexpected ')'")
        return word


def _integer(value: Value) -> int | None:
    if isinstance(value, int):
        return value
    if not _INTEGER.fullmatch(value):
        return None
    if len(value) > _LONGEST:
        raise Fault(f"{value[:20]}...: Numerical result out of range", 3)
    return int(value)
