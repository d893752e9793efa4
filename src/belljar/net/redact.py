"""Hides secrets in a stream of bytes, plain or encoded, without changing its length."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote, quote_plus

SECRET_MIN: Final = 4
"""Shorter texts are no secrets: hiding "a" everywhere would only break the answer."""
SECRET_MAX: Final = 8192


def variants(secret: bytes) -> set[bytes]:
    """The ways an echo may write a secret: plain, quoted for URLs and JSON, in hex, and inside any base64 text."""
    text = secret.decode("latin-1")
    found = {secret, quote(secret, safe="").encode(), quote_plus(secret).encode(), quote(secret).encode()}
    found.add(json.dumps(text)[1:-1].encode())
    found |= {secret.hex().encode(), secret.hex().upper().encode()}
    for before in range(3):
        # What the text looks like at each alignment, without the characters that its neighbours share.
        encoded = base64.b64encode(bytes(before) + secret)
        start = (before * 8 + 5) // 6
        whole = ((before + len(secret)) * 8) // 6
        middle = encoded[start:whole]
        if len(middle) >= SECRET_MIN:
            found |= {middle, middle.replace(b"+", b"-").replace(b"/", b"_")}
    return found


def parts(value: str) -> set[str]:
    """A header's value and the secrets inside it: `Bearer X` holds X, `Basic X` what X encodes."""
    found = {value}
    scheme, space, rest = value.partition(" ")
    if space and re.fullmatch(r"[A-Za-z][A-Za-z0-9-]{2,20}", scheme):
        found.add(rest.strip())
        if scheme.lower() == "basic":
            try:
                decoded = base64.b64decode(rest, validate=True).decode("latin-1")
            except ValueError:
                return found
            found |= {decoded, decoded.partition(":")[2]}
    return found


class Redactor:
    """Masks every occurrence with asterisks. Holds back only as much as may still become one."""

    def __init__(self, secrets: Iterable[str]) -> None:
        hidden = [secret.encode() for secret in secrets if SECRET_MIN <= len(secret) <= SECRET_MAX]
        wanted = {form for secret in hidden for form in variants(secret)}
        ordered = sorted(wanted, key=len, reverse=True)
        self._pattern = re.compile(b"|".join(map(re.escape, ordered))) if ordered else None
        self._longest = len(ordered[0]) if ordered else 0
        self._held = b""
        self.count = 0

    def __bool__(self) -> bool:
        return self._pattern is not None

    def whole(self, data: bytes) -> bytes:
        """A text that is complete."""
        return data if self._pattern is None else self._pattern.sub(self._mask, data)

    def feed(self, data: bytes) -> bytes:
        """What can be given out now."""
        if self._pattern is None:
            return data
        masked = self.whole(self._held + data)
        keep = min(len(masked), self._longest - 1)
        self._held = masked[len(masked) - keep :]
        return masked[: len(masked) - keep]

    def flush(self) -> bytes:
        held, self._held = self._held, b""
        return held

    def _mask(self, match: re.Match[bytes]) -> bytes:
        self.count += 1
        return b"*" * len(match[0])
