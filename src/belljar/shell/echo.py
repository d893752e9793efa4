"""Output of `echo`, for the builtin and for /bin/echo."""

from __future__ import annotations

import re

from belljar.abi.paths import fsencode
from belljar.libc.escapes import ECHO, decode


def render(args: list[str], *, escapes: bool = False, options: bool = True, dialect: re.Pattern[bytes] = ECHO) -> bytes:
    """The output of `echo args`. `escapes`: interpret them unless -E says otherwise (`shopt xpg_echo`)."""
    newline = True
    count = 0
    if options:
        for arg in args:
            if len(arg) < 2 or arg[0] != "-" or arg.strip("neE") != "-":
                break
            for letter in arg[1:]:
                if letter == "n":
                    newline = False
                else:
                    escapes = letter == "e"
            count += 1
    data = fsencode(" ".join(args[count:] if count else args))
    if escapes and b"\\" in data:
        data, stopped = decode(data, dialect)
        if stopped:
            return data
    return data + b"\n" if newline else data
