"""jq's numbers: doubles that remember the literal they were written as.

A number is one of three Python types, so that the common ones cost nothing:

* `int`: a whole number. From 2**53 on it can only have come from a literal, and then it is exact.
* `float`: a fraction whose shortest decimal form is the same in Python and in jq.
* `Number`: all others: literals that must print as written (`1.000`, `1E+400`), and doubles that
  print in jq's own way (huge, tiny, infinite, not-a-number, minus zero).
"""

import re
from decimal import Decimal, InvalidOperation
from math import copysign, inf, isnan, nan
from typing import Any

EXACT = 2**53 - 1
"""The largest whole number that no other shares its double with."""
LARGEST = 1.7976931348623157e308
NUMERIC = re.compile(r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
MAX_EXPONENT = 999_999_999


class Number:
    """A double with its own way to print; `literal` is the canonical text it was written as, if any."""

    __slots__ = ("literal", "value")

    def __init__(self, value: float, literal: str | None = None) -> None:
        self.value = value
        self.literal = literal

    def __repr__(self) -> str:
        return f"Number({self.value!r}, {self.literal!r})"


def from_float(value: float) -> "int | float | Number":
    """The jq number for a computed double."""
    if value.is_integer():
        if -EXACT <= value <= EXACT and (value != 0 or copysign(1.0, value) > 0):
            return int(value)
        return Number(value)
    if 1e-4 <= value < inf or -inf < value <= -1e-4:
        return value
    return Number(value)


def from_int(value: int) -> "int | Number":
    """The jq number for a computed whole number, which a double must hold."""
    if -EXACT <= value <= EXACT:
        return value
    return Number(to_float(value))


def to_float(number: Any) -> float:
    if number.__class__ is Number:
        return number.value
    try:
        return float(number)
    except OverflowError:
        return inf if number > 0 else -inf


def parse_literal(text: str) -> "int | float | Number":
    """The number a literal stands for. `text` must match NUMERIC; ValueError if it does not."""
    if not NUMERIC.fullmatch(text):
        raise ValueError(text)
    digits = text[1:] if text[0] == "-" else text
    if digits.isdecimal() and (digits[0] != "0" or digits == "0") and len(digits) < 4000 and text != "-0":
        return int(text)
    canonical = canonical_literal(text)
    value = float(text)
    if canonical == repr(value) and (1e-4 <= abs(value) < 1e16) and not value.is_integer():
        return value
    if canonical.lstrip("-").isdecimal() and len(canonical) < 4000 and canonical != "-0":
        return int(canonical)
    return Number(value, canonical)


def parse_fraction(text: str) -> "int | float | Number":
    """`parse_literal` for the tokens a JSON scanner calls floats: kept lean, it runs once per number."""
    value = float(text)
    if repr(value) == text and 1e-4 <= abs(value) < 1e16 and text[-2:] != ".0":
        return value
    return Number(value, canonical_literal(text))


def parse_integer(text: str) -> "int | Number":
    """`parse_literal` for the tokens a JSON scanner calls integers."""
    if text == "-0" or len(text) > 4000:
        return Number(float(text), canonical_literal(text))
    return int(text)


def canonical_literal(text: str) -> str:
    """The General Decimal Arithmetic form of a literal (`100e-2` -> `1.00`, `1e1000` -> `1E+1000`)."""
    try:
        exact = Decimal(text)
    except InvalidOperation:  # an exponent that this machine's decimals can't hold
        return format_float(float(text))
    return str(exact) if abs(exact.adjusted()) <= MAX_EXPONENT else format_float(float(text))


def decimal_of(number: Any) -> Decimal:
    if number.__class__ is Number and number.literal is not None:
        return Decimal(number.literal)
    return Decimal(to_float(number)) if number.__class__ is not int else Decimal(number)


def negate(number: Any) -> Any:
    """`-number`; a literal keeps its digits."""
    if number.__class__ is Number:
        literal = number.literal
        value = -number.value
        if literal is None:
            return from_float(value)
        return Number(value, literal[1:] if literal[0] == "-" else "-" + literal)
    if number == 0:
        return Number(-0.0)
    return -number


def absolute(number: Any) -> Any:
    if number.__class__ is Number:
        value = number.value
        return negate(number) if copysign(1.0, value) < 0 else number
    return -number if number < 0 else number


def format_number(number: Any) -> str:
    kind = number.__class__
    if kind is int:
        try:
            return str(number)
        except ValueError:
            return format_float(to_float(number))
    if kind is Number:
        literal = number.literal
        return literal if literal is not None else format_float(number.value)
    return format_float(number)


def format_float(value: float) -> str:
    """A double as jq prints it: 17 digits at most, an exponent only beyond 15 padding zeros."""
    if isnan(value):
        return "null"
    if value in (inf, -inf):
        value = copysign(LARGEST, value)
    text = repr(value)
    sign = ""
    if text[0] == "-":
        sign, text = "-", text[1:]
    mantissa, _, exponent = text.partition("e")
    whole, _, fraction = mantissa.partition(".")
    if fraction == "0":
        fraction = ""
    digits = (whole + fraction).lstrip("0")
    point = len(whole) + int(exponent or 0)
    if whole.strip("0") == "":
        point = len(digits) - len(fraction) + int(exponent or 0)
    digits = digits.rstrip("0")
    if not digits:
        return sign + "0"
    if point <= -4 or point > len(digits) + 15:
        body = digits[0] + ("." + digits[1:] if len(digits) > 1 else "")
        power = point - 1
        return f"{sign}{body}e{'-' if power < 0 else '+'}{abs(power):02d}"
    if point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    if point >= len(digits):
        return sign + digits + "0" * (point - len(digits))
    return f"{sign}{digits[:point]}.{digits[point:]}"


NAN = Number(nan)
INFINITE = Number(inf)
