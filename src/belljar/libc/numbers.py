"""Integers as the shell's builtins read them from their arguments."""

from __future__ import annotations

import re
from typing import Final

_INTEGER: Final = re.compile(r"[ \t\n\v\f\r]*[+-]?[0-9]{1,20}[ \t\n]*", re.ASCII)


def parse_integer(text: str) -> int | None:
    """A decimal number of 64 bits, blanks around it allowed; None if it isn't one."""
    if not _INTEGER.fullmatch(text):
        return None
    value = int(text)
    return value if -(1 << 63) <= value < 1 << 63 else None
