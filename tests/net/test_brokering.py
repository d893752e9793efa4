"""What middleware adds is the host's alone: every way by which a guest or a server might show it to the guest."""

from __future__ import annotations

import asyncio
import base64
import gzip
import json
import logging
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from belljar import AuditLog, Network, NetworkLimits, Sandbox
from belljar.net.addresses import Address
from belljar.net.broker import pool_host, stream_host
from belljar.net.message import HttpRequest, HttpResponse
from belljar.net.policy import Conn
from tests.net.servers import EchoSocket, HttpServer, Request, Response, Tripwire, bodies
from tests.net.servers.listener import Listener
from tests.net.servers.websocket import frame

SECRET = "ghp_canary/0123456789+xyz"
HOST = "127.0.0.2"


def spellings(secret: str) -> list[bytes]:
    """However an echo may write it."""
    raw = secret.encode()
    packed = [base64.b64encode(bytes(n) + raw)[4:-4] for n in range(3)]
    return [raw, raw.hex().encode(), raw.hex().upper().encode(), *packed]


def brokered(middleware: Callable[[HttpRequest], Any], *, audit: Any = None, **accept: Any) -> Network:
    def policy(conn: Conn) -> Any:
        if dns := conn.match_dns():
            return dns.accept()
        if api := conn.match_http(f"api.test:{conn.dst.port}"):
            return api.accept(middleware, **accept)
        return None

    return Network.policy(policy, hosts={"api.test": HOST}, audit=audit)


def add_token(request: HttpRequest) -> None:
    request.headers.set("authorization", f"Bearer {SECRET}")


class Guest:
    """A sandbox, and every byte, event, log line and audit line that it causes."""

    def __init__(self, network: Network, tmp_path: Path) -> None:
        self.events: list[Any] = []
        self._lines: list[str] = []
        self._audit = tmp_path / "events.jsonl"
        self._log = AuditLog(self._audit)
        self.sandbox = Sandbox(network=network, on_event=self._event)
        self.said: list[bytes] = []

    def _event(self, event: Any) -> None:
        self.events.append(event)
        self._log(event)

    def run(self, script: str) -> str:
        result = self.sandbox.exec(script, timeout=60)
        self.said += [result.stdout_bytes, result.stderr_bytes]
        return result.stdout + result.stderr

    def check(self, *more: str) -> None:
        """The secret is nowhere."""
        self.run("cat /mnt/web/*/* 2>/dev/null; find /tmp /workspace /home -type f | xargs cat 2>/dev/null; env")
        self.sandbox.close()  # has every event told
        seen = b"\n".join([*self.said, repr(self.events).encode(), self._audit.read_bytes(), *map(str.encode, more)])
        for form in spellings(SECRET):
            assert form not in seen, form
        self._log.close()


@pytest.fixture
def open_guest(tmp_path: Path) -> Iterator[Callable[[Network], Guest]]:
    guests: list[Guest] = []

    def make(network: Network) -> Guest:
        guests.append(Guest(network, tmp_path))
        return guests[-1]

    yield make
    for guest in guests:
        guest.sandbox.close()


Open = Callable[[Network], Guest]


def raw(text: str) -> Callable[[Request], Response]:
    """A server that puts what it was sent where it does not belong."""
    return lambda request: Response(raw=text.replace("{}", request.header("authorization") or "").encode())


PLACES = {
    "reason": "HTTP/1.1 200 {}\r\nContent-Length: 0\r\n\r\n",
    "status line": "HTTP/9 {}\r\n\r\n",
    "no http": "{}\r\n\r\n",
    "header name": "HTTP/1.1 200 OK\r\n{}: x\r\n\r\n",
    "space before the colon": "HTTP/1.1 200 OK\r\nX-Echo : {}\r\n\r\n",
    "control character": "HTTP/1.1 200 OK\r\nX-Echo: {}\x01\r\n\r\n",
    "chunk size": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{}\r\n",
    "trailer": "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X\r\n\r\n1\r\nx\r\n0\r\nX: {}\r\n\r\n",
    "early hint": "HTTP/1.1 103 Early {}\r\nLink: <{}>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
    "unasked upgrade": "HTTP/1.1 101 {}\r\nUpgrade: {}\r\nConnection: upgrade\r\n\r\n{}",
    "coding": "HTTP/1.1 200 OK\r\nContent-Encoding: {}\r\nContent-Length: 1\r\n\r\nx",
    "location": "HTTP/1.1 302 Found\r\nLocation: http://{}/\r\nContent-Length: 0\r\n\r\n",
    "bad location": "HTTP/1.1 302 Found\r\nLocation: gopher://{}/\r\nContent-Length: 0\r\n\r\n",
    "length": "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n",
}


