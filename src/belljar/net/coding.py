"""Compressed bodies that must be looked into: unpacked piece by piece, and not at all when they grow out of bounds."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator
from typing import Final

from belljar.net.errors import NetError

_BOMB_RATIO: Final = 200
_BOMB_LEAST: Final = 1 << 20
_DECODED_MAX: Final = 256 << 20
_PIECE: Final = 1 << 18
_EITHER: Final = 47
"""zlib's word for "gzip or zlib, see for yourself"."""


async def decoded(chunks: AsyncIterator[bytes], coding: str) -> AsyncIterator[bytes]:
    """The plain body. NetError for codings we can't read, and for bombs."""
    if coding.lower() not in ("gzip", "x-gzip", "deflate"):
        raise NetError("protocol", f"the server sent {coding[:20]!a} although asked not to compress")
    decoder = zlib.decompressobj(_EITHER)
    size_in = size_out = 0
    async for chunk in chunks:
        size_in += len(chunk)
        while chunk:
            if decoder.eof:  # another member follows: together they are the body
                decoder = zlib.decompressobj(_EITHER)
            try:
                data = decoder.decompress(chunk, _PIECE)
            except zlib.error:
                raise NetError("protocol", "the compressed body is broken") from None
            size_out += len(data)
            if size_out > min(_DECODED_MAX, max(_BOMB_LEAST, _BOMB_RATIO * size_in)):
                raise NetError("too-large", "the compressed body grows too large")
            chunk = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
            if data:
                yield data
    if data := decoder.flush():
        yield data
    if not decoder.eof and size_in:
        raise NetError("protocol", "the compressed body is cut short")
