"""What a compromised worker or a hostile guest can do to its owner and its neighbours by the network it was granted.

Each class of docs/THREAT_MODEL.md ("The network: classes, rules, tests") has its cases here.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import socket
import struct
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, suppress
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import dns.message
import dns.rcode
import dns.rdata
import dns.rdataclass
import dns.rdatatype
import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.errors import ErrorCodes
from h2.events import ConnectionTerminated

from belljar import AsyncSandbox, AuditLog, Network, NetworkLimits, Sandbox
from belljar.abi.errors import PolicyError
from belljar.net.addresses import Address, Endpoint
from belljar.net.broker import pool_host, proxy_host, stream_host
from belljar.net.broker.callbacks_host import Callbacks
from belljar.net.broker.descriptors_host import Descriptors, Share
from belljar.net.broker.front_host import Front
from belljar.net.broker.front_http2_host import serve_http2
from belljar.net.broker.gate_host import Gate
from belljar.net.broker.http_host import Web
from belljar.net.broker.proxy_host import start_proxy
from belljar.net.broker.record_host import QUEUE_MAX
from belljar.net.hello import parse_hello
from belljar.net.policy import Conn
from belljar.net.wire import (
    CHUNK,
    HEADERS_MAX,
    WINDOW,
    BrokerFrame,
    Data,
    Dial,
    End,
    Failed,
    GuestFrame,
    Opened,
    Resolve,
    Resolved,
)
from tests.net.lying_worker import LyingWorker, fetch
from tests.net.servers import Authority, DnsServer, HttpServer, Listener, Response, bodies

PUBLIC = "93.184.215.14"
SECRET = "tok-9d21f0aa-canary"


def run(work: Coroutine[Any, Any, Any]) -> Any:
    async def main() -> Any:
        async with asyncio.timeout(60):
            return await work

    return asyncio.run(main())


def until(true: Callable[[], bool]) -> None:
    """Wait for what another thread does next."""
    deadline = time.monotonic() + 30
    while not true():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.01)


class Silent(Listener):
    """Takes connections and says nothing, until the test is over."""

    def __init__(self) -> None:
        super().__init__()
        self.over = threading.Event()

    def serve(self, connection: socket.socket) -> None:
        self.over.wait(60)

    def __exit__(self, *details: Any) -> None:
        self.over.set()
        super().__exit__(*details)


# One guest stalls nobody else.


def test_a_sandbox_whose_network_is_busy_delays_no_other() -> None:
    """Whatever keeps a loop busy (here: for as long as it takes the neighbour to finish) is its own sandbox's."""
    finished, stuck = threading.Event(), threading.Event()

    async def busy() -> None:
        stuck.set()
        finished.wait(60)

    with HttpServer({"/": b"hello"}) as server:
        network = Network.allow(server.authority)
        with LyingWorker(network) as hog, LyingWorker(network) as neighbour:
            assert isinstance(hog.answer(fetch(1, f"{server.url}/")), Opened)
            future = hog.gate.thread.submit(busy())
            assert stuck.wait(20)
            assert isinstance(neighbour.answer(fetch(1, f"{server.url}/")), Opened)
            assert not future.done()
            finished.set()
            future.result(20)


def test_one_byte_pieces_are_joined() -> None:
    """What 100,000 frames carried leaves in a few writes, and takes no more memory than its bytes."""
    seen: list[int] = []

    class Counting(Listener):
        def serve(self, connection: socket.socket) -> None:
            connection.settimeout(20)
            with suppress(OSError):
                while data := connection.recv(1 << 20):
                    seen.append(len(data))
            done.set()

    done = threading.Event()
    with Counting() as server, LyingWorker(Network.allow(server.authority)) as worker:
        count = 100_000
        worker.send(Dial(1, "tcp", "127.0.0.1", server.port, 0.0), *[Data(1, b"x")] * count, End(1))
        assert done.wait(30)
        assert sum(seen) == count
        until(lambda: worker.gate.memory.used == 0)


