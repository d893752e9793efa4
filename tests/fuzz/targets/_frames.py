"""Frames that begin with their length, as most of our protocols have them: how a case is split into them."""

from __future__ import annotations

import struct


def split_frames(data: bytes, head: int = 4) -> list[bytes]:
    """The frames of a case, whose heads of so many bytes begin with the length of the rest; then what is left of it."""
    pieces = []
    while len(data) >= head:
        end = head + struct.unpack_from("<I", data)[0]
        pieces.append(data[:end])
        data = data[end:]
    return [*pieces, data] if data else pieces
