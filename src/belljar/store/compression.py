"""Objects as they are kept: compressed with Zstandard where that helps and the package is there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from belljar.abi.install import install_hint
from belljar.store.errors import StoreError
from belljar.store.objects import OBJECT_MAX

try:
    import zstandard
except ModuleNotFoundError:
    zstandard = None  # type: ignore[assignment]

_HAS_ZSTD: Final[bool] = zstandard is not None

_RAW: Final = b"\0"
_ZSTD: Final = b"\1"
_LEVEL: Final = 1
"""Twice as fast as 3, the default, and about as small."""
_WORTH: Final = 0.9
"""At most this part of its size is left of an object that is kept compressed."""
_SMALL: Final = 128


def compress(objects: Iterable[bytes]) -> Iterator[bytes]:
    """Objects as they are to be kept."""
    packer = zstandard.ZstdCompressor(level=_LEVEL) if _HAS_ZSTD else None
    for data in objects:
        packed = packer.compress(data) if packer and len(data) >= _SMALL else data
        yield _ZSTD + packed if packed is not data and len(packed) <= len(data) * _WORTH else _RAW + data


def decompress(kept: bytes) -> bytes:
    """Undo `compress`. For damaged bytes, give b"", whose digest is no object's. StoreError without zstd."""
    if kept[:1] == _RAW:
        return kept[1:]
    if kept[:1] != _ZSTD:
        return b""
    if not _HAS_ZSTD:
        raise StoreError(f"this store has compressed objects; {install_hint('zstd')}")
    try:
        if not 0 <= zstandard.frame_content_size(kept[1:]) <= OBJECT_MAX:
            return b""
        return zstandard.ZstdDecompressor().decompress(kept[1:])
    except zstandard.ZstdError:
        return b""
