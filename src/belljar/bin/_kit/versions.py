"""The order of version numbers in file names (`ls -v`, `sort -V`), as GNU's filevercmp has it."""

from __future__ import annotations

import re
from functools import cmp_to_key
from typing import Any

_SUFFIX = re.compile(rb"(?:\.[A-Za-z~][A-Za-z0-9~]*)*\Z")


def version_key(name: bytes) -> Any:
    """A key that sorts names by version."""
    return _Key(name)


def compare_versions(a: bytes, b: bytes) -> int:
    """Negative, zero or positive."""
    if a == b:
        return 0
    # "", ".", ".." come first, then hidden names, then the rest.
    for special in (b"", b".", b".."):
        if a == special:
            return -1
        if b == special:
            return 1
    if a[:1] == b"." and b[:1] != b".":
        return -1
    if b[:1] == b"." and a[:1] != b".":
        return 1
    if a[:1] == b".":
        a, b = a[1:], b[1:]
    stem_a, stem_b = _stem(a), _stem(b)
    result = _verrevcmp(stem_a, stem_b) if stem_a != stem_b else 0
    return result or _verrevcmp(a, b)


def _stem(name: bytes) -> bytes:
    match = _SUFFIX.search(name)
    assert match is not None
    return name[: match.start()] or name


def _order(byte: int) -> int:
    if 48 <= byte <= 57:
        return 0
    if byte < 128 and chr(byte).isalpha():
        return byte
    return -1 if byte == 126 else byte + 256


def _verrevcmp(a: bytes, b: bytes) -> int:
    i = j = 0
    while i < len(a) or j < len(b):
        while (i < len(a) and not 48 <= a[i] <= 57) or (j < len(b) and not 48 <= b[j] <= 57):
            order_a = _order(a[i]) if i < len(a) else 0
            order_b = _order(b[j]) if j < len(b) else 0
            if order_a != order_b:
                return order_a - order_b
            i += 1
            j += 1
        start_i, start_j = i, j
        while i < len(a) and 48 <= a[i] <= 57:
            i += 1
        while j < len(b) and 48 <= b[j] <= 57:
            j += 1
        digits_a, digits_b = a[start_i:i].lstrip(b"0"), b[start_j:j].lstrip(b"0")
        if len(digits_a) != len(digits_b):
            return len(digits_a) - len(digits_b)
        if digits_a != digits_b:
            return -1 if digits_a < digits_b else 1
    return 0


_Key = cmp_to_key(compare_versions)
