"""The servers that other tests stand on, each met by a client that is not ours."""

from __future__ import annotations

import base64
import http.client
import io
import json
import os
import socket
import ssl
import tarfile
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from urllib.parse import urljoin

import dns.message
import dns.query
import dns.rcode
import dulwich.porcelain as git
import pytest
from dulwich.client import HTTPUnauthorized
from h2.connection import H2Connection
from h2.events import DataReceived, ResponseReceived, StreamEnded

from tests.net.servers import (
    Authority,
    DnsServer,
    EchoSocket,
    GitServer,
    Http2Server,
    HttpServer,
    PackageIndex,
    Registry,
    Response,
    Route,
    Tripwire,
    UdpEcho,
    bodies,
)
from tests.net.servers.dns import chain, compression_loop, lying_counts, rebinding
from tests.net.servers.websocket import TEXT, frame


def get(url: str, headers: dict[str, str] | None = None, context: ssl.SSLContext | None = None) -> bytes:
    request = urllib.request.Request(url, headers=headers or {})  # noqa: S310 - our own server
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context))
    with opener.open(request, timeout=30) as response:
        return bytes(response.read())


def test_http_keeps_connections_and_what_came_over_them() -> None:
    with HttpServer({"/a": "text", "/echo": bodies.echo, "/below/": b"any"}) as server:
        client = http.client.HTTPConnection(server.address, server.port, timeout=30)
        client.request("GET", "/a")
        assert client.getresponse().read() == b"text"
        client.request("POST", "/echo?x=1", b"body", {"X-Mine": "1"})
        answer = client.getresponse().read().decode()
        assert answer.startswith("POST /echo?x=1\n")
        assert answer.endswith("\nx-mine: 1\n\nbody")
        client.request("GET", "/below/x")
        assert client.getresponse().read() == b"any"
        client.request("GET", "/missing")
        assert client.getresponse().status == 404
        client.close()
        assert server.connections == 1
        assert server.requests[1].query == {"x": "1"}
        assert server.requests[1].body == b"body"


def test_bodies_that_misbehave() -> None:
    routes: dict[str, Route | Response] = {
        "/loop": bodies.redirect_loop,
        "/endless": bodies.endless,
        "/short": bodies.cut_short(),
        "/part": bodies.ranged(b"0123456789"),
        "/gzip": bodies.gzipped(b"plain"),
    }
    with HttpServer(routes) as server:
        assert get(server.url + "/part", {"Range": "bytes=2-4"}) == b"234"
        assert get(server.url + "/gzip")[:2] == b"\x1f\x8b"
        with pytest.raises(http.client.IncompleteRead):
            get(server.url + "/short")
        with pytest.raises(urllib.error.HTTPError):
            get(server.url + "/loop")
        client = http.client.HTTPConnection(server.address, server.port, timeout=30)
        client.request("GET", "/endless")
        assert len(client.getresponse().read(1 << 20)) == 1 << 20
        client.close()
    assert len(bodies.gzip_bomb(1 << 24).body) < 1 << 16  # type: ignore[arg-type]


