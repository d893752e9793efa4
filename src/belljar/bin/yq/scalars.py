"""YAML's plain scalars: what they mean, and which strings can be written plain."""

import re
from math import inf
from typing import Any

from belljar.bin.jq.numbers import INFINITE, NAN, NUMERIC, Number, parse_literal

INTEGER = re.compile(r"[-+]?[0-9][0-9_]*")
OCTAL = re.compile(r"0o[0-7_]+")
HEX = re.compile(r"0x[0-9a-fA-F_]+")
BINARY = re.compile(r"0b[01_]+")
FLOAT = re.compile(r"[-+]?(?:\.[0-9_]+|[0-9][0-9_]*(?:\.[0-9_]*)?)(?:[eE][-+]?[0-9]+)?")
WORDS: dict[str, Any] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
    ".inf": INFINITE,
    ".Inf": INFINITE,
    ".INF": INFINITE,
    "+.inf": INFINITE,
    "-.inf": Number(-inf),
    "-.Inf": Number(-inf),
    "-.INF": Number(-inf),
    ".nan": NAN,
    ".NaN": NAN,
    ".NAN": NAN,
}
AMBIGUOUS = re.compile(r"(?i:y|n|yes|no|on|off)")
NOT_PLAIN = re.compile(
    r"""[\x00-\x1f\x7f\x85\xa0\u2028\u2029\ufeff]|^[-?:](?:\s|$)|^[,\[\]{}#&*!|>'"%@`]|^\s|\s$|:(?:\s|$)|\s\#|^(?:---|\.\.\.)"""
)


def resolve(text: str) -> Any:
    """The value of a plain scalar, by YAML 1.2's core schema."""
    if text in WORDS:
        return WORDS[text]
    first = text[0]
    if not (first.isdecimal() or first in "+-."):
        return text
    if OCTAL.fullmatch(text):
        return int(text[2:].replace("_", "") or "0", 8)
    if HEX.fullmatch(text):
        return int(text[2:].replace("_", "") or "0", 16)
    if BINARY.fullmatch(text):
        return int(text[2:].replace("_", "") or "0", 2)
    if INTEGER.fullmatch(text) or FLOAT.fullmatch(text):
        bare = text.replace("_", "")
        if NUMERIC.fullmatch(bare) and len(bare) < 4000:
            return parse_literal(bare)
    return text


def is_plain(text: str) -> bool:
    """True if `text` written without quotes reads back as the same string."""
    if not text or NOT_PLAIN.search(text):
        return False
    return isinstance(resolve(text), str) and not AMBIGUOUS.fullmatch(text)
