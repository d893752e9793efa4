"""Directories as objects: a tree of files is known by the digest of its root directory. Equal trees, equal digests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import Final

from msgspec import DecodeError, Struct, ValidationError, msgpack

from belljar.abi.flags import NAME_MAX, PATH_MAX
from belljar.store.errors import StoreError
from belljar.store.objects import DIGEST_BYTES, DIRECTORY, PIECE_BYTES, RECORD, Digest, decode_record

_MODE_MAX: Final = 0o7777
_ID_MAX: Final = (1 << 32) - 1
_INT64: Final = 1 << 63
_MADE_UP_MAX: Final = 1 << 50
"""Bytes of the largest file: one that is nearly all holes costs a digest for each piece."""


_ENTRIES_MAX: Final = 1_200_000
_HOLES_MAX: Final = 4_000_000
"""In one directory. Of a file's holes there is one for each 4 MB."""
_ARRAY32: Final = b"\xdd"
_NO_BYTES: Final = b"\xc4\x00"
"""In MessagePack: the beginning of a list of more than 65,535, and empty bytes."""


class Kind(IntEnum):
    FILE = 1
    DIRECTORY = 2
    SYMLINK = 3
    FIFO = 4
    WHITEOUT = 5
    """In the upper layer of an overlay: the name is deleted."""
    MERGED = 6
    """In the upper layer of an overlay: a directory through which the names of the lower one show."""


class Entry(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """One name of a directory."""

    name: bytes
    kind: Kind
    mode: int = 0
    uid: int = 0
    gid: int = 0
    mtime_ns: int = 0
    size: int = 0
    link_group: int = 0
    """Names of one tree with the same number, not 0, are hard links to one file."""
    target: bytes = b""
    """Of a symbolic link."""
    parts: list[Digest] = []
    """The pieces of a file (b"": a piece of zeros, which is not stored), or the object of a directory."""


_encoder: Final = msgpack.Encoder()
_decoder: Final = msgpack.Decoder(list[Entry])


def encode_directory(entries: Iterable[Entry]) -> bytes:
    """Make a directory object. StoreError for entries that no directory has."""
    ordered = sorted(entries, key=lambda entry: entry.name)
    if wrong := _wrong(ordered):
        raise StoreError(f"this is no directory: {wrong}")
    data = DIRECTORY + _encoder.encode(ordered)
    _check_count(data)
    return data


def decode_directory(data: bytes) -> list[Entry]:
    """Read a directory object. StoreError for anything but the bytes that `encode_directory` makes."""
    try:
        _check_count(data)
        entries = _decoder.decode(memoryview(data)[1:])
    except (DecodeError, ValidationError) as error:
        raise StoreError(f"an object of the store is no directory: {error}") from None
    wrong = _wrong(entries) if data[:1] == DIRECTORY else "it is of another kind"
    if not wrong and DIRECTORY + _encoder.encode(entries) != data:
        wrong = "it is not written in the one way that directories are"
    if wrong:
        raise StoreError(f"an object of the store is no directory: {wrong}")
    return entries


def _check_count(data: bytes) -> None:
    """Count entries and holes before they are made: they may take ten times the bytes of the object. StoreError."""
    entries = int.from_bytes(data[2:6], "big") if data[1:2] == _ARRAY32 else 0
    if entries > _ENTRIES_MAX or data.count(_NO_BYTES) > _HOLES_MAX:
        raise StoreError("a directory has too many entries, or files with too many holes")


def links_of(data: bytes) -> set[Digest]:
    """The objects that an object needs. StoreError for one that makes no sense."""
    pieces, others = split_links(data)
    return pieces | others


def split_links(data: bytes) -> tuple[set[Digest], set[Digest]]:
    """As `links_of`: pieces of files, and objects that may need others in turn."""
    if data[:1] != DIRECTORY:
        return set(), set(decode_record(data).links) if data[:1] == RECORD else set()
    entries = decode_directory(data)
    pieces = {part for entry in entries if entry.kind is Kind.FILE for part in entry.parts if part}
    return pieces, {part for entry in entries if entry.kind is not Kind.FILE for part in entry.parts}


def named_links(data: bytes) -> Mapping[Digest, str]:
    """As `links_of`, each with the name of an entry that needs it."""
    if data[:1] != DIRECTORY:
        return dict.fromkeys(links_of(data), "")
    return {
        part: entry.name.decode("utf-8", "backslashreplace")
        for entry in decode_directory(data)
        for part in entry.parts
        if part
    }


def _wrong(entries: list[Entry]) -> str:
    """Reason why these are not the entries of a directory; "" if they are."""
    before = b""
    for entry in entries:
        if not entry.name or len(entry.name) > NAME_MAX or b"/" in entry.name or b"\0" in entry.name:
            return f"{entry.name[:40]!r} is no file name"
        if entry.name in (b".", b".."):
            return f"{entry.name!r} is no name of its own"
        if entry.name <= before:
            return f"{entry.name!r} comes twice, or too late"
        before = entry.name
        if wrong := _wrong_entry(entry):
            return f"{entry.name!r}: {wrong}"
    return ""


def _wrong_entry(entry: Entry) -> str:
    numbers = (entry.mode, _MODE_MAX), (entry.uid, _ID_MAX), (entry.gid, _ID_MAX), (entry.link_group, _INT64 - 1)
    if any(not 0 <= number <= most for number, most in numbers) or not -_INT64 <= entry.mtime_ns < _INT64:
        return "a number is out of range"
    if any(len(part) != DIGEST_BYTES for part in entry.parts if part):
        return "a digest has a wrong length"
    pieces = 0
    match entry.kind:
        case Kind.FILE:
            pieces = -(-entry.size // PIECE_BYTES)
        case Kind.DIRECTORY | Kind.MERGED:
            pieces = 1
            if entry.parts == [b""]:
                return "it has no object"
    if not 0 <= entry.size <= (_MADE_UP_MAX if entry.kind is Kind.FILE else 0):
        return "its size is impossible"
    if len(entry.parts) != pieces:
        return f"{len(entry.parts)} parts, not {pieces}"
    is_link = entry.kind is Kind.SYMLINK
    if bool(entry.target) != is_link or len(entry.target) > PATH_MAX or b"\0" in entry.target:
        return "its target is impossible"
    if entry.link_group and entry.kind in (Kind.DIRECTORY, Kind.MERGED):
        return "a directory has one name"
    return ""
