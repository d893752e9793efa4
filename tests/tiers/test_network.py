"""The network: none, names, policies, middleware. Servers are the test's own, on loopback."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest

from belljar import Event, Network, Sandbox
from tests.net.servers import HttpServer, Tripwire, UdpEcho, bodies
from tests.tiers.conftest import Make

NAME = "api.tiers.test"
GET = "curl -sS -m 20"


@pytest.fixture
def server() -> Iterator[HttpServer]:
    routes: dict[str, Any] = {
        "/": b"hello",
        "/echo": bodies.echo,
        "/big": b"x" * 3_000_000,
        "/moved": bodies.redirect("/"),
    }
    with HttpServer(routes) as server:
        yield server


def allowing(server: HttpServer, *more: str) -> Network:
    return Network.allow(f"{NAME}:{server.port}", *more, hosts={NAME: "127.0.0.1"})


def url(server: HttpServer, path: str = "/", name: str = NAME) -> str:
    return f"http://{name}:{server.port}{path}"


def deciding(server: HttpServer, accept: Any) -> Network:
    """A policy that looks the name up, and asks `accept` about web requests."""

    def policy(conn: Any) -> Any:
        if dns := conn.match_dns(NAME):
            return dns.accept()
        if http := conn.match_http(f"{NAME}:{server.port}"):
            return accept(http)
        return None

    return Network.policy(policy, hosts={NAME: "127.0.0.1"})


def test_there_is_none(sb: Sandbox, server: HttpServer) -> None:
    result = sb.exec(f"{GET} {url(server)} || {GET} http://{server.authority}/")
    assert (result.stdout, result.exit_code != 0) == ("", True)
    assert server.requests == []


@pytest.mark.parametrize("network", [None, Network.deny()], ids=["left out", "denied"])
def test_no_name_is_known(make: Make, network: Network | None) -> None:
    assert make(network=network).exec(f"{GET} http://example.com/").exit_code in (6, 7)


def test_raw_connections_are_denied(sb: Sandbox) -> None:
    with Tripwire() as tripwire:
        result = sb.exec(f"exec 3<>/dev/tcp/{tripwire.authority.replace(':', '/')} && echo connected")
        assert "connected" not in result.stdout
        assert not tripwire.touched()


@pytest.mark.feature("network")
def test_an_allowed_name(make: Make, server: HttpServer) -> None:
    sb = make(network=allowing(server))
    assert sb.exec(f"{GET} {url(server)}").stdout == "hello"
    assert server.requests[0].header("host") == f"{NAME}:{server.port}"


@pytest.mark.feature("network")
def test_other_names_are_denied(make: Make, server: HttpServer) -> None:
    sb = make(network=allowing(server))
    for other in ("other.tiers.test", "example.com", "localhost"):
        assert sb.exec(f"{GET} {url(server, name=other)}").exit_code != 0, other
    assert server.requests == []


@pytest.mark.feature("network")
def test_other_ports_are_denied(make: Make, server: HttpServer) -> None:
    with Tripwire() as tripwire:
        sb = make(network=allowing(server))
        assert sb.exec(f"{GET} http://{NAME}:{tripwire.port}/").exit_code != 0
        assert not tripwire.touched()


@pytest.mark.feature("network")
def test_a_wildcard(make: Make, server: HttpServer) -> None:
    hosts = {NAME: "127.0.0.1", "tiers.test": "127.0.0.1"}
    sb = make(network=Network.allow(f"*.tiers.test:{server.port}", hosts=hosts))
    assert sb.exec(f"{GET} {url(server)}").stdout == "hello"
    assert sb.exec(f"{GET} {url(server, name='tiers.test')}").exit_code != 0


@pytest.mark.feature("network")
def test_posts_and_large_answers(make: Make, server: HttpServer) -> None:
    sb = make(network=allowing(server))
    sb.exec(f"head -c 500000 /dev/zero | {GET} -X POST --data-binary @- {url(server, '/echo')} > /dev/null").check()
    assert len(server.requests[0].body) == 500_000
    assert sb.exec(f"{GET} {url(server, '/big')} | wc -c").stdout.strip() == "3000000"


@pytest.mark.feature("network")
def test_redirects(make: Make, server: HttpServer) -> None:
    assert make(network=allowing(server)).exec(f"{GET} -L {url(server, '/moved')}").stdout == "hello"


@pytest.mark.feature("network")
def test_python_is_under_the_same_policy(make: Make, server: HttpServer) -> None:
    sb = make(network=allowing(server))
    code = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=120).read().decode())"
    assert sb.exec(["python3", "-c", code, url(server)]).stdout == "hello\n"
    assert sb.exec(["python3", "-c", code, "http://other.tiers.test/"]).exit_code == 1


@pytest.mark.feature("network")
def test_a_raw_connection_to_an_allowed_port(make: Make, server: HttpServer) -> None:
    sb = make(network=allowing(server))
    script = f"exec 3<>/dev/tcp/{NAME}/{server.port}; printf 'GET / HTTP/1.0\\r\\n\\r\\n' >&3; cat <&3"
    assert sb.exec(script, timeout=120).stdout.endswith("hello")


@pytest.mark.feature("network")
def test_datagrams_to_an_accepted_place(make: Make) -> None:
    with UdpEcho() as echo, UdpEcho() as other:

        def policy(conn: Any) -> Any:
            found = conn.match_dns(NAME) or conn.match_udp(f"{NAME}:{echo.port}")
            return found.accept() if found else None

        sb = make(network=Network.policy(policy, hosts={NAME: "127.0.0.1"}))
        read = "timeout 60 dd bs=100 count=1 <&3 2>/dev/null"
        script = f"exec 3<>/dev/udp/{NAME}/{echo.port}; printf one >&3; {read}; printf three >&3; {read}"
        assert sb.exec(script, timeout=150).stdout == "ONETHREE"
        sb.exec(f"printf x > /dev/udp/{NAME}/{other.port}", timeout=60)
        stats = sb.stats()
        assert (stats["network_bytes_in"], stats["network_bytes_out"], stats["network_connections"]) == (8, 8, 1)
        assert other.received == []


@pytest.mark.feature("network")
def test_a_policy_decides(make: Make, server: HttpServer) -> None:
    asked: list[str] = []

    def accept(http: Any) -> Any:
        asked.append("http")
        return http.accept()

    sb = make(network=deciding(server, accept))
    assert sb.exec(f"{GET} {url(server)}").stdout == "hello"
    assert asked
    assert sb.exec(f"{GET} {url(server, name='other.tiers.test')}").exit_code != 0


@pytest.mark.feature("network")
def test_a_policy_that_raises_has_said_no(make: Make, server: HttpServer) -> None:
    def policy(conn: Any) -> Any:
        raise LookupError("secret reason")

    events: list[Event] = []
    sb = make(network=Network.policy(policy, hosts={NAME: "127.0.0.1"}), on_event=events.append)
    result = sb.exec(f"{GET} {url(server)}")
    assert result.exit_code != 0
    assert "secret reason" not in result.stdout + result.stderr
    assert server.requests == []
    deadline = time.monotonic() + 120  # the record has a thread of its own
    while not any("LookupError" in str(event.data) for event in events if event.kind == "network"):
        assert time.monotonic() < deadline
        sb.exec("true")


@pytest.mark.feature("network")
def test_middleware_adds_a_credential(make: Make, server: HttpServer) -> None:
    def add(request: Any) -> None:
        request.headers.set("authorization", "Bearer secret-token")

    sb = make(network=deciding(server, lambda http: http.accept(add, redact=True)))
    said = sb.exec(f"{GET} {url(server, '/echo')}").stdout
    assert server.requests[0].header("authorization") == "Bearer secret-token"
    assert "secret-token" not in said


@pytest.mark.feature("network")
def test_middleware_denies(make: Make, server: HttpServer) -> None:
    def only_reading(request: Any) -> None:
        if request.method != "GET":
            request.deny("this sandbox may only read")

    sb = make(network=deciding(server, lambda http: http.accept(only_reading)))
    assert sb.exec(f"{GET} {url(server)}").stdout == "hello"
    sb.exec(f"{GET} -X POST -d x {url(server, '/echo')}")
    assert [request.method for request in server.requests] == ["GET"]


@pytest.mark.feature("network")
def test_middleware_answers_itself(make: Make, server: HttpServer) -> None:
    def answer(request: Any) -> Any:
        return request.respond(418, {"x-by": "us"}, b"teapot")

    sb = make(network=deciding(server, lambda http: http.accept(answer)))
    assert sb.exec(f"{GET} -w ' %{{http_code}}' {url(server)}").stdout == "teapot 418"
    assert server.requests == []


@pytest.mark.feature("network")
def test_what_is_recorded(make: Make, server: HttpServer) -> None:
    events: list[Event] = []
    sb = make(network=allowing(server), on_event=events.append)
    sb.exec(f"{GET} {url(server)}; {GET} http://other.tiers.test/")
    deadline = time.monotonic() + 120  # the record has a thread of its own
    while len(verdicts := {event.data.get("verdict") for event in events if event.kind == "network"}) < 2:
        assert time.monotonic() < deadline, verdicts
        sb.stats()
    assert "denied" in verdicts


@pytest.mark.feature("network")
def test_counters(make: Make, server: HttpServer) -> None:
    sb = make(network=allowing(server))
    sb.exec(f"{GET} {url(server, '/big')} > /dev/null; {GET} http://other.tiers.test/")
    stats = sb.stats()
    assert stats["network_bytes_in"] >= 3_000_000
    assert stats["network_denied"] >= 1


@pytest.mark.feature("fork")
@pytest.mark.feature("network")
def test_a_branch_has_the_network(make: Make, server: HttpServer) -> None:
    branch = make.keep(make(network=allowing(server)).fork())
    assert branch.exec(f"{GET} {url(server)}").stdout == "hello"


@pytest.mark.feature("network")
def test_loopback_is_the_sandboxs_own(make: Make, server: HttpServer) -> None:
    """What listens on the owner's loopback is not reached, whatever is allowed by name."""
    sb = make(network=allowing(server))
    assert sb.exec(f"{GET} http://127.0.0.1:{server.port}/").exit_code != 0
    assert server.requests == []
