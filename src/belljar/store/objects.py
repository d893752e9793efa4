"""Objects: pieces of files, directories, and records that point at them. Each is known by the SHA-256 of its bytes.

The first byte of an object says of which kind it is, and is part of what is hashed: a file whose content looks like a
directory is still a piece.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import DecodeError, Struct, ValidationError, msgpack

from belljar.abi.capture import PIECE_BYTES as PIECE_BYTES
from belljar.store.errors import StoreError

Digest = bytes
DIGEST_BYTES: Final = 32
OBJECT_MAX: Final = 64 << 20
"""Bytes of the largest object: a directory with some 500,000 entries."""

PIECE: Final = b"p"
DIRECTORY: Final = b"d"
RECORD: Final = b"r"


class Record(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """An object that says something of others, such as a snapshot: `links` are the objects that it needs."""

    kind: str
    links: list[Digest]
    body: bytes


_encoder: Final = msgpack.Encoder()
_record: Final = msgpack.Decoder(Record)


def digest_of(data: bytes) -> Digest:
    return hashlib.sha256(data).digest()


def encode_record(record: Record) -> bytes:
    return RECORD + _encoder.encode(record)


def decode_record(data: bytes) -> Record:
    """Read a record. StoreError for anything but the bytes that `encode_record` makes."""
    try:
        found = _record.decode(memoryview(data)[1:]) if data[:1] == RECORD else None
    except (DecodeError, ValidationError):
        found = None
    if found is None or any(len(link) != DIGEST_BYTES for link in found.links) or encode_record(found) != data:
        raise StoreError("an object of the store is no record that this version of belljar can read")
    return found


def pieces_of(data: bytes) -> Iterator[bytes]:
    """Cut a file's content into piece objects."""
    for start in range(0, len(data), PIECE_BYTES):
        yield PIECE + data[start : start + PIECE_BYTES]


def content_of(pieces: Iterable[bytes]) -> bytes:
    """Join piece objects. StoreError for another kind of object."""
    parts = list(pieces)
    if any(part[:1] != PIECE for part in parts):
        raise StoreError("an object of the store is no piece of a file")
    return b"".join(part[1:] for part in parts)
