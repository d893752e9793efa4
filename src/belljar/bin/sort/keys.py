"""Sort keys: what part of a line counts (`-k 2.3,4n`), and how it is compared."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from hashlib import md5
from typing import Any

from belljar.abi.dataclass import dataclass, replace
from belljar.bin._kit import UsageError
from belljar.bin._kit.versions import version_key

Key = Callable[[bytes], Any]
ORDERS = "dfghiMnRVrb"
BLANK = b" \t\n"
"""A line has a newline in it only under -z."""
_POSITION = re.compile(r"(\d+)(?:\.(\d+))?([A-Za-z]*)")
_NUMBER = rb"[ \t\n]*(-?\d*)(?:\.(\d*))?"
_HUMAN = re.compile(_NUMBER + rb"([KkMGTPEZYRQ]?)")
FLOAT = re.compile(
    rb"\s*([-+]?(?:0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[-+]?\d+)?"
    rb"|(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?|inf(?:inity)?|nan))",
    re.I,
)
_MOST_FIELDS = 1 << 30
MONTHS = {m: i for i, m in enumerate(b"JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC".split(), 1)}


@dataclass(frozen=True, slots=True)
class KeySpec:
    """One `-k`. Fields and characters count from 1; an end of (0, 0) is the end of the line."""

    start: tuple[int, int] = (1, 1)
    end: tuple[int, int] = (0, 0)
    orders: str = ""
    skip_start: bool = False
    skip_end: bool = False

    @property
    def reverse(self) -> bool:
        return "r" in self.orders

    @property
    def whole_line(self) -> bool:
        return self.start == (1, 1) and self.end == (0, 0) and not self.skip_start


def parse_key(text: str) -> KeySpec:
    start_text, comma, end_text = text.partition(",")
    field, char, start_orders = _position(text, start_text)
    if char == 0:
        raise UsageError(f"character offset is zero: invalid field specification \u2018{text}\u2019", hint=False)
    end, end_orders = (0, 0), ""
    if comma:
        end_field, end_char, end_orders = _position(text, end_text, after_comma=True)
        end = (end_field, end_char if end_char is not None else 0)
    spec = KeySpec((field, char or 1), end, start_orders + end_orders)
    check_orders(spec.orders)
    return replace(spec, skip_start="b" in start_orders, skip_end="b" in end_orders)


def _position(whole: str, text: str, *, after_comma: bool = False) -> tuple[int, int | None, str]:
    match = _POSITION.fullmatch(text)
    if match is None:
        if not text[:1].isdecimal():
            where, shown = ("after ','", text) if after_comma else ("at field start", whole)
            raise UsageError(f"invalid number {where}: invalid count at start of \u2018{shown}\u2019", hint=False)
        if re.match(r"\d+\.(?!\d)", text):
            rest = text.partition(".")[2]
            raise UsageError(f"invalid number after '.': invalid count at start of \u2018{rest}\u2019", hint=False)
        raise UsageError(f"stray character in field spec: invalid field specification \u2018{whole}\u2019", hint=False)
    field, char, orders = match.groups()
    field, char = field[:18], char and char[:18]
    if int(field) == 0:
        raise UsageError(f"field number is zero: invalid field specification \u2018{whole}\u2019", hint=False)
    if set(orders) - set(ORDERS):
        raise UsageError(f"stray character in field spec: invalid field specification \u2018{whole}\u2019", hint=False)
    return int(field), None if char is None else int(char), orders


def check_orders(orders: str) -> None:
    exclusive = [o for o in "ghMnRV" if o in orders]
    conflict = exclusive + [o for o in "di" if o in orders and [e for e in exclusive if e not in "RV"]]
    if len(exclusive) > 1 or len(conflict) > 1:
        given = "".join(sorted({o for o in orders if o in "dghiMnRV"}))
        raise UsageError(f"options '-{given}' are incompatible", hint=False)


def span(spec: KeySpec, separator: bytes | None) -> Callable[[bytes], tuple[int, int]]:
    """Return where the part of a line that a key names begins and ends; a key may end before it begins."""
    (start_field, start_char), (end_field, end_char) = spec.start, spec.end
    field_start = _field_start(start_field - 1, separator)

    def begin(line: bytes) -> int:
        position = field_start(line)
        if spec.skip_start:
            position = _skip_blanks(line, position)
        return min(len(line), position + start_char - 1)

    if end_field == 0:
        return lambda line: (begin(line), len(line))

    field_end = _field_end(end_field, separator) if end_char == 0 else _field_start(end_field - 1, separator)

    def finish(line: bytes) -> int:
        position = field_end(line)
        if end_char == 0:
            return position
        if spec.skip_end:
            position = _skip_blanks(line, position)
        return min(len(line), position + end_char)

    return lambda line: (begin(line), finish(line))


def extractor(spec: KeySpec, separator: bytes | None) -> Key:
    """The part of a line that a key names."""
    if separator is not None and spec.end == (spec.start[0], 0) and spec.start[1] == 1 and not spec.skip_start:
        index = spec.start[0] - 1

        def one_field(line: bytes) -> bytes:
            fields = line.split(separator, index + 1)
            return fields[index] if len(fields) > index else b""

        return one_field
    find = span(spec, separator)

    def cut(line: bytes) -> bytes:
        begin, end = find(line)
        return line[begin:end]

    return cut


def _skip_blanks(line: bytes, position: int) -> int:
    return len(line) - len(line[position:].lstrip(BLANK))


def _fields(count: int) -> bytes:
    """A pattern for so many fields, each with the blanks before it; all of a line that has fewer."""
    return rb"(?:(?>[ \t\n]*[^ \t\n]+){%d}|.*)" % min(count, _MOST_FIELDS) if count else b""


def _field_start(skip: int, separator: bytes | None) -> Callable[[bytes], int]:
    """Return where the field after `skip` fields begins; without a separator a field includes the blanks before it."""
    return _field_end(skip, separator, past=1) if skip else lambda line: 0


def _field_end(count: int, separator: bytes | None, past: int = 0) -> Callable[[bytes], int]:
    """Return where the last of `count` fields ends, or `past` its separator."""
    if separator is None:
        match = re.compile(_fields(count), re.S).match
        return lambda line: match(line).end()  # type: ignore[union-attr]  # it matches anything

    def find(line: bytes) -> int:
        position = -1
        for _ in range(count):
            position = line.find(separator, position + 1)
            if position < 0:
                return len(line)
        return position + past

    return find


def comparer(orders: str, salt: bytes) -> Key | None:
    """Return a function from a key's bytes to a comparable value; None if the bytes themselves will do."""
    if "g" in orders:
        return general
    if "h" in orders:
        return human
    if "M" in orders:
        return month
    prepare = _translator(orders)
    if "R" in orders:
        return lambda data: md5(salt + (prepare(data) if prepare else data), usedforsecurity=False).digest()
    if "V" in orders:
        return lambda data: version_key(prepare(data) if prepare else data)
    return prepare


