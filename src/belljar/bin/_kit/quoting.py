"""Names and arguments in messages, quoted as GNU's utilities do."""

from __future__ import annotations

from collections.abc import Mapping

from belljar.bin._kit.locale import is_utf8
from belljar.libc.quotearg import c_escape, shell_escape


def quote(text: str, env: Mapping[str, str]) -> str:
    """Quote an argument for a message: in UTF-8 with curly quotes, else with straight ones."""
    if is_utf8(env):
        return f"\u2018{c_escape(text, utf8=True)}\u2019"
    return "'" + c_escape(text, utf8=False).replace("'", "\\'") + "'"


def quote_name(text: str) -> str:
    """A file name in a message, always quoted so that the shell would read it back."""
    return shell_escape(text, always=True)


def quote_if_odd(text: str) -> str:
    """A file name before a colon: quoted only if it has to be, a colon in it being one reason."""
    return shell_escape(text, always=":" in text)
