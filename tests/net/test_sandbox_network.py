"""A sandbox's network end to end: files inside, policies and servers outside, both fronts."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

from belljar import AsyncSandbox, AuditLog, Event, Network, NetworkLimits, Sandbox
from belljar.net.policy import Conn
from tests.net.servers import DnsServer, EchoSocket, HttpServer, Listener, Tripwire, UdpEcho, bodies

WEB = r"""
# web URL [LINE...]: a GET by files; the body, or the error
web() {
    local url=$1 line n; shift
    exec {ctl}<>/mnt/web/clone || return
    read -r n <&$ctl
    for line in "url $url" "$@"; do echo "$line" >&$ctl || { cat /mnt/web/$n/error; exec {ctl}>&-; return 2; }; done
    cat /mnt/web/$n/body 2>/dev/null || { cat /mnt/web/$n/error; exec {ctl}>&-; return 1; }
    exec {ctl}>&-
}
"""


@pytest.fixture
def server() -> Iterator[HttpServer]:
    routes: dict[str, Any] = {
        "/": b"hello",
        "/echo": bodies.echo,
        "/endless": bodies.endless,
        "/slow": bodies.late(20),
        "/big": b"x" * (8 << 20),
    }
    with HttpServer(routes) as server:
        yield server


@pytest.fixture
def sandbox(server: HttpServer) -> Iterator[Sandbox]:
    network = Network.allow(f"localhost:{server.port}", server.authority)
    with Sandbox(network=network, files={"/workspace/web.sh": WEB}) as sandbox:
        yield sandbox


def sh(sandbox: Sandbox, script: str) -> str:
    result = sandbox.exec(f". ./web.sh\n{script}", timeout=60)
    assert not result.timed_out
    return result.stdout + result.stderr


def test_bad_lines_are_explained(sandbox: Sandbox, server: HttpServer) -> None:
    base = f"http://{server.authority}"
    for line, why in {
        "url http://u:p@x/": "credentials",
        "url http://127.1/": "four decimal",
        "method CONNECT": "not allowed",
        "header X : y": "not a header name",
        "header X": "Name: value",
        "redirects 1000": "redirects",
        "timeout never": "seconds",
        "http 3": "1.1 or 2",
        "jump high": "lines begin with",
    }.items():
        said = sh(sandbox, f"web {base}/ '{line}' 2>/dev/null")
        assert said.startswith("protocol: "), line
        assert why in said, line
    assert server.requests == []


def test_a_body_is_posted(sandbox: Sandbox, server: HttpServer) -> None:
    script = f"""
    exec 3<>/mnt/web/clone; read -r n <&3
    echo 'url http://{server.authority}/echo' >&3; echo 'header X-A: b' >&3
    %s > /mnt/web/$n/postbody
    cat /mnt/web/$n/body > /dev/null; head -n 1 /mnt/web/$n/response; cat /mnt/web/$n/error"""
    assert "200 OK" in sh(sandbox, script % "echo body")
    assert "200 OK" in sh(sandbox, script % "head -c 3000000 /dev/zero")
    small, large = server.requests
    assert (small.method, small.body, small.header("content-length")) == ("POST", b"body\n", "5")
    assert (len(large.body), large.header("transfer-encoding")) == (3_000_000, "chunked")


def test_large_and_endless_bodies_stream(sandbox: Sandbox, server: HttpServer) -> None:
    assert sh(sandbox, f"web http://{server.authority}/big | wc -c").strip() == str(8 << 20)
    assert sh(sandbox, f"web http://{server.authority}/endless | head -c 3000000 | wc -c").strip() == "3000000"
    # A reader that stops does not hold up the next request.
    script = f"""
    exec 5<>/mnt/web/clone; read -r n <&5; echo 'url http://{server.authority}/endless' >&5
    exec 6</mnt/web/$n/body; head -c 10 <&6 | wc -c; web http://{server.authority}/"""
    assert sh(sandbox, script) == "10\nhello"


def test_a_killed_command_lets_go_of_its_request(sandbox: Sandbox, server: HttpServer) -> None:
    assert sandbox.exec(f". ./web.sh; web http://{server.authority}/slow", timeout=0.5).timed_out
    assert sh(sandbox, f"web http://{server.authority}/; ls /mnt/web") == "helloclone\n"
    assert "timeout: " in sh(sandbox, f"web http://{server.authority}/slow 'timeout 0.3'")


def test_many_requests_at_once(sandbox: Sandbox, server: HttpServer) -> None:
    script = f"for i in $(seq 30); do web http://localhost:{server.port}/ & done; wait"
    assert sh(sandbox, script) == "hello" * 30


