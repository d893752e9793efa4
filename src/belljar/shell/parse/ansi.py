"""Decoding of $'...', the ANSI-C quoting of bash."""

from __future__ import annotations

import re

from belljar.libc.escapes import encode_code_point

ESCAPE = re.compile(
    rb"\\(?:([abeEfnrtv\\'\"?])|([0-7]{1,3})|x(?:\{([0-9A-Fa-f]*)\}?|([0-9A-Fa-f]{1,2}))"
    rb"|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|c(\\\\|.))",
    re.DOTALL,
)
SIMPLE = {
    b"a": b"\a", b"b": b"\b", b"e": b"\x1b", b"E": b"\x1b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t",
    b"v": b"\v", b"\\": b"\\", b"'": b"'", b'"': b'"', b"?": b"?",
}  # fmt: skip


def _decode(match: re.Match[bytes]) -> bytes:
    simple, octal, braced, hexadecimal, short, long, control = match.groups()
    if simple is not None:
        return SIMPLE[simple]
    if octal is not None:
        return bytes([int(octal, 8) & 0xFF])
    if hexadecimal is not None or braced is not None:
        return bytes([int(hexadecimal or braced or b"0", 16) & 0xFF])
    if short is not None or long is not None:
        return encode_code_point(int(short or long, 16))
    return bytes([control[-1] & 0x1F]) if control != b"?" else b"\x7f"


def decode_ansi(source: str) -> str:
    """The text of $'source': escapes replaced, and cut at the first NUL, where a C string would end."""
    if "\\" not in source:
        return source
    data = ESCAPE.sub(_decode, source.encode("utf-8", "surrogateescape"))
    return data.partition(b"\0")[0].decode("utf-8", "surrogateescape")
