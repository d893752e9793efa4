"""HTTP/1 framing beside h11: what goes out has one reading; what comes back is read as h11 reads it, or refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import h11
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from belljar.net.broker.exchange_host import Ask
from belljar.net.broker.gate_host import Gate
from belljar.net.broker.http_host import Web
from belljar.net.errors import NetError
from belljar.net.network import Network, NetworkLimits
from tests.net.servers import HttpServer, Response, bodies

LIMITS = NetworkLimits(idle_seconds=5, connect_seconds=5)
NAMES = [
    b"Content-Length",
    b"Transfer-Encoding",
    b"content-length ",
    b"Host",
    b"Connection",
    b"X",
    b"X-Long",
    b"Upgrade",
]
VALUES = [
    b"5", b"0", b"+5", b"5,5", b"5, 5", b"-1", b"0x5", b"chunked", b"xchunked", b"chunked, identity", b"identity",
    b"close", b"keep-alive", b"", b" 5 ", b"\t", b"a\x0bb", b"a\r\nB: c", b"a\nB: c", b"a\0", b"\xe9",
    b"99999999999999999999",
]  # fmt: skip
fields = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(VALUES)), max_size=4)
methods = st.sampled_from(
    ["GET", "POST", "PUT", "HEAD", "OPTIONS", "get", "GET /x HTTP/1.1\r\nA:", "CONNECT", "", "P OST"]
)
targets = st.sampled_from(["/", "/a?b=c", "/a b", "/a\r\nX: y", "/%0d%0a", "//x", "/\x00", "/é", "/" + "a" * 500])


@contextmanager
def serving(raw: bytes | None = None) -> Iterator[HttpServer]:
    with HttpServer({"/": Response(raw=raw) if raw is not None else bodies.echo}) as server:
        yield server


def fetch(server: HttpServer, ask: Ask) -> tuple[int, list[tuple[bytes, bytes]], bytes] | None:
    """Status, headers and body; None if it was refused, on either side."""

    async def main() -> tuple[int, list[tuple[bytes, bytes]], bytes] | None:
        web = Web(Gate(Network.allow(server.authority, limits=LIMITS)))
        try:
            async with asyncio.timeout(30):
                response = await web.fetch(ask)
                try:
                    body = b"".join([chunk async for chunk in response.chunks])
                finally:
                    await response.aclose()
                return response.status, response.headers.raw(), body
        except NetError:
            return None
        finally:
            await web.close()

    return asyncio.run(main())


async def pieces(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), 3):
        yield data[start : start + 3]


@settings(max_examples=120)
@given(methods, targets, fields, st.none() | st.binary(max_size=20))
def test_what_goes_out_is_one_request(
    method: str, target: str, headers: list[tuple[bytes, bytes]], body: bytes | None
) -> None:
    with serving() as server:
        sent = None if body is None else pieces(body)
        answered = fetch(server, Ask(method, server.url + target, list(headers), sent))
        if answered is not None and answered[0] == 400:
            pytest.fail("h11 could not read what we sent")
        assert len(server.requests) <= 1, "one request became two"
        for request in server.requests:
            assert request.method == method
            assert request.body == (body or b"")
            assert (request.header("host") or "") == server.authority
            assert not (request.header("content-length") and request.header("transfer-encoding"))
            extra = {name for name, _ in request.headers} - {
                name.decode("latin-1").strip().lower() for name, _ in headers
            }
            assert extra <= {"host", "content-length", "transfer-encoding", "accept-encoding"}


def as_h11_reads(raw: bytes) -> tuple[int, bytes] | None:
    """None if it does not."""
    client = h11.Connection(h11.CLIENT, max_incomplete_event_size=100 * 1024)
    client.send(h11.Request(method="GET", target="/", headers=[("Host", "x")]))
    client.send(h11.EndOfMessage())
    client.receive_data(raw)
    client.receive_data(b"")
    status, body = 0, b""
    try:
        while True:
            event = client.next_event()
            if isinstance(event, h11.Response):
                status = event.status_code
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage):
                return status, body
            elif event is h11.NEED_DATA or isinstance(event, h11.ConnectionClosed):
                return None
    except h11.RemoteProtocolError:
        return None


lines = st.lists(
    st.sampled_from([
        b"Content-Length: 5", b"Content-Length: 3", b"Content-Length: 5, 5", b"Content-Length: +5", b"Content-Length:5",
        b"Transfer-Encoding: chunked", b"Transfer-Encoding: xchunked", b"transfer-encoding: Chunked", b"X: y", b"X : y",
        b" folded", b"\tfolded", b"Bad\x00: x", b"X: a\x00b", b"Connection: close", b"no colon", b"Set-Cookie: a=b",
    ]),
    max_size=4,
)  # fmt: skip
ends = st.sampled_from([b"\r\n", b"\n", b"\r"])
contents = st.sampled_from([
    b"", b"hello", b"5\r\nhello\r\n0\r\n\r\n", b"5;x=y\r\nhello\r\n0\r\nT: r\r\n\r\n", b"5\nhello\n0\n\n",
    b"+5\r\nhello\r\n0\r\n\r\n", b"0x5\r\nhello\r\n0\r\n\r\n", b"hello world", b"5\r\nhel",
])  # fmt: skip
starts = st.sampled_from([
    b"HTTP/1.1 200 OK", b"HTTP/1.0 200 OK", b"HTTP/1.1 200", b"HTTP/1.1  200 OK", b"HTTP/2 200 OK", b"ICY 200 OK",
    b"HTTP/1.1 99 x", b"HTTP/1.1 204 No", b"HTTP/1.1 304 No", b"HTTP/1.1 404 \xff",
])  # fmt: skip


@settings(max_examples=150)
@given(starts, lines, ends, contents)
@example(b"HTTP/1.1 200 OK", [b"Content-Length: 5", b"Transfer-Encoding: chunked"], b"\r\n", b"5\r\nhello\r\n0\r\n\r\n")
def test_what_comes_back_is_read_as_h11_reads_it(start: bytes, headers: list[bytes], end: bytes, body: bytes) -> None:
    raw = start + end + b"".join(line + end for line in headers) + end + body
    expected = as_h11_reads(raw)
    with serving(raw) as server:
        found = fetch(server, Ask("GET", server.url + "/"))
    if found is None:  # we may be stricter, never more lenient
        return
    assert (found[0], found[2]) == expected
    kept = [name.lower() for name, _ in found[1]]
    assert not (b"content-length" in kept and b"transfer-encoding" in kept)
