"""Bytes as text and back, in the encodings of Node's buffers, by its rules: what is wrong is left out, no error."""

from __future__ import annotations

import base64
import re
from typing import Final

ASCII, UTF8, BASE64, LATIN1, HEX, BASE64URL = 0, 1, 2, 4, 5, 7
"""Node's numbers of encodings. UTF-16 is missing: a lone surrogate can't leave JavaScript."""

_NOT_BASE64: Final = re.compile(r"[^A-Za-z0-9+/]")
_HEX: Final = re.compile(r"(?:[0-9a-fA-F]{2})*")
_TO_STANDARD: Final = str.maketrans("-_", "+/")
_LOW: Final = bytes(byte & 0x7F for byte in range(256))


def encode(data: bytes, encoding: int) -> str:
    """The text of some bytes."""
    if encoding == ASCII:
        return data.translate(_LOW).decode("ascii")
    if encoding == BASE64:
        return base64.b64encode(data).decode("ascii")
    if encoding == LATIN1:
        return data.decode("latin-1")
    if encoding == HEX:
        return data.hex()
    if encoding == BASE64URL:
        return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")
    return data.decode("utf-8", "replace")


def decode(text: str, encoding: int) -> bytes:
    """The bytes of a text."""
    if encoding in (ASCII, LATIN1):
        return text.encode("utf-16-le", "surrogatepass")[::2]
    if encoding in (BASE64, BASE64URL):
        letters = _NOT_BASE64.sub("", text.partition("=")[0].translate(_TO_STANDARD))
        if len(letters) % 4 == 1:
            letters = letters[:-1]
        return base64.b64decode(letters + "=" * (-len(letters) % 4))
    if encoding == HEX:
        found = _HEX.match(text)
        return bytes.fromhex(found[0]) if found is not None else b""
    return text.encode("utf-8", "replace")


def find(data: bytes, needle: bytes, at: int, unit: int, *, forward: bool) -> int:
    """Return the needle's position, from `at` on or back from there, in units of bytes; -1 if not found."""
    start = at % unit
    while True:
        at = data.find(needle, at) if forward else data.rfind(needle, 0, at + len(needle))
        if at < 0 or at % unit == start:
            return at
        at += 1 if forward else -1
        if at < 0:
            return -1