def test_the_descriptor_table_of_requests_is_bounded(sandbox: Sandbox) -> None:
    said = sh(sandbox, "for i in $(seq 300); do exec {fd}<>/mnt/web/clone || break; done; echo $i")
    assert "Too many open files" in said
    assert said.splitlines()[0] == "257"


def test_datagrams_keep_their_edges() -> None:
    def policy(conn: Conn) -> Any:
        udp = conn.match_udp(f"127.0.0.1:{port}")
        return udp.accept() if udp else None

    with UdpEcho() as echo, Sandbox(network=Network.policy(policy)) as sandbox:
        port = echo.port
        read = "dd bs=100 count=1 <&3 2>/dev/null"
        script = f"exec 3<>/dev/udp/127.0.0.1/{port}; printf one >&3; {read}; printf three >&3; {read}"
        assert sandbox.exec(script, timeout=20).stdout == "ONETHREE"
        refused = sandbox.exec(f"echo x > /dev/udp/127.0.0.1/{port + 1}").stderr
        assert "Permission denied" in refused
        assert echo.received == [b"one", b"three"]


def test_names_are_looked_up_by_files() -> None:
    zone = {"a.example": ["93.184.215.14", "CNAME b.example."], "mail.example": ["MX 10 mx.example."]}
    with DnsServer(zone) as resolver:

        def policy(conn: Conn) -> Any:
            dns = conn.match_dns("*.example")
            return dns.accept(resolvers=[resolver.authority], types=["A", "MX"]) if dns else None

        with Sandbox(network=Network.policy(policy)) as sandbox:
            ask = "exec 3<>/net/dns; echo '%s' >&3 2>/dev/null; cat <&3"
            assert sandbox.exec(ask % "mail.example MX").stdout == "mail.example 60 MX 10 mx.example.\n"
            assert sandbox.exec(ask % "no.example").stdout == "! dns: no such name: no.example\n"
            assert "denied" in sandbox.exec(ask % "x.org").stdout
            assert "record type" in sandbox.exec(ask % "a.example ANY").stdout


def test_a_websocket_by_files() -> None:
    with EchoSocket() as server, Sandbox(network=Network.allow(server.authority)) as sandbox:
        result = sandbox.exec(
            f"""exec 3<>/mnt/web/clone; read -r n <&3; echo 'url http://{server.authority}/' >&3
            echo 'header Upgrade: websocket' >&3; echo 'header Sec-WebSocket-Version: 13' >&3
            echo 'header Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==' >&3
            exec 4</mnt/web/$n/body; head -n 1 /mnt/web/$n/response
            exec 5>/mnt/web/$n/postbody; printf '\\x81\\x85\\x00\\x00\\x00\\x00hello' >&5
            head -c 7 <&4 | od -An -c""",
            timeout=20,
        )
        assert "101 Switching" in result.stdout
        assert "h   e   l   l   o" in result.stdout


# The owner's side.


def test_events_and_the_audit_log(server: HttpServer, tmp_path: Path) -> None:
    events: list[Event] = []
    log = AuditLog(tmp_path / "audit.jsonl")
    network = Network.allow(server.authority, audit=log)
    with Sandbox(network=network, name="audited", on_event=events.append, files={"/workspace/web.sh": WEB}) as sandbox:
        sh(sandbox, f"web http://{server.authority}/?token=hidden; web http://evil.example/")
        stats = sandbox.stats()
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    told = [event.data for event in events if event.kind == "network"]
    assert [line["action"] for line in lines] == [event["action"] for event in told]
    actions = ["connect", "request", "response", "done", "outcome", "dns", "outcome"]
    assert [line["action"] for line in lines] == actions
    assert {line["sandbox"] for line in lines} == {"audited"}
    assert lines[-2]["verdict"] == "denied"
    assert [line["result"] for line in lines if line["action"] == "outcome"] == ["ok", "denied"]
    assert "hidden" not in json.dumps(lines)
    assert (stats["network_requests"], stats["network_denied"]) == (1, 1)
    assert 5 < stats["network_bytes_in"] < 500  # the body, and its headers
    assert 0 < stats["network_bytes_out"] < 500


FETCH = "const got = await fetch('{}').then((r) => r.text(), (e) => e.cause.message); got"


