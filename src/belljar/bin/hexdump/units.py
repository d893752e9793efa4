"""hexdump's format strings: parsed once, then applied to a block of bytes at a time."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Final

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError

_UNIT: Final = re.compile(r"\s*(\d*)(?:/(\d+))?\s*\"((?:[^\"\\]|\\.)*)\"\s*", re.S)
_CONVERSION: Final = re.compile(
    r"%(?P<flags>[-+ #0]*)(?P<width>\d*)(?:\.(?P<precision>\d+))?(?P<kind>_[aA][dox]|_[cpu]|[diouxXeEfgGcs])"
)
_ESCAPES: Final = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0", "\\": "\\"}
_NAMES: Final = (
    "nul soh stx etx eot enq ack bel bs ht lf vt ff cr so si dle dc1 dc2 dc3 dc4 nak syn etb can em sub esc fs gs rs us"
).split()
_LETTERS: Final = {0: "\\0", 7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r"}
_WIDEST: Final = 4096


@dataclass(slots=True)
class Piece:
    """Text before a conversion, and the conversion: how many bytes it takes and how it shows them."""

    before: str
    size: int = 0
    show: Callable[[bytes, int], str] | None = None
    blank: int = 0
    """Columns it leaves empty where the data has ended."""
    at_end: bool = False
    """%_A: only after all the data."""


@dataclass(slots=True)
class Unit:
    """`8/2 "%04x "`: repeated, with what it takes each time."""

    repeat: int
    size: int
    pieces: list[Piece]
    tail: str
    fixed: bool
    """Whether the number of repetitions was given."""

    def render(self, block: bytes, at: int, valid: int, address: int) -> tuple[str, int]:
        """The unit's text for a block of which `valid` bytes are data, and where the next unit starts."""
        out: list[str] = []
        for number in range(self.repeat):
            # Blanks at the end are for what follows; the last of several has none.
            tail = self.tail.rstrip(" \t") if number == self.repeat - 1 and self.repeat > 1 else self.tail
            for piece in self.pieces:
                out.append(piece.before)
                if piece.show is None or piece.at_end:
                    continue
                if piece.size and at >= valid:
                    out.append(" " * piece.blank)
                else:
                    data = block[at : at + piece.size]
                    out.append(piece.show(data, address + at))
                at += piece.size
            out.append(tail)
        return "".join(out), at


def parse_format(text: str) -> list[Unit]:
    units: list[Unit] = []
    position = 0
    while position < len(text.rstrip()):
        match = _UNIT.match(text, position)
        if match is None:
            raise UsageError(f"bad format {{{text}}}", hint=False)
        repeat = int(match[1][:18]) if match[1] else 1
        size = int(match[2][:18]) if match[2] else 0
        units.append(_unit(min(repeat, 1 << 16), size, _unescape(match[3]), bool(match[1])))
        position = match.end()
    return units


def _unescape(text: str) -> str:
    return re.sub(r"\\(.)", lambda m: _ESCAPES.get(m[1], m[1]), text, flags=re.S)


def _unit(repeat: int, size: int, text: str, fixed: bool) -> Unit:
    pieces: list[Piece] = []
    position = total = 0
    before = ""
    while (percent := text.find("%", position)) >= 0:
        before += text[position:percent]
        if text[percent : percent + 2] == "%%":
            before += "%"
            position = percent + 2
            continue
        match = _CONVERSION.match(text, percent)
        if match is None:
            raise UsageError(f"bad conversion character %{text[percent + 1 : percent + 2]}", hint=False)
        piece = _piece(match, size, before)
        total += piece.size
        pieces.append(piece)
        before = ""
        position = match.end()
    return Unit(repeat, size or total if not pieces else total or 0, pieces, before + text[position:], fixed)


def _piece(match: re.Match[str], size: int, before: str) -> Piece:
    flags, kind = match["flags"], match["kind"]
    width = min(int((match["width"] or "0")[:18]), _WIDEST)
    precision = match["precision"]

    def pad(text: str, zero: bool = False) -> str:
        if "-" in flags:
            return text.ljust(width)
        if zero and "0" in flags and precision is None:
            sign = text[:1] if text[:1] in ("-", "+") else ""
            return sign + text[len(sign) :].rjust(width - len(sign), "0")
        return text.rjust(width)

    def digits(text: str) -> str:
        return text.rjust(min(int(precision[:18] or "0"), _WIDEST), "0") if precision is not None else text

    if kind.startswith(("_a", "_A")):
        letter = kind[2]

        def address(data: bytes, at: int) -> str:
            return pad(digits(format(at, letter)), zero=True)

        return Piece(before, 0, address, 0, kind[1] == "A")
    if kind in ("_c", "_p", "_u", "c"):
        name: Callable[[int], str] = {"_c": _char, "_p": _printable, "_u": _named, "c": chr}[kind]
        names = [pad(name(byte)) for byte in range(256)]
        return Piece(before, 1, lambda data, at: names[data[0]], width)
    if kind == "s":
        length = size or int(precision or "0")
        if not length:
            raise UsageError("%s requires a precision or a byte count", hint=False)
        return Piece(before, length, lambda d, at: pad(d.partition(b"\0")[0].decode("latin-1")), max(width, 0))
    if kind in "eEfgG":
        length = size or 8
        if length not in (4, 8):
            raise UsageError(f"bad byte count for conversion character {kind}", hint=False)
        code = "<f" if length == 4 else "<d"
        spec = f".{min(int(precision or '6'), 300)}{kind}"
        return Piece(before, length, lambda d, at: pad(format(struct.unpack(code, d)[0], spec), zero=True), width)
    length = size or 4
    if length not in (1, 2, 4, 8):
        raise UsageError(f"bad byte count for conversion character {kind}", hint=False)
    signed = kind in "di"
    base = {"d": "d", "i": "d", "u": "d", "o": "o", "x": "x", "X": "X"}[kind]

    def integer(data: bytes, at: int) -> str:
        number = int.from_bytes(data, "little", signed=signed)
        text = digits(format(abs(number), base))
        if "#" in flags and number:
            text = {"o": "0", "x": "0x", "X": "0X"}.get(base, "") + text
        sign = "-" if number < 0 else "+" if "+" in flags and signed else " " if " " in flags and signed else ""
        return pad(sign + text, zero=True)

    if length == 1:
        table = [integer(bytes([byte]), 0) for byte in range(256)]
        return Piece(before, 1, lambda data, at: table[data[0]], width)
    return Piece(before, length, integer, width)


def _char(byte: int) -> str:
    return _LETTERS.get(byte) or (chr(byte) if 32 <= byte < 127 else f"{byte:03o}")


def _printable(byte: int) -> str:
    return chr(byte) if 32 <= byte < 127 else "."


def _named(byte: int) -> str:
    if byte < 32:
        return _NAMES[byte]
    return "del" if byte == 127 else chr(byte) if byte < 127 else f"{byte:02x}"
