"""Directories as objects: one way to write each, and nothing else is read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import msgpack
from msgspec.structs import replace

from belljar.store.errors import StoreError
from belljar.store.objects import (
    DIRECTORY,
    PIECE,
    PIECE_BYTES,
    RECORD,
    Record,
    content_of,
    decode_record,
    digest_of,
    encode_record,
    pieces_of,
)
from belljar.store.tree import Entry, Kind, decode_directory, encode_directory, links_of

names = st.binary(min_size=1, max_size=20).filter(lambda name: name not in (b".", b"..") and not {0, 47} & {*name})
numbers = st.integers(0, (1 << 32) - 1)
digests = st.binary(min_size=32, max_size=32)


@st.composite
def entries(draw: st.DrawFn) -> Entry:
    kind = draw(st.sampled_from(Kind))
    common = Entry(
        draw(names), kind, draw(st.integers(0, 0o7777)), draw(numbers), draw(numbers), draw(st.integers(-1 << 63, 0))
    )
    match kind:
        case Kind.FILE:
            size = draw(st.integers(0, 3 * PIECE_BYTES))
            count = -(-size // PIECE_BYTES)
            parts = draw(st.lists(digests | st.just(b""), min_size=count, max_size=count))
            return replace(common, size=size, parts=parts, link_group=draw(numbers))
        case Kind.DIRECTORY | Kind.MERGED:
            return replace(common, parts=[draw(digests)])
        case Kind.SYMLINK:
            return replace(common, target=draw(names))
        case _:
            return common


@given(st.lists(entries(), max_size=8, unique_by=lambda entry: entry.name))
def test_what_is_written_is_read(some: list[Entry]) -> None:
    data = encode_directory(some)
    assert sorted(decode_directory(data), key=lambda entry: entry.name) == decode_directory(data)
    assert encode_directory(reversed(some)) == data
    assert links_of(data) == {part for entry in some for part in entry.parts if part}


@given(st.binary(max_size=200) | st.binary(max_size=200).map(lambda data: DIRECTORY + data))
def test_other_bytes_are_refused_or_mean_one_thing(data: bytes) -> None:
    try:
        found = decode_directory(data)
    except StoreError:
        return
    assert encode_directory(found) == data


FILE = Entry(b"f", Kind.FILE, 0o644, size=1, parts=[bytes(32)])
WRONG = {
    "no name": replace(FILE, name=b""),
    "slash": replace(FILE, name=b"a/b"),
    "nul": replace(FILE, name=b"a\0"),
    "dot": replace(FILE, name=b"."),
    "dots": replace(FILE, name=b".."),
    "long": replace(FILE, name=b"a" * 256),
    "mode": replace(FILE, mode=0o10000),
    "owner": replace(FILE, uid=-1),
    "time": replace(FILE, mtime_ns=1 << 63),
    "size without parts": replace(FILE, size=PIECE_BYTES + 1),
    "negative size": replace(FILE, size=-1, parts=[]),
    "huge": replace(FILE, size=1 << 60, parts=[]),
    "short digest": replace(FILE, parts=[b"x"]),
    "target of a file": replace(FILE, target=b"x"),
    "symlink to nothing": Entry(b"l", Kind.SYMLINK),
    "symlink with a size": Entry(b"l", Kind.SYMLINK, size=1, target=b"x"),
    "directory without an object": Entry(b"d", Kind.DIRECTORY, parts=[b""]),
    "directory of two": Entry(b"d", Kind.DIRECTORY, parts=[bytes(32), bytes(32)]),
    "merged directory without an object": Entry(b"d", Kind.MERGED),
    "directory with two names": Entry(b"d", Kind.DIRECTORY, link_group=1, parts=[bytes(32)]),
}


@pytest.mark.parametrize("name", WRONG)
def test_impossible_entries(name: str) -> None:
    with pytest.raises(StoreError, match="no directory"):
        encode_directory([WRONG[name]])
    with pytest.raises(StoreError, match="no directory"):
        decode_directory(DIRECTORY + msgpack.encode([WRONG[name]]))


def test_order_and_repetition() -> None:
    for some in ([replace(FILE, name=b"b"), replace(FILE, name=b"a")], [FILE, FILE]):
        with pytest.raises(StoreError, match="comes twice, or too late"):
            decode_directory(DIRECTORY + msgpack.encode(some))
    with pytest.raises(StoreError, match="comes twice"):
        encode_directory([FILE, FILE])


def test_a_piece_that_looks_like_a_directory_is_a_piece() -> None:
    inner = encode_directory([FILE])
    assert links_of(PIECE + inner) == set()
    with pytest.raises(StoreError):
        decode_directory(PIECE + inner[1:])


def test_records() -> None:
    record = Record("snapshot", [digest_of(b"a")], b"body")
    data = encode_record(record)
    assert decode_record(data) == record
    assert links_of(data) == {digest_of(b"a")}
    for wrong in (data + b"x", data[:-1], RECORD, b"", RECORD + msgpack.encode(["k", [b"short"], b""])):
        with pytest.raises(StoreError, match="no record"):
            decode_record(wrong)


@given(st.integers(0, 3))
def test_pieces(count: int) -> None:
    data = bytes(count * PIECE_BYTES + count)
    assert content_of(pieces_of(data)) == data
    assert all(len(each) <= PIECE_BYTES + 1 for each in pieces_of(data))
