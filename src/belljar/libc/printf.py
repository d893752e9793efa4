"""printf: formats arguments as bash's builtin and GNU's program do; they share all but the words of their errors."""

from __future__ import annotations

import re
from typing import Protocol

from belljar.abi.paths import fsdecode, fsencode
from belljar.libc.escapes import ARGUMENT, decode
from belljar.libc.long_double import LongDouble, format_long_double, parse_long_double
from belljar.libc.printf_format import INT_MAX, BadTime, Conversion, Missing, Mistake, Piece, Stop, parse_format

_INTEGER = re.compile(r"[ \t\n\v\f\r]*([+-]?)(0[xX][0-9a-fA-F]+|0[0-7]*|[1-9][0-9]*)")
MAX = (1 << 63) - 1
WRAP = 1 << 64


class Dialect(Protocol):
    """The printf at hand: its conversions, and its messages and statuses for errors."""

    letters: str
    stops: bool
    """Whether a backslash-c in the format ends the output."""

    def invalid(self, arg: str, used: int) -> int:
        """A number of which only the first `used` characters make sense; the status."""
        ...

    def out_of_range(self, arg: str) -> int: ...
    def mistake(self, mistake: Mistake) -> int: ...
    def missing_digits(self, letter: str) -> int: ...
    def after_character(self, rest: str) -> None: ...
    def quote(self, text: str) -> str: ...
    def time(self, template: str, seconds: int) -> str: ...
    def bad_time(self, letter: str) -> None: ...
    def store_count(self, name: str, count: int) -> None: ...


class Meter(Protocol):
    """A budget that is charged before the work is done."""

    def charge(self, steps: int) -> None: ...
    def charge_size(self, size: int) -> None: ...