@pytest.mark.parametrize("place", PLACES)
def test_wherever_a_server_puts_it(open_guest: Open, place: str) -> None:
    with HttpServer({"/": raw(PLACES[place])}, address=HOST) as server:
        guest = open_guest(brokered(add_token, redact=True))
        url = f"http://api.test:{server.port}/"
        guest.run(f"curl -sSiv -m 20 {url}; curl -sSLiv -m 20 {url}; wget -S -t 1 -T 20 -O- {url}")
        guest.run(
            f"exec 3<>/mnt/web/clone; read n <&3; printf 'url {url}\\nredirects 5\\n' >&3; cd /mnt/web/$n; cat body\n"
            "cat response info error"
        )
        assert server.requests[0].header("authorization") == f"Bearer {SECRET}"
        guest.check()


def test_a_secret_in_the_url(open_guest: Open, tmp_path: Path) -> None:
    """An API key in a query or a path: not in what the guest is told of its own request, nor in the record."""

    def add_key(request: HttpRequest) -> None:
        request.url = f"{request.url.replace('/v1/', f'/{SECRET[:10]}-bot/v1/')}&key={SECRET}"

    with HttpServer({"/": bodies.echo}, address=HOST) as server:
        log = AuditLog(tmp_path / "network.jsonl")
        guest = open_guest(brokered(add_key, redact=True, audit=log))
        url = f"http://api.test:{server.port}/v1/items?x=1"
        said = guest.run(f"curl -sSiv '{url}' -w '%{{url_effective}}'")
        assert "***" in said
        guest.run(
            f"exec 3<>/mnt/web/clone; read n <&3; echo 'url {url}' >&3; cd /mnt/web/$n; cat body response info error"
        )
        assert server.last.target == f"/{SECRET[:10]}-bot/v1/items?x=1&key={SECRET}"
        guest.check()
        rewrites = [event.data.get("rewrote") for event in guest.events if event.data.get("action") == "request"]
        assert rewrites == [["url"], ["url"]]
        record = (tmp_path / "network.jsonl").read_text()
        assert not any(form.decode("latin-1") in record for form in spellings(SECRET))
        assert SECRET[:10] not in record


def test_an_answer_in_parts_is_not_had(open_guest: Open) -> None:
    """Ranges would cut an echo so that no part of it is the whole secret."""

    def ranged(request: Request) -> Response:
        return bodies.ranged((request.header("authorization") or "").encode())(request)

    with HttpServer({"/": ranged}, address=HOST) as server:
        guest = open_guest(brokered(add_token, redact=True))
        got = guest.run(f"for i in {{0..40}}; do curl -sS -r $i-$i http://api.test:{server.port}/; done")
        assert SECRET[:4] not in got
        assert all(request.header("range") is None for request in server.requests)
        guest.check()


def test_packed_answers(open_guest: Open) -> None:
    def packed(request: Request) -> Response:
        value = (request.header("authorization") or "").encode()
        members = gzip.compress(value[:9]) + gzip.compress(value[9:])  # one after the other: still one body
        return Response(200, members, {"Content-Encoding": "GZIP"})

    with HttpServer({"/": packed}, address=HOST) as server:
        guest = open_guest(brokered(add_token, redact=True))
        said = guest.run(f"curl -sS -H 'Accept-Encoding: gzip, br' http://api.test:{server.port}/ | od -c | head -3")
        assert "*   *   *" in said
        assert server.last.header("accept-encoding") == "identity"
        guest.check()


def test_a_websocket_hides_it_too(open_guest: Open) -> None:
    class Talks(EchoSocket):
        """Sends its handshake's header as the first message."""

        def serve(self, connection: Any) -> None:
            told = connection

            class Once:
                def __init__(self) -> None:
                    self.first = True

                def makefile(self, mode: str) -> Any:
                    return told.makefile(mode)

                def sendall(self, data: bytes) -> None:
                    told.sendall(data)
                    if self.first:
                        self.first = False
                        told.sendall(frame(1, (server.handshakes[-1].header("authorization") or "").encode()))

            super().serve(Once())  # type: ignore[arg-type]

    with Talks(HOST) as server:
        guest = open_guest(brokered(add_token, redact=True, websocket=True))
        script = rf"""
        exec 3<>/mnt/web/clone; read n <&3
        printf 'url http://api.test:{server.port}/\nheader Upgrade: websocket\nheader Sec-WebSocket-Version: 13\n' >&3
        echo 'header Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==' >&3
        echo 'header Sec-WebSocket-Extensions: permessage-deflate' >&3
        exec 4</mnt/web/$n/body; cat /mnt/web/$n/response; head -c 30 <&4 | od -c
        """
        said = guest.run(script)
        assert "101" in said
        assert "*   *   *   *" in said
        assert server.handshakes[0].header("authorization") == f"Bearer {SECRET}"
        assert server.handshakes[0].header("sec-websocket-extensions") is None
        guest.check()