def test_tls_good_and_bad(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    client = authority.client_context()
    with HttpServer({"/": "sealed"}, context=authority.context("localhost", "127.0.0.1")) as server:
        assert get(server.url, context=client) == b"sealed"
    bad = {
        "expired": authority.context("127.0.0.1", expired=True),
        "wrong name": authority.context("other.example"),
        "self-signed": authority.context("127.0.0.1", self_signed=True),
        "unknown authority": Authority(tmp_path, "Another").context("127.0.0.1"),
    }
    for context in bad.values():
        with HttpServer({"/": "sealed"}, context=context) as server, pytest.raises(urllib.error.URLError):
            get(server.url, context=client)


def test_http2(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    big = bytes(200_000)
    with Http2Server({"/big": big}, context=authority.context("localhost", protocols=("h2",))) as server:
        context = authority.client_context()
        context.set_alpn_protocols(["h2"])
        plain = socket.create_connection((server.address, server.port), timeout=30)
        with context.wrap_socket(plain, server_hostname="localhost") as connection:
            assert connection.selected_alpn_protocol() == "h2"
            machine = H2Connection()
            machine.initiate_connection()
            asked = [(":method", "GET"), (":path", "/big"), (":scheme", "https"), (":authority", "localhost")]
            machine.send_headers(1, asked, end_stream=True)
            received, status, done = b"", b"", False
            while not done:
                connection.sendall(machine.data_to_send())
                for event in machine.receive_data(connection.recv(1 << 16)):
                    if isinstance(event, ResponseReceived):
                        status = bytes(dict(event.headers or [])[b":status"])
                    elif isinstance(event, DataReceived):
                        received += event.data or b""
                        machine.acknowledge_received_data(event.flow_controlled_length or 0, 1)
                    done |= isinstance(event, StreamEnded)
        assert (status, received) == (b"200", big)


def test_websocket() -> None:
    with EchoSocket() as server, socket.create_connection((server.address, server.port), timeout=30) as client:
        key = base64.b64encode(os.urandom(16)).decode()
        client.sendall(
            f"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
            "Sec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        stream = client.makefile("rb")
        assert b"101" in stream.readline()
        while stream.readline() != b"\r\n":
            pass
        client.sendall(frame(TEXT, b"hello" * 100, b"abcd"))
        expected = frame(TEXT, b"hello" * 100)
        assert stream.read(len(expected)) == expected
        stream.close()


def ask(server: DnsServer, name: str, kind: str = "A", *, tcp: bool = False) -> dns.message.Message:
    question = dns.message.make_query(name, kind)
    way = dns.query.tcp if tcp else dns.query.udp
    return way(question, server.address, timeout=30, port=server.port)


def test_dns() -> None:
    zone = {"a.example": ["192.0.2.1", "2001:db8::1", 'TXT "words"'], "b.example": ["CNAME a.example."]}
    with DnsServer(zone) as server:
        assert [str(rr) for rr in ask(server, "b.example").answer] == [
            "b.example. 60 IN CNAME a.example.",
            "a.example. 60 IN A 192.0.2.1",
        ]
        assert str(ask(server, "a.example", "AAAA", tcp=True).answer[0]).endswith("2001:db8::1")
        assert ask(server, "no.example").rcode() == dns.rcode.NXDOMAIN
        assert server.questions == [("b.example", "A"), ("a.example", "AAAA"), ("no.example", "A")]
    with DnsServer(rebinding("192.0.2.1", "127.0.0.1")) as server:
        assert [str(ask(server, "x.example").answer[0][0]) for _ in range(3)] == ["192.0.2.1", "127.0.0.1", "127.0.0.1"]
    with DnsServer(chain(12, "10.0.0.1")) as server:
        assert len(ask(server, "x.example").answer) == 13
    for raw in (compression_loop(), lying_counts()):
        with DnsServer(lambda name, kind, raw=raw: raw) as server, pytest.raises(dns.exception.DNSException):  # type: ignore[misc]
            ask(server, "x")
    many = [f"x.example. 60 A 192.0.2.{n % 250}" for n in range(250)]
    with DnsServer(lambda name, kind: many) as server:
        assert ask(server, "x.example").flags & dns.flags.TC
        assert len(ask(server, "x.example", tcp=True).answer) == 1


def test_git(tmp_path: Path) -> None:
    with GitServer(user="me", password="pw") as server:
        server.commit({"a.txt": b"one\n", "dir/b.txt": b"two\n"}, "first")
        url = f"{server.url}/repo.git"
        with pytest.raises(HTTPUnauthorized):
            git.clone(url, tmp_path / "no", errstream=io.BytesIO())
        with git.clone(url, tmp_path / "work", errstream=io.BytesIO(), username="me", password="pw") as work:
            assert (tmp_path / "work/dir/b.txt").read_bytes() == b"two\n"
            (tmp_path / "work/a.txt").write_bytes(b"three\n")
            git.add(work, [str(tmp_path / "work/a.txt")])
            git.commit(work, message=b"second", author=b"A <a@example.com>", committer=b"A <a@example.com>")
            git.push(work, url, "main", outstream=io.BytesIO(), errstream=io.BytesIO(), username="me", password="pw")
        assert server.file("a.txt") == b"three\n"


def test_package_index() -> None:
    with PackageIndex() as server:
        name = server.release("My.Package", "1.0", requires=("other>=2",), requires_python=">=3.8")
        kind = "application/vnd.pypi.simple.v1+json"
        page = json.loads(get(server.index + "my-package/", {"Accept": kind}))
        (entry,) = page["files"]
        assert entry["filename"] == name == "my_package-1.0-py3-none-any.whl"
        data = get(urljoin(server.index + "my-package/", entry["url"]))
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            assert "my_package-1.0.dist-info/METADATA" in archive.namelist()
        metadata = get(f"{server.url}/files/{name}.metadata")
        assert b"Requires-Dist: other>=2" in metadata
        page_text = get(server.index + "My.Package").decode()
        assert f"/files/{name}#sha256=" in page_text
        assert 'data-requires-python="&gt;=3.8"' in page_text


def test_registry() -> None:
    with Registry() as server:
        server.publish("@scope/left", "1.0.0", dependencies={"right": "^1"})
        server.publish("@scope/left", "1.1.0")
        page = json.loads(get(f"{server.url}/@scope%2fleft"))
        assert page["dist-tags"] == {"latest": "1.1.0"}
        manifest = json.loads(get(f"{server.url}/@scope/left/1.0.0"))
        assert manifest["dependencies"] == {"right": "^1"}
        with tarfile.open(fileobj=io.BytesIO(get(manifest["dist"]["tarball"]))) as archive:
            assert sorted(archive.getnames()) == ["package/index.js", "package/package.json"]


def test_a_port_that_is_in_use_for_datagrams_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel gives a free port for connections; a client may have the same one for its datagrams."""
    create = socket.create_server
    with UdpEcho() as client:
        for make in (Tripwire, lambda: DnsServer({})):
            given = iter([client.port])
            monkeypatch.setattr(
                socket, "create_server", lambda place, given=given, **how: create((place[0], next(given, 0)), **how)
            )
            with make() as server:
                assert server.port != client.port
                assert list(given) == [], "it was not tried"


def test_tripwire_sees_one_touch() -> None:
    with Tripwire() as wire:
        assert not wire.touched()
        socket.create_connection((wire.address, wire.port)).close()
        assert wire.touched()
        assert not wire.touched()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            sender.sendto(b"x", (wire.address, wire.port))
        assert wire.touched()
