"""Hides secrets in a stream of bytes, plain or encoded, without changing its length."""

from __future__ import annotations

import base64
import html
import json
import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import quote, quote_plus

SECRET_MIN: Final = 4
"""Shorter texts are no secrets: hiding "a" everywhere would only break the answer."""
SECRET_MAX: Final = 8192
_LOWER_ESCAPES: Final = re.compile(rb"%[0-9A-F]{2}")


def variants(secret: bytes) -> set[bytes]:
    """The ways an echo may write a secret: plain, quoted for URLs and JSON, in hex, and inside any base64 text."""
    text = secret.decode("latin-1")
    found = {secret, quote(secret, safe="").encode(), quote_plus(secret).encode(), quote(secret).encode()}
    found |= {_LOWER_ESCAPES.sub(lambda match: match[0].lower(), form) for form in found}
    found |= {json.dumps(text)[1:-1].encode(), html.escape(text).encode("latin-1")}
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
    """Masks every occurrence with asterisks, also where two overlap. Holds back only what may still become one."""

    def __init__(self, secrets: Iterable[str]) -> None:
        hidden = [secret.encode() for secret in secrets if SECRET_MIN <= len(secret) <= SECRET_MAX]
        self._forms = sorted({form for secret in hidden for form in variants(secret)})
        self._longest = max(map(len, self._forms), default=0)
        self._held = b""
        self._covered = 0
        """Held bytes that belong to an occurrence which began earlier."""
        self.count = 0

    def __bool__(self) -> bool:
        return bool(self._forms)

    def whole(self, data: bytes) -> bytes:
        """A text that is complete."""
        return self._masked(data, len(data))[0]

    def text(self, text: str) -> str:
        return self.whole(text.encode("utf-8", "surrogateescape")).decode("utf-8", "surrogateescape")

    def feed(self, data: bytes) -> bytes:
        """Add data; return what can be released now."""
        if not self._forms:
            return data
        data = self._held + data
        return self._give(data, len(data) - self._may_begin(data))

    def flush(self) -> bytes:
        """Return the rest: nothing follows."""
        return self._give(self._held, len(self._held))

    def _give(self, data: bytes, cut: int) -> bytes:
        given, reach = self._masked(data, cut, self._covered)
        self._held, self._covered = data[cut:], max(0, reach - cut)
        return given

    def _may_begin(self, data: bytes) -> int:
        """Count the bytes at the end of `data` that may begin an occurrence."""
        tail = data[-(self._longest - 1) :] if self._longest > 1 else b""
        most = 0
        for form in self._forms:
            at = tail.find(form[:1], max(0, len(tail) - len(form) + 1))
            while 0 <= at < len(tail) - most:
                if form.startswith(tail[at:]):
                    most = len(tail) - at
                at = tail.find(form[:1], at + 1)
        return most

    def _masked(self, data: bytes, cut: int, covered: int = 0) -> tuple[bytes, int]:
        """The bytes before `cut`, with every occurrence that begins there hidden, and where the last of these ends."""
        spans = [(0, covered)] if covered else []
        for form in self._forms:
            at = data.find(form)
            while 0 <= at < cut:
                spans.append((at, at + len(form)))
                self.count += 1
                at = data.find(form, at + 1)
        if not spans:
            return data[:cut], 0
        hidden = bytearray(data)
        for start, end in spans:
            end = min(end, len(data))
            hidden[start:end] = b"*" * (end - start)
        return bytes(hidden[:cut]), max(end for _, end in spans)
