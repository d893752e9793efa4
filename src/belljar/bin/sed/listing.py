"""The `l` command: a pattern space in unambiguous form."""

from __future__ import annotations

import re

_NAMED = {7: b"\\a", 8: b"\\b", 9: b"\\t", 10: b"\\n", 11: b"\\v", 12: b"\\f", 13: b"\\r", 92: b"\\\\"}
_TOKEN = re.compile(rb"\\[0-7]{3}|\\.|.")
_ODD = re.compile(rb"[^ -\[\]-~]")


def listed(space: bytes, width: int) -> bytes:
    """Escaped, folded to `width` columns (0: not at all), ended with `$`."""
    escaped = _ODD.sub(lambda match: _NAMED.get(match[0][0]) or b"\\%03o" % match[0][0], space)
    room = width - 1
    if width == 0 or (len(escaped) <= room and width > 4):
        return escaped + b"$"
    out: list[bytes] = []
    used = 0
    for token in _TOKEN.findall(escaped):
        if used + len(token) > room:
            out.append(b"\\\n")
            used = 0
        out.append(token)
        used += len(token)
    return b"".join(out) + b"$"
