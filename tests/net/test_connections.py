"""Connections by files: raw where that is granted, web requests only where they are; TLS is spoken by the broker."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from belljar import Network, Sandbox
from belljar.net.policy import Conn
from tests.net.servers import Authority, EchoSocket, HttpServer, Listener, Tripwire, bodies

DIAL = r"""
# dial HOST PORT: where only web requests may go too, unless $raw is set. Makes $ctl, $data and $at, the directory
dial() {
    exec {ctl}<>/net/tcp/clone || return
    read -r n <&$ctl; at=/net/tcp/$n
    [ -n "$raw" ] || echo web >&$ctl
    echo "connect $1!$2" >&$ctl || { cat $at/error; return 1; }
    exec {data}<>$at/data
}
"""


class Sink(Listener):
    """Keeps what comes, and says nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.received = b""

    def serve(self, connection: socket.socket) -> None:
        while data := connection.recv(65536):
            self.received += data


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer({"/": b"hello", "/echo": bodies.echo, "/half": bodies.cut_short()}) as server:
        yield server


def web_only(port: int, **options: Any) -> Network:
    def policy(conn: Conn) -> Any:
        http = conn.match_http(f"127.0.0.1:{conn.dst.port}") if conn.dst.port == port else None
        return http.accept() if http else None

    return Network.policy(policy, **options)


def sh(network: Network, script: str) -> str:
    with Sandbox(network=network, files={"/workspace/dial.sh": DIAL}) as sandbox:
        result = sandbox.exec(f". ./dial.sh\n{script}", timeout=60)
        assert not result.timed_out
        return result.stdout + result.stderr


def request(target: str, host: str, *, method: str = "GET", extra: str = "Connection: close") -> str:
    return rf"printf '{method} {target} HTTP/1.1\r\nHost: {host}\r\n{extra}\r\n\r\n'"


def test_a_web_request_passes_where_only_they_may(server: HttpServer) -> None:
    said = sh(
        web_only(server.port),
        f"""
        dial 127.0.0.1 {server.port}; cat $at/status $at/remote
        {request("/", server.authority, extra="X-A: b")} >&$data; read -r line <&$data; echo "$line"
        {request("/echo", server.authority)} >&$data; cat <&$data | tail -n 1
        dial 127.0.0.1 {server.port}; {request("/", server.authority)} >&$data; cat <&$data | tail -n 1""",
    )
    assert said.startswith(f"Established\n127.0.0.1!{server.port}\nHTTP/1.1 200 OK\r\n")
    assert said.endswith("hello")
    assert [each.target for each in server.requests] == ["/", "/echo", "/"]
    assert server.requests[0].header("x-a") == "b"


def test_who_did_not_say_so_gets_no_such_connection() -> None:
    with Tripwire() as wire:
        said = sh(web_only(wire.port), f"raw=1; dial 127.0.0.1 {wire.port}; exec 5<>/dev/tcp/127.0.0.1/{wire.port}")
        assert said.startswith(f"denied: 127.0.0.1:{wire.port} is only open to web requests")
        assert not wire.touched()


def test_what_is_no_web_request_never_arrives() -> None:
    with Sink() as sink:
        said = sh(
            web_only(sink.port),
            f"dial 127.0.0.1 {sink.port}; echo 'SSH-2.0-OpenSSH_9' >&$data; echo >&$data; cat <&$data; cat $at/error",
        )
        assert f"protocol: 127.0.0.1:{sink.port} is only open to web requests, and this is none" in said
        assert sink.received == b""


@pytest.mark.parametrize(
    ("sent", "why"),
    [
        (request("/", "other.example"), "denied: other.example is not whom this connection leads to"),
        (request("/", "127.0.0.1:1"), "denied: 127.0.0.1:1 is not whom this connection leads to"),
        (request("http://127.0.0.1/", "HERE"), "protocol: a request has one Host header, and a path"),
        (request("127.0.0.1:22", "HERE", method="CONNECT"), "protocol: a request has one Host header, and a path"),
        (request("/", "HERE", extra="Host: HERE"), "protocol: "),
        (request("/", "HERE", extra="Upgrade: h2c\\r\\nConnection: Upgrade"), "denied: this sandbox may not change"),
        (request("/", "HERE", extra="Content-Length: 1\\r\\nContent-Length: 2"), "protocol: "),
    ],
)
def test_requests_that_mean_another_place_are_refused(server: HttpServer, sent: str, why: str) -> None:
    sent = sent.replace("HERE", server.authority)
    said = sh(web_only(server.port), f"dial 127.0.0.1 {server.port}; {sent} >&$data; cat <&$data; cat $at/error")
    assert why in said
    assert server.requests == []


def test_an_answer_that_is_cut_short_is_known_to_be(server: HttpServer) -> None:
    said = sh(
        web_only(server.port),
        f"dial 127.0.0.1 {server.port}; {request('/half', server.authority)} >&$data; cat <&$data; cat $at/error",
    )
    assert "half" in said
    assert "broke the protocol" in said


