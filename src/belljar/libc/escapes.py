r"""Backslash escapes as echo, `printf` formats and `%b` read them; each has its own small differences."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

_SIMPLE: Final = {
    b"a": b"\a", b"b": b"\b", b"e": b"\x1b", b"E": b"\x1b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t",
    b"v": b"\v", b"\\": b"\\",
}  # fmt: skip
_HEX: Final = rb"x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})"
FORMAT: Final = re.compile(rb"\\(?:([abeEfnrtv\\\"'?])|([0-7]{1,3})|" + _HEX + rb"|([xuU])|(c))")
"""A printf format: octal has at most three digits, zero or not; quotes and `?` may be escaped."""
ARGUMENT: Final = re.compile(rb"\\(?:([abeEfnrtv\\])|(0[0-7]{0,3}|[1-7][0-7]{0,2})|" + _HEX + rb"|([xuU])|(c))")
"""The argument of %b: `\0` may be followed by three more octal digits."""
ECHO: Final = re.compile(rb"\\(?:([abeEfnrtv\\])|(0[0-7]{0,3})|" + _HEX + rb"|([xuU])|(c))")
"""echo -e: octal only with a leading zero."""


def decode(data: bytes, escapes: re.Pattern[bytes], missing: Callable[[str], None] | None = None) -> tuple[bytes, bool]:
    r"""`data` with its escapes replaced; True if a `\c` ended it there. `missing` is told of `\x` without digits."""
    if b"\\" not in data:
        return data, False
    stop = len(data)
    for match in escapes.finditer(data):
        if match.group(7):
            stop = match.start()
            break

    def replace(match: re.Match[bytes]) -> bytes:
        simple, octal, hexadecimal, short, long, bare, _ = match.groups()
        if simple is not None:
            return _SIMPLE.get(simple, simple)
        if octal is not None:
            return bytes([int(octal, 8) & 0xFF])
        if hexadecimal is not None:
            return bytes([int(hexadecimal, 16)])
        if bare is not None:
            if missing is not None:
                missing(bare.decode())
            return b"\\" + bare
        return encode_code_point(int(short or long, 16))

    return escapes.sub(replace, data[:stop]), stop < len(data)


def encode_code_point(value: int) -> bytes:
    r"""UTF-8 as bash makes it for \u and \U, which also encodes surrogates and, up to 2**31, what is beyond Unicode."""
    if value < 0x80:
        return bytes([value])
    if value < 0x110000:
        return chr(value).encode("utf-8", "surrogatepass")
    size = 4 if value < 0x200000 else 5 if value < 0x4000000 else 6
    if value >= 0x80000000:
        return b""
    tail = bytes(0x80 | (value >> (6 * shift)) & 0x3F for shift in range(size - 2, -1, -1))
    lead = (0xFF00 >> size) & 0xFF | value >> (6 * (size - 1))
    return bytes([lead]) + tail
