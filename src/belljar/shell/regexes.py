"""`[[ text =~ regex ]]` and BASH_REMATCH."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from belljar import regex
from belljar.abi.paths import fsdecode, fsencode
from belljar.shell.arrays import Array
from belljar.shell.control import ShellError
from belljar.shell.variables import ARRAY, Var

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

SPECIAL = re.compile(r"[.\[\]\\()*+?{}|^$]")


def quote_regex(text: str) -> str:
    """An ERE that matches exactly the text."""
    return SPECIAL.sub(r"\\\g<0>", text)


def match_regex(shell: Shell, text: str, pattern: str) -> bool:
    """Search, and leave the match and its groups in BASH_REMATCH. ShellError with status 2 for a bad pattern."""
    try:
        compiled = regex.compile(pattern, syntax="ere", ignore_case=shell.nocasematch, utf8=not shell.byte_locale)
    except regex.RegexError:
        raise ShellError("", 2) from None
    shell.budget.charge(1 + len(text) // 1000)
    match = compiled.search(fsencode(text) if shell.byte_locale else text)
    if match is None:
        shell.table["BASH_REMATCH"] = Var(Array(), ARRAY)
        return False
    found = [match.group(number) or "" for number in range(compiled.groups + 1)]
    values = [value if isinstance(value, str) else fsdecode(value) for value in found]
    shell.table["BASH_REMATCH"] = Var(Array.of(values), ARRAY)
    return True
