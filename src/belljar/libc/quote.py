r"""Quoting text so that the shell reads it back: bash's choice among \x, '...', "..." and $'...' in each place."""

from __future__ import annotations

import re
from typing import Final
from unicodedata import category

from belljar.abi.paths import fsencode

_BACKSLASHED: Final = re.compile(r"""[ \t\n!"$&'()*,;<>?\[\\\]^`{|}]|^[~#]|(?<=[:=])~""")
_METAS: Final = re.compile(r"""[ \t\n!"$&'()*;<>?\[\\\]^`{|}]|^[~#]|(?<=[:=])~""")
_DOUBLED: Final = re.compile(r'[$`"\\]')
_ANSI_NAMES: Final = {
    "\x1b": "\\E", "\a": "\\a", "\b": "\\b", "\v": "\\v", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t",
    "\\": "\\\\", "'": "\\'",
}  # fmt: skip


def is_printable(char: str) -> bool:
    """As in C.UTF-8; a byte that is no UTF-8 isn't."""
    return category(char) not in ("Cc", "Cs", "Cn") and char not in "\u2028\u2029"


def needs_ansi(text: str) -> bool:
    """Whether the text holds something that can't be shown as it is."""
    if text.isprintable():
        return False
    return not all(char.isprintable() or is_printable(char) for char in text)


def has_metas(text: str) -> bool:
    """Whether the shell would see anything special in the text."""
    return _METAS.search(text) is not None


def single(text: str) -> str:
    """'text'"""
    return "\\'" if text == "'" else "'" + text.replace("'", "'\\''") + "'"


def double(text: str) -> str:
    """ "text" """
    return '"' + _DOUBLED.sub(r"\\\g<0>", text) + '"'


def backslash(text: str) -> str:
    r"""te\ xt"""
    return _BACKSLASHED.sub(r"\\\g<0>", text)


def ansi(text: str) -> str:
    r"""$'te\nxt'"""
    return "$'" + "".join([_ansi_char(char) for char in text]) + "'"


def _ansi_char(char: str) -> str:
    name = _ANSI_NAMES.get(char)
    if name is not None:
        return name
    if char.isprintable() or is_printable(char):
        return char
    return "".join([f"\\{byte:03o}" for byte in fsencode(char)])


def for_printf(text: str) -> str:
    """printf %q"""
    if not text:
        return "''"
    return ansi(text) if needs_ansi(text) else backslash(text)


def for_reuse(text: str) -> str:
    """${x@Q}, and values in ${x@A}"""
    return ansi(text) if needs_ansi(text) else single(text)


def for_declare(text: str) -> str:
    """Values in `declare -p`, `export -p`, and array elements everywhere."""
    return ansi(text) if needs_ansi(text) else double(text)


def for_key(key: str) -> str:
    """Keys of associative arrays in `declare -p`."""
    if needs_ansi(key):
        return ansi(key)
    return double(key) if has_metas(key) or key == "@" else key


def for_set(text: str, *, posix: bool = False) -> str:
    """Values in the listing of `set`."""
    if not posix and needs_ansi(text):
        return ansi(text)
    return single(text) if has_metas(text) else text


def for_trace(text: str) -> str:
    """Words that `set -x` shows."""
    if not text:
        return "''"
    if has_metas(text):
        return single(text)
    return ansi(text) if needs_ansi(text) else text


def for_trace_value(text: str) -> str:
    """Values of assignments that `set -x` shows."""
    return for_trace(text) if text else ""
