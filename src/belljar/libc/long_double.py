"""x86 long doubles (64-bit mantissa) in exact integer arithmetic: what bash's and GNU's printf read and print."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

_MANTISSA: Final = 64
_MIN_EXPONENT: Final = -16445
_MAX_EXPONENT: Final = 16384 - _MANTISSA
_EXACT: Final = 17000
"""More decimals than any long double has; those past them are zeros."""
_USED_DIGITS: Final = 4000
_NUMBER: Final = re.compile(
    r"([+-]?)(?:(inf(?:inity)?)|(nan(?:\([A-Za-z0-9_]*\))?)"
    r"|0x([0-9a-f]*)(?:\.([0-9a-f]*))?(?:(?<=[0-9a-f])|(?<=[0-9a-f]\.))(?:p([+-]?[0-9]+))?"
    r"|([0-9]*)(?:\.([0-9]*))?(?:(?<=[0-9])|(?<=[0-9]\.))(?:e([+-]?[0-9]+))?)",
    re.IGNORECASE | re.ASCII,
)


class LongDouble(Struct, frozen=True):
    """mantissa * 2**exponent, or "inf" or "nan"."""

    negative: bool = False
    mantissa: int = 0
    exponent: int = 0
    special: str = ""


def parse_long_double(text: str) -> tuple[LongDouble, int, bool]:
    """strtold: the number at the start of `text`, how many characters it takes (0: none), and if it is out of range."""
    start = len(text) - len(text.lstrip(" \t\n\v\f\r"))
    match = _NUMBER.match(text, start)
    if match is None or match.end() == match.end(1):
        return LongDouble(), 0, False
    sign, infinite, nan, hex_whole, hex_part, power, whole, part, ten = match.groups()
    negative = sign == "-"
    if infinite or nan:
        return LongDouble(negative, special="inf" if infinite else "nan"), match.end(), False
    if hex_whole is not None:
        digits = (hex_whole + (hex_part or ""))[:_USED_DIGITS]
        shift = _bounded(power) - 4 * len(hex_part or "") + 4 * max(0, len(hex_whole + (hex_part or "")) - _USED_DIGITS)
        value, ranged = _round(negative, int(digits or "0", 16), 1, shift)
        return value, match.end(), ranged
    digits = (whole + (part or "")).lstrip("0")
    scale = _bounded(ten) - len(part or "")
    if len(digits) > _USED_DIGITS:
        scale += len(digits) - _USED_DIGITS
        sticky = digits[_USED_DIGITS:].strip("0")
        digits = digits[: _USED_DIGITS - 1] + ("1" if sticky else digits[_USED_DIGITS - 1])
    number = int(digits or "0")
    if number == 0:
        return LongDouble(negative), match.end(), False
    size = scale + len(digits)
    if size > 5000:
        return LongDouble(negative, special="inf"), match.end(), True
    if size < -5000:
        return LongDouble(negative), match.end(), True
    value, ranged = _round(negative, number * 10 ** max(scale, 0), 10 ** max(-scale, 0), 0)
    return value, match.end(), ranged


def _bounded(exponent: str | None) -> int:
    """An exponent, cut where only its sign matters any more."""
    if not exponent:
        return 0
    digits = exponent.lstrip("+-").lstrip("0")
    value = int(digits or "0") if len(digits) < 9 else 10**8
    return -value if exponent.startswith("-") else value


def _round(negative: bool, numerator: int, denominator: int, power: int) -> tuple[LongDouble, bool]:
    """numerator / denominator * 2**power, rounded to the nearest; True if it overflows or underflows."""
    if numerator == 0:
        return LongDouble(negative), False
    if abs(power) > 10**6:
        return LongDouble(negative, special="inf" if power > 0 else ""), True
    shift = numerator.bit_length() - denominator.bit_length() - _MANTISSA
    shift = max(shift, _MIN_EXPONENT - power)
    mantissa = _divide(numerator, denominator, shift)
    while mantissa.bit_length() > _MANTISSA:
        shift += 1
        mantissa = _divide(numerator, denominator, shift)
    while mantissa.bit_length() < _MANTISSA and shift + power > _MIN_EXPONENT:
        shift -= 1
        mantissa = _divide(numerator, denominator, shift)
    if mantissa.bit_length() > _MANTISSA:
        mantissa >>= 1
        shift += 1
    exponent = shift + power
    if exponent > _MAX_EXPONENT:
        return LongDouble(negative, special="inf"), True
    return LongDouble(negative, mantissa, exponent), mantissa.bit_length() < _MANTISSA


def _divide(numerator: int, denominator: int, shift: int) -> int:
    """numerator / denominator / 2**shift to the nearest integer, halves to even."""
    if shift > 0:
        denominator <<= shift
    else:
        numerator <<= -shift
    quotient, rest = divmod(numerator, denominator)
    rest *= 2
    return quotient + (rest > denominator or (rest == denominator and quotient & 1))


def format_long_double(value: LongDouble, conversion: str, precision: int | None, *, alternate: bool = False) -> str:
    """The magnitude as %f %e %g %a (and their capitals) print it, without sign or padding."""
    lower = conversion.lower()
    if value.special:
        text = value.special
    elif lower == "f":
        text = _fixed(value, 6 if precision is None else precision, alternate=alternate)
    elif lower == "e":
        text = _scientific(value, 6 if precision is None else precision, alternate=alternate)
    elif lower == "g":
        text = _general(value, 6 if precision is None else precision or 1, alternate=alternate)
    else:
        text = _hexadecimal(value, precision, alternate=alternate)
    return text.upper() if conversion.isupper() else text


def _scaled(value: LongDouble, ten: int) -> int:
    """value * 10**ten to the nearest integer."""
    numerator, denominator = value.mantissa, 1
    if ten >= 0:
        numerator *= 10**ten
    else:
        denominator = 10**-ten
    return _divide(numerator, denominator, -value.exponent)


def _digits(number: int) -> str:
    """Decimal digits, in pieces: Python refuses to print very long integers at once."""
    if number.bit_length() < 12000:
        return str(number)
    high, low = divmod(number, 10**3000)
    return _digits(high) + f"{low:03000d}"


def _fixed(value: LongDouble, precision: int, *, alternate: bool) -> str:
    used = min(precision, _EXACT)
    text = _digits(_scaled(value, used)).rjust(used + 1, "0")
    whole, part = (text[:-used], text[-used:]) if used else (text, "")
    point = "." if precision or alternate else ""
    return whole + point + part + "0" * (precision - used)


def _decimal(value: LongDouble, count: int) -> tuple[str, int]:
    """`count` significant digits and the decimal exponent of the first."""
    if value.mantissa == 0:
        return "0" * count, 0
    ten = ((value.mantissa.bit_length() + value.exponent - 1) * 30103) // 100000
    while True:
        digits = _digits(_scaled(value, count - 1 - ten))
        if len(digits) < count:
            ten -= 1
        elif len(digits) > count:
            ten += 1
        else:
            return digits, ten


def _scientific(value: LongDouble, precision: int, *, alternate: bool) -> str:
    used = min(precision, _EXACT)
    digits, ten = _decimal(value, used + 1)
    return _mantissa_text(digits + "0" * (precision - used), alternate) + f"e{ten:+03d}"


def _mantissa_text(digits: str, alternate: bool) -> str:
    return digits[0] + ("." if len(digits) > 1 or alternate else "") + digits[1:]


def _general(value: LongDouble, precision: int, *, alternate: bool) -> str:
    used = min(precision, _EXACT)
    digits, ten = _decimal(value, used)
    if not -4 <= ten < precision:
        if not alternate:
            digits = digits[0] + digits[1:].rstrip("0")
        return _mantissa_text(digits, alternate) + f"e{ten:+03d}"
    if ten < 0:
        text = "0." + "0" * (-ten - 1) + digits
    else:
        digits += "0" * (ten + 1 - len(digits))
        text = digits[: ten + 1] + "." + digits[ten + 1 :]
    if alternate:
        return text + "0" * (precision - used)
    return text.rstrip("0").rstrip(".")


def _hexadecimal(value: LongDouble, precision: int | None, *, alternate: bool) -> str:
    mantissa, exponent = value.mantissa, value.exponent
    if mantissa == 0:
        digits, exponent = "0" * (1 + (precision or 0)), 0
    else:
        if precision is not None and precision < 15:
            mantissa = _divide(mantissa, 1, 4 * (15 - precision)) << 4 * (15 - precision)
            if mantissa.bit_length() > _MANTISSA:
                mantissa >>= 1
                exponent += 1
        digits = f"{mantissa:016x}"
        digits = digits[0] + (
            digits[1:].rstrip("0") if precision is None else digits[1 : precision + 1].ljust(precision, "0")
        )
        exponent += 60
    return f"0x{_mantissa_text(digits, alternate)}p{exponent:+d}"
