"""`safe_fetch`: plain data in and out, under a policy."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from belljar import Network, safe_fetch
from belljar.net.broker.fetch_host import FetchError
from belljar.net.policy import Conn
from tests.net.servers import HttpServer, Response, Tripwire, bodies


@pytest.fixture
def server() -> Iterator[HttpServer]:
    routes: dict[str, Any] = {
        "/json": Response(200, b'{"a": [1, 2]}', {"Content-Type": "application/json"}),
        "/text": Response(201, "gr\u00fc\u00df".encode(), {"Content-Type": "text/plain; charset=utf-8"}),
        "/bytes": b"\x00\xff",
        "/echo": bodies.echo,
        "/gzip": bodies.gzipped(b"unpacked"),
        "/bomb": bodies.gzip_bomb(32 << 20),
        "/endless": bodies.endless,
        "/late": bodies.late(20),
        "/away": bodies.redirect("/text"),
        "/inside": bodies.redirect("http://127.0.0.1:9/"),
    }
    with HttpServer(routes) as server:
        yield server


def call(fetch: Any, *args: Any) -> Any:
    return asyncio.run(fetch(*args))


def test_answers_are_plain_data(server: HttpServer) -> None:
    fetch = safe_fetch(server.authority)
    base = f"http://{server.authority}"
    answer = call(fetch, f"{base}/json")
    assert (answer["ok"], answer["status"], answer["json"]) == (True, 200, {"a": [1, 2]})
    assert answer["headers"]["content-type"] == "application/json"
    assert call(fetch, f"{base}/text")["body"] == "gr\u00fc\u00df"
    assert call(fetch, f"{base}/bytes")["body"] == b"\x00\xff"
    assert call(fetch, f"{base}/gzip")["body"] == "unpacked"
    assert call(fetch, f"{base}/away")["url"] == f"{base}/text"
    call(fetch, f"{base}/echo", {"method": "put", "headers": {"X-A": "b"}, "body": {"k": 1}})
    seen = server.requests[-1]
    assert (seen.method, seen.header("x-a"), seen.body) == ("PUT", "b", b'{"k": 1}')


def test_refusals_say_why(server: HttpServer) -> None:
    fetch = safe_fetch(Network.allow(server.authority), max_bytes=1 << 20)
    hasty = safe_fetch(Network.allow(server.authority), timeout=0.5)
    base = f"http://{server.authority}"
    for url, why in {
        f"{base}/inside": "denied",
        f"{base}/bomb": "too-large",
        f"{base}/endless": "too-large",
        "http://127.1/": "protocol",
        "file:///etc/passwd": "protocol",
        "https://example.com/": "denied",
    }.items():
        with pytest.raises(FetchError, match=why):
            call(fetch, url)
    with pytest.raises(FetchError, match="timeout"):
        call(hasty, f"{base}/late")
    for junk in ({"mode": "cors"}, {"body": object()}, {"headers": {"a\nb": "c"}}, {"method": "CONNECT"}):
        with pytest.raises(FetchError):
            call(fetch, f"{base}/json", junk)
    with pytest.raises(FetchError):
        call(fetch, 7)


def test_a_policy_decides(server: HttpServer) -> None:
    async def policy(conn: Conn) -> Any:
        await asyncio.sleep(0)
        return conn.accept() if conn.dst.port == server.port else None

    with Tripwire() as wire:
        fetch = safe_fetch(policy)
        assert call(fetch, f"http://{server.authority}/json")["ok"]
        with pytest.raises(FetchError, match="denied"):
            call(fetch, f"http://{wire.authority}/")
        assert not wire.touched()


def test_many_at_once(server: HttpServer) -> None:
    fetch = safe_fetch(server.authority)

    async def main() -> list[Any]:
        return list(await asyncio.gather(*(fetch(f"http://{server.authority}/json") for _ in range(40))))

    assert all(answer["ok"] for answer in asyncio.run(main()))
