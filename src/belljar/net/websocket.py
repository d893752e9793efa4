"""The handshake that turns a web request into a WebSocket: checked on both sides, so that nothing else comes of it."""

from __future__ import annotations

import base64
import binascii
import hashlib
from typing import Final

from belljar.net.errors import NetError
from belljar.net.headers import Headers

_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"


def check_upgrade(method: str, headers: Headers, *, granted: bool) -> str | None:
    """The key of the WebSocket a request asks for; None if it wants to stay HTTP. NetError for anything else."""
    wanted = headers.get("upgrade")
    if wanted is None:
        return None
    if wanted.lower() != "websocket" or not granted:
        raise NetError("denied", f"this sandbox may not change the protocol to {wanted[:40]!a} here")
    key = headers.get("sec-websocket-key", "") or ""
    try:
        size = len(base64.b64decode(key, validate=True))
    except (binascii.Error, ValueError):
        size = 0
    if method != "GET" or size != 16 or headers.get("sec-websocket-version") != "13":
        raise NetError(
            "protocol", "a WebSocket begins with GET, Sec-WebSocket-Version: 13 and a Sec-WebSocket-Key of 16 bytes"
        )
    return key


def check_accepted(key: str, headers: Headers) -> None:
    """NetError unless the server's 101 is the answer to exactly this handshake."""
    digest = hashlib.sha1(key.encode() + _GUID, usedforsecurity=False).digest()
    upgrade = (headers.get("upgrade") or "").lower()
    if upgrade != "websocket" or headers.get("sec-websocket-accept") != base64.b64encode(digest).decode():
        raise NetError("protocol", "the server changed the protocol, but not to the WebSocket that was asked for")
