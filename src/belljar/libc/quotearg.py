"""GNU's quotearg: a name as messages and listings show it, quoted for the shell or for C."""

from __future__ import annotations

import re
from typing import Final

from belljar.abi.paths import fsencode
from belljar.libc.quote import is_printable

_PLAIN: Final = re.compile(r"[A-Za-z0-9%+,\-./:@\]_{}]*")
_SPECIAL: Final = re.compile(r"""[ \t\n!"$&()*;<=>\[^`|'?\\]|^[#~]|^[{}]\Z""")
_NOT_FOR_C: Final = re.compile(r"""[\t\n!"$&()*;<=>\[^`|?\\]|(?!^)[#~{}]""")
_C_NAMES: Final = {"\a": "a", "\b": "b", "\f": "f", "\n": "n", "\r": "r", "\t": "t", "\v": "v"}


def shell_escape(text: str, *, always: bool = False, utf8: bool = True, escapes: bool = True) -> str:
    r"""'a b', "a'b", 'a'$'\n''b'; without `escapes` unprintable characters stay as they are."""
    if _PLAIN.fullmatch(text) and text not in ("", "{", "}"):
        return f"'{text}'" if always else text
    odd = escapes and not _shown(text, utf8)
    if not odd and not always and text and not _SPECIAL.search(text):
        return text
    if not odd:
        if "'" in text and not _NOT_FOR_C.search(text):
            return f'"{text}"'
        return "'" + text.replace("'", "'\\''") + "'"
    parts = ["'"]
    escaped = False
    for char in text:
        if _shown(char, utf8):
            parts.append("''" if escaped else "")
            parts.append("'\\''" if char == "'" else char)
            escaped = False
        else:
            parts.append("" if escaped else "'$'")
            parts.append(c_char(char))
            escaped = True
    return "".join(parts) + "'"


def c_escape(text: str, *, utf8: bool = True, also: str = "") -> str:
    r"""Unprintable characters and backslashes as C writes them; those of `also` with a backslash."""
    if _PLAIN.fullmatch(text):
        return text
    return "".join(
        "\\" + char if char == "\\" or char in also else char if _shown(char, utf8) else c_char(char) for char in text
    )


def c_char(char: str) -> str:
    name = _C_NAMES.get(char)
    return "\\" + name if name else "".join([f"\\{byte:03o}" for byte in fsencode(char)])


def hide(text: str, *, utf8: bool = True) -> str:
    """Replace each unprintable character by a question mark."""
    if _shown(text, utf8):
        return text
    return "".join(char if _shown(char, utf8) else "?" * (1 if utf8 else len(fsencode(char))) for char in text)


def _shown(text: str, utf8: bool) -> bool:
    if text.isascii() or utf8:
        return text.isprintable() or all(map(is_printable, text))
    return False
