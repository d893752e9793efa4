"""The proxy of the other tiers: a process in a network namespace of its own meets the world only through it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import dns.message
import dns.rcode
import pytest

from belljar.native.network_host import serve_redirected
from belljar.net.addresses import shown
from belljar.net.broker.authority_host import SandboxAuthority
from belljar.net.broker.gate_host import Gate
from belljar.net.broker.proxy_host import start_proxy
from belljar.net.network import Network, NetworkLimits
from belljar.net.policy import Conn
from tests.net.servers import Authority, EchoSocket, Http2Server, HttpServer, Request, Response, Tripwire, bodies
from tests.net.servers.websocket import frame

SECRET = "ghp_canary_0123456789"
AT = "127.0.0.7"
"""Where the named servers are."""
INSIDE = str(shown(ip_address(AT)))
"""Their address as programs in a namespace see it: loopback is theirs there."""


class Guest:
    """The process inside, and the proxy it is behind."""

    def __init__(self, network: Network, *ports: int | str) -> None:
        ours, theirs = socket.socketpair()
        program = Path(__file__).with_name("namespace_guest.py")
        self._process = subprocess.Popen(
            [sys.executable, str(program), str(theirs.fileno()), *map(str, ports)], pass_fds=[theirs.fileno()]
        )
        theirs.close()
        self._channel = ours
        self.events: list[dict[str, Any]] = []
        self.gate: Gate | None = None
        ours.settimeout(30)
        said, fds, _, _ = socket.recv_fds(ours, 4096, 16)
        if not said.startswith(b"ok "):
            self.close()
            pytest.skip(f"no network namespaces for tests on this machine: {said.decode()}")
        self.dns_port = int(said.split()[1])
        sockets = [socket.socket(fileno=fd) for fd in fds]
        self.gate = Gate(network, sandbox="ns", emit=self.events.append)
        self.authority = SandboxAuthority("ns")
        if ports == ("redirect",):
            serve_redirected(self.gate, sockets, self.authority)
        else:
            start_proxy(self.gate, tcp=sockets[1:], dns_datagrams=sockets[:1], authority=self.authority)
        self._lines = ours.makefile("rw")

    def do(self, **job: Any) -> Any:
        self._lines.write(json.dumps(job) + "\n")
        self._lines.flush()
        return json.loads(self._lines.readline())

    def look_up(self, name: str, kind: str = "A", **where: Any) -> dns.message.Message:
        question = dns.message.make_query(name, kind).to_wire().hex()
        status, reply = self.do(**{"do": "dns", "port": self.dns_port, **where}, send=question)
        assert status == "ok"
        return dns.message.from_wire(bytes.fromhex(reply))

    @property
    def ca(self) -> str:
        return self.authority.certificate.decode()

    def say(self, on: int, text: str) -> None:
        assert self.do(do="say", on=on, send=text)[0] == "ok"

    def hear(self, on: int, until: str) -> str:
        """What is said up to this text, or the end."""
        said = ""
        while until not in said:
            status, text = self.do(do="hear", on=on)
            if status != "ok" or not text:
                break
            said += text
        return said

    def close(self) -> None:
        if self.gate is not None:
            self._lines.close()
            self.gate.close()
        self._channel.close()
        self._process.kill()
        self._process.wait()


Start = Callable[..., Guest]


@pytest.fixture
def start() -> Iterator[Start]:
    guests: list[Guest] = []
    with ExitStack() as stack:

        def make(network: Network, *ports: int | str) -> Guest:
            guest = Guest(network, *ports)
            stack.callback(guest.close)
            guests.append(guest)
            return guest

        yield make
    assert not [event for guest in guests for event in guest.events if event["action"] == "proxy-error"]


def brokered(**options: Any) -> Network:
    def policy(conn: Conn) -> Any:
        if question := conn.match_dns("*.test"):
            return question.accept()
        if api := conn.match_http(f"api.test:{conn.dst.port}"):
            return api.accept(lambda request: request.headers.set("authorization", f"Bearer {SECRET}"), redact=True)
        if plain := conn.match_http(f"plain.test:{conn.dst.port}"):
            return plain.accept()
        if ws := conn.match_http(f"ws.test:{conn.dst.port}"):
            return ws.accept(lambda request: request.headers.set("x-agent", "yes"), websocket=True)
        return None

    hosts = {"api.test": AT, "plain.test": AT, "closed.test": AT, "ws.test": AT}
    return Network.policy(policy, hosts=hosts, **options)


def test_raw_connections_and_names(start: Start) -> None:
    with HttpServer({"/": b"hello"}, address=AT) as server, Tripwire(AT) as wire:
        guest = start(Network.allow(f"api.test:{server.port}", hosts={"api.test": AT}), server.port, wire.port)
        request = "GET / HTTP/1.0\r\n\r\n"
        # An address that no name led to is nobody.
        assert guest.do(do="raw", address=AT, port=server.port, send=request) == ["failed", "ConnectionResetError"]
        assert guest.look_up("evil.test").rcode() == dns.rcode.NXDOMAIN
        assert guest.look_up("evil.test", "TXT").rcode() == dns.rcode.REFUSED
        assert guest.look_up("api.test", "ANY").rcode() == dns.rcode.REFUSED
        answer = guest.look_up("api.test").answer
        assert [item.to_text() for entry in answer for item in entry] == [INSIDE]
        status, text = guest.do(do="raw", address=AT, port=server.port, send=request)
        assert (status, text[-5:]) == ("ok", "hello")
        assert guest.do(do="raw", address=AT, port=wire.port, send="x") == ["failed", "ConnectionResetError"]
        assert not wire.touched()


def test_credentials_are_added_to_flows_that_are_looked_into(start: Start, tmp_path: Path) -> None:
    upstream = Authority(tmp_path)
    context = upstream.context("api.test", "plain.test")
    with HttpServer({"/": b"ok", "/echo": bodies.echo}, address=AT, context=context) as server:
        guest = start(brokered(ca_bundle=str(upstream.path)), server.port)
        ours, theirs = guest.ca, upstream.path.read_text()
        assert "PRIVATE KEY" not in ours
        for name in ("api.test", "plain.test", "closed.test"):
            guest.look_up(name)
        place = {"do": "https", "address": AT, "port": server.port}
        status, answer = guest.do(**place, name="api.test", ca=ours, path="/echo", method="POST", body="x" * 100_000)
        assert (status, answer[0], answer[2]) == ("ok", 200, "belljar sandbox ns")
        assert server.requests[0].header("authorization") == f"Bearer {SECRET}"
        assert server.requests[0].body == b"x" * 100_000
        assert SECRET not in answer[1]
        # Without middleware the server's own certificate is seen: nobody looked.
        status, answer = guest.do(**place, name="plain.test", ca=theirs)
        assert (status, answer[:2], answer[2]) == ("ok", [200, "ok"], "Test Authority")
        assert server.requests[1].header("authorization") is None
        # A client that trusts only the real authority notices the other one.
        assert guest.do(**place, name="api.test", ca=theirs)[0] == "failed"
        # A name that is not granted, one that did not lead here, and another Host inside the TLS of an allowed one.
        assert guest.do(**place, name="closed.test", ca=ours + theirs)[0] == "failed"
        assert guest.do(**place, name="other.test", ca=ours + theirs)[0] == "failed"
        status, answer = guest.do(**place, name="api.test", ca=ours, host=f"plain.test:{server.port}")
        assert (status, answer[0]) == ("ok", 403)
        assert len(server.requests) == 2
        assert SECRET not in json.dumps(guest.events)


def test_plain_http_is_looked_into_and_nothing_else_passes(start: Start) -> None:
    with HttpServer({"/": b"ok"}, address=AT) as server:
        guest = start(brokered(), server.port)
        guest.look_up("api.test")

        def say(text: str) -> Any:
            return guest.do(do="raw", address=AT, port=server.port, send=text)

        host = f"Host: api.test:{server.port}\r\n"
        status, text = say(f"GET / HTTP/1.1\r\n{host}Connection: close\r\n\r\n")
        assert (status, text[:12], text[-2:]) == ("ok", "HTTP/1.1 200", "ok")
        assert server.requests[0].header("authorization") == f"Bearer {SECRET}"
        for refused in (
            f"GET / HTTP/1.1\r\nHost: evil.test:{server.port}\r\n\r\n",
            f"GET http://evil.test/ HTTP/1.1\r\n{host}\r\n",
            f"GET / HTTP/1.1\r\n{host}{host}\r\n",
            f"POST / HTTP/1.1\r\n{host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            f"GET / HTTP/1.1\r\n{host}Upgrade: websocket\r\n\r\n",
        ):
            status, text = say(refused)
            assert status == "failed" or " 200 " not in text.partition("\r\n")[0], refused
        assert say("SSH-2.0-OpenSSH_9.0\r\n")[0] == "failed"
        assert len(server.requests) == 1


def test_too_many_questions_are_no_missing_names(start: Start) -> None:
    guest = start(Network.allow("*.test", hosts={"a.test": AT}, limits=NetworkLimits(requests_per_second=1)))
    codes = {guest.look_up("a.test").rcode() for _ in range(30)}
    assert codes == {dns.rcode.NOERROR, dns.rcode.SERVFAIL}


# Under the kernel's own redirection: one listener for every address and port.


def test_the_kernel_redirects_and_the_true_destination_decides(start: Start) -> None:
    with (
        HttpServer({"/": b"hello"}, address=AT) as server,
        HttpServer({"/": b"six"}, address="::1") as six,
        Tripwire(AT) as wire,
    ):
        allowed = (f"api.test:{server.port}", f"[::1]:{six.port}")
        guest = start(Network.allow(*allowed, hosts={"api.test": AT}), "redirect")
        request = "GET / HTTP/1.0\r\n\r\n"
        assert guest.do(do="raw", address=INSIDE, port=server.port, send=request)[0] == "failed"
        # Whatever resolver a program asks, over UDP or TCP: ours answers.
        for resolver in ("8.8.8.8", "10.0.2.3"):
            assert guest.look_up("api.test", address=resolver, port=53).answer[0][0].to_text() == INSIDE
            assert guest.look_up("evil.test", address=resolver, port=53).rcode() == dns.rcode.NXDOMAIN
        asked = dns.message.make_query("api.test", "A").to_wire()
        framed = (len(asked).to_bytes(2, "big") + asked).decode("latin-1")
        on = guest.do(do="open", address="1.1.1.1", port=53)[1]
        guest.say(on, framed[:5])
        guest.say(on, framed[5:])
        reply = guest.hear(on, socket.inet_aton(INSIDE).decode("latin-1")).encode("latin-1")
        assert dns.message.from_wire(reply[2:]).answer[0][0].to_text() == INSIDE
        status, text = guest.do(do="raw", address=INSIDE, port=server.port, send=request)
        assert (status, text[-5:]) == ("ok", "hello")
        status, text = guest.do(do="raw", address=str(shown(ip_address("::1"))), port=six.port, send=request)
        assert (status, text[-3:]) == ("ok", "six")
        for address, port in (
            (AT, wire.port),
            (INSIDE, wire.port),
            ("8.8.8.8", 443),
            ("169.254.169.254", 80),
            ("2606:4700::1111", 443),
            ("10.0.2.15", server.port),
            ("::ffff:127.0.0.7", wire.port),
        ):
            assert guest.do(do="raw", address=address, port=port, send="x")[0] == "failed", address
        # Nothing but TCP and DNS has a way out.
        assert guest.do(do="datagram", address="8.8.8.8", port=443)[0] == "failed"
        assert guest.do(do="datagram", address=INSIDE, port=wire.port)[0] == "failed"
        assert not wire.touched()
        guest.close()  # has every event told
        asked_for = [(event["ip"], event["port"]) for event in guest.events if event["action"] == "connect"]
        assert {(AT, wire.port), ("8.8.8.8", 443), ("2606:4700::1111", 443), ("::1", six.port)} <= set(asked_for)
        closed = [event for event in guest.events if event["action"] == "closed"]
        assert [event["sent"] for event in closed] == [len(request)] * 2


def ask(name: str, port: int, path: str = "/", method: str = "GET", **more: Any) -> dict[str, Any]:
    special = [(":method", method), (":scheme", "https"), (":authority", f"{name}:{port}"), (":path", path)]
    return {"headers": special, **more}


def test_http2_on_both_sides(start: Start, tmp_path: Path) -> None:
    upstream = Authority(tmp_path)
    routes: dict[str, Any] = {"/echo": bodies.echo, "/big": b"y" * 700_000}
    context = upstream.context("api.test", protocols=("h2",))
    with Http2Server(routes, address=AT, context=context) as server:
        guest = start(brokered(ca_bundle=str(upstream.path)), "redirect")
        guest.look_up("api.test", address="8.8.8.8", port=53)
        place = {"do": "http2", "address": INSIDE, "port": server.port, "name": "api.test", "ca": guest.ca}
        requests = [
            ask("api.test", server.port, "/big"),
            ask("api.test", server.port, "/echo", "POST", body="z" * 600_000),
            *(ask("api.test", server.port, f"/echo?{n}") for n in range(20)),
        ]
        status, (spoken, answers) = guest.do(**place, requests=requests)
        assert (status, spoken) == ("ok", "h2")
        assert answers[0] == [200, "y" * 700_000]
        assert answers[1][1].endswith("z" * 600_000)
        assert [code for code, _ in answers] == [200] * 22
        assert all(request.header("authorization") == f"Bearer {SECRET}" for request in server.requests)
        assert not any(SECRET in text for _, text in answers)
        count = len(server.requests)
        port = server.port
        good = dict(ask("api.test", port)["headers"])

        def changed(**special: str) -> dict[str, Any]:
            return {"headers": [(name, special.get(name[1:], value)) for name, value in good.items()]}

        hostile = [
            ask("plain.test", port),
            ask("evil.test", port),
            ask("api.test", port + 1),
            changed(scheme="http"),
            changed(method="CONNECT"),
            changed(path="http://evil.test/"),
            changed(path="*"),
            changed(authority=f"api.test:{port}@evil.test"),
            changed(path="/ HTTP/1.1\r\nX-Smuggled: 1"),
            {"headers": [*good.items(), (":protocol", "websocket")]},
            {"headers": [*good.items(), (":path", "/other")]},
            {"headers": [*good.items(), ("host", f"plain.test:{port}")]},
            {"headers": [*good.items(), ("transfer-encoding", "chunked")]},
            {"headers": [*good.items(), ("connection", "upgrade"), ("upgrade", "websocket")]},
            {"headers": [*good.items(), ("X-Upper", "case")]},
            {"headers": [*good.items(), ("x", "a\r\nb: c")]},
            {"headers": [*good.items(), ("content-length", "5")], "body": "too long for that"},
        ]
        for request in hostile:  # one at a time: some end the connection
            status, said = guest.do(**place, requests=[request])
            assert status == "failed" or said[1][0][0] in (0, 400, 403, 502), request
        assert len(server.requests) == count
        # The connection, and the proxy, are none the worse for it.
        assert guest.do(**place, requests=[ask("api.test", port, "/echo")])[1][1][0][0] == 200


def test_http2_clients_that_only_keep_us_busy(start: Start, tmp_path: Path) -> None:
    """Requests opened and taken back without end, and headers without end: the connection ends, the proxy does not."""
    upstream = Authority(tmp_path)
    with HttpServer({"/": bodies.late(30)}, address=AT, context=upstream.context("api.test")) as server:
        guest = start(brokered(ca_bundle=str(upstream.path)), "redirect")
        guest.look_up("api.test", address="8.8.8.8", port=53)
        place = {"address": INSIDE, "port": server.port, "name": "api.test", "ca": guest.ca}
        assert guest.do(do="resets", **place, request=ask("api.test", server.port), count=2000)[0] == "failed"
        wide = ask("api.test", server.port)
        wide["headers"] += [(f"x-{n}", "y" * 1000) for n in range(200)]
        status, said = guest.do(do="http2", **place, requests=[wide])
        assert status == "failed" or said[1][0][0] == 0
        assert guest.look_up("api.test", address="8.8.8.8", port=53).answer


def test_answers_stream_to_the_client(start: Start, tmp_path: Path) -> None:
    """The first event of a stream arrives while the server still thinks about the second, redaction or not."""
    go_on = threading.Event()

    def events(request: Request) -> Response:
        def pieces() -> Iterator[bytes]:
            yield b"data: one\n\n"
            go_on.wait(30)
            yield b"data: two\n\n"

        return Response(200, pieces(), {"Content-Type": "text/event-stream"})

    upstream = Authority(tmp_path)
    with HttpServer({"/": events}, address=AT, context=upstream.context("api.test")) as server:
        guest = start(brokered(ca_bundle=str(upstream.path)), "redirect")
        guest.look_up("api.test", address="8.8.8.8", port=53)
        on = guest.do(do="open", address=INSIDE, port=server.port, name="api.test", ca=guest.ca)[1]
        guest.say(on, f"GET / HTTP/1.1\r\nHost: api.test:{server.port}\r\n\r\n")
        said = guest.hear(on, "one\n\n")
        assert "one\n\n" in said
        assert "two" not in said
        go_on.set()
        assert "two\n\n" in guest.hear(on, "two\n\n")


def test_a_websocket_where_it_is_granted(start: Start) -> None:
    with EchoSocket(AT) as server:
        guest = start(brokered(), "redirect")
        guest.look_up("ws.test", address="8.8.8.8", port=53)
        handshake = "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        key = "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n"
        on = guest.do(do="open", address=INSIDE, port=server.port)[1]
        guest.say(on, f"GET / HTTP/1.1\r\nHost: ws.test:{server.port}\r\n{handshake}{key}\r\n")
        assert guest.hear(on, "\r\n\r\n").startswith("HTTP/1.1 101")
        guest.say(on, frame(1, b"hello", b"abcd").decode("latin-1"))
        assert guest.hear(on, "hello").endswith("hello")
        assert server.handshakes[0].header("x-agent") == "yes"
        guest.look_up("api.test", address="8.8.8.8", port=53)
        on = guest.do(do="open", address=INSIDE, port=server.port)[1]
        guest.say(on, f"GET / HTTP/1.1\r\nHost: api.test:{server.port}\r\n{handshake}{key}\r\n")
        assert guest.hear(on, "\r\n\r\n").startswith("HTTP/1.1 403")
        assert len(server.handshakes) == 1


SHAPES = [
    "POST / HTTP/1.1\r\n{host}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello",
    "POST / HTTP/1.1\r\n{host}Content-Length: +5\r\n\r\nhello",
    "POST / HTTP/1.1\r\n{host}Content-Length: 5, 6\r\n\r\nhello",
    "POST / HTTP/1.1\r\n{host}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\n{host}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\n{host}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    "POST / HTTP/1.1\r\n{host}Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
    "GET / HTTP/1.1\r\nHost : api.test\r\n\r\n",
    "GET / HTTP/1.1\r\n\r\n",
    "GET http://evil.test/ HTTP/1.1\r\n{host}\r\n",
    "CONNECT evil.test:443 HTTP/1.1\r\n{host}\r\n",
    "CONNECT api.test:22 HTTP/1.1\r\n{host}\r\n",
    "TRACE / HTTP/1.1\r\n{host}\r\n",
    "OPTIONS * HTTP/1.1\r\n{host}\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "GET / HTTP/1.1\r\n{host}Connection: Upgrade\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n",
    "GET /\r\n",
    "SSH-2.0-OpenSSH_9.0\r\n",
    "\x16\x03\x01\x00\x05hello",
    "\x00\x01\x02",
]


def test_shapes_that_are_read_in_two_ways(start: Start) -> None:
    """Over the redirected listener, as a program of the other tiers would send them: none reaches the server."""
    with HttpServer({"/": b"ok"}, address=AT) as server:
        guest = start(brokered(limits=NetworkLimits(idle_seconds=2)), "redirect")
        guest.look_up("api.test", address="8.8.8.8", port=53)
        host = f"Host: api.test:{server.port}\r\n"
        for shape in SHAPES:
            status, text = guest.do(do="raw", address=INSIDE, port=server.port, send=shape.format(host=host))
            assert status == "failed" or " 200 " not in text.partition("\r\n")[0], shape
        assert not server.requests
        # What is answered has time.
        guest = start(brokered(), "redirect")
        guest.look_up("api.test", address="8.8.8.8", port=53)
        # A folded line is sent on as the one line that it is.
        folded = f"GET /folded HTTP/1.1\r\n{host}X: a\r\n b\r\nConnection: close\r\n\r\n"
        guest.do(do="raw", address=INSIDE, port=server.port, send=folded)
        assert [request.header("x") for request in server.requests] == ["a b"]
        server.requests.clear()
        # Two requests in one write are two requests, each with its own decision.
        two = f"GET / HTTP/1.1\r\n{host}\r\nGET /x HTTP/1.1\r\nHost: plain.test:{server.port}\r\n"
        status, text = guest.do(do="raw", address=INSIDE, port=server.port, send=f"{two}Connection: close\r\n\r\n")
        assert text.count("HTTP/1.1 200") == 1
        assert text.count("HTTP/1.1 403") == 1
        assert [request.path for request in server.requests] == ["/"]
        # And a connection stays open for the next one.
        on = guest.do(do="open", address=INSIDE, port=server.port)[1]
        for _ in range(3):
            guest.say(on, f"POST / HTTP/1.1\r\n{host}Content-Length: 2\r\n\r\nab")
            assert guest.hear(on, "\r\n\r\nok").startswith("HTTP/1.1 200")
            guest.say(on, f"GET / HTTP/1.1\r\n{host}\r\n")
            assert guest.hear(on, "\r\n\r\nok").startswith("HTTP/1.1 200")


def test_leaves_are_few_and_do_not_grow_old() -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    authority = SandboxAuthority("box", lambda: now)
    first = authority.context("a.test")
    assert authority.context("a.test") is first
    now += timedelta(days=5)
    assert authority.context("a.test") is first
    now += timedelta(days=2)
    again = authority.context("a.test")
    assert again is not first
    assert authority.context("a.test") is again
    for number in range(300):
        authority.context(f"h{number}.test")
    assert len(authority._contexts) <= 256
    assert authority.context("a.test") is not again
    assert b"PRIVATE" not in authority.certificate
