"""awk's values and their conversions: numbers are float, strings are str, the rest are the small classes here.

Every class has `s`, its text, so that converting a value that is neither float nor str is one attribute.
"""

from __future__ import annotations

import math
import re

from belljar.bin.awk.errors import AwkFatal

NUMERIC_START = frozenset("0123456789+-. \t\n\r\f\v")
"""A string beginning with anything else can't look like a number."""

_PREFIX = re.compile(r"[ \t\n\r\f\v]*([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)")
_WHOLE = re.compile(r"[ \t\n\r\f\v]*[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[ \t\n\r\f\v]*")
_MAGIC = re.compile(r"[ \t\n\r\f\v]*([+-])(inf|nan)(?![0-9a-z])", re.I)


class StrNum:
    """Text from outside that may look like a number: a field, a command-line value, an environment value.

    `n` is None while undecided, False when it does not look numeric, else the number.
    """

    __slots__ = ("n", "s")

    def __init__(self, s: str) -> None:
        self.s = s
        self.n: float | bool | None = None

    def number(self) -> float | None:
        """Its number, or None when it does not look like one."""
        n = self.n
        if n is None:
            found = looks_numeric(self.s)
            self.n = n = False if found is None else found
        return None if n is False else n


class Uninit:
    """The value of a variable nobody assigned: "" and 0 at once."""

    __slots__ = ("s",)

    def __init__(self) -> None:
        self.s = ""


class FieldText:
    """A string assigned to a field: unlike text that was read, it never compares as a number."""

    __slots__ = ("s",)

    def __init__(self, s: str) -> None:
        self.s = s


class RegexValue:
    """A `@/re/` value."""

    __slots__ = ("s",)

    def __init__(self, s: str) -> None:
        self.s = s


class Untyped:
    """An uninitialised name passed to a function, which may yet make it an array in the caller too."""

    __slots__ = ("container", "key", "s")

    def __init__(self, container: list[Value] | dict[str, Value], key: int | str) -> None:
        self.s = ""
        self.container = container
        self.key = key

    def become_array(self) -> dict[str, Value]:
        """The array this name now is, shared with whoever passed it."""
        held = self.container[self.key]  # type: ignore[index]
        if type(held) is dict:
            return held
        made: dict[str, Value] = held.become_array() if isinstance(held, Untyped) else {}
        self.container[self.key] = made  # type: ignore[index]
        return made


Array = dict[str, "Value"]
Value = float | str | StrNum | Uninit | FieldText | RegexValue | Untyped | dict[str, "Value"]

UNINIT = Uninit()


def strnum(s: str) -> str | StrNum:
    """The value of text from outside."""
    return StrNum(s) if s and s[0] in NUMERIC_START else s


def looks_numeric(s: str) -> float | None:
    """The number `s` spells, or None when it is not wholly a number (blanks around it are fine)."""
    try:
        number = float(s)
    except ValueError:
        return None
    if number - number == 0.0 and "_" not in s and s.isascii():
        return number
    if _WHOLE.fullmatch(s):
        return number
    match = _MAGIC.match(s)
    if match is not None and not s[match.end() :].strip(" \t\n\r\f\v"):
        return _magic(match)
    return None


def string_number(s: str) -> float:
    """The number a string counts as: its longest numeric prefix, else 0."""
    try:
        number = float(s)
    except ValueError:
        number = math.nan
    else:
        if number - number == 0.0 and "_" not in s and s.isascii():
            return number
    match = _PREFIX.match(s)
    if match is not None:
        return float(match.group(1))
    match = _MAGIC.match(s)
    return 0.0 if match is None else _magic(match)


def _magic(match: re.Match[str]) -> float:
    number = math.inf if match.group(2).lower() == "inf" else math.nan
    return math.copysign(number, -1.0 if match.group(1) == "-" else 1.0)


def to_number(value: Value) -> float:
    kind = type(value)
    if kind is float:
        return value  # type: ignore[return-value]
    if kind is str:
        return string_number(value)  # type: ignore[arg-type]
    if kind is StrNum:
        n = value.n  # type: ignore[union-attr]
        if n is None:
            n = value.number()  # type: ignore[union-attr]
        if n is not None and n is not False:
            return n
        return string_number(value.s)  # type: ignore[union-attr]
    if kind is dict:
        raise array_as_scalar(value)
    return string_number(value.s)  # type: ignore[union-attr]


def numeric(value: Value) -> float | None:
    """The number of a value that compares as one, else None."""
    kind = type(value)
    if kind is float:
        return value  # type: ignore[return-value]
    if kind is str:
        return None
    if kind is StrNum:
        return value.number()  # type: ignore[union-attr]
    if kind is Uninit or kind is Untyped:
        return 0.0
    if kind is dict:
        raise array_as_scalar(value)
    return None


def truth(value: Value) -> bool:
    kind = type(value)
    if kind is float:
        return value != 0.0
    if kind is str:
        return value != ""
    if kind is StrNum:
        number = value.number()  # type: ignore[union-attr]
        return value.s != "" if number is None else number != 0.0  # type: ignore[union-attr]
    if kind is dict:
        raise array_as_scalar(value)
    return value.s != ""  # type: ignore[union-attr]


def whole(number: float) -> int:
    """The integer part of any float, within what counts and positions can be."""
    if number - number == 0.0:
        return int(max(-1e15, min(1e15, number)))
    return 0 if number != number else 10**15 if number > 0 else -(10**15)


def array_as_scalar(_value: object) -> AwkFatal:
    return AwkFatal("attempt to use array in a scalar context")


def special_number(number: float) -> str:
    """Infinities and NaN as gawk spells them."""
    sign = "-" if math.copysign(1.0, number) < 0 else "+"
    return sign + ("nan" if number != number else "inf")


class Conversion:
    """Number to string, by CONVFMT; whole numbers in a bounded cache because they are array subscripts all the time."""

    __slots__ = ("cache", "format", "formatter")

    def __init__(self) -> None:
        self.cache: dict[float, str] = {}
        self.format = "%.6g"
        self.formatter = format_simple

    def set_format(self, text: str) -> None:
        self.format = text

    def number(self, number: float) -> str:
        """The text of a number that is not in the cache, most likely."""
        return self.slow(number, self.format)

    def slow(self, number: float, form: str) -> str:
        try:
            integer = int(number)
        except (OverflowError, ValueError):
            return special_number(number)
        if integer == number:
            text = str(integer)
            if -100000 < integer < 1000000 and len(self.cache) < 200000:
                self.cache[number] = text
            return text
        if form == "%.6g":
            return f"{number:.6g}"
        return self.formatter(form, number)

    def string(self, value: Value) -> str:
        kind = type(value)
        if kind is str:
            return value  # type: ignore[return-value]
        if kind is float:
            found = self.cache.get(value)  # type: ignore[arg-type]
            if found is not None:
                return found
            return self.slow(value, self.format)  # type: ignore[arg-type]
        if kind is dict:
            raise array_as_scalar(value)
        return value.s  # type: ignore[union-attr]


_SIMPLE_FORMAT = re.compile(r"%[-+ #0]{0,5}[0-9]{0,3}(?:\.[0-9]{0,3})?[eEfFgG]")


def format_simple(form: str, number: float) -> str:
    """Apply a CONVFMT or OFMT that is a single floating-point conversion."""
    if _SIMPLE_FORMAT.fullmatch(form):
        return form % number
    from belljar.bin.awk.format import sprintf

    return sprintf(form, [number], Conversion(), 0)
