"""Writes values as JSON text: at C speed where the text is plain, exactly jq's bytes in every case."""

import re
from collections.abc import Iterator
from json.encoder import encode_basestring
from typing import Any

import msgspec

from belljar.abi.dataclass import dataclass
from belljar.bin._kit.cstack import bounded
from belljar.bin.jq.measure import check_size
from belljar.bin.jq.numbers import Number, format_number

MAX_PRINT_DEPTH = 10_000
MAX_PRETTY_DEPTH = 500
SCALARS = (str, int, float, bool, type(None), Number)
RESET = "\x1b[0m"
DEFAULT_COLORS = ("0;90", "0;39", "0;39", "0;39", "0;32", "1;39", "1;39", "1;34")
LINE_START = re.compile(rb"(?m)^ +")
NOT_ASCII = re.compile("[^\x00-\x7f]")


@dataclass(frozen=True, slots=True)
class Style:
    """How results are written: `indent` columns (None: on one line), or tabs."""

    indent: int | None = 2
    tab: bool = False
    sort: bool = False
    ascii: bool = False
    colors: tuple[str, ...] | None = None


COMPACT = Style(indent=None)


def encode_odd(value: Any) -> msgspec.Raw:
    if value.__class__ is Number:
        return msgspec.Raw(format_number(value).encode())
    raise TypeError(type(value))


_plain = msgspec.json.Encoder(enc_hook=encode_odd).encode
_sorted = msgspec.json.Encoder(enc_hook=encode_odd, order="sorted").encode


def _format(text: bytes, indent: int) -> bytes:
    return msgspec.json.format(text, indent=indent)


def to_json(value: Any) -> str:
    """`tojson`."""
    check_size(value)
    return write(value, COMPACT).decode()


def preview(value: Any) -> str:
    """The beginning of `tojson`, for messages: enough to cut."""
    text = ""
    for piece in pieces(value, COMPACT):
        text += piece
        if len(text) > 64:
            break
    return text


def write(value: Any, style: Style = COMPACT, shallow: bool = False) -> bytes:
    """The text of `value`. `shallow`: it is known to be far from the limits of the C stack."""
    if style.colors is not None or style.ascii:
        return write_exactly(value, style)
    encode = _sorted if style.sort else _plain
    indent = 1 if style.tab else style.indent
    try:
        if shallow or value.__class__ in SCALARS:
            text = encode(value)
            if indent is not None and value.__class__ in (list, dict):
                text = _format(text, indent)
        else:
            text = bounded(MAX_PRINT_DEPTH, encode, value)
            if indent is not None:
                # Deep values are mostly indentation: those are written piece by piece.
                text = bounded(MAX_PRETTY_DEPTH, _format, text, indent)
        if style.tab:
            text = LINE_START.sub(lambda match: b"\t" * len(match.group()), text)
    except (RecursionError, UnicodeEncodeError, ValueError, OverflowError, msgspec.DecodeError):
        # Too deep for the C stack, or digits beyond its integers: the long way prints those as well.
        return write_exactly(value, style)
    return text.replace(b"\x7f", b"\\u007f") if b"\x7f" in text else text


def write_exactly(value: Any, style: Style) -> bytes:
    return "".join(pieces(value, style)).encode("utf-8", "replace")


def quote(text: str, ascii_only: bool) -> str:
    quoted = encode_basestring(text)
    if "\x7f" in quoted:
        quoted = quoted.replace("\x7f", "\\u007f")
    if ascii_only:
        quoted = NOT_ASCII.sub(escape_character, quoted)
    return quoted


def escape_character(match: "re.Match[str]") -> str:
    code = ord(match.group())
    if code < 0x10000:
        return f"\\u{code:04x}"
    code -= 0x10000
    return f"\\u{0xD800 | code >> 10:04x}\\u{0xDC00 | code & 0x3FF:04x}"


def scalar(value: Any, style: Style) -> str:
    kind = value.__class__
    if kind is str:
        return quote(value, style.ascii)
    if value is None:
        return "null"
    if kind is bool:
        return "true" if value else "false"
    return format_number(value)


def color_index(value: Any) -> int:
    kind = value.__class__
    if kind is str:
        return 4
    if value is None:
        return 0
    if kind is bool:
        return 2 if value else 1
    return 5 if kind is list else 6 if kind is dict else 3


def pieces(root: Any, style: Style) -> Iterator[str]:
    """The text of `root` in pieces, with an explicit stack: depth costs memory, not recursion."""
    paint = style.colors
    codes = [f"\x1b[{code}m" for code in paint] if paint is not None else []
    pretty = style.indent is not None or style.tab
    unit = "\t" if style.tab else " " * (style.indent or 0)
    stack: list[tuple[Iterator[Any], bool, str]] = []
    value = root
    while True:
        kind = value.__class__
        color = codes[color_index(value)] if paint is not None else ""
        if len(stack) > MAX_PRINT_DEPTH:
            yield f"{color}<skipped: too deep>{RESET if paint is not None else ''}"
        elif (kind is list or kind is dict) and value:
            if kind is list:
                yield f"{color}["
                stack.append((iter(value), False, color))
            else:
                yield color + "{"
                members = sorted(value.items()) if style.sort else value.items()
                stack.append((iter(members), True, color))
            if paint is not None:
                yield RESET
            first = True
            value = _MORE
        elif kind is list or kind is dict:
            yield color + ("[]" if kind is list else "{}") + (RESET if paint is not None else "")
        elif paint is not None:
            yield color + scalar(value, style) + RESET
        else:
            yield scalar(value, style)
        if value is not _MORE:
            first = False
        while stack:
            members, keyed, color = stack[-1]
            item = next(members, _MORE)
            if item is _MORE:
                stack.pop()
                if pretty:
                    yield "\n" + unit * len(stack)
                yield color + ("}" if keyed else "]") + (RESET if paint is not None else "")
                first = False
                continue
            if not first:
                yield f"{color},{RESET}" if paint is not None else ","
            if pretty:
                yield "\n" + unit * len(stack)
            if keyed:
                name = quote(item[0], style.ascii)
                if paint is not None:
                    yield f"{codes[7]}{name}{RESET}{color}:{RESET}"
                else:
                    yield name + ":"
                if pretty:
                    yield " "
                value = item[1]
            else:
                value = item
            break
        else:
            return


_MORE: Any = object()
