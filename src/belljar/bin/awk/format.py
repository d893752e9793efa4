"""awk's printf: C's conversions over awk values."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from belljar.abi.dataclass import dataclass
from belljar.bin.awk.errors import AwkFatal
from belljar.bin.awk.values import Conversion, StrNum, Uninit, Untyped, Value, special_number, to_number

MAX_WIDTH = 1 << 24
"""No single conversion is made wider than this."""

_SPEC = re.compile(
    r"%(?:([0-9]{1,6})\$)?([-+ #0']*)(\*(?:[0-9]{1,6}\$)?|[0-9]*)"
    r"(?:\.(\*(?:[0-9]{1,6}\$)?|-?[0-9]*))?([hlLqjzt]*)(.)?",
    re.S,
)

Piece = str | tuple[str, str, str, str | None, str, int, int]
"""Literal text, or (position, flags, width, precision, conversion, start, end)."""


@lru_cache(maxsize=256)
def split_format(form: str) -> tuple[Piece, ...]:
    """Cut a format into literals and conversions, once."""
    pieces: list[Piece] = []
    literal = ""
    at = 0
    while (percent := form.find("%", at)) >= 0:
        literal += form[at:percent]
        match = _SPEC.match(form, percent)
        assert match is not None
        position, flags, width, precision, _, conversion = match.groups()
        if conversion is None or conversion not in "diouxXeEfFgGaAcs%":
            literal += match.group()
            at = match.end()
            continue
        at = match.end()
        if conversion == "%":
            literal += "%"
            continue
        if literal:
            pieces.append(literal)
            literal = ""
        pieces.append((position or "", flags, width, precision, conversion, percent, at))
    literal += form[at:]
    if literal:
        pieces.append(literal)
    return tuple(pieces)


@dataclass(frozen=True, slots=True)
class Plan:
    """A format as Python's % takes it, and what each argument must be: "s" text, "d" whole, "f" a number."""

    template: str
    kinds: tuple[str, ...]


def plan_format(form: str) -> Plan | None:
    """The plan for a format made only of what C and Python agree on."""
    template = ""
    kinds: list[str] = []
    for piece in split_format(form):
        if isinstance(piece, str):
            template += piece.replace("%", "%%")
            continue
        position, flags, width, precision, conversion, _start, _end = piece
        if position or "'" in flags or "*" in width or len(width) > 3 or conversion not in "sdifeEgG":
            return None
        if precision is not None and (not precision.isdecimal() or len(precision) > 2 or conversion in "di"):
            return None
        if conversion == "s" and set(flags) - {"-"}:
            return None
        kinds.append("s" if conversion == "s" else "d" if conversion in "di" else "f")
        template += f"%{flags}{width}{'' if precision is None else '.' + precision}{conversion}"
    return Plan(template, tuple(kinds))


class _Arguments:
    """Hands out printf's arguments in order or by position."""

    def __init__(self, form: str, values: list[Value], line: int) -> None:
        self.form = form
        self.values = values
        self.line = line
        self.used = 0

    def take(self, position: str, end: int) -> Value:
        if position:
            index = int(position) - 1
            if index < 0:
                raise AwkFatal("argument index with `$' must be > 0", self.line)
            if index >= len(self.values):
                raise AwkFatal(f"argument index {position} greater than total number of supplied arguments", self.line)
            return self.values[index]
        index = self.used
        self.used += 1
        if index >= len(self.values):
            raise AwkFatal(
                f"not enough arguments to satisfy format string\n\t`{self.form}'\n\t"
                f"{' ' * (end - 1)}^ ran out for this one",
                self.line,
            )
        return self.values[index]


def sprintf(
    form: str,
    values: list[Value],
    conversion: Conversion,
    line: int,
    charge_size: Callable[[int], None] | None = None,
) -> str:
    """Format `values` by `form`. Raises AwkFatal when there are too few.

    `charge_size` may refuse wide padding before it is made.
    """
    pieces = split_format(form)
    if len(pieces) == 1 and type(pieces[0]) is str:
        return pieces[0]
    arguments = _Arguments(form, values, line)
    out: list[str] = []
    padding = 0
    for piece in pieces:
        if isinstance(piece, str):
            out.append(piece)
            continue
        position, flags, width_text, precision_text, kind, _start, end = piece
        if not (flags or width_text or precision_text is not None or position):
            # The bare conversions are most of all printf's.
            if kind == "s":
                out.append(conversion.string(arguments.take("", end)))
                continue
            if kind in "di":
                out.append(_plain_integer(arguments.take("", end), conversion))
                continue
        width = 0
        if width_text[:1] == "*":
            width = _clamp(to_number(arguments.take(width_text[1:-1], end)))
            if width < 0:
                flags += "-"
                width = -width
        elif width_text:
            width = _clamp(float(width_text))
        precision = -1
        if precision_text is not None:
            if precision_text[:1] == "*":
                precision = _clamp(to_number(arguments.take(precision_text[1:-1], end)))
            else:
                precision = _clamp(float(precision_text or "0"))
        padding += width + max(precision, 0)
        if padding > 4096 and charge_size is not None:
            charge_size(padding)
        out.append(convert(kind, flags, width, precision, arguments.take(position, end), conversion))
    return "".join(out)


