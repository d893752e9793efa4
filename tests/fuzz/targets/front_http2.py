"""A client of the front that speaks HTTP/2, or nearly: frames of every type, for every stream."""

from __future__ import annotations

import random
import struct
from collections.abc import Hashable

from hpack import Encoder

from belljar.net.broker.front_http2_host import serve_http2
from tests.fuzz.driver import Target
from tests.fuzz.targets._front import Client, FrontTarget

_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_DATA, _HEADERS, _PRIORITY, _RESET, _SETTINGS, _PUSH, _PING, _GOAWAY, _WINDOW, _CONTINUATION = range(10)


def frame(kind: int, payload: bytes, *, stream: int = 0, flags: int = 0) -> bytes:
    head = len(payload).to_bytes(3, "big") + bytes([kind & 255, flags & 255])
    return head + struct.pack("!I", stream & 0xFFFFFFFF) + payload


class FrontHttp2(FrontTarget):
    def piece(self, rng: random.Random) -> bytes:
        stream = rng.choice((1, 1, 1, 3, 5, 2, 0, 0x7FFFFFFF))
        flags = rng.choice((0, 1, 4, 5, 5, 8, 0x20, 0xFF))
        fields = [
            (":method", rng.choice(("GET", "POST", "HEAD", "CONNECT", ""))),
            (":scheme", rng.choice(("http", "http", "https"))),
            (":authority", rng.choice(("a.test:{PORT}", "a.test:{PORT}", "b.test", ""))),
            (":path", rng.choice(("/", "/", "/x", "*", "", "/../x"))),
            ("content-length", "5"), ("x", "y" * 3000), ("host", "b.test"), ("Upper", "x"), ("te", "trailers"),
        ]  # fmt: skip
        fields = fields[: rng.choice((4, 4, 4, 3, 5, 9))]
        block = Encoder().encode(fields, huffman=False)
        match rng.randrange(14):
            case 0 | 1 | 2:
                return frame(_HEADERS, block, stream=stream, flags=flags | 4)
            case 3:
                return frame(_HEADERS, block[:10], stream=stream, flags=1)
            case 4:
                return frame(_CONTINUATION, block[10:], stream=stream, flags=rng.choice((0, 4)))
            case 5 | 6:
                return frame(_DATA, rng.choice((b"", b"x", bytes(3000))), stream=stream, flags=flags & 9)
            case 7:
                setting = struct.pack("!HI", rng.randrange(9), rng.choice((0, 1, 65535, 1 << 24, 0xFFFFFFFF)))
                return frame(_SETTINGS, setting * rng.choice((0, 1, 100)), flags=rng.choice((0, 0, 1)))
            case 8:
                return frame(_PING, bytes(rng.choice((8, 8, 7, 0))), flags=flags) * rng.choice((1, 100))
            case 9:
                return frame(_WINDOW, struct.pack("!I", rng.choice((0, 1, 65535, 0x7FFFFFFF))), stream=stream)
            case 10:
                return frame(_RESET, struct.pack("!I", rng.randrange(20)), stream=stream)
            case 11:
                return frame(_PRIORITY, struct.pack("!IB", stream, 1), stream=stream)
            case 12:
                return frame(_GOAWAY, struct.pack("!II", stream, rng.randrange(20)))
            case _:
                return frame(rng.choice((_PUSH, 10, 200)), bytes(rng.randrange(40)), stream=stream, flags=flags)

    def split(self, data: bytes) -> list[bytes]:
        pieces = []
        while len(data) >= 9:
            end = 9 + int.from_bytes(data[:3], "big")
            pieces.append(data[:end])
            data = data[end:]
        return [*pieces, data] if data else pieces

    def run(self, data: bytes) -> Hashable:
        port = b"%6d" % self._server.port  # as long as the text it stands for, so that lengths stay right
        client = Client(_PREFACE + frame(_SETTINGS, b"") + data.replace(b"{PORT}", port.replace(b" ", b"0")))
        self.serve(serve_http2(self.front(), client))
        heard = bytes(client.heard)
        kinds: list[int] = []
        while len(heard) >= 9:
            kinds.append(heard[3])
            heard = heard[9 + int.from_bytes(heard[:3], "big") :]
        assert heard == b"", "frames end where they say"
        return frozenset(kinds), min(len(kinds), 8)


def target() -> Target:
    return FrontHttp2()
