"""Word splitting: what the current IFS does to the result of an expansion."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

DEFAULT: Final = " \t\n"
LONGEST: Final = 1000
GLOB: Final = r"*?\[\\"


class Ifs:
    """One value of IFS, prepared."""

    __slots__ = ("delimiter", "joiner", "touches", "whitespace")

    def __init__(self, value: str | None) -> None:
        chars = DEFAULT if value is None else value
        self.joiner = " " if value is None else value[:1]
        """The separator between the fields of "$*"."""
        self.whitespace = "".join(char for char in dict.fromkeys(chars) if char in DEFAULT)
        others = "".join(char for char in dict.fromkeys(chars) if char not in DEFAULT)
        white = f"[{re.escape(self.whitespace)}]" if self.whitespace else ""
        other = f"[{re.escape(others)}]" if others else ""
        forms = []
        if other:
            forms.append(f"{white}*({other}){white}*" if white else f"({other})")
        if white:
            forms.append(f"{white}+" if other else f"{white}+()")
        self.delimiter: re.Pattern[str] | None = re.compile("|".join(forms)) if forms else None
        """Matches one delimiter; group 1 is non-empty if it holds a character that isn't whitespace."""
        self.touches = re.compile(f"[{re.escape(chars)}{GLOB}]|[+@!]\\(").search
        """Whether a value may be changed by splitting or globbing at all."""


def prepare(value: str | None) -> Ifs:
    """IFS ready for use. Of an absurdly long one only the start counts: no script has so many delimiters."""
    return _prepare(value if value is None else value[:LONGEST])


@lru_cache(maxsize=64)
def _prepare(value: str | None) -> Ifs:
    return Ifs(value)
