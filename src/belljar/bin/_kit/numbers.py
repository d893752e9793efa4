"""Numbers on a command line, with GNU's messages when they are none or out of range."""

from __future__ import annotations

import re
from typing import Final

from belljar.bin._kit.options import UsageError
from belljar.bin._kit.quoting import quote
from belljar.bin._kit.sizes import unit
from belljar.kernel.process import Process

_HALF: Final = 0x3FFFFFFF
_NUMBER: Final = re.compile(r"\s*([-+]?)(\d+)([kKmMGTPEZYRQ](?:i?B)?|b)?", re.ASCII)


def bounded(
    process: Process,
    text: str,
    what: str,
    low: int,
    high: int = (1 << 63) - 1,
    *,
    suffixes: bool = False,
    signed: bool = False,
) -> int:
    """The number in `text`, between `low` and `high`. UsageError as GNU words it: invalid WHAT: 'text'."""
    match = _NUMBER.fullmatch(text)
    if match is None or (match[3] and not suffixes):
        raise UsageError(f"invalid {what}: {quote(text, process.env)}", hint=False)
    number = int(match[1] + match[2][:40]) * unit(match[3] or "")
    if low <= number <= high:
        return number
    if number < 0 <= low and not signed:
        # What GNU reads as an unsigned number has no minus sign.
        raise UsageError(f"invalid {what}: {quote(text, process.env)}", hint=False)
    far = number > _HALF or number < -_HALF - 1
    reason = "Value too large for defined data type" if far else "Numerical result out of range"
    raise UsageError(f"invalid {what}: {quote(text, process.env)}: {reason}", hint=False)
