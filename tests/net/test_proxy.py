"""The proxy of the other tiers: a process in a network namespace of its own meets the world only through it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import dns.message
import dns.rcode
import pytest

from belljar.net.network import Network
from belljar.net.policy import Conn
from belljar.net.proxy_host import RunningProxy, start_proxy
from tests.net.servers import Authority, HttpServer, Tripwire, bodies

SECRET = "ghp_canary_0123456789"
AT = "127.0.0.7"
"""Where the named servers are: the same address inside and outside, in two different networks."""


class Guest:
    """The process inside, and the proxy it is behind."""

    def __init__(self, network: Network, *ports: int) -> None:
        ours, theirs = socket.socketpair()
        program = Path(__file__).with_name("namespace_guest.py")
        self._process = subprocess.Popen(
            [sys.executable, str(program), str(theirs.fileno()), *map(str, ports)], pass_fds=[theirs.fileno()]
        )
        theirs.close()
        self._channel = ours
        self.events: list[dict[str, Any]] = []
        self.proxy: RunningProxy | None = None
        ours.settimeout(30)
        said, fds, _, _ = socket.recv_fds(ours, 4096, 16)
        if not said.startswith(b"ok "):
            self.close()
            pytest.skip(f"no network namespaces for tests on this machine: {said.decode()}")
        self.dns_port = int(said.split()[1])
        datagrams, *listeners = [socket.socket(fileno=fd) for fd in fds]
        self.proxy = start_proxy(network, tcp=listeners, dns_datagrams=datagrams, sandbox="ns", emit=self.events.append)
        self._lines = ours.makefile("rw")

    def do(self, **job: Any) -> Any:
        self._lines.write(json.dumps(job) + "\n")
        self._lines.flush()
        return json.loads(self._lines.readline())

    def look_up(self, name: str, kind: str = "A") -> dns.message.Message:
        status, reply = self.do(do="dns", port=self.dns_port, send=dns.message.make_query(name, kind).to_wire().hex())
        assert status == "ok"
        return dns.message.from_wire(bytes.fromhex(reply))

    def close(self) -> None:
        if self.proxy is not None:
            self._lines.close()
            self.proxy.close()
        self._channel.close()
        self._process.kill()
        self._process.wait()


Start = Callable[..., Guest]


@pytest.fixture
def start() -> Iterator[Start]:
    with ExitStack() as stack:

        def make(network: Network, *ports: int) -> Guest:
            guest = Guest(network, *ports)
            stack.callback(guest.close)
            return guest

        yield make


def brokered(**options: Any) -> Network:
    def policy(conn: Conn) -> Any:
        if question := conn.match_dns("*.test"):
            return question.accept()
        if api := conn.match_http("api.test"):
            return api.accept(lambda request: request.headers.set("authorization", f"Bearer {SECRET}"), redact=True)
        if plain := conn.match_http("plain.test"):
            return plain.accept()
        return None

    return Network.policy(policy, hosts={"api.test": AT, "plain.test": AT, "closed.test": AT}, **options)


def test_raw_connections_and_names(start: Start) -> None:
    with HttpServer({"/": b"hello"}, address=AT) as server, Tripwire(AT) as wire:
        guest = start(Network.allow(f"api.test:{server.port}", hosts={"api.test": AT}), server.port, wire.port)
        request = "GET / HTTP/1.0\r\n\r\n"
        # An address that no name led to is nobody.
        assert guest.do(do="raw", address=AT, port=server.port, send=request) == ["failed", "ConnectionResetError"]
        assert guest.look_up("evil.test").rcode() == dns.rcode.REFUSED
        answer = guest.look_up("api.test").answer
        assert [item.to_text() for entry in answer for item in entry] == [AT]
        status, text = guest.do(do="raw", address=AT, port=server.port, send=request)
        assert (status, text[-5:]) == ("ok", "hello")
        assert guest.do(do="raw", address=AT, port=wire.port, send="x") == ["failed", "ConnectionResetError"]
        assert not wire.touched()


def test_credentials_are_added_to_flows_that_are_looked_into(start: Start, tmp_path: Path) -> None:
    upstream = Authority(tmp_path)
    context = upstream.context("api.test", "plain.test")
    with HttpServer({"/": b"ok", "/echo": bodies.echo}, address=AT, context=context) as server:
        guest = start(brokered(ca_bundle=str(upstream.path)), server.port)
        assert guest.proxy is not None
        ours, theirs = guest.proxy.certificate.decode(), upstream.path.read_text()
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
