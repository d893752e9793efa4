"""Headers: what we let through is what a strict parser reads; and DNS questions of any bytes do no harm."""

from __future__ import annotations

import asyncio

import dns.message
import h11
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belljar.net.broker.gate_host import Gate
from belljar.net.broker.name_server_host import NameServer
from belljar.net.headers import BadMessage, Headers, check_method, check_request, parse_field
from belljar.net.network import Network

BYTES = st.text(alphabet="aZ09-_:;, \t\r\n\x00\x0b\x7f\xe9()", max_size=12).map(lambda text: text.encode("latin-1"))
NAMES = st.one_of(BYTES, st.sampled_from([b"Host", b"Content-Length", b"Transfer-Encoding", b"Connection", b"X-A"]))
VALUES = st.one_of(BYTES, st.sampled_from([b"api.test", b"5", b"+5", b"5, 5", b"chunked", b"gzip, chunked", b"05"]))


@given(st.lists(st.tuples(NAMES, VALUES), max_size=5))
def test_what_passes_is_read_the_same_by_h11(fields: list[tuple[bytes, bytes]]) -> None:
    try:
        headers = Headers(fields)
        length = check_request(headers, "api.test")
    except BadMessage:
        return
    headers.set("host", "api.test")
    client, server = h11.Connection(h11.CLIENT), h11.Connection(h11.SERVER)
    sent = client.send(h11.Request(method="POST", target="/", headers=headers.raw()))
    server.receive_data(sent or b"")
    seen = server.next_event()
    assert isinstance(seen, h11.Request)
    ours = sorted((name.lower(), value) for name, value in headers.raw() if name.lower() != b"content-length")
    assert ours == sorted((name, value) for name, value in seen.headers if name != b"content-length")
    lengths = [int(value) for name, value in seen.headers if name == b"content-length"]
    assert lengths == ([] if length is None else [length])
    assert server.next_event() is h11.NEED_DATA or length in (None, 0)


@given(st.binary(max_size=60))
def test_a_line_is_a_field_or_nothing(line: bytes) -> None:
    try:
        name, value = parse_field(line)
    except BadMessage:
        return
    assert b"\n" not in name + value
    assert b"\r" not in name + value
    assert parse_field(name + b": " + value) == (name, value)


def test_headers_by_any_case() -> None:
    headers = Headers([(b"X-One", b"1"), (b"x-one", b"2"), (b"Other", b" y ")])
    assert headers.get("X-ONE") == "1, 2"
    assert headers["other"] == "y"
    headers.set("x-One", "3")
    assert headers.get_all("X-One") == ["3"]
    assert "nothing" not in headers
    assert "3" not in repr(headers)
    with pytest.raises(BadMessage):
        headers.set("a", "b\r\nc: d")
    with pytest.raises(KeyError):
        headers["nothing"]


@pytest.mark.parametrize("method", ["", "get", "CONNECT", "TRACE", "GET ", "A" * 40])
def test_methods(method: str) -> None:
    with pytest.raises(BadMessage):
        check_method(method)


QUESTION = dns.message.make_query("a.example", "A").to_wire()


@settings(max_examples=60)
@given(st.one_of(st.binary(max_size=80), st.tuples(st.integers(0, len(QUESTION) - 1), st.integers(0, 255))))
def test_dns_questions_of_any_bytes_do_no_harm(given_bytes: bytes | tuple[int, int]) -> None:
    if isinstance(given_bytes, tuple):
        at, byte = given_bytes
        data = QUESTION[:at] + bytes([byte]) + QUESTION[at + 1 :]
    else:
        data = given_bytes
    reply = asyncio.run(_answer(data))
    if reply is not None:
        assert not dns.message.from_wire(reply).answer


async def _answer(data: bytes) -> bytes | None:
    return await NameServer(Gate(Network.deny())).answer(data, 512)
