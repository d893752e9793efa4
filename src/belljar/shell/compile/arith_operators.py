"""Arithmetic operators on two numbers, and the errors that they raise."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from belljar.shell.control import ArithError
from belljar.shell.parse.arith import wrap

MAX: Final = 0x7FFFFFFFFFFFFFFF
MIN: Final = -0x8000000000000000


def locate(error: ArithError, text: str) -> ArithError:
    """Put the expression in front of a message that lacks it, with the token bash shows."""
    if not isinstance(error, BareArithError):
        return error
    shown = text.lstrip(" \t")
    return ArithError(f'{shown}: {error.args[0]} (error token is "{error.token(shown)}")')


LAST_TOKEN: Final = re.compile(r"(?:[A-Za-z0-9_#@]+|\S)\s*\Z")


class BareArithError(ArithError):
    """An error found while evaluating; the whole expression is added further out."""

    def __init__(self, message: str, after: str = "", *, last: bool = False) -> None:
        super().__init__(message)
        self.after = after
        self.last = last

    def token(self, text: str) -> str:
        if self.last and (match := LAST_TOKEN.search(text)):
            return match.group()
        if not self.after:
            return text
        place = max(text.rfind(char) for char in self.after)
        return text[place + 1 :].lstrip() if place >= 0 else text


def divide(left: int, right: int) -> int:
    if right == 0:
        raise BareArithError("division by 0", "/")
    quotient = abs(left) // abs(right)
    return quotient if (left < 0) == (right < 0) else -quotient


def remainder(left: int, right: int) -> int:
    if right == 0:
        raise BareArithError("division by 0", "%")
    result = abs(left) % abs(right)
    return result if left >= 0 else -result


def power(base: int, exponent: int) -> int:
    if exponent < 0:
        raise BareArithError("exponent less than 0", last=True)
    return pow(base, exponent, 1 << 64)


OPERATORS: Final[dict[str, Callable[[int, int], int]]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": divide,
    "%": remainder,
    "**": power,
    "<<": lambda a, b: a << (b & 63),
    ">>": lambda a, b: a >> (b & 63),
    "&": lambda a, b: a & b,
    "^": lambda a, b: a ^ b,
    "|": lambda a, b: a | b,
}


def apply(op: str, left: int, right: int) -> int:
    return wrap(OPERATORS[op](left, right))


COMPARISONS: Final[dict[str, Callable[[int, int], bool]]] = {
    "<": lambda a, b: a < b,
    "<=": lambda a, b: a <= b,
    ">": lambda a, b: a > b,
    ">=": lambda a, b: a >= b,
    "==": lambda a, b: a == b,
    "!=": lambda a, b: a != b,
}
