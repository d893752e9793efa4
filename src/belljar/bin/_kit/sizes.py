"""Numbers with size suffixes, as GNU utilities read them: 10K, 2MB, 512b."""

from __future__ import annotations

import re

_POWERS = "kmgtpezyrq"
_SIZE = re.compile(r"\s*([-+]?)(\d+)(b|c|w|[kKmMgGtTpPeEzZyYrRqQ](?:i?B)?|B)?")


def parse_size(text: str) -> int | None:
    """The number of bytes (or lines) a size means: K is 1024, KB is 1000, b is 512; None if it is no size."""
    match = _SIZE.fullmatch(text)
    if match is None:
        return None
    sign, digits, suffix = match.groups()
    return (-1 if sign == "-" else 1) * int(digits[:40]) * unit(suffix or "")


def unit(suffix: str) -> int:
    """Return the multiplier of a size suffix."""
    if suffix in ("", "c", "B"):
        return 1
    if suffix == "b":
        return 512
    if suffix == "w":
        return 2
    power = _POWERS.index(suffix[0].lower()) + 1
    return int((1000 if suffix[1:] == "B" else 1024) ** power)
