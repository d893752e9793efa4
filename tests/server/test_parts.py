"""The parsers by themselves: envelopes and forms cut anywhere, ranges, paths, keys."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from itertools import pairwise
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from starlette.requests import Request

from belljar.server.connect import read_stream
from belljar.server.database_host import Database
from belljar.server.errors import ApiError, RpcError
from belljar.server.files import Parts, _range
from belljar.server.filesystem import permissions
from belljar.server.keys_host import Tokens, create_key, find_key
from belljar.server.paths import resolve


class Message(Struct):
    n: int


class Body:
    def __init__(self, data: bytes, cuts: list[int]) -> None:
        places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
        self._parts = [data[a:b] for a, b in pairwise(places)]

    async def stream(self) -> AsyncIterator[bytes]:
        for part in self._parts:
            yield part


def messages(data: bytes, cuts: list[int]) -> list[int]:
    async def read() -> list[int]:
        return [message.n async for message in read_stream(cast(Request, Body(data, cuts)), Message)]

    return asyncio.run(read())


def envelope(data: bytes, flags: int = 0) -> bytes:
    return bytes((flags,)) + len(data).to_bytes(4, "big") + data


@given(st.lists(st.integers(0, 1000), max_size=8), st.lists(st.integers(0, 10_000), max_size=8))
def test_envelopes_cut_anywhere(numbers: list[int], cuts: list[int]) -> None:
    data = b"".join(envelope(b'{"n": %d}' % number) for number in numbers)
    assert messages(data, cuts) == numbers
    assert messages(data + envelope(b"{}", 2) + b"more", cuts) == numbers


@given(st.binary(max_size=60), st.lists(st.integers(0, 100), max_size=4))
def test_anything_else_is_an_error_or_nothing(data: bytes, cuts: list[int]) -> None:
    code = "invalid_argument"
    try:
        messages(data, cuts)
    except RpcError as error:
        code = error.code
    assert code in ("invalid_argument", "unimplemented", "resource_exhausted")


def form(files: list[tuple[str, bytes]]) -> bytes:
    parts = [
        b'--edge\r\nContent-Disposition: form-data; name="file"; filename="%s"\r\nX: y\r\n\r\n%s\r\n'
        % (name.encode(), data)
        for name, data in files
    ]
    return b"".join(parts) + b"--edge--\r\n"


@given(
    st.lists(st.tuples(st.sampled_from(["a", "/b/c d", "é"]), st.binary(max_size=40)), min_size=1, max_size=4),
    st.lists(st.integers(0, 10_000), max_size=10),
)
def test_forms_cut_anywhere(files: list[tuple[str, bytes]], cuts: list[int]) -> None:
    data, parts = form(files), Parts(b"edge")
    places = sorted({0, len(data), *(cut % len(data) for cut in cuts)})
    events: list[tuple[str, Any]] = []
    for a, b in pairwise(places):
        events += parts.feed(data[a:b])
    assert parts.ended
    assert [value for kind, value in events if kind == "begin"] == [("file", name) for name, _ in files]
    found: list[bytes] = []
    for kind, value in events:
        if kind == "begin":
            found.append(b"")
        elif kind == "data":
            found[-1] += value
    assert found == [contents for _, contents in files]


@given(st.binary(max_size=200))
def test_what_is_no_form_is_an_error_or_incomplete(data: bytes) -> None:
    parts = Parts(b"edge")
    status = 400
    try:
        parts.feed(data)
    except ApiError as error:
        status = error.status
    assert (status, parts.ended) == (400, False)


@given(st.text(max_size=20), st.integers(0, 1000))
def test_ranges_are_within_the_file(text: str, size: int) -> None:
    status = 416
    start = end = 0
    try:
        start, end = _range(text, size)
    except ApiError as error:
        status = error.status
    assert status == 416
    assert 0 <= start <= end <= size


@pytest.mark.parametrize(
    ("text", "expected"),
    [("bytes=0-0", (0, 1)), ("bytes=5-", (5, 10)), ("bytes=-3", (7, 10)), ("bytes=2-99", (2, 10)), (None, (0, 10))],
)
def test_ranges(text: str | None, expected: tuple[int, int]) -> None:
    assert _range(text, 10) == expected


@pytest.mark.parametrize(
    ("path", "user", "expected"),
    [
        ("", "user", "/home/user"),
        ("a/../b", "user", "/home/user/b"),
        ("~", "root", "/root"),
        ("~/x", "user", "/home/user/x"),
        ("/etc/x", "user", "/etc/x"),
        ("../../../etc", "user", "/etc"),
    ],
)
def test_paths(path: str, user: str, expected: str) -> None:
    assert resolve(path, user) == expected


def test_permissions() -> None:
    assert permissions("file", 0o640) == "-rw-r-----"
    assert permissions("directory", 0o755) == "drwxr-xr-x"
    assert permissions("symlink", 0o777) == "Lrwxrwxrwx"


def test_keys() -> None:
    database = Database(None)
    key = create_key(database, "acme", "ci")
    found = find_key(database, key)
    assert found is not None
    assert found.tenant == "acme"
    assert key.encode() not in b"".join(bytes(str(each), "utf-8") for each in database.list_keys())
    for wrong in ("", "bj_", key[:-1], key + "x", key[:-1] + "!", key.upper(), "é" * 45, "bj_" + "x" * 10_000):
        assert find_key(database, wrong) is None
    assert database.revoke(found.id, 1.0)
    assert not database.revoke(found.id, 1.0)
    assert find_key(database, key) is None
    database.close()


def test_tokens_differ_by_use_sandbox_and_server() -> None:
    one, two = Tokens(b"1" * 32), Tokens(b"2" * 32)
    made = {one.envd("a"), one.envd("b"), one.traffic("a"), two.envd("a")}
    assert len(made) == 4
    assert one.envd("a") == Tokens(b"1" * 32).envd("a")