class Pretends(Listener):
    """Says 101 to whatever asks."""

    def serve(self, connection: Any) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 101 OK\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nanything at all")
        connection.recv(65536)


@pytest.mark.parametrize(
    "lines",
    [
        "header Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\\nheader Sec-WebSocket-Version: 13",
        "header Sec-WebSocket-Key: x\\nheader Sec-WebSocket-Version: 13",
        "header X: y",
        "method POST\\nheader Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\\nheader Sec-WebSocket-Version: 13",
    ],
)
def test_an_upgrade_is_a_websocket_or_nothing(open_guest: Open, lines: str) -> None:
    with Pretends(HOST) as server:
        guest = open_guest(brokered(add_token, redact=True, websocket=True))
        said = guest.run(
            f"exec 3<>/mnt/web/clone; read n <&3\nprintf 'url http://api.test:{server.port}/\\n{lines}\\n' >&3\n"
            "echo 'header Upgrade: websocket' >&3; cat /mnt/web/$n/body; cat /mnt/web/$n/error"
        )
        assert "protocol: " in said
        assert "anything" not in said
        guest.check()


def test_a_bare_address_is_not_the_host(open_guest: Open) -> None:
    """The token is for a name. Its address without the name may be anybody who shares it."""
    with HttpServer({"/": bodies.echo}, address=HOST) as server:
        guest = open_guest(brokered(add_token))
        assert "authorization" in guest.run(f"curl -sS http://api.test:{server.port}/ | tr -d g")
        for host in (HOST, "127.0.0.2", "[::ffff:127.0.0.2]"):
            assert "curl: (" in guest.run(f"curl -sS -g http://{host}:{server.port}/")
        assert len(server.requests) == 1
        guest.sandbox.close()