class Script:
    """A client of the front that sends prepared bytes, then waits."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self.read_count = 0
        self.heard = bytearray()

    async def read(self, *, timeout: float | None = None) -> bytes:
        self.read_count += 1
        return next(self._pieces, b"")

    async def write(self, data: bytes, timeout: float | None = None) -> None:
        self.heard += data

    def write_eof(self) -> None: ...
    def close(self) -> None: ...


def http2(kind: int, payload: bytes, *, stream: int = 0, flags: int = 0) -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + struct.pack("!I", stream) + payload


def asked(peer: H2Connection) -> bytes:
    """A request whose body is still to come, on stream 1."""
    fields = [(":method", "POST"), (":scheme", "http"), (":authority", "127.0.0.1"), (":path", "/")]
    peer.send_headers(1, fields)
    return peer.data_to_send()


FLOODS = {
    "ping": http2(6, bytes(8)),
    "settings": http2(4, b""),
    "priority": http2(2, struct.pack("!IB", 0, 1), stream=5),
    "window update": http2(8, struct.pack("!I", 1)),
    "empty data": http2(0, b"", stream=1),
    "window update of one stream": http2(8, struct.pack("!I", 1), stream=1),
}


@pytest.mark.parametrize("flood", FLOODS)
def test_frames_that_carry_nothing_are_capped(flood: str) -> None:
    """A client that sends a million of them is sent away after a few thousand."""

    async def work() -> Script:
        gate = Gate(Network.policy(lambda conn: threading.Event().wait(5)))
        peer = H2Connection(H2Configuration(client_side=True))
        peer.initiate_connection()

        def pieces() -> Iterator[bytes]:
            yield peer.data_to_send() + asked(peer)
            for _ in range(2000):
                yield FLOODS[flood] * 500

        client = Script(pieces())
        await serve_http2(Front(Web(gate), Endpoint(ip_address("127.0.0.1"), 80), "http", ()), client)
        return client

    client = run(work())
    assert client.read_count < 400, "it is not even heard to the end"
    listener = H2Connection(H2Configuration(client_side=True))
    listener.initiate_connection()
    asked(listener)
    ends = [event for event in listener.receive_data(bytes(client.heard)) if isinstance(event, ConnectionTerminated)]
    assert [event.error_code for event in ends] == [ErrorCodes.ENHANCE_YOUR_CALM]


class Proxied:
    """The proxy of a network namespace, met on loopback: whoever connects to a listener meant that listener."""

    def __init__(self, network: Network) -> None:
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.dns_tcp = socket.create_server(("127.0.0.1", 0), backlog=512)
        self.dns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.dns.bind(("127.0.0.1", 0))
        self.places = [listener.getsockname() for listener in (self.tcp, self.dns_tcp, self.dns)]
        self.events: list[dict[str, Any]] = []
        self.gate = Gate(network, emit=self.events.append)
        start_proxy(self.gate, tcp=[self.tcp], dns_datagrams=[self.dns], dns_listeners=[self.dns_tcp])

    def look_up(self, name: str) -> dns.message.Message:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
            client.settimeout(20)
            client.sendto(dns.message.make_query(name, "A").to_wire(), self.places[2])
            return dns.message.from_wire(client.recv(4096))


@pytest.fixture
def proxied() -> Iterator[Callable[[Network], Proxied]]:
    with ExitStack() as stack:

        def make(network: Network) -> Proxied:
            made = Proxied(network)
            stack.callback(made.gate.close)
            return made

        yield make


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def test_dns_over_tcp_is_counted(proxied: Callable[[Network], Proxied]) -> None:
    made = proxied(Network.allow("a.test", hosts={"a.test": PUBLIC}))
    before = descriptors()
    with ExitStack() as stack:
        clients = [stack.enter_context(socket.create_connection(made.places[1])) for _ in range(300)]
        assert made.look_up("a.test").rcode() == dns.rcode.NOERROR
        until(lambda: descriptors() - before - len(clients) <= 40)  # the owner holds no more than it serves at once


def test_an_accept_loop_survives_the_end_of_descriptors(proxied: Callable[[Network], Proxied]) -> None:
    made = proxied(Network.allow("a.test", hosts={"a.test": PUBLIC}))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    client = socket.socket()
    client.settimeout(20)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))  # nothing more can be opened
        client.connect(made.places[1])
        until(lambda: any(event["action"] == "proxy-error" for event in made.events))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    question = dns.message.make_query("a.test", "A").to_wire()
    with client:
        client.sendall(len(question).to_bytes(2, "big") + question)
        assert client.recv(2), "the connection that waited is served once there is room"


def test_nobody_takes_all_descriptors_of_the_process() -> None:
    pool = Descriptors(90)
    hogs = [Share(pool) for _ in range(8)]
    while any([hog.take() for hog in hogs]):
        pass
    newcomer = Share(pool)
    assert newcomer.take(), "however many sandboxes take what they can, another has its part"
    assert pool.free > 0
    for hog in hogs:
        while hog.held:
            hog.give()
    newcomer.give()
    assert pool.free == 90


def test_a_connection_beyond_the_process_budget_is_refused() -> None:
    with Silent() as server, LyingWorker(Network.allow(server.authority)) as worker:
        worker.gate.descriptors = Share(Descriptors(6))
        worker.send(*[Dial(number, "tcp", "127.0.0.1", server.port, 0.0) for number in range(1, 11)])
        answers = [worker.next() for _ in range(10)]
        assert sum(isinstance(answer, Opened) for answer in answers) == 3
        assert {answer.text for answer in answers if isinstance(answer, Failed)} == {
            "the sandbox's owner has too many connections open"
        }


def test_datagrams_to_a_slow_uplink_are_dropped() -> None:
    async def work() -> None:
        full, far = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        full.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                full.send(bytes(1000))
        loop = asyncio.get_running_loop()
        transport: Any
        transport, datagrams = await loop.create_datagram_endpoint(stream_host.Datagrams, sock=full)
        transport._extra["peername"] = "uplink"  # as that of a socket that is connected by address
        for _ in range(1000):
            datagrams.write(bytes(60_000))
        assert transport.get_write_buffer_size() < 200_000
        transport.abort()
        far.close()

    run(work())


def test_datagrams_that_nobody_reads_are_dropped() -> None:
    async def work() -> None:
        datagrams = stream_host.Datagrams()
        for _ in range(10_000):
            datagrams.datagram_received(bytes(60_000), None)
        assert sum(map(len, datagrams._arrived)) <= 256 << 10

    run(work())


# Bounds on what the owner holds.


def test_stalled_uploads_hold_no_more_than_the_sandboxs_share() -> None:
    undecided = threading.Event()

    def policy(conn: Conn) -> Any:
        undecided.wait(60)
        return conn.accept()

    limits = NetworkLimits(buffer_bytes=4 * WINDOW)
    with HttpServer({"/": b"hello"}) as server, LyingWorker(Network.policy(policy, limits=limits)) as worker:
        for number in range(1, 31):
            worker.send(fetch(number, f"{server.url}/", body=True))
            worker.send(*[Data(number, bytes(CHUNK))] * (WINDOW // CHUNK))
        failures = [worker.next() for _ in range(26)]
        assert {failure.kind for failure in failures if isinstance(failure, Failed)} == {"too-large"}
        assert worker.gate.memory.used <= limits.buffer_bytes
        undecided.set()
        for number in range(1, 5):
            worker.send(End(number))
        opened = 0
        while opened < 4:
            opened += isinstance(worker.next(), Opened)
        until(lambda: worker.gate.memory.used == 0)
        worker.send(fetch(99, f"{server.url}/"))
        while not (isinstance(frame := worker.next(), Opened) and frame.id == 99):
            assert frame is not None, "the others go on"


def test_bodies_that_middleware_reads_are_counted() -> None:
    held = threading.Event()

    async def read(request: Any) -> None:
        await request.body.read()
        await asyncio.get_running_loop().run_in_executor(None, held.wait, 30)

    def policy(conn: Conn) -> Any:
        return http.accept(read) if (http := conn.match_http()) else None

    with HttpServer({"/": b"ok"}) as server:
        with LyingWorker(Network.policy(policy, limits=NetworkLimits(buffer_bytes=4 * WINDOW))) as worker:
            size = WINDOW
            length = [(b"content-length", b"%d" % size)]
            for number in range(1, 9):
                worker.send(fetch(number, f"{server.url}/", body=True, headers=length))
                worker.send(*[Data(number, bytes(CHUNK))] * (size // CHUNK), End(number))
            while not isinstance(frame := worker.next(), Failed):
                pass
            assert frame.kind == "too-large", frame.text
            assert worker.gate.memory.used <= 4 * WINDOW
            held.set()
            ended = {frame.id}
            while len(ended) < 8:
                if isinstance(frame := worker.next(), Failed | Opened):
                    ended.add(frame.id)
        until(lambda: worker.gate.memory.used == 0)  # what was read is given back when the request is through


def test_more_header_fields_than_any_request_has_end_the_line() -> None:
    with HttpServer({"/": b"ok"}) as server, LyingWorker(Network.allow(server.authority)) as worker:
        worker.send(fetch(1, f"{server.url}/", headers=[(b"a", b"")] * (HEADERS_MAX + 1)))
        assert worker.next() is None


def test_half_a_hello_is_looked_at_once(proxied: Callable[[Network], Proxied], monkeypatch: pytest.MonkeyPatch) -> None:
    """A client that never finishes its hello costs no processor time while it waits."""
    looks: list[int] = []
    parse = parse_hello

    def counted(data: bytes) -> Any:
        looks.append(len(data))
        return parse(data)

    monkeypatch.setattr(proxy_host, "parse_hello", counted)
    made = proxied(Network.policy(lambda conn: (http := conn.match_http()) and http.accept()))
    with socket.create_connection(made.places[0]) as client:
        client.sendall(b"\x16\x03\x01\x02\x00\x01\x00\x01")
        until(lambda: bool(looks))
        for byte in bytes(100):  # within the record that was announced: nothing more can be known
            client.sendall(bytes([byte]))
        time.sleep(0.3)
        assert len(looks) <= 2, looks
        client.shutdown(socket.SHUT_WR)
        client.settimeout(20)
        with suppress(ConnectionResetError):
            assert client.recv(1) == b""


def test_dns_is_traffic_too() -> None:
    def policy(conn: Conn) -> Any:
        return question.accept() if (question := conn.match_dns()) else None

    with DnsServer(lambda name, kind: [f"{name} 60 A {PUBLIC}"]) as names:
        limits = NetworkLimits(bytes_out=1000)
        with LyingWorker(Network.policy(policy, resolvers=[names.authority], limits=limits)) as worker:
            answers = [worker.answer(Resolve(number, f"{'x' * 60}.n{number}.test", "A")) for number in range(1, 30)]
            assert isinstance(answers[0], Resolved)
            assert isinstance(answers[-1], Failed)
            assert answers[-1].kind == "too-large"
            assert worker.gate.traffic.bytes_out >= 1000
            assert len(names.questions) < 20


def test_the_rate_of_questions_is_taken_before_the_policy_is_asked() -> None:
    asked: list[str] = []

    def policy(conn: Conn) -> None:
        asked.append(repr(conn))

    with LyingWorker(Network.policy(policy, limits=NetworkLimits(dns_per_second=1))) as worker:
        worker.send(*[Resolve(number, f"n{number}.test", "A") for number in range(1, 51)])
        assert all(isinstance(worker.next(), Failed) for _ in range(50))
        assert len(asked) <= 6


@pytest.mark.parametrize("style", ["wrong arity", "wrong arity, async", "raises", "coroutine given up", "never ends"])
def test_a_callbacks_slot_is_given_back(style: str) -> None:
    release = threading.Event()

    async def coroutine(argument: object) -> None:
        await asyncio.sleep(30)

    async def no_arguments() -> None: ...

    functions: dict[str, Callable[..., Any]] = {
        "wrong arity": lambda: None,
        "wrong arity, async": no_arguments,
        "raises": lambda argument: 1 // 0,
        "coroutine given up": lambda argument: coroutine(argument),
        "never ends": lambda argument: release.wait(30),
    }

    async def work() -> str:
        callbacks = Callbacks(None)
        for _ in range(12):
            with suppress(TypeError, ZeroDivisionError, TimeoutError):
                await callbacks.call(functions[style], None, 0.01)
        release.set()
        results = await asyncio.gather(*(callbacks.call(lambda argument: "ok", None, 20) for _ in range(32)))
        return str(set(results))

    assert run(work()) == "{'ok'}"


def test_a_connection_with_surplus_bytes_is_not_used_again() -> None:
    """What follows a response belongs to nobody: the next request would take it for its answer."""
    forged = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"
    honest = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
    with (
        HttpServer({"/a": Response(raw=honest + forged), "/b": b"honest"}) as server,
        LyingWorker(Network.allow(server.authority)) as worker,
    ):
        for number in range(1, 9):
            path, wanted = ("a", b"ok") if number % 2 else ("b", b"honest")
            worker.send(fetch(number, f"{server.url}/{path}"))
            frames: list[BrokerFrame | None] = []
            while not isinstance(frames[-1] if frames else None, End | Failed):
                frames.append(worker.next())
            assert b"".join(frame.data for frame in frames if isinstance(frame, Data)) == wanted


# Promises.


def to_public(monkeypatch: pytest.MonkeyPatch, server: HttpServer) -> None:
    """A public address that leads to the test's server: only that it is public matters."""

    async def dial(address: Address, port: int, timeout: float) -> stream_host.Stream:
        return await stream_host.dial(ip_address(server.address), server.port, timeout)

    monkeypatch.setattr(pool_host, "dial", dial)