class Printf:
    """One run: takes its arguments in turn and collects output and status."""

    def __init__(self, dialect: Dialect, args: list[str], budget: Meter) -> None:
        self.dialect = dialect
        self.args = args
        self.used = 0
        self.status = 0
        self.out = bytearray()
        self.passed_on = 0
        """Bytes of the output that are no longer in `out`."""
        self._budget = budget

    def take_lines(self) -> bytes:
        """The whole lines made so far, which then are the caller's to write."""
        end = self.out.rfind(b"\n") + 1
        lines = bytes(self.out[:end])
        del self.out[:end]
        self.passed_on += end
        return lines

    def run(self, template: str) -> tuple[bytes, int]:
        """The output and the status for a format, applied again and again while arguments are left."""
        pieces = parse_format(fsencode(template), self.dialect.letters, self.dialect.stops)
        while True:
            before = self.used
            self._budget.charge(len(pieces))
            if not self._pass(pieces) or self.used >= len(self.args) or self.used == before:
                return bytes(self.out), self.status
            self._budget.charge_size(len(self.out))

    def _pass(self, pieces: tuple[Piece, ...]) -> bool:
        """Once through the format; False if the output ends here."""
        for piece in pieces:
            if isinstance(piece, bytes):
                self.out += piece
            elif isinstance(piece, Conversion):
                if piece.plain and self.used < len(self.args):
                    arg = self.args[self.used]
                    if piece.letter == "s" or (arg.isdecimal() and arg.isascii() and arg[0] != "0" and len(arg) < 19):
                        self.used += 1
                        self.out += arg.encode("utf-8", "surrogateescape")
                        continue
                elif piece.padded and self.used < len(self.args):
                    arg = self.args[self.used]
                    if arg.isdecimal() and arg.isascii() and (arg[0] != "0" or arg == "0") and len(arg) < 19:
                        self.used += 1
                        self.out += (arg.zfill(piece.width) if piece.flags else arg.rjust(piece.width)).encode()
                        continue
                if not self._convert(piece):
                    return False
            elif isinstance(piece, Mistake):
                self.status = self.dialect.mistake(piece)
                return False
            elif isinstance(piece, Stop):
                return False
            elif isinstance(piece, BadTime):
                self.dialect.bad_time(piece.letter)
                self.out += piece.text
            else:
                assert isinstance(piece, Missing)
                status = self.dialect.missing_digits(piece.letter)
                if status:
                    self.status = status
                    return False
        return True

    def _next(self) -> str | None:
        """The next argument; None when there are no more."""
        if self.used >= len(self.args):
            return None
        self.used += 1
        return self.args[self.used - 1]

    def _convert(self, item: Conversion) -> bool:
        flags, width, precision = item.flags, item.width, item.precision
        if width == -1:
            width = self._integer(signed=True)
            if width < 0:
                flags, width = flags + "-", -width
        if precision == -1:
            precision = self._integer(signed=True)
            if precision < 0:
                precision = None
        if width > INT_MAX or (precision or 0) > INT_MAX:
            self._next()
            return True
        letter = item.letter
        if letter in "diouxXeEfFgGaA":
            self._budget.charge_size(width + (precision or 0))
        else:
            self._budget.charge_size(width)
        if letter in "sbqQc":
            return self._string(letter, flags, width, precision)
        if letter in "di":
            value = self._integer(signed=True)
            self._number(
                _sign(value < 0, flags), "", _plain_digits(str(abs(value)), precision), flags, width, precision
            )
        elif letter in "ouxX":
            self._unsigned(letter, flags, width, precision)
        elif letter == "T":
            self._time(item, flags, width, precision)
        elif letter == "n":
            name = self._next()
            if name:
                self.dialect.store_count(name, self.passed_on + len(self.out))
        else:
            self._float(letter, flags, width, precision)
        return True

    def _string(self, letter: str, flags: str, width: int, precision: int | None) -> bool:
        arg = self._next() or ""
        stopped = False
        if letter == "c":
            data = fsencode(arg)[:1] or b"\0"
            precision = None
        elif letter == "s":
            data = fsencode(arg)
        elif letter == "b":
            data, stopped = decode(fsencode(arg), ARGUMENT, self._missing)
        elif letter == "q":
            data = fsencode(self.dialect.quote(arg))
        else:
            if precision is not None:
                arg, precision = fsdecode(fsencode(arg)[:precision]), None
            data = fsencode(self.dialect.quote(arg))
        if precision is not None:
            data = data[:precision]
        self.out += data.ljust(width) if "-" in flags else data.rjust(width)
        return not stopped

    def _missing(self, letter: str) -> None:
        self.status = self.dialect.missing_digits(letter) or self.status

    def _number(self, sign: str, prefix: str, digits: str, flags: str, width: int, precision: int | None) -> None:
        text = sign + prefix + digits
        if len(text) < width:
            if "-" in flags:
                text = text.ljust(width)
            elif "0" in flags and precision is None:
                text = sign + prefix + digits.rjust(width - len(sign + prefix), "0")
            else:
                text = text.rjust(width)
        self.out += text.encode()

    def _unsigned(self, letter: str, flags: str, width: int, precision: int | None) -> None:
        value = self._integer(signed=False)
        digits = _plain_digits(format(value, {"o": "o", "u": "d", "x": "x", "X": "X"}[letter]), precision)
        prefix = ""
        if "#" in flags and value:
            if letter in "xX":
                prefix = "0" + letter
            elif letter == "o" and not digits.startswith("0"):
                digits = "0" + digits
        elif "#" in flags and letter == "o" and not digits:
            digits = "0"
        self._number("", prefix, digits, flags, width, precision)

    def _float(self, letter: str, flags: str, width: int, precision: int | None) -> None:
        value = self._real()
        text = format_long_double(value, letter, precision, alternate="#" in flags)
        if value.special:
            flags = flags.replace("0", "")
        prefix = ""
        if letter in "aA" and not value.special:
            prefix, text = text[:2], text[2:]
        self._number(_sign(value.negative, flags), prefix, text, flags, width, None)

    def _time(self, item: Conversion, flags: str, width: int, precision: int | None) -> None:
        arg = self._next()
        seconds = -1
        if arg is not None:
            self.used -= 1
            seconds = self._integer(signed=True)
        data = fsencode(self.dialect.time(item.time_format or "%X", seconds))
        if precision is not None:
            data = data[:precision]
        self.out += data.ljust(width) if "-" in flags else data.rjust(width)

    # Numbers from text.

    def _integer(self, *, signed: bool) -> int:
        """The next argument as a number of 64 bits (0 if there is none)."""
        arg = self._next()
        if arg is None:
            return 0
        if arg.isdecimal() and arg.isascii() and arg[0] != "0" and len(arg) < 19:
            return int(arg)
        if arg[:1] in ("'", '"') and arg:
            return self._character(arg)
        match = _INTEGER.match(arg)
        if match is None:
            self.status = self.dialect.invalid(arg, 0) or self.status
            return 0
        sign, digits = match.groups()
        value = _to_int(digits)
        if sign == "-":
            value = -value
        if match.end() < len(arg):
            self.status = self.dialect.invalid(arg, match.end()) or self.status
        low, high = (-MAX - 1, MAX) if signed else (-WRAP + 1, WRAP - 1)
        if not low <= value <= high:
            self.status = self.dialect.out_of_range(arg) or self.status
            value = (low if signed else WRAP - 1) if value < low else high
        return value if signed else value % WRAP

    def _character(self, arg: str) -> int:
        """`'c` is the code of c, by byte where that is no UTF-8."""
        if len(arg) == 1:
            return 0
        if len(arg) > 2:
            self.dialect.after_character(arg[2:])
        code = ord(arg[1])
        return code - 0xDC00 if 0xDC80 <= code <= 0xDCFF else code

    def _real(self) -> LongDouble:
        arg = self._next()
        if arg is None:
            return LongDouble()
        if arg and arg[0] in ("'", '"'):
            return parse_long_double(str(self._character(arg)))[0]
        value, used, ranged = parse_long_double(arg)
        if used < len(arg) or not arg:
            self.status = self.dialect.invalid(arg, used) or self.status
        elif ranged:
            self.status = self.dialect.out_of_range(arg) or self.status
        return value


def _sign(negative: bool, flags: str) -> str:
    return "-" if negative else "+" if "+" in flags else " " if " " in flags else ""


def _plain_digits(digits: str, precision: int | None) -> str:
    if precision is None:
        return digits
    return "" if precision == 0 and digits == "0" else digits.rjust(precision, "0")


def _to_int(digits: str) -> int:
    """C's reading of a constant; past 64 bits only its being too large matters."""
    if digits[:2] in ("0x", "0X"):
        return int(digits[2:][:64], 16) if len(digits) < 66 else WRAP
    if digits[0] == "0" and len(digits) > 1:
        return int(digits, 8) if len(digits) < 99 else WRAP
    return int(digits) if len(digits) < 99 else WRAP