def _clamp(number: float) -> int:
    if number != number:
        return 0
    return int(max(-MAX_WIDTH, min(MAX_WIDTH, number)))


def _plain_integer(value: Value, conversion: Conversion) -> str:
    number = to_number(value)
    found = conversion.cache.get(number)
    if found is not None:
        return found
    if number - number != 0.0:
        return special_number(number)
    return str(int(number))


def convert(kind: str, flags: str, width: int, precision: int, value: Value, conversion: Conversion) -> str:
    """One conversion with its flags, width and precision (-1: none)."""
    if kind == "s":
        text = conversion.string(value)
        return _pad(text[:precision] if precision >= 0 else text, flags, width)
    if kind == "c":
        text = _character(value)
        return _pad(text, flags, width)
    number = to_number(value)
    if number - number != 0.0:
        return special_number(number)
    if kind in "di":
        return _integer(str(abs(int(number))), number < 0 and int(number) != 0, flags, width, precision)
    if kind in "ouxX":
        whole = int(number)
        if whole < -(1 << 63):
            return convert("d", flags, width, precision, number, conversion)
        whole &= (1 << 64) - 1 if whole < 0 else -1
        digits = {"o": f"{whole:o}", "u": str(whole), "x": f"{whole:x}", "X": f"{whole:X}"}[kind]
        if "#" in flags and whole:
            if kind == "o":
                precision = max(precision, len(digits) + 1)
            elif kind in "xX":
                digits = digits.rjust(precision, "0") if precision >= 0 else digits
                prefix = "0" + kind
                if "0" in flags and "-" not in flags and precision < 0:
                    digits = digits.rjust(width - 2, "0")
                return _pad(prefix + digits, flags.replace("0", ""), width)
        return _integer(digits, False, flags.replace("+", "").replace(" ", ""), width, precision)
    if kind in "aA":
        mantissa, power = number.hex().split("p")
        text = f"{mantissa.rstrip('0').rstrip('.') if '.' in mantissa else mantissa}p{power}"
        return _pad(text.upper() if kind == "A" else text, flags, width)
    return _float(kind, number, flags, width, precision)


def _float(kind: str, number: float, flags: str, width: int, precision: int) -> str:
    cut = min(precision, 1100)
    spec = "%" + "".join(flag for flag in "-+ #0" if flag in flags)
    grouped = "'" in flags
    body = f"{spec}{'' if grouped else width or ''}{'' if precision < 0 else '.' + str(cut)}{kind}"
    return body % number


def _integer(digits: str, negative: bool, flags: str, width: int, precision: int) -> str:
    sign = "-" if negative else "+" if "+" in flags else " " if " " in flags else ""
    if precision >= 0:
        digits = digits.rjust(precision, "0")
        if precision == 0 and digits == "0":
            digits = ""
        flags = flags.replace("0", "")
    if "0" in flags and "-" not in flags:
        digits = digits.rjust(width - len(sign), "0")
    return _pad(sign + digits, flags, width)


def _character(value: Value) -> str:
    if isinstance(value, StrNum):
        number = value.number()
        if number is None:
            return value.s[:1]
        value = number
    if isinstance(value, (Uninit, Untyped)):
        return "\0"
    if isinstance(value, float):
        if value - value != 0.0:
            return special_number(value)
        code = int(value)
        if 0 <= code < 0x110000:
            if 0xD800 <= code < 0xE000:
                return chr(0xDC00 + (code & 0xFF)) if code & 0x80 else chr(code & 0x7F)
            return chr(code)
        byte = code & 0xFF
        return chr(byte) if byte < 0x80 else chr(0xDC00 + byte)
    return (value if isinstance(value, str) else value.s)[:1] or "\0"  # type: ignore[union-attr]


def _pad(text: str, flags: str, width: int) -> str:
    if width <= len(text):
        return text
    return text.ljust(width) if "-" in flags else text.rjust(width)