def brokered(middleware: Any, **options: Any) -> Network:
    def policy(conn: Conn) -> Any:
        if dns := conn.match_dns():
            return dns.accept()
        return http.accept(middleware, **options) if (http := conn.match_http("api.test")) else None

    return Network.policy(policy, hosts={"api.test": PUBLIC})


def changes_url(request: Any) -> None:
    request.url = f"{request.url}?key={SECRET}"


def changes_body(request: Any) -> None:
    request.body.replace(SECRET.encode())


def maps_body(request: Any) -> None:
    request.body.map(lambda piece: piece + SECRET.encode())


def sets_header(request: Any) -> None:
    request.headers.set("authorization", SECRET)


@pytest.mark.parametrize(
    ("middleware", "redact"),
    [(changes_url, False), (changes_body, False), (maps_body, False), (sets_header, False), (lambda r: None, True),
     (lambda r: None, [SECRET]), (changes_url, True)],
)  # fmt: skip
def test_what_the_owner_adds_never_goes_out_in_the_clear(
    middleware: Any, redact: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with HttpServer({"/": bodies.echo}) as server:
        to_public(monkeypatch, server)
        with LyingWorker(brokered(middleware, redact=redact)) as worker:
            worker.send(fetch(1, "http://api.test/", body=True), Data(1, b"mine"), End(1))
            while not isinstance(frame := worker.next(), Failed | Opened | None):
                pass
            assert isinstance(frame, Failed)
            assert "https" in frame.text
        assert server.requests == []


@pytest.mark.parametrize(
    ("host", "port", "matches"),
    [("api.test", 80, True), ("api.test", 443, True), ("api.test", 8080, False), ("*.test", 8443, False),
     ("api.test:8443", 8443, True), ("93.184.215.0/24", 81, False), ("93.184.215.0/24", 443, True)],
)  # fmt: skip
def test_a_name_without_a_port_means_the_webs_two(host: str, port: int, matches: bool) -> None:
    conn = Conn("tcp", Endpoint(ip_address("10.0.2.15"), 1), Endpoint(ip_address(PUBLIC), port), hostnames=["api.test"])
    assert (conn.match_http(host) is not None) is matches


def seen_and_sent(path: str) -> tuple[list[str], list[str], str]:
    """The paths that middleware saw and the server got, and the failure."""
    seen: list[str] = []

    def policy(conn: Conn) -> Any:
        return http.accept(lambda request: seen.append(request.path)) if (http := conn.match_http()) else None

    with HttpServer({}) as server, LyingWorker(Network.policy(policy)) as worker:
        frame = worker.answer(fetch(1, f"{server.url}{path}"))
        return seen, [request.target for request in server.requests], getattr(frame, "text", "")


@pytest.mark.parametrize(
    ("path", "meant"),
    [("/public/../admin", "/admin"), ("/public/%2e%2E/admin", "/admin"), ("/%61dmin", "/admin"), ("/./admin", "/admin"),
     ("/a/b/..", "/a/"), ("/../../admin", "/admin"), ("/@scope%2fname", "/@scope%2Fname"), ("/a%20b", "/a%20b")],
)  # fmt: skip
def test_middleware_sees_the_path_that_is_sent(path: str, meant: str) -> None:
    assert seen_and_sent(path) == ([meant], [meant], "")


@pytest.mark.parametrize(
    "path",
    ["//admin", "/a//b", "/public%2f..%2fadmin", "/public%2F%2e%2e/admin", "/a\\..\\admin", "/a%5c..%5cadmin",
     "/..;/admin", "/a/.;x=1/b", "/a%00b", "/a%0d%0ab", "/%252e%252e/admin", "/a%2", "/a%zz"],
)  # fmt: skip
def test_a_path_that_servers_read_differently_is_refused(path: str) -> None:
    assert seen_and_sent(path) == ([], [], "the path can be read in two ways")


@pytest.mark.parametrize("redact", ["token-in-a-str", b"bytes", [b"bytes"], [1], [""], ["abc"], 5])
def test_redact_that_would_hide_nothing_is_an_error(redact: Any) -> None:
    conn = Conn("tcp", Endpoint(ip_address("10.0.2.15"), 1), Endpoint(ip_address(PUBLIC), 443))
    http = conn.match_http()
    assert http is not None
    with pytest.raises(PolicyError, match="redact"):
        http.accept(redact=redact)


def test_a_certificate_without_a_san_is_refused(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    context = authority.context("api.test", san=False)
    with HttpServer({"/": b"ok"}, context=context) as server:
        network = Network.allow(
            f"api.test:{server.port}", hosts={"api.test": "127.0.0.1"}, ca_bundle=str(authority.path)
        )
        with LyingWorker(network) as worker:
            frame = worker.answer(fetch(1, f"https://api.test:{server.port}/"))
            assert isinstance(frame, Failed)
            assert frame.kind == "tls"


# Names.

INSIDE = {
    "a.test": [PUBLIC],
    "inside.test": ["10.1.2.3"],
    "alias.test": ["CNAME inside.test."],
    "svc.test": ["SRV 0 0 443 inside.test."],
    "out.test": ["SRV 0 0 443 a.test."],
    "https.test": ["HTTPS 1 . ipv4hint=10.1.2.3"],
    "open.test": [f"HTTPS 1 . ipv4hint={PUBLIC}"],
    "ns.test": ["NS inside.test."],
    "mx.test": ["MX 10 inside.test."],
    "3.2.1.10.in-addr.arpa": ["PTR db.corp."],
    "14.215.184.93.in-addr.arpa": ["PTR a.test."],
}


@pytest.fixture(scope="module")
def names() -> Iterator[DnsServer]:
    with DnsServer(INSIDE) as server:
        yield server


def named(names: DnsServer, *types: str) -> Network:
    def policy(conn: Conn) -> Any:
        if question := conn.match_dns():
            return question.accept(types=types) if types else question.accept()
        return conn.accept()

    return Network.policy(policy, resolvers=[names.authority])


@pytest.mark.parametrize("kind", ["MX", "TXT", "SRV", "HTTPS", "PTR", "NS", "CNAME", "SOA", "CAA", "SVCB"])
def test_only_addresses_are_looked_up_unless_the_policy_names_more(names: DnsServer, kind: str) -> None:
    name = f"only-{kind.lower()}.test"  # that no other test asks for, whose questions may still be on their way
    with LyingWorker(named(names)) as worker:
        frame = worker.answer(Resolve(1, name, kind))
        assert isinstance(frame, Failed)
        assert frame.kind == "denied"
    assert name not in {asked for asked, _ in names.questions}


@pytest.mark.parametrize(
    ("name", "kind", "shown"),
    [("inside.test", "A", False), ("alias.test", "A", False), ("alias.test", "CNAME", False),
     ("svc.test", "SRV", False), ("https.test", "HTTPS", False), ("ns.test", "NS", False), ("mx.test", "MX", False),
     ("3.2.1.10.in-addr.arpa", "PTR", False), ("out.test", "SRV", True), ("open.test", "HTTPS", True),
     ("14.215.184.93.in-addr.arpa", "PTR", True), ("a.test", "A", True)],
)  # fmt: skip
def test_no_record_maps_the_inside(names: DnsServer, name: str, kind: str, shown: bool) -> None:
    """What leads inside looks exactly as what does not exist."""
    with LyingWorker(named(names, "A", "AAAA", kind)) as worker:
        frame = worker.answer(Resolve(1, name, kind))
        if shown:
            assert isinstance(frame, Resolved)
            assert frame.records
            return
        missing = worker.answer(Resolve(2, f"no-{name}", kind))
        assert isinstance(frame, Failed)
        assert isinstance(missing, Failed)
        assert (frame.kind, frame.text) == (missing.kind, missing.text.replace(f"no-{name}", name))
        assert [event["name"] for event in worker.recorded("dns-filtered")] == [name], "the owner knows"


@pytest.mark.parametrize("kind", ["A", "AAAA", "SRV", "HTTPS"])
def test_no_message_spoils_the_parser_of_all_sandboxes(proxied: Callable[[Network], Proxied], kind: str) -> None:
    """dnspython keeps what a record of class ANY makes of a type, for the whole process, unless it knew it before."""
    made = proxied(Network.allow("a.test", hosts={"a.test": PUBLIC}))
    question = dns.message.make_query("a.test", kind, rdclass="ANY")
    answer = dns.message.make_response(question)
    answer.flags &= 0x7FFF
    wire = bytearray(answer.to_wire())
    wire[6:8] = b"\0\1"  # and a record of that class follows
    wire += b"\xc0\x0c" + struct.pack("!HHIH", dns.rdatatype.from_text(kind), 255, 1, 4) + b"abcd"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.sendto(bytes(wire), made.places[2])
    assert made.look_up("a.test").answer[0][0].to_text() == PUBLIC
    known = dns.rdata.get_rdata_class(dns.rdataclass.IN, dns.rdatatype.from_text(kind))  # type: ignore[no-untyped-call]
    assert known.__name__ == kind


def test_the_owners_own_public_address_is_not_public(names: DnsServer) -> None:
    judged: list[bool] = []

    def policy(conn: Conn) -> Any:
        if question := conn.match_dns():
            return question.accept()
        judged.append(conn.dst.is_public_internet())
        return None

    network = Network.policy(policy, resolvers=[names.authority])
    with LyingWorker(network, own=lambda address: str(address) == PUBLIC) as worker:
        frame = worker.answer(Resolve(1, "a.test", "A"))
        assert isinstance(frame, Failed)
        assert frame.text == "no such name: a.test"
        assert isinstance(worker.answer(Dial(2, "tcp", PUBLIC, 80, 0.0)), Failed)
        assert judged == [False]
    with LyingWorker(Network.allow("a.test", resolvers=[names.authority]), own=lambda address: True) as worker:
        assert isinstance(worker.answer(fetch(1, "http://a.test/")), Failed)


def test_this_machines_addresses_are_known() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert stream_host.is_own(ip_address(server.getsockname()[0]))
    assert not stream_host.is_own(ip_address("192.0.2.1"))


# The record.


def test_a_slow_audit_delays_its_own_sandbox_only() -> None:
    release = threading.Event()
    with HttpServer({"/": b"ok"}) as server:
        slow = Network.allow(server.authority, audit=lambda event: release.wait(60))
        with LyingWorker(slow) as hog, LyingWorker(Network.allow(server.authority)) as neighbour:
            hog.send(*[fetch(number, f"{server.url}/") for number in range(1, 100)])
            assert isinstance(neighbour.answer(fetch(1, f"{server.url}/")), Opened)
            release.set()


def test_the_records_queue_is_bounded() -> None:
    release = threading.Event()
    told: list[dict[str, Any]] = []

    def audit(event: dict[str, Any]) -> None:
        release.wait(60)
        told.append(event)

    gate = Gate(Network.allow(audit=audit))
    for _ in range(3 * QUEUE_MAX):
        gate.tell({"action": "x"})
    assert len(gate.record._queue) <= QUEUE_MAX
    assert gate.record.failed
    release.set()
    assert gate.record.flush(20)
    lost = [event["count"] for event in told if event["action"] == "events-lost"]
    assert sum(lost) + len(told) - len(lost) == 3 * QUEUE_MAX, "what is missing is counted"


def test_every_attempt_has_one_outcome(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    upgrade = [(b"upgrade", b"h2c"), (b"connection", b"upgrade")]
    with (
        HttpServer({"/": b"ok"}) as server,
        HttpServer({"/": b"ok"}, context=authority.context("other.test")) as bad,
        LyingWorker(Network.allow(server.authority, bad.authority)) as worker,
    ):
        attempts: list[tuple[GuestFrame, str]] = [
            (fetch(1, f"{server.url}/"), "ok"),
            (Resolve(2, "a b\n", "A"), "denied"),
            (Resolve(3, "denied.test", "A"), "denied"),
            (Resolve(4, "denied.test", "NONSENSE"), "denied"),
            (fetch(5, f"http://user:{SECRET}@x.test/"), "protocol"),
            (fetch(6, f"{server.url}/", headers=upgrade), "denied"),
            (fetch(7, f"https://{bad.authority}/"), "tls"),
            (Dial(8, "sctp", "127.0.0.1", 9, 0.0), "protocol"),
            (Dial(9, "tcp", "127.0.0.1", 9, 0.0), "denied"),
            (Dial(10, "tcp", "0x7f.1", 80, 0.0), "denied"),
        ]
        for message, result in attempts:
            frame = worker.answer(message)
            while result == "ok" and not isinstance(frame, End):
                frame = worker.next()
            assert isinstance(frame, End | Failed), message
        outcomes = worker.recorded("outcome")
        assert [event["result"] for event in outcomes] == [result for _, result in attempts]
        assert SECRET not in json.dumps(worker.events), "what a guest writes into a URL is not repeated"


def test_a_dropped_connection_has_an_outcome() -> None:
    with Silent() as server, LyingWorker(Network.allow(server.authority)) as worker:
        assert isinstance(worker.answer(Dial(1, "tcp", "127.0.0.1", server.port, 0.0)), Opened)
        worker.socket.close()
        until(lambda: bool(worker.recorded("outcome")))
        assert [event["result"] for event in worker.recorded("outcome")] == ["dropped"]


def test_a_record_that_cannot_be_written_is_noticed_and_may_deny() -> None:
    with HttpServer({"/": b"ok"}) as server:
        full = AuditLog("/dev/full")
        for required, kind in ((False, Opened), (True, Failed)):
            network = Network.allow(server.authority, audit=full, audit_required=required)
            with LyingWorker(network) as worker:
                assert isinstance(worker.answer(fetch(1, f"{server.url}/")), kind)
                assert worker.gate.record.failed
        full.close()
        assert len(server.requests) == 1


def test_a_torn_line_does_not_take_the_next_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = AuditLog(tmp_path / "log")
    write = os.write

    def short(fd: int, data: Any) -> int:
        if len(data) > 5:
            return write(fd, bytes(data[:5]))
        raise OSError(28, "No space left on device")

    log({"n": 1})
    monkeypatch.setattr(os, "write", short)
    with pytest.raises(OSError, match="space"):
        log({"n": 2, "text": "x" * 100})
    monkeypatch.setattr(os, "write", write)
    log({"n": 3})
    log.close()
    lines = (tmp_path / "log").read_text().splitlines()
    assert [json.loads(lines[0]), json.loads(lines[-1])] == [{"n": 1}, {"n": 3}]
    assert len(lines) == 3


def test_the_log_is_rotated(tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "log", max_bytes=100, keep=2)
    for number in range(50):
        log({"number": number})
    log.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log", "log.1", "log.2"]
    assert all(path.stat().st_size <= 100 for path in tmp_path.iterdir())
    assert json.loads((tmp_path / "log").read_text().splitlines()[-1]) == {"number": 49}


def bad_url(request: Any) -> None:
    request.url = f"https://{SECRET}\n.example/"


def leaves_the_origin(request: Any) -> None:
    request.url = f"https://elsewhere.test/?{SECRET}"


def raises(request: Any) -> None:
    raise RuntimeError(f"could not log in with {SECRET}")


def bad_header(request: Any) -> None:
    request.headers.set("x-key", f"{SECRET}\r\n")


@pytest.mark.parametrize("middleware", [bad_url, leaves_the_origin, raises, bad_header])
def test_no_error_of_the_owners_code_tells_a_secret(
    middleware: Any, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    with AuditLogged(tmp_path / "log") as log:
        network = brokered(middleware)
        with LyingWorker(Network.policy(network.decide, hosts={"api.test": PUBLIC}, audit=log)) as worker:  # type: ignore[arg-type]
            frame = worker.answer(fetch(1, "https://api.test/"))
            assert isinstance(frame, Failed)
            assert (frame.kind, frame.text) == ("denied", "the policy failed")
            assert worker.recorded("policy-error")[0]["where"]
            assert SECRET not in json.dumps(worker.events) + caplog.text + (tmp_path / "log").read_text()


class AuditLogged(AuditLog):
    """A log that is closed after a test."""

    def __enter__(self) -> AuditLogged:
        return self

    def __exit__(self, *details: Any) -> None:
        self.close()


# A denial says what it is.


def only_reading(request: Any) -> None:
    if request.method != "GET":
        request.deny("read only")


def denying(server: HttpServer) -> Network:
    def policy(conn: Conn) -> Any:
        if conn.hostname == "closed.test" or (conn.match_dns("secret.test")):
            return conn.deny("ask the owner first")
        if question := conn.match_dns("*.test"):
            return question.accept()
        return http.accept(only_reading) if (http := conn.match_http(f"*.test:{server.port}")) else None

    return Network.policy(policy, hosts={"api.test": "127.0.0.1", "closed.test": "127.0.0.1"})


@pytest.fixture(scope="module")
def denied() -> Iterator[tuple[Sandbox, int]]:
    with HttpServer({"/": b"ok"}) as server, Sandbox(network=denying(server)) as sandbox:
        yield sandbox, server.port


@pytest.mark.parametrize(
    ("url", "options", "reason"),
    [("http://api.test:{}/", "-d x", "read only"), ("http://closed.test:{}/", "", "ask the owner first"),
     ("http://secret.test:{}/", "", "ask the owner first"),
     ("http://other.example:{}/", "", "other.example is not a name")],
)  # fmt: skip
def test_curl_tells_a_denial_from_a_missing_name(
    denied: tuple[Sandbox, int], url: str, options: str, reason: str
) -> None:
    sandbox, port = denied
    result = sandbox.exec(f"curl -sS {options} {url.format(port)}")
    assert result.exit_code == 7
    assert result.stderr.startswith("curl: (7) ")
    assert f"denied by policy: {reason}" in result.stderr
    assert "resolve" not in result.stderr


@pytest.mark.parametrize(
    ("url", "data", "reason"),
    [("http://api.test:{}/", "b'x'", "read only"), ("http://closed.test:{}/", "None", "ask the owner first"),
     ("http://secret.test:{}/", "None", "ask the owner first")],
)  # fmt: skip
def test_python_tells_a_denial_from_a_missing_name(
    denied: tuple[Sandbox, int], url: str, data: str, reason: str
) -> None:
    sandbox, port = denied
    script = f"""
import errno, urllib.request, urllib.error
try:
    urllib.request.urlopen({url.format(port)!r}, data={data}, timeout=20)
except urllib.error.URLError as error:
    error = error.reason
    print(isinstance(error, PermissionError), error.errno == errno.EACCES, error)
except OSError as error:
    print(isinstance(error, PermissionError), error.errno == errno.EACCES, error)
"""
    result = sandbox.exec(["python3", "-c", script])
    assert result.stdout.startswith("True True"), result.stdout + result.stderr
    assert reason in result.stdout


@pytest.mark.parametrize(
    ("url", "options", "reason"),
    [("http://api.test:{}/", "{method: 'POST', body: 'x'}", "read only"),
     ("http://closed.test:{}/", "{}", "ask the owner first"), ("http://secret.test:{}/", "{}", "ask the owner first")],
)  # fmt: skip
def test_node_tells_a_denial_from_a_missing_name(
    denied: tuple[Sandbox, int], url: str, options: str, reason: str
) -> None:
    sandbox, port = denied
    script = f"fetch('{url.format(port)}', {options}).catch((e) => console.log(e.cause.code, e.cause.message))"
    result = sandbox.exec(["node", "-e", script])
    assert result.stdout.startswith("EACCES"), result.stdout + result.stderr
    assert reason in result.stdout


def test_closing_on_an_event_loop_does_not_wait_for_a_slow_audit() -> None:
    release = threading.Event()

    async def main() -> None:
        with HttpServer({"/": b"ok"}) as server:
            network = Network.allow(server.authority, audit=lambda event: release.wait(30))
            async with AsyncSandbox(network=network) as sandbox:
                command = asyncio.ensure_future(sandbox.exec(f"curl -s {server.url}/"))
                door = sandbox._link.offers.network
                assert door is not None
                while door._gate is None or not door._gate.record._running:
                    await asyncio.sleep(0.01)
                closing = time.monotonic()
                door.close()
                assert time.monotonic() - closing < 20, "the loop stood still"
                release.set()
                await asyncio.wait([command], timeout=30)

    run(main())
