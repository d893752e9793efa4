"""The frames between an owner and a JavaScript process: u32 length, u8 kind, body. `addon/wire.h` is the other end."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import Final

MESSAGE: Final = 0x4D
"""JSON, both ways."""
OUTPUT: Final = 0x4F
"""u8 stream, then bytes."""

FRAME_MAX: Final = 64 << 20
_HEAD: Final = struct.Struct("<IB")


class BadFrame(ValueError):
    """The process broke the rules; the conversation is over."""


def frame(kind: int, body: bytes) -> bytes:
    if len(body) > FRAME_MAX:
        raise BadFrame(f"a message of {len(body)} bytes is over the limit of {FRAME_MAX}")
    return _HEAD.pack(len(body), kind) + body


class Frames:
    """Assembles frames from bytes."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        """Every frame completed by `data`. Raises BadFrame for a length that nobody may send."""
        buffer = self._buffer
        buffer += data
        position = 0
        try:
            while len(buffer) - position >= _HEAD.size:
                length, kind = _HEAD.unpack_from(buffer, position)
                if length > FRAME_MAX:
                    raise BadFrame(f"a frame claims {length} bytes; the limit is {FRAME_MAX}")
                end = position + _HEAD.size + length
                if len(buffer) < end:
                    break
                body = bytes(buffer[position + _HEAD.size : end])
                position = end
                yield kind, body
        finally:
            del buffer[:position]