def test_what_scripts_fetch_is_in_the_same_record(server: HttpServer, tmp_path: Path) -> None:
    """`sandbox.js` has the sandbox's one way out: its events, its counters, its limits."""
    events: list[Event] = []
    path = tmp_path / "audit.jsonl"
    network = Network.allow(server.authority, audit=AuditLog(path), limits=NetworkLimits(bytes_in=400))
    with Sandbox(network=network, name="scripted", on_event=events.append) as sandbox:
        assert sandbox.exec(f"curl -s {server.url}/").stdout == "hello"
        assert sandbox.js.run(FETCH.format(f"{server.url}/")).value == "hello"
        assert "not a name" in sandbox.js.run(FETCH.format("http://evil.example/")).value
        stats = sandbox.stats()
        assert (stats["network_requests"], stats["network_denied"]) == (2, 1)
        said = [sandbox.js.run(FETCH.format(f"{server.url}/")).value for _ in range(6)]
        assert "has received its 400 bytes" in said[-1]
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert {line["sandbox"] for line in lines} == {"scripted"}
    told = [event.data["action"] for event in events if event.kind == "network"]
    assert told == [line["action"] for line in lines]
    assert told[:11] == ["connect", "request", "response", "done", "outcome"] * 2 + ["dns"]


def test_what_scripts_fetch_in_the_async_front(server: HttpServer) -> None:
    async def main() -> None:
        events: list[Event] = []
        async with AsyncSandbox(network=Network.allow(server.authority), on_event=events.append) as sandbox:
            assert (await sandbox.js.run(FETCH.format(f"{server.url}/"))).value == "hello"
            assert (await sandbox.stats())["network_requests"] == 1
        assert [event.data["action"] for event in events if event.kind == "network"][:2] == ["connect", "request"]

    asyncio.run(main())


def test_refusals_are_told_even_without_a_grant() -> None:
    events: list[Event] = []
    with Tripwire() as wire, Sandbox(on_event=events.append) as sandbox:
        assert sandbox.exec(f"echo x > /dev/tcp/{wire.address}/{wire.port}").exit_code == 1
        assert not wire.touched()
    denied = [event.data for event in events if event.kind == "network"]
    assert [event["action"] for event in denied] == ["connect", "outcome"]
    assert (denied[0]["verdict"], denied[0]["port"], denied[1]["result"]) == ("denied", wire.port, "denied")


def test_the_async_front_and_a_policy_on_its_loop(server: HttpServer) -> None:
    async def main() -> None:
        here = asyncio.get_running_loop()
        loops: list[bool] = []
        asked = asyncio.Event()

        async def ask_a_human(conn: Conn) -> Any:
            loops.append(asyncio.get_running_loop() is here)
            asked.set()
            await asyncio.sleep(0.05)
            return conn.accept()

        async with AsyncSandbox(network=Network.policy(ask_a_human), files={"/workspace/web.sh": WEB}) as sandbox:
            command = f". ./web.sh; web http://{server.authority}/"
            results = await asyncio.gather(*(sandbox.exec(command) for _ in range(5)))
            assert [result.stdout for result in results] == ["hello"] * 5
            assert asked.is_set()
            assert all(loops)

    asyncio.run(main())


def test_a_background_program_keeps_its_network(server: HttpServer, sandbox: Sandbox) -> None:
    process = sandbox.spawn(f". ./web.sh; sleep 0.3; web http://{server.authority}/ > out; echo done")
    deadline = time.monotonic() + 20
    while not server.requests and time.monotonic() < deadline:
        time.sleep(0.02)  # nobody waits for the process: the request must not need that
    assert server.requests
    assert process.wait(20) == 0
    assert sandbox.files.read("/workspace/out") == "hello"


@pytest.mark.parametrize("command", ["curl -s {}/", "python3 -c 'print(41 + 1)' | curl -s -T - {}/echo"])
def test_what_a_command_leaves_behind_is_served_too(server: HttpServer, sandbox: Sandbox, command: str) -> None:
    """A program that goes on after its command's end, and asks for its first connection (or engine) only then."""
    later = f"(sleep 0.5; {command.format(server.url)}) >/dev/null 2>&1 & echo started"
    assert sandbox.exec(later).stdout == "started\n"
    deadline = time.monotonic() + 60
    while not server.requests and time.monotonic() < deadline:
        time.sleep(0.02)  # nobody calls the sandbox meanwhile
    assert server.requests[0].body in (b"", b"42\n")


def test_the_end_of_a_sandbox_ends_its_connections() -> None:
    class Held(Listener):
        closed: ClassVar = threading.Event()

        def serve(self, connection: socket.socket) -> None:
            connection.settimeout(20)
            if connection.recv(1) == b"":
                self.closed.set()

    with Held() as held:
        sandbox = Sandbox(network=Network.allow(held.authority))
        assert (
            sandbox.exec(f"exec 3<>/dev/tcp/{held.address}/{held.port} && (sleep 100 <&3 &) && echo ok").stdout
            == "ok\n"
        )
        sandbox.close()
        assert held.closed.wait(20)


@pytest.mark.parametrize("network", ["x.org", {"allow": []}, 1])
def test_what_is_no_network_is_refused(network: Any) -> None:
    with pytest.raises(TypeError, match=r"Network\.allow"):
        Sandbox(network=network)
