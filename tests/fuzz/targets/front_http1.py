"""A client of the front that speaks HTTP/1.1, or nearly."""

from __future__ import annotations

import random
import re
from collections.abc import Hashable

import h11

from belljar.net.broker.front_http1_host import serve_http1
from belljar.net.errors import NetError
from tests.fuzz.driver import Target
from tests.fuzz.targets._front import Client, FrontTarget

_PORT = b"{PORT}"
"""Stands for the server's port in a case, which is another one each time."""
_TARGETS = [b"/", b"/x", b"*", b"http://a.test/", b"/../x", b"//", b"/%2e%2e/x", b"/\x80", b"/" + b"a" * 3000, b""]
_HEADERS = [
    b"Host: a.test:" + _PORT, b"Host: a.test:" + _PORT, b"Host: b.test", b"Host:", b"Content-Length: 5",
    b"Content-Length: 5, 5", b"Content-Length: -1", b"Content-Length: 99999999999999999999",
    b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked, identity", b"Transfer-Encoding : chunked",
    b"Transfer-Encoding:\tchunked",
    b"Connection: close", b"Connection: upgrade", b"Upgrade: websocket", b"Upgrade: h2c", b"Expect: 100-continue",
    b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==", b"Sec-WebSocket-Version: 13", b"X: " + b"y" * 2000, b" folded",
    b"X\0: y", b": y", b"Range: bytes=0-", b"TE: trailers",
]  # fmt: skip
_BODIES = [b"hello", b"5\r\nhello\r\n", b"1\r\nx\r\n" * 50, b"0\r\n\r\n", b"5;ext=" + b"x" * 500 + b"\r\nhello\r\n"]
_BODIES += [b"ffffffffffffffff\r\n", b"-1\r\n", b"5\nhello\n", b"0\r\nTrailer: x\r\n\r\n", b"\r\n"]


class FrontHttp1(FrontTarget):
    def piece(self, rng: random.Random) -> bytes:
        kind = rng.randrange(4)
        if kind == 0:
            method = rng.choice((b"GET", b"POST", b"HEAD", b"CONNECT", b"TRACE", b"get", b"X" * 50, b""))
            version = rng.choice((b"HTTP/1.1", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0", b""))
            return method + b" " + rng.choice(_TARGETS) + b" " + version + b"\r\n"
        if kind == 1:
            return b"".join(line + b"\r\n" for line in rng.choices(_HEADERS, k=rng.choice((1, 1, 3))))
        if kind == 2:
            return rng.choice(_BODIES)
        fields = b"".join(line + b"\r\n" for line in rng.choices(_HEADERS, k=rng.randrange(3)))
        return b"POST / HTTP/1.1\r\nHost: a.test:" + _PORT + b"\r\n" + fields + b"\r\n" + rng.choice(_BODIES)

    def split(self, data: bytes) -> list[bytes]:
        return re.findall(rb"[^\n]*\n|[^\n]+", data)

    def run(self, data: bytes) -> Hashable:
        client = Client(data.replace(_PORT, b"%d" % self._server.port))
        try:
            self.serve(serve_http1(self.front(), client))
            end = "end"
        except (h11.ProtocolError, NetError, OSError) as error:
            end = f"{type(error).__name__} {str(error)[:20]}"
        statuses = tuple(re.findall(rb"HTTP/1\.1 (\d+)", bytes(client.heard)))[:4]
        return end, statuses


def target() -> Target:
    return FrontHttp1()