def test_a_denied_place_is_not_dialled(server: HttpServer) -> None:
    with Tripwire() as wire:
        said = sh(web_only(server.port), f"dial 127.0.0.1 {wire.port}; nc -z 127.0.0.1 {wire.port}; echo $?")
        assert said.startswith(f"denied: 127.0.0.1:{wire.port} is not open to this sandbox\n")
        assert "\n1\n" in said
        assert not wire.touched()


def test_a_websocket_only_where_it_is_granted() -> None:
    with EchoSocket() as echo:
        key = "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\\r\\nSec-WebSocket-Version: 13"
        upgrade = request("/", echo.authority, extra=f"Connection: Upgrade\\r\\nUpgrade: websocket\\r\\n{key}")
        talk = f"""dial 127.0.0.1 {echo.port}; {upgrade} >&$data; read -r line <&$data; echo "$line"; cat $at/error"""
        assert "denied: this sandbox may not change the protocol" in sh(web_only(echo.port), talk)

        def policy(conn: Conn) -> Any:
            http = conn.match_http(f"127.0.0.1:{conn.dst.port}") if conn.dst.port == echo.port else None
            return http.accept(websocket=True) if http else None

        frame = r"printf '\x81\x82\x00\x00\x00\x00hi' >&$data; dd bs=4 count=1 <&$data 2>/dev/null | od -An -c"
        said = sh(
            Network.policy(policy),
            talk + f"""; while read -r line <&$data && [ "$line" != $'\\r' ]; do :; done; {frame}""",
        )
        assert said.startswith("HTTP/1.1 101")
        assert said.rstrip().endswith("h   i")


def raw(**options: Any) -> Network:
    def policy(conn: Conn) -> Any:
        tcp = conn.match_tcp("127.0.0.1")
        return tcp.accept() if tcp else None

    return Network.policy(policy, **options)


@pytest.mark.parametrize("granted", ["raw", "web"])
def test_tls_is_spoken_outside(authority: Authority, granted: str) -> None:
    with HttpServer({"/": b"secret hello"}, context=authority.context("127.0.0.1")) as server:
        bundle = str(authority.path)
        network = raw(ca_bundle=bundle) if granted == "raw" else web_only(server.port, ca_bundle=bundle)
        said = sh(
            network,
            f"""dial 127.0.0.1 {server.port}; echo 'tls - http/1.1' >&$ctl
            cut -d' ' -f1 $at/tls | paste -sd' '; grep ^protocol $at/tls
            {request("/", server.authority)} >&$data; cat <&$data | tail -n 1; echo
            dial 127.0.0.1 {server.port}; echo nowait >&$ctl; echo tls >&$ctl; read -r line <&$data
            echo "${{line% *}}"; {request("/", server.authority)} >&$data; cat <&$data | tail -n 1""",
        )
        info = "version cipher protocol certificate peer\nprotocol"
        chosen = " \n" if granted == "raw" else " http/1.1\n"  # the server offers nothing; a web request is HTTP/1.1
        assert said == f"{info}{chosen}secret hello\nsecured\nsecret hello"
        assert len(server.requests) == 2


@pytest.mark.parametrize("granted", ["raw", "web"])
def test_a_server_that_is_another_is_refused(authority: Authority, granted: str) -> None:
    with HttpServer({"/": b"no"}, context=authority.context("other.test")) as server:
        bundle = str(authority.path)
        network = raw(ca_bundle=bundle) if granted == "raw" else web_only(server.port, ca_bundle=bundle)
        said = sh(
            network,
            f"""dial 127.0.0.1 {server.port}; echo 'tls -' >&$ctl; cat $at/error
            dial 127.0.0.1 {server.port}; echo 'tls other.test' >&$ctl; cat $at/error $at/tls | cut -c1-50""",
        )
        assert "tls: the certificate of 127.0.0.1 is not valid" in said
        if granted == "raw":
            assert "version TLS" in said  # raw bytes could say any name
        else:
            assert "denied: the TLS server name is not one that led to" in said
        assert server.requests == []


def test_tls_begins_once_and_first(server: HttpServer) -> None:
    late = f"dial 127.0.0.1 {server.port}; {request('/', server.authority, extra='X: y')} >&$data; head -c 12 <&$data"
    said = sh(web_only(server.port), f"{late}; echo tls >&$ctl; cat $at/error; dial 127.0.0.1 1; echo tls >&$ctl")
    assert said.startswith("HTTP/1.1 200")
    assert "TLS comes first, and once" in said
    assert "Transport endpoint is not connected" in said


def test_dialling_without_waiting(server: HttpServer) -> None:
    with Tripwire() as wire:
        said = sh(
            web_only(server.port),
            f"""start() {{
                exec {{ctl}}<>/net/tcp/clone; read -r n <&$ctl; at=/net/tcp/$n
                echo web >&$ctl; echo nowait >&$ctl; echo "connect 127.0.0.1!$1" >&$ctl; exec {{data}}<>$at/data
                while [ "$(cat $at/status)" = Connecting ]; do sleep 0.01; done; cat $at/status $at/error
            }}
            start {server.port}; {request("/", server.authority)} >&$data; cat <&$data | tail -n 1; echo
            start {wire.port}; cat <&$data""",
        )
        assert said.startswith("Established\nhello\nHungup\ndenied: ")
        assert "Permission denied" in said
        assert not wire.touched()
