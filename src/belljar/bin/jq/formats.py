"""The format strings: @csv, @sh, @base64d and the rest, each a function from a value to text."""

import base64
import binascii
import re
from collections.abc import Callable
from urllib.parse import quote_from_bytes, unquote_to_bytes

from belljar.bin.jq.numbers import format_number
from belljar.bin.jq.values import Value, is_number, to_text, type_error
from belljar.bin.jq.writer import to_json

HTML = str.maketrans({"<": "&lt;", ">": "&gt;", "&": "&amp;", "'": "&apos;", '"': "&quot;"})
TSV = str.maketrans({"\t": "\\t", "\n": "\\n", "\r": "\\r", "\\": "\\\\"})
PERCENT = re.compile(r"%(?![0-9a-fA-F]{2})")


def row(value: Value, name: str, separator: str, text: Callable[[str], str]) -> str:
    if value.__class__ is not list:
        raise type_error(value, f"cannot be {name}-formatted, only array")
    cells = []
    for cell in value:
        if cell.__class__ is str:
            cells.append(text(cell))
        elif cell is None:
            cells.append("")
        elif cell.__class__ is bool:
            cells.append("true" if cell else "false")
        elif is_number(cell):
            cells.append(format_number(cell))
        else:
            raise type_error(cell, "is not valid in a csv row")
    return separator.join(cells)


def as_csv(value: Value) -> str:
    return row(value, "csv", ",", lambda text: '"' + text.replace('"', '""') + '"')


def as_tsv(value: Value) -> str:
    return row(value, "tsv", "\t", lambda text: text.translate(TSV))


def as_html(value: Value) -> str:
    return to_text(value).translate(HTML)


def as_uri(value: Value) -> str:
    return quote_from_bytes(to_text(value).encode("utf-8", "replace"), safe="-_.~")


def from_uri(value: Value) -> str:
    text = to_text(value)
    if PERCENT.search(text):
        raise type_error(text, "is not a valid uri encoding")
    try:
        return unquote_to_bytes(text).decode()
    except UnicodeDecodeError:
        raise type_error(text, "is not a valid uri encoding") from None


def as_sh(value: Value) -> str:
    def word(item: Value) -> str:
        if item.__class__ is str:
            return "'" + item.replace("'", "'\\''") + "'"
        if item.__class__ is list or item.__class__ is dict:
            raise type_error(item, "can not be escaped for shell")
        return to_json(item)

    return " ".join(map(word, value)) if value.__class__ is list else word(value)


def as_base64(value: Value) -> str:
    return base64.b64encode(to_text(value).encode("utf-8", "replace")).decode()


def from_base64(value: Value) -> str:
    text = to_text(value)
    bare = text.rstrip("=")
    if len(bare) % 4 == 1:
        raise type_error(text, "trailing base64 byte found")
    try:
        data = base64.b64decode(bare + "=" * (-len(bare) % 4), validate=True)
    except (binascii.Error, ValueError):
        raise type_error(text, "is not valid base64 data") from None
    return data.decode("utf-8", "replace")


def as_base32(value: Value) -> str:
    return base64.b32encode(to_text(value).encode("utf-8", "replace")).decode()


def from_base32(value: Value) -> str:
    text = to_text(value)
    bare = text.rstrip("=")
    try:
        data = base64.b32decode(bare + "=" * (-len(bare) % 8))
    except (binascii.Error, ValueError):
        raise type_error(text, "is not valid base32 data") from None
    return data.decode("utf-8", "replace")


FORMATS: dict[str, Callable[[Value], str]] = {
    "text": to_text,
    "json": to_json,
    "csv": as_csv,
    "tsv": as_tsv,
    "html": as_html,
    "uri": as_uri,
    "urid": from_uri,
    "sh": as_sh,
    "base64": as_base64,
    "base64d": from_base64,
    "base32": as_base32,
    "base32d": from_base32,
}