def _translator(orders: str) -> Key | None:
    """-d, -f and -i in one pass over the bytes."""
    if not set(orders) & set("dfi"):
        return None
    table = bytes(range(256)).upper() if "f" in orders else None
    delete = b""
    if "d" in orders:
        delete = bytes(b for b in range(256) if not ((chr(b).isalnum() and b < 128) or b in BLANK))
    elif "i" in orders:
        delete = bytes(b for b in range(256) if not 32 <= b < 127)
    return lambda data: data.translate(table, delete)


def numeric(spec: KeySpec, separator: bytes | None) -> Key:
    """-n. A number has no blanks in it, so of fields between blanks it is found without cutting the key out."""
    fields_only = separator is None and spec.start[1] == 1 and spec.end[1] == 0
    direct = fields_only and (spec.end == (0, 0) or spec.end[0] >= spec.start[0])
    match = re.compile((_fields(spec.start[0] - 1) if direct else b"") + _NUMBER, re.S).match
    extract = None if direct or spec.whole_line else extractor(spec, separator)

    def key(line: bytes) -> int | Decimal:
        whole, fraction = match(extract(line) if extract else line).groups()  # type: ignore[union-attr]
        return int(whole) if whole.isdigit() and not fraction and len(whole) < 4000 else _value(whole, fraction)

    return key


def _value(whole: bytes, fraction: bytes | None) -> int | Decimal:
    """The number of an optional minus and digits, and of those after the point."""
    digits = whole.lstrip(b"-") or b"0"
    if fraction or len(digits) > 4000:
        number: int | Decimal = Decimal(f"{digits.decode()}.{(fraction or b'0').decode()}")
    else:
        number = int(digits)
    return -number if whole.startswith(b"-") else number


def human(data: bytes) -> tuple[int, int | Decimal]:
    match = _HUMAN.match(data)
    assert match is not None
    whole, fraction, suffix = match.groups()
    number = _value(whole, fraction)
    order = b"KMGTPEZYRQ".index(suffix.upper()) + 1 if suffix and number else 0
    return (-order if whole.startswith(b"-") else order), number


def general(data: bytes) -> tuple[int, float]:
    """Key of -g: non-numbers sort first, then NaN, then by value."""
    match = FLOAT.match(data)
    if match is None:
        return (0, 0.0)
    text = match[1].decode()
    try:
        number = float.fromhex(text) if "x" in text.lower() else float(text)
    except OverflowError:
        number = float("-inf" if text.startswith("-") else "inf")
    return (1, 0.0) if number != number else (2, number)


def month(data: bytes) -> int:
    return MONTHS.get(data.lstrip(BLANK)[:3].upper(), 0)
