"""Arbitrary-precision decimal numbers with a scale, as bc and dc compute with them."""

from __future__ import annotations

from collections.abc import Callable
from math import isqrt

from belljar.abi.dataclass import dataclass

DIGITS = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_CHUNK = 4000
"""Decimal digits converted at a time: Python refuses longer conversions, and they would be quadratic anyway."""


class NumberError(Exception):
    """An impossible operation; the text is bc's message."""


@dataclass(frozen=True, slots=True)
class Number:
    """value / 10**scale."""

    value: int
    scale: int = 0

    def __bool__(self) -> bool:
        return self.value != 0


ZERO = Number(0)
ONE = Number(1)


class Arithmetic:
    """The operations, paid for before they are done.

    `charge` takes steps; `charge_size` refuses results of too many digits.
    """

    def __init__(self, charge: Callable[[int], None], charge_size: Callable[[int], None]) -> None:
        self.charge = charge
        self.charge_size = charge_size

    def pay(self, left: int, right: int) -> None:
        """For work on numbers of that many bits; small ones are free, their user counts statements."""
        if left > 2048 or right > 2048:
            self.charge(1 + (left >> 6) * (right >> 6) // 400)

    def add(self, left: Number, right: Number) -> Number:
        if left.scale == right.scale:
            return Number(left.value + right.value, left.scale)
        scale = max(left.scale, right.scale)
        return Number(self.rescaled(left, scale) + self.rescaled(right, scale), scale)

    def subtract(self, left: Number, right: Number) -> Number:
        return self.add(left, Number(-right.value, right.scale))

    def compare(self, left: Number, right: Number) -> int:
        difference = self.subtract(left, right).value
        return (difference > 0) - (difference < 0)

    def rescaled(self, number: Number, scale: int) -> int:
        """Its value at another scale, what is too much cut off."""
        if scale == number.scale:
            return number.value
        if scale > number.scale:
            shift = scale - number.scale
            self.charge_size(shift)
            return number.value * self.ten(shift)
        return truncated(number.value, self.ten(number.scale - scale))

    def ten(self, power: int) -> int:
        if power > 4000:
            self.charge_size(power)
            self.pay(power * 2, power * 2)
        return int(10**power)

    def truncate(self, number: Number, scale: int) -> Number:
        return number if number.scale <= scale else Number(self.rescaled(number, scale), scale)

    def multiply(self, left: Number, right: Number, scale: int) -> Number:
        bits = left.value.bit_length() + right.value.bit_length()
        self.charge_size(bits // 3)
        self.pay(left.value.bit_length(), right.value.bit_length())
        product = Number(left.value * right.value, left.scale + right.scale)
        return self.truncate(product, min(product.scale, max(scale, left.scale, right.scale)))

    def divide(self, left: Number, right: Number, scale: int) -> Number:
        """Raises NumberError."""
        if not right.value:
            raise NumberError("Divide by zero")
        shift = scale + right.scale - left.scale
        numerator, divisor = left.value, right.value
        if shift >= 0:
            self.charge_size(shift)
            numerator *= self.ten(shift)
        else:
            divisor *= self.ten(-shift)
        self.pay(numerator.bit_length(), divisor.bit_length())
        return Number(truncated(numerator, divisor), scale)

    def modulo(self, left: Number, right: Number, scale: int) -> Number:
        if not right.value:
            raise NumberError("Modulo by zero")
        quotient = self.divide(left, right, scale)
        wide = max(left.scale, right.scale + scale)
        product = Number(quotient.value * right.value, quotient.scale + right.scale)
        return Number(self.rescaled(left, wide) - self.rescaled(product, wide), wide)

    def power(self, base: Number, exponent: int, scale: int) -> Number:
        if exponent == 0:
            return ONE
        size = base.value.bit_length() * abs(exponent)
        self.charge_size(size // 3)
        self.pay(size, size >> 2)
        if exponent < 0:
            if not base.value:
                raise NumberError("divide by zero")
            return self.divide(ONE, Number(base.value**-exponent, base.scale * -exponent), scale)
        result = Number(base.value**exponent, base.scale * exponent)
        return self.truncate(result, min(result.scale, max(scale, base.scale)))

    def sqrt(self, number: Number, scale: int) -> Number:
        if number.value < 0:
            raise NumberError("Square root of a negative number")
        scale = max(scale, number.scale)
        wide = self.rescaled(number, 2 * scale)
        self.pay(wide.bit_length(), wide.bit_length())
        return Number(isqrt(wide), scale)

    # -- text ---------------------------------------------------------------------------------------------------

    def decimal(self, value: int) -> str:
        """Decimal digits of a non-negative integer of any size."""
        bits = value.bit_length()
        if bits < 3 * _CHUNK:
            return str(value)
        self.charge_size(bits // 3)
        self.pay(bits, bits)
        half = bits * 3 // 20
        high, low = divmod(value, 10**half)
        return self.decimal(high) + self.decimal(low).rjust(half, "0")

    def text(self, number: Number, base: int = 10) -> str:
        """As bc prints it: no leading zero, letters for digits to 16, groups of decimal digits beyond."""
        if not number.value:
            return "0"
        sign = "-" if number.value < 0 else ""
        magnitude = abs(number.value)
        if base == 10:
            digits = self.decimal(magnitude)
            if not number.scale:
                return sign + digits
            digits = digits.rjust(number.scale, "0")
            return f"{sign}{digits[: -number.scale]}.{digits[-number.scale :]}"
        unit = self.ten(number.scale)
        whole, fraction = divmod(magnitude, unit)
        out = [sign, *self._whole_digits(whole, base)]
        if number.scale:
            out.append(".")
            width = len(str(base - 1))
            reached = 1
            first = True
            while digit_count(reached) <= number.scale:
                self.charge(1 + number.scale // 100)
                digit, fraction = divmod(fraction * base, unit)
                if base <= 16:
                    out.append(DIGITS[digit])
                else:
                    out.append(("" if first else " ") + str(digit).rjust(width, "0"))
                first = False
                reached *= base
        return "".join(out)

    def _whole_digits(self, whole: int, base: int) -> list[str]:
        digits: list[int] = []
        step = 1 + (whole.bit_length() >> 12)
        while whole:
            self.charge(step)
            whole, digit = divmod(whole, base)
            digits.append(digit)
        if base <= 16:
            return [DIGITS[digit] for digit in reversed(digits)]
        width = len(str(base - 1))
        return [" " + str(digit).rjust(width, "0") for digit in reversed(digits)]

    def parse(self, text: str, base: int) -> Number:
        """A constant: a single digit means itself whatever the base, digits too large count as the largest."""
        whole, _, fraction = text.partition(".")
        whole = whole.lstrip("0")
        digits = whole + fraction or "0"
        if len(digits) == 1:
            value = DIGITS.index(digits)
        elif base == 10 and digits.isdecimal():
            value = self._from_decimal(digits)
        else:
            value = 0
            step = 1 + len(digits) // 500
            for digit in digits:
                self.charge(step)
                value = value * base + min(DIGITS.index(digit), base - 1)
        if not fraction:
            return Number(value)
        if base == 10:
            return Number(value, len(fraction))
        return self.divide(Number(value), Number(base ** len(fraction)), len(fraction))

    def _from_decimal(self, digits: str) -> int:
        if len(digits) <= _CHUNK:
            return int(digits)
        self.charge_size(len(digits))
        self.pay(len(digits) * 3, len(digits) * 3)
        half = len(digits) // 2
        return self._from_decimal(digits[:-half]) * int(10**half) + self._from_decimal(digits[-half:])


def truncated(value: int, divisor: int) -> int:
    """Division toward zero."""
    quotient = abs(value) // abs(divisor)
    return quotient if (value < 0) == (divisor < 0) else -quotient


def whole_part(number: Number) -> int:
    return truncated(number.value, 10**number.scale) if number.scale else number.value


def length(number: Number) -> int:
    """Return how many significant digits, the scale included."""
    if not number.value:
        return max(number.scale, 1)
    return max(digit_count(abs(number.value)), number.scale)


def digit_count(value: int) -> int:
    """Decimal digits of a positive integer, without spelling it out."""
    digits = int((value.bit_length() - 1) * 0.30102999566398120) + 1
    return digits + int(10**digits <= value)
