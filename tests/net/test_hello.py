"""ClientHellos of a real TLS library, whole, in pieces, and broken."""

from __future__ import annotations

import contextlib
import ssl

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belljar.net.hello import HELLO_MAX, Hello, NotTls, is_http, parse_hello


def hello(name: str | None) -> bytes:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    connection = context.wrap_bio(incoming, outgoing, server_hostname=name)
    with pytest.raises(ssl.SSLWantReadError):
        connection.do_handshake()
    return outgoing.read()


def test_a_hello_says_whom_it_asks_for() -> None:
    data = hello("api.example.com")
    assert parse_hello(data) == Hello("api.example.com", False)
    assert parse_hello(data + b"more") == Hello("api.example.com", False)
    assert parse_hello(hello(None)) == Hello(None, False)
    for end in range(len(data)):
        assert parse_hello(data[:end]) is None


def test_a_hello_over_several_records() -> None:
    body = hello("api.example.com")[5:]
    split = b"".join(
        b"\x16\x03\x01" + len(part).to_bytes(2, "big") + part for part in (body[:3], body[3:100], body[100:])
    )
    assert parse_hello(split) == Hello("api.example.com", False)


@pytest.mark.parametrize(
    "data", [b"SSH-2.0", b"\x16\x02\x00", b"\x16\x03\x01\xff\xff", b"\x16\x03\x01\x00\x00", b"\x17\x03\x03"]
)
def test_what_is_no_hello(data: bytes) -> None:
    with pytest.raises(NotTls):
        parse_hello(data)


def test_plain_requests() -> None:
    assert is_http(b"GET / HTTP/1.1")
    assert is_http(b"GE") is None
    assert is_http(b"PRI * HTTP/2.0") is False
    assert is_http(b"CONNECT x:1") is False


@given(st.binary(max_size=400))
def test_any_bytes_are_read_without_harm(data: bytes) -> None:
    for begin in (b"", b"\x16\x03\x01\x01\x00\x01\x00\x00\xfc"):
        with contextlib.suppress(NotTls):
            parse_hello(begin + data)


@given(st.data())
def test_a_damaged_hello_is_read_without_harm(data: st.DataObject) -> None:
    broken = bytearray(hello("api.example.com"))
    for _ in range(data.draw(st.integers(1, 4))):
        broken[data.draw(st.integers(0, len(broken) - 1))] = data.draw(st.integers(0, 255))
    try:
        found = parse_hello(bytes(broken))
    except NotTls:
        return
    assert found is None or len(broken) <= HELLO_MAX
