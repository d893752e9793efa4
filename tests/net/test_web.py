"""Web requests through the gate, against real servers: what is sent, what comes back, what is never sent."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from belljar.net.broker.exchange_host import Ask, Response
from belljar.net.broker.gate_host import Gate
from belljar.net.broker.http_host import Web
from belljar.net.errors import NetError
from belljar.net.message import HttpRequest, HttpResponse
from belljar.net.network import Network, NetworkLimits
from belljar.net.policy import Conn, HttpMatch
from tests.net.servers import Authority, EchoSocket, Http2Server, HttpServer, Request, Tripwire, bodies
from tests.net.servers import Response as Answer

SECRET = "ghp_canary_0123456789"
Work = Callable[[Web], Coroutine[Any, Any, Any]]


def run(network: Network, work: Work, events: list[dict[str, Any]] | None = None) -> Any:
    async def main() -> Any:
        gate = Gate(network, emit=None if events is None else events.append)
        web = Web(gate)
        try:
            async with asyncio.timeout(60):
                return await work(web)
        finally:
            await gate.record.written()
            await web.close()

    return asyncio.run(main())


async def read(response: Response) -> bytes:
    return b"".join([chunk async for chunk in response.chunks])


def get(network: Network, url: str, events: list[dict[str, Any]] | None = None, **ask: Any) -> tuple[Response, bytes]:
    async def work(web: Web) -> tuple[Response, bytes]:
        response = await web.fetch(Ask(ask.pop("method", "GET"), url, **ask))
        return response, await read(response)

    result: tuple[Response, bytes] = run(network, work, events)
    return result


def refused(network: Network, url: str, kind: str, **ask: Any) -> str:
    with pytest.raises(NetError) as caught:
        get(network, url, **ask)
    assert caught.value.kind == kind, caught.value
    return caught.value.text


def to(server: HttpServer, name: str = "api.test", **options: Any) -> Network:
    return Network.allow(f"{name}:{server.port}", hosts={name: "127.0.0.1"}, **options)


def brokered(middleware: Callable[[HttpRequest], Any], **options: Any) -> Network:
    """The policy of docs/network.md: api.test gets middleware, other.test passes without."""

    def policy(conn: Conn) -> Any:
        if dns := conn.match_dns():
            return dns.accept()
        if api := conn.match_http(f"api.test:{conn.dst.port}"):
            return api.accept(middleware, **options)
        if other := conn.match_http(f"other.test:{conn.dst.port}"):
            return other.accept()
        return None

    return Network.policy(policy, hosts={"api.test": "127.0.0.1", "other.test": "127.0.0.1"})


def test_a_request_as_the_server_sees_it() -> None:
    with HttpServer({"/echo": bodies.echo, "/": b"ok"}) as server:
        url = f"http://api.test:{server.port}/?q=%20"
        response, body = get(
            to(server), url, headers=[(b"X-One", b"1"), (b"Connection", b"close"), (b"TE", b"trailers")]
        )
        assert (response.status, response.reason, body) == (200, "OK", b"ok")
        assert response.head.startswith(b"HTTP/1.1 200 OK\r\n")
        assert response.info["remote-ip"] == "127.0.0.1"
        seen = server.requests[0]
        assert seen.target == "/?q=%20"
        assert seen.header("host") == f"api.test:{server.port}"
        assert seen.header("x-one") == "1"
        assert seen.header("te") is None


async def pieces(*data: bytes) -> AsyncIterator[bytes]:
    for piece in data:
        yield piece


def test_bodies_go_with_their_length_or_in_chunks() -> None:
    with HttpServer({"/": b"ok"}) as server:
        url = f"http://api.test:{server.port}/"
        get(to(server), url, method="PUT", headers=[(b"Content-Length", b"4")], body=pieces(b"ab", b"cd"))
        get(to(server), url, method="POST", body=pieces(b"ab", b"cd"))
        assert [request.body for request in server.requests] == [b"abcd", b"abcd"]
        assert server.requests[0].header("content-length") == "4"
        assert server.requests[1].header("transfer-encoding") == "chunked"
        refused(to(server), url, "protocol", method="PUT", headers=[(b"Content-Length", b"3")], body=pieces(b"abcd"))


@pytest.mark.parametrize(
    "headers",
    [
        [(b"Host", b"evil.com")],
        [(b"Host", b"api.test"), (b"Host", b"api.test")],
        [(b"Content-Length", b"5"), (b"Content-Length", b"6")],
        [(b"Content-Length", b"+5")],
        [(b"Content-Length", b"5,5")],
        [(b"Content-Length", b"5"), (b"Transfer-Encoding", b"chunked")],
        [(b"Transfer-Encoding", b"xchunked")],
        [(b"Transfer-Encoding", b"chunked, identity")],
        [(b"X", b"a\r\nY: b")],
        [(b"X", b"a\nb")],
        [(b"X y", b"a")],
        [(b"X ", b"a")],
        [(b"", b"a")],
        [(b"X", b"\x00")],
    ],
)
def test_smuggling_shapes_never_leave(headers: list[tuple[bytes, bytes]]) -> None:
    with HttpServer({"/": b"ok"}) as server:
        refused(to(server), f"http://api.test:{server.port}/", "protocol", headers=headers)
        assert server.requests == []


@pytest.mark.parametrize("method", ["CONNECT", "TRACE", "get", "G T", "GET /x HTTP/1.1\r\n\r\nGET"])
def test_odd_methods_never_leave(method: str) -> None:
    with HttpServer({"/": b"ok"}) as server:
        refused(to(server), f"http://api.test:{server.port}/", "protocol", method=method)
        assert server.requests == []


@pytest.mark.parametrize("upgrade", [b"h2c", b"websocket", b"TLS/1.0"])
def test_the_protocol_is_not_changed_unless_granted(upgrade: bytes) -> None:
    with HttpServer({"/": b"ok"}) as server:
        network = brokered(lambda request: None)
        refused(network, f"http://api.test:{server.port}/", "denied", headers=[(b"Upgrade", upgrade)])
        assert server.requests == []


# Credentials.


def add_token(request: HttpRequest) -> None:
    request.headers.set("authorization", f"Bearer {SECRET}")


def test_middleware_adds_a_credential_that_only_the_server_sees() -> None:
    events: list[dict[str, Any]] = []
    with HttpServer({"/": b"ok"}) as server:
        url = f"http://api.test:{server.port}/?token=guest"
        response, _ = get(brokered(add_token), url, events, headers=[(b"Authorization", b"Bearer guess")])
        assert server.requests[0].header("authorization") == f"Bearer {SECRET}"
        assert SECRET.encode() not in response.head
        assert SECRET not in repr(events)
        assert "token=guest" not in repr(events)
        assert any(event.get("rewrote") == ["authorization"] for event in events)


def test_a_credential_stays_with_its_host() -> None:
    with HttpServer({"/": b"other"}) as other:
        routes = {"/": bodies.redirect(f"http://other.test:{other.port}/")}
        with HttpServer(routes) as server:
            headers = [(b"Cookie", b"a=b"), (b"Authorization", b"Basic eDp5"), (b"X-Fine", b"1")]
            url = f"http://api.test:{server.port}/"
            response, body = get(brokered(add_token), url, headers=headers, redirects=3)
            assert body == b"other"
            assert str(response.url) == f"http://other.test:{other.port}/"
            assert server.requests[0].header("authorization") == f"Bearer {SECRET}"
            assert other.requests[0].header("authorization") is None
            assert other.requests[0].header("cookie") is None
            assert other.requests[0].header("x-fine") == "1"


def test_redirects_are_decided_like_requests() -> None:
    with Tripwire() as wire, HttpServer({"/": b"ok"}) as good:
        for target in (f"http://{wire.authority}/", "http://169.254.169.254/", "file:///etc/passwd", "http://127.1/"):
            with HttpServer({"/": bodies.redirect(target)}) as server:
                refused(to(server), f"http://api.test:{server.port}/", "denied", redirects=5)
        assert not wire.touched()
        with HttpServer({"/": bodies.redirect_loop}) as loop:
            refused(to(loop), f"http://api.test:{loop.port}/", "protocol", redirects=10)
            assert len(loop.requests) == 11
        with HttpServer({"/": bodies.redirect(f"http://api.test:{good.port}/", 303)}) as server:
            network = Network.allow(f"api.test:{server.port}", f"api.test:{good.port}", hosts={"api.test": "127.0.0.1"})
            get(network, f"http://api.test:{server.port}/", method="POST", body=pieces(b"x"), redirects=1)
            assert good.requests[0].method == "GET"


def echo_headers(request: Request) -> Answer:
    value = request.header("authorization") or ""
    text = f"{value} {base64.b64encode(value.encode()).decode()} {value.encode().hex()}"
    return Answer(200, text.encode() * 50, {"X-Echo": value})


@pytest.mark.parametrize("redact", [True, [SECRET]])
def test_an_echoed_credential_is_masked(redact: Any) -> None:
    with HttpServer({"/": echo_headers}) as server:
        url = f"http://api.test:{server.port}/"
        response, body = get(brokered(add_token, redact=redact), url)
        whole = response.head + body
        assert len(body) == int(response.headers["content-length"])
        for form in (SECRET.encode(), SECRET.encode().hex().encode(), base64.b64encode(SECRET.encode())[2:-4]):
            assert form not in whole


def test_an_echo_inside_gzip_is_masked_and_a_bomb_is_not_unpacked() -> None:
    with HttpServer({"/": bodies.gzipped(SECRET.encode() * 9), "/bomb": bodies.gzip_bomb(64 << 20)}) as server:
        network = brokered(add_token, redact=True)
        response, body = get(network, f"http://api.test:{server.port}/")
        assert body == b"*" * len(SECRET) * 9
        assert "content-encoding" not in response.headers
        assert server.requests[0].header("accept-encoding") == "identity"
        refused(network, f"http://api.test:{server.port}/bomb", "too-large")


def test_middleware_may_answer_refuse_or_change() -> None:
    async def answer(request: HttpRequest) -> HttpResponse:
        await asyncio.sleep(0)
        return HttpResponse(418, {"x-a": "b"}, "no tea")

    with HttpServer({"/": b"ok", "/changed": bodies.echo}) as server:
        url = f"http://api.test:{server.port}/"
        response, body = get(brokered(answer), url)
        assert (response.status, body, response.headers["x-a"]) == (418, b"no tea", "b")
        assert "not today" in refused(brokered(lambda request: request.deny("not today")), url, "denied")
        assert server.requests == []

        def change(request: HttpRequest) -> None:
            request.method = "PUT"
            request.url = f"http://api.test:{server.port}/changed"
            request.body.replace(b"longer than before")
            request.on_response(lambda response: response.headers.set("x-seen", "1"))
            request.on_response(lambda response: response.body.map(bytes.upper))

        response, body = get(brokered(change), url, method="POST", body=pieces(b"short"))
        assert server.requests[0].method == "PUT"
        assert server.requests[0].path == "/changed"
        assert server.requests[0].body == b"longer than before"
        assert response.headers["x-seen"] == "1"
        assert b"LONGER THAN BEFORE" in body


@pytest.mark.parametrize("junk", [1, "yes", False, object()])
def test_middleware_that_fails_or_returns_junk_sends_nothing(junk: object) -> None:
    def fail(request: HttpRequest) -> None:
        raise RuntimeError(f"no token: {SECRET}")

    def elsewhere(request: HttpRequest) -> None:
        request.url = "http://other.test/"

    events: list[dict[str, Any]] = []
    with HttpServer({"/": b"ok"}) as server:
        url = f"http://api.test:{server.port}/"
        refused(brokered(lambda request: junk), url, "denied")
        text = refused(brokered(fail), url, "denied", events=events)
        assert SECRET not in text
        assert any(event["action"] == "policy-error" for event in events)
        refused(brokered(elsewhere), url, "denied")
        assert server.requests == []


# TLS and HTTP/2.


def test_tls_is_verified(tmp_path: Path) -> None:
    authority, stranger = Authority(tmp_path), Authority(tmp_path, "Stranger")
    with HttpServer({"/": b"ok"}, context=authority.context("api.test")) as server:
        url = f"https://api.test:{server.port}/"
        _, body = get(to(server, ca_bundle=str(authority.path)), url)
        assert body == b"ok"
        assert "certificate" in refused(to(server, ca_bundle=str(stranger.path)), url, "tls")
        assert "certificate" in refused(to(server), url, "tls")
    with HttpServer({"/": b"ok"}, context=authority.context("other.test")) as server:
        refused(to(server, ca_bundle=str(authority.path)), f"https://api.test:{server.port}/", "tls")
        assert server.requests == []
    with HttpServer({"/": b"ok"}) as plain:
        refused(to(plain, ca_bundle=str(authority.path)), f"https://api.test:{plain.port}/", "tls")


def test_http2_when_the_server_has_it(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    context = authority.context("api.test", protocols=("h2", "http/1.1"))
    with Http2Server({"/": b"x" * 300_000, "/echo": bodies.echo}, context=context) as server:
        network = to(server, ca_bundle=str(authority.path))
        response, body = get(network, f"https://api.test:{server.port}/")
        assert response.head.startswith(b"HTTP/2 200\r\n")
        assert response.info["http-version"] == "2"
        assert body == b"x" * 300_000
        get(network, f"https://api.test:{server.port}/echo", method="POST", body=pieces(b"a" * 1000, b"b"))
        assert server.requests[-1].body == b"a" * 1000 + b"b"


def test_connections_are_kept_for_the_same_place_only() -> None:
    with HttpServer({"/": b"ok"}) as server:
        network = Network.allow(
            f"a.test:{server.port}", f"b.test:{server.port}", hosts={"a.test": "127.0.0.1", "b.test": "127.0.0.1"}
        )

        async def work(web: Web) -> list[str | None]:
            reused = []
            for host in ("a", "a", "b", "a"):
                response = await web.fetch(Ask("GET", f"http://{host}.test:{server.port}/"))
                await read(response)
                reused.append(response.info.get("reused"))
            return reused

        assert run(network, work) == [None, "1", None, "1"]
        assert [request.connection for request in server.requests] == [1, 1, 2, 1]


def test_a_policy_that_changed_its_mind_counts_for_kept_connections() -> None:
    allowed = [True]

    def policy(conn: Conn) -> Any:
        return conn.accept() if allowed[0] else None

    with HttpServer({"/": b"ok"}) as server:

        async def work(web: Web) -> None:
            ask = Ask("GET", f"http://{server.authority}/")
            await read(await web.fetch(ask))
            allowed[0] = False
            with pytest.raises(NetError, match="denied"):
                await web.fetch(ask)

        run(Network.policy(policy), work)
        assert len(server.requests) == 1


# Servers that misbehave.


def test_servers_that_never_end_cost_no_memory() -> None:
    with HttpServer({"/": bodies.endless}) as server:

        async def work(web: Web) -> None:
            response = await web.fetch(Ask("GET", f"http://{server.authority}/"))
            size = 0
            async for chunk in response.chunks:
                size += len(chunk)
                if size > 4 << 20:
                    break
            await response.aclose()

        run(Network.allow(server.authority), work)
        network = Network.allow(server.authority, limits=NetworkLimits(bytes_in=1 << 20))
        refused(network, f"http://{server.authority}/", "too-large")


@pytest.mark.parametrize("route", [bodies.endless_headers, bodies.cut_short()])
def test_servers_that_break_the_protocol(route: Any) -> None:
    with HttpServer({"/": route}) as server:
        refused(Network.allow(server.authority), f"http://{server.authority}/", "protocol")


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nhello!",
        b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\nX : a\r\n\r\nhello",
        b"<html>HTTP/0.9</html>",
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n",
        b"",
    ],
)
def test_answers_with_two_readings_are_refused(raw: bytes) -> None:
    with HttpServer({"/": Answer(raw=raw)}) as server:
        refused(Network.allow(server.authority), f"http://{server.authority}/", "protocol")


def test_a_silent_server_is_given_up() -> None:
    with HttpServer({"/": bodies.late(20)}) as server:
        network = Network.allow(server.authority, limits=NetworkLimits(idle_seconds=0.3))
        refused(network, f"http://{server.authority}/", "timeout")


def test_a_websocket_when_granted() -> None:
    with EchoSocket() as server:
        key = base64.b64encode(b"0123456789abcdef")
        headers = [(b"Upgrade", b"websocket"), (b"Sec-WebSocket-Key", key), (b"Sec-WebSocket-Version", b"13")]

        def policy(conn: Conn) -> Any:
            http: HttpMatch | None = conn.match_http(f"127.0.0.1:{conn.dst.port}")
            return http.accept(websocket=True) if http else None

        async def work(web: Web) -> bytes:
            response = await web.fetch(Ask("GET", f"http://{server.authority}/", headers))
            assert response.status == 101
            assert response.stream is not None
            await response.stream.write(b"\x81\x85" + bytes(4) + b"hello")
            data = b""
            while len(data) < 7:
                data += await response.stream.read(100)
            await response.aclose()
            return data

        assert run(Network.policy(policy), work) == b"\x81\x05hello"
