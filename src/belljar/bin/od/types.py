"""od's output types: how a run of bytes becomes fields (`-t x2`, `-c`, `-t fD` ...)."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Sequence
from decimal import Decimal, localcontext
from typing import Final

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError
from belljar.bin._kit.quoting import quote
from belljar.kernel.process import Process

_NAMES: Final = {0: "\\0", 7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r"}
_CONTROL: Final = (
    "nul soh stx etx eot enq ack bel bs ht nl vt ff cr so si dle dc1 dc2 dc3 dc4 "
    "nak syn etb can em sub esc fs gs rs us sp"
).split()
_WIDTHS: Final = {
    "o": {1: 3, 2: 6, 4: 11, 8: 22},
    "x": {1: 2, 2: 4, 4: 8, 8: 16},
    "d": {1: 4, 2: 6, 4: 11, 8: 20},
    "u": {1: 3, 2: 5, 4: 10, 8: 20},
    "f": {4: 15, 8: 24, 16: 29},
}
_INTEGERS: Final = {"C": 1, "S": 2, "I": 4, "L": 8}
_FLOATS: Final = {"F": 4, "D": 8, "L": 16}
_CODES: Final = {1: "B", 2: "H", 4: "I", 8: "Q"}
_ITEM: Final = re.compile(r"([acdfoux])([A-Z]|\d*)(z*)")

Render = Callable[[bytes], Sequence[str]]


@dataclass(frozen=True, slots=True)
class Type:
    """One output type: the size of a datum, the width of its field, and how bytes become fields."""

    size: int
    width: int
    render: Render
    trailer: bool
    """Whether the line's characters follow it (`z`)."""


def parse_types(process: Process, text: str, big: bool) -> list[Type]:
    """The types a string such as `x1z` or `acx2` means. UsageError if it means none."""
    found: list[Type] = []
    position = 0
    while position < len(text):
        match = _ITEM.match(text, position)
        if match is None:
            raise UsageError(
                f"invalid character '{text[position]}' in type string {quote(text, process.env)}", hint=False
            )
        letter, size, z = match.groups()
        if letter in "ac" and size:
            match = re.compile(r"([ac])()(z*)").match(text, position)
            assert match is not None
            size, z = "", match[3]
        end = match.end()
        if size.isalpha() and size not in (_FLOATS if letter == "f" else _INTEGERS):
            z, end = "", match.start(2)
            size = ""
        found.append(_make(process, letter, size, bool(z), big, text))
        position = end
    return found


def _make(process: Process, letter: str, size: str, trailer: bool, big: bool, text: str) -> Type:
    if letter == "a":
        return Type(1, 3, _table(_ascii_name), trailer)
    if letter == "c":
        return Type(1, 3, _table(_character), trailer)
    named = _FLOATS if letter == "f" else _INTEGERS
    default = 8 if letter == "f" else 4
    number = named[size] if size.isalpha() else int(str(size or default)[:18])
    widths = _WIDTHS[letter]
    if number not in widths:
        kind = "floating point" if letter == "f" else "integral"
        raise UsageError(
            f"invalid type string {quote(text, process.env)};\nthis system doesn't provide a {number}-byte {kind} type",
            hint=False,
        )
    width = widths[number]
    if letter == "f":
        return Type(number, width, _floats(number, big), trailer)
    return Type(number, width, _integers(letter, number, width, big), trailer)


def _table(name: Callable[[int], str]) -> Render:
    names = [name(byte) for byte in range(256)]
    return lambda data: [names[byte] for byte in data]


def _ascii_name(byte: int) -> str:
    byte &= 0x7F
    return "del" if byte == 127 else _CONTROL[byte] if byte <= 32 else chr(byte)


def _character(byte: int) -> str:
    if byte in _NAMES:
        return _NAMES[byte]
    return chr(byte) if 32 <= byte < 127 else f"{byte:03o}"


def _integers(letter: str, size: int, width: int, big: bool) -> Render:
    code = _CODES[size].lower() if letter == "d" else _CODES[size]
    order = ">" if big else "<"
    template = {"o": f"{{:0{width}o}}", "x": f"{{:0{width}x}}", "d": "{}", "u": "{}"}[letter].format
    if size == 1:
        return _table(lambda byte: template(byte - 256 if letter == "d" and byte > 127 else byte))
    return lambda data: list(map(template, struct.unpack(f"{order}{len(data) // size}{code}", data)))


def _floats(size: int, big: bool) -> Render:
    if size == 16:
        return lambda data: [_extended(data[at : at + 16], big) for at in range(0, len(data), 16)]
    code, low, high, least = ("f", 6, 9, 2.0**-126) if size == 4 else ("d", 15, 17, 2.0**-1022)
    order = ">" if big else "<"

    def shortest(value: float) -> str:
        if value != value:
            return "nan"
        for precision in range(low if abs(value) >= least else 1, high):
            text = f"{value:.{precision}g}"
            if struct.unpack(order + code, struct.pack(order + code, float(text)))[0] == value:
                return text
        return f"{value:.{high}g}"

    def render(data: bytes) -> list[str]:
        values = struct.unpack(f"{order}{len(data) // size}{code}", data)
        texts = [shortest(value) for value in values]
        return ["-" + t if t == "nan" and data[_sign_at(size, i, big)] & 0x80 else t for i, t in enumerate(texts)]

    return render


def _sign_at(size: int, index: int, big: bool) -> int:
    return index * size + (0 if big else size - 1)


def _extended(data: bytes, big: bool) -> str:
    """An 80-bit float of x86, in the first 10 of 16 bytes."""
    raw = data[::-1][6:] if not big else data[6:]
    head = int.from_bytes(raw[:2], "big")
    sign, exponent, mantissa = "-" if head & 0x8000 else "", head & 0x7FFF, int.from_bytes(raw[2:], "big")
    if exponent == 0x7FFF:
        return sign + ("inf" if mantissa == 1 << 63 else "nan")
    if mantissa == 0:
        return sign + "0"
    if exponent and not mantissa >> 63:
        return "nan" if not sign else "-nan"
    with localcontext() as context:
        context.prec = 40
        context.Emin, context.Emax = -999999, 999999
        value = Decimal(mantissa) * Decimal(2) ** (max(exponent, 1) - 16383 - 63)
        for precision in range(18, 22):
            context.prec = precision
            short = +value
            context.prec = 40
            if abs(short - value) <= abs(value) / (Decimal(2) ** 64):
                break
        text = f"{short.normalize():.{max(0, len(short.normalize().as_tuple().digits) - 1)}e}"
        power = int(text.partition("e")[2])
        if -5 < power < 18:
            return sign + format(short.normalize(), "f")
        base, _, _ = text.partition("e")
        return f"{sign}{base}e{'-' if power < 0 else '+'}{abs(power):02d}"
