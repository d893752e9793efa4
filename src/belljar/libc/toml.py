"""TOML that strangers wrote, read in bounded time and depth."""

from __future__ import annotations

import re
import tomllib
from typing import Any, Final

_DOTS_MAX: Final = 200
"""Dots in one line, beside those in quotes: tomllib takes the square of the parts of a key."""
_QUOTED: Final = re.compile(r"""\"(?:[^"\\\n]|\\.)*+\"?|'[^'\n]*+'?""")
_NESTED_MAX: Final = 16


class TomlError(ValueError):
    """Text that is no TOML, or more involved than any file of ours is."""


def parse_toml(text: str) -> dict[str, Any]:
    """TomlError."""
    if any(line.count(".") > _DOTS_MAX for line in _QUOTED.sub("", text).split("\n")):
        raise TomlError(f"a line has more than {_DOTS_MAX} dots")
    try:
        data = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise TomlError(f"this is no TOML: {error}") from None
    if _is_nested(data):
        raise TomlError(f"tables and lists are in one another more than {_NESTED_MAX} deep")
    return data


def _is_nested(data: object) -> bool:
    """Whether something is too deep for those who go down by recursion."""
    level = [data]
    for _ in range(_NESTED_MAX):
        tables = [each for each in level if isinstance(each, dict)]
        lists = [each for each in level if isinstance(each, list)]
        level = [value for table in tables for value in table.values()] + [value for each in lists for value in each]
    return bool(level)