def test_credentials_do_not_travel_in_the_clear(open_guest: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    def policy(conn: Conn) -> Any:
        if dns := conn.match_dns():
            return dns.accept()
        if api := conn.match_http(f"api.test:{conn.dst.port}"):
            return api.accept(add_token)
        if note := conn.match_http(f"note.test:{conn.dst.port}"):
            return note.accept(lambda request: request.headers.set("x-agent", "yes"))
        return None

    with HttpServer({"/": "ok"}) as server:

        async def dial(address: Address, port: int, timeout: float) -> stream_host.Stream:
            assert str(address) == "93.184.215.14"
            return await stream_host.dial(ip_address("127.0.0.1"), server.port, timeout)

        monkeypatch.setattr(pool_host, "dial", dial)
        hosts = {"api.test": "93.184.215.14", "note.test": "93.184.215.14"}
        guest = open_guest(Network.policy(policy, hosts=hosts))
        assert "only sent over https" in guest.run("curl -sS http://api.test/")
        assert guest.run("curl -sS http://note.test/") == "ok"
        assert [request.header("host") for request in server.requests] == ["note.test"]
        guest.check()


def test_a_header_that_servers_take_for_the_injected_one(open_guest: Open) -> None:
    def add(request: HttpRequest) -> None:
        request.headers.set("X-Api-Key", SECRET)

    with HttpServer({"/": "ok"}, address=HOST) as server:
        guest = open_guest(brokered(add))
        guest.run(f"curl -sS -H 'X_Api_Key: mine' -H 'x-api_key: mine' http://api.test:{server.port}/")
        assert [value for name, value in server.last.headers if "api" in name] == [SECRET]
        guest.check()


def test_each_address_has_its_own_verdict(open_guest: Open) -> None:
    """A name with two addresses, of which one is trusted with the token: the other does not get it when dialled."""

    def policy(conn: Conn) -> Any:
        if dns := conn.match_dns():
            return dns.accept()
        if api := conn.match_http(f"api.test:{conn.dst.port}"):
            return api.accept(add_token) if conn.dst.ip == "127.0.0.2" else api.accept()
        return None

    with HttpServer({"/": bodies.echo}, address="127.0.0.3") as server:
        guest = open_guest(Network.policy(policy, hosts={"api.test": ["127.0.0.2", "127.0.0.3"]}))
        assert "GET /" in guest.run(f"curl -sS http://api.test:{server.port}/")
        assert server.last.header("authorization") is None
        guest.check()


def test_bodies_are_read_by_async_middleware(open_guest: Open) -> None:
    """Its loop is not the network's: reading must work all the same, however slowly the bytes come."""
    sizes: list[int] = []

    async def look(request: HttpRequest) -> None:
        sizes.append(len(await request.body.read()))

        async def also(response: HttpResponse) -> None:
            sizes.append(len(await response.body.read()))
            response.headers.set("x-seen", "yes")

        request.on_response(also)

    with HttpServer({"/": bodies.slow(every=0.02, count=10), "/echo": bodies.echo}, address=HOST) as server:
        guest = open_guest(brokered(look))
        base = f"http://api.test:{server.port}"
        said = guest.run(f"(for i in 1 2 3; do sleep 0.1; head -c 70000 /dev/zero; done) | curl -sSi -T - {base}/")
        assert "x-seen: yes" in said
        assert said.endswith("x" * 10)
        assert sizes == [210_000, 10]
        assert server.last.body == bytes(210_000)


def test_a_function_that_maps_a_body_is_the_owners(open_guest: Open) -> None:
    """It runs off the network's loop, and what it raises is a no, with its reason in the record."""

    def change(request: HttpRequest) -> None:
        def upper(data: bytes) -> bytes:
            if b"bad" in data:
                raise LookupError("not this")
            return data.upper()

        request.body.map(upper)
        request.on_response(lambda response: response.body.map(bytes.lower))

    with HttpServer({"/": lambda request: Response(200, b"GOT " + request.body)}, address=HOST) as server:
        guest = open_guest(brokered(change))
        assert guest.run(f"curl -sS -d some http://api.test:{server.port}/") == "got some"
        assert server.last.body == b"SOME"
        assert "the policy failed" in guest.run(f"curl -sS -d bad http://api.test:{server.port}/")
        guest.sandbox.close()  # has every event told
        told = [event.data for event in guest.events if event.data.get("action") == "policy-error"]
        assert [event["error"] for event in told] == ["LookupError"]
        assert "not this" not in str(told), "the text of an exception may have a secret in it"


def test_many_decisions_at_once_wait_for_each_other(open_guest: Open) -> None:
    async def slow(conn: Conn) -> Any:
        await asyncio.sleep(0.02)
        return conn.accept()

    with HttpServer({"/": "ok"}, address=HOST) as server:
        guest = open_guest(Network.policy(slow))
        script = f"for i in {{1..60}}; do curl -sS http://{HOST}:{server.port}/ & done; wait"
        assert guest.run(script) == "ok" * 60


def test_records_are_lines_of_plain_text(open_guest: Open, tmp_path: Path) -> None:
    """Nothing a guest or a server says can add a line to the record, or move a cursor when it is shown."""
    path = tmp_path / "network.jsonl"
    evil = '\x1b[2J\x07\r\n{"action":"forged"}\u2028\x85'
    routes: dict[str, Any] = {"/": Response(200, b"x", {"X-Title": "plain"})}
    with HttpServer(routes, address=HOST) as server, Tripwire() as wire:

        def policy(conn: Conn) -> Any:
            if dns := conn.match_dns():
                return dns.accept()
            if api := conn.match_http(f"api.test:{conn.dst.port}"):
                return api.accept(lambda request: request.deny(evil))
            if conn.dst.port == wire.port:
                raise RuntimeError(evil)
            return None

        network = Network.policy(policy, hosts={"api.test": HOST}, audit=AuditLog(path))
        guest = open_guest(network)
        url = f"http://api.test:{server.port}/"
        shown = guest.run(f"curl -sS '{url}%0a%1b[31m'; curl -sS http://127.0.0.1:{wire.port}/")
        guest.run("dig $'\\e[31mx.test'; printf 'x\\ny A' > /net/dns; printf 'connect a\\nb!1' > /net/tcp/clone")
        assert "\x1b" not in shown
        assert "\n{" not in shown
        guest.sandbox.close()  # has every event written
        lines = path.read_bytes().splitlines()
        assert all(byte >= 32 or byte == 10 for line in lines for byte in line)
        assert all(isinstance(json.loads(line), dict) for line in lines)
        assert "forged" not in [json.loads(line)["action"] for line in lines]


def test_a_server_that_never_gets_to_the_point(open_guest: Open) -> None:
    """Interim answers without end cost their request its life, not the owner's memory."""

    def pieces() -> Iterator[bytes]:
        while True:
            yield b"HTTP/1.1 102 Processing\r\nX-Wait: please\r\n\r\n" * 500

    with HttpServer({"/": lambda request: Response(raw=pieces())}, address=HOST) as server:
        guest = open_guest(Network.allow(f"{HOST}:{server.port}", limits=NetworkLimits(header_bytes=8192)))
        said = guest.run(f"curl -sS -m 50 http://{HOST}:{server.port}/")
        assert "8192 bytes before the response" in said


def test_no_log_has_it(open_guest: Open, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with HttpServer({"/": raw("HTTP/1.1 200 {}\r\n{}: {}\r\n\r\n")}, address=HOST) as server:
        guest = open_guest(brokered(add_token, redact=True))
        guest.run(f"curl -sS http://api.test:{server.port}/")
        guest.check(caplog.text)
