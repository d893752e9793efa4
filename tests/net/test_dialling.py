"""Names and raw connections from the command line: dig, host, nslookup, nc, ping, and bash's /dev/tcp."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator

import pytest

from belljar import Network, Sandbox
from tests.net.servers import DnsServer, HttpServer, Listener, Tripwire

ZONE = {
    "a.example.com": ["93.184.215.14", "2606:2800:21f:cb07::1", 'TXT "words here"', "MX 10 mail.example.com."],
    "b.example.com": ["CNAME a.example.com."],
    "inside.example.com": ["10.1.2.3"],
    "half.example.com": ["93.184.215.14", "10.1.2.3", "2606:2800:21f:cb07::1", "::ffff:10.1.2.3"],
    "14.215.184.93.in-addr.arpa": ["PTR a.example.com."],
    "denied.example.org": ["93.184.215.15"],
}


@pytest.fixture(scope="module")
def names() -> Iterator[DnsServer]:
    with DnsServer(ZONE) as server:
        yield server


@pytest.fixture(scope="module")
def sandbox(names: DnsServer) -> Iterator[Sandbox]:
    def policy(conn):  # type: ignore[no-untyped-def]
        question = conn.match_dns()
        if question and (question.name.endswith("example.com") or question.name.endswith("in-addr.arpa")):
            question.accept(resolvers=[names.authority], types=["A", "AAAA", "MX", "TXT", "PTR"])

    with Sandbox(network=Network.policy(policy)) as made:
        yield made


class Shout(Listener):
    """Sends everything back in capitals, and goes when the other side is done."""

    def serve(self, connection: socket.socket) -> None:
        while data := connection.recv(4096):
            connection.sendall(data.upper())


def test_dig(sandbox: Sandbox) -> None:
    assert sandbox.exec("dig +short b.example.com").stdout == "a.example.com.\n93.184.215.14\n"
    for _ in range(2):  # the second answer is one that was kept
        assert sandbox.exec("dig a.example.com MX +short").stdout == "10 mail.example.com.\n"
    assert (
        sandbox.exec("dig +noall +answer -t TXT a.example.com").stdout
        == 'a.example.com.\t\t60\tIN\tTXT\t"words here"\n'
    )
    assert sandbox.exec("dig +short -x 93.184.215.14").stdout == "a.example.com.\n"
    whole = sandbox.exec("dig a.example.com").stdout
    assert "status: NOERROR" in whole
    assert ";a.example.com.\t\t\tIN\tA\n" in whole
    assert "a.example.com.\t\t60\tIN\tA\t93.184.215.14\n" in whole
    assert "status: NXDOMAIN" in sandbox.exec("dig nope.example.com").stdout
    assert "status: REFUSED" in sandbox.exec("dig denied.example.org").stdout
    assert sandbox.exec("dig @8.8.8.8 a.example.com").exit_code == 10


def test_host_and_nslookup(sandbox: Sandbox) -> None:
    assert sandbox.exec("host b.example.com").stdout == (
        "b.example.com is an alias for a.example.com.\na.example.com has address 93.184.215.14\n"
        "a.example.com has IPv6 address 2606:2800:21f:cb07::1\na.example.com mail is handled by 10 mail.example.com.\n"
    )
    missing = sandbox.exec("host nope.example.com")
    assert (missing.stdout, missing.exit_code) == ("Host nope.example.com not found: 3(NXDOMAIN)\n", 1)
    assert sandbox.exec("host denied.example.org").stdout == "Host denied.example.org not found: 5(REFUSED)\n"
    assert (
        sandbox.exec("host 93.184.215.14").stdout == "14.215.184.93.in-addr.arpa domain name pointer a.example.com.\n"
    )
    said = sandbox.exec("nslookup b.example.com").stdout
    assert said.endswith(
        "Non-authoritative answer:\nb.example.com\tcanonical name = a.example.com.\nName:\ta.example.com\n"
        "Address: 93.184.215.14\nName:\ta.example.com\nAddress: 2606:2800:21f:cb07::1\n\n"
    )
    assert "** server can't find nope.example.com: NXDOMAIN" in sandbox.exec("nslookup nope.example.com").stdout


def test_a_private_answer_is_not_given(sandbox: Sandbox) -> None:
    names = ("inside.example.com", "half.example.com")
    for command in [f"{tool} {name}" for tool in ("dig", "dig AAAA", "host", "nslookup") for name in names]:
        result = sandbox.exec(command)
        assert "10.1.2.3" not in result.stdout + result.stderr, command


def test_denied_names_are_not_asked_for(sandbox: Sandbox, names: DnsServer) -> None:
    sandbox.exec("host secret-in-a-name.example.org; dig TXT x.y.example.net; nslookup 1.2.3.4.example.net")
    assert not any(name.endswith((".org", ".net")) for name, _ in names.questions)


def test_ping(sandbox: Sandbox) -> None:
    result = sandbox.exec("ping -c 1 a.example.com")
    assert result.stdout == "PING a.example.com (93.184.215.14) 56(84) bytes of data.\n"
    assert "no ICMP" in result.stderr
    assert result.exit_code == 2
    assert sandbox.exec("ping -c1 nope.example.com").stderr == "ping: nope.example.com: Name or service not known\n"


def test_nc() -> None:
    with Shout() as server, Tripwire() as wire, HttpServer({"/": "page"}) as web:
        network = Network.allow(f"127.0.0.1:{server.port}", f"127.0.0.1:{web.port}")
        with Sandbox(network=network) as sandbox:
            result = sandbox.exec(f"echo hello | nc -N 127.0.0.1 {server.port}")
            assert (result.stdout, result.exit_code) == ("HELLO\n", 0)
            result = sandbox.exec(f"nc -zv 127.0.0.1 {server.port}")
            assert result.stderr == f"Connection to 127.0.0.1 {server.port} port [tcp/*] succeeded!\n"
            result = sandbox.exec(f"printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc 127.0.0.1 {web.port} | tail -n 1")
            assert result.stdout == "page"
            result = sandbox.exec(f"nc -z -w 30 127.0.0.1 {wire.port}")
            assert result.exit_code == 1
            assert re.fullmatch(r"nc: connect to 127\.0\.0\.1 port \d+ \(tcp\) failed: .*not open.*\n", result.stderr)
            scan = f"for p in {{8000..8040}} {wire.port}; do nc -z 127.0.0.1 $p; done"
            assert sandbox.exec(scan).stderr.count("not open") == 42
            assert not wire.touched()


def test_dev_tcp() -> None:
    with Shout() as server, Tripwire() as wire, Sandbox(network=Network.allow(f"127.0.0.1:{server.port}")) as sandbox:
        talk = "echo one >&3; read -r x <&3; echo two >&3; head -n 1 <&3; echo $x"
        script = f"exec 3<>/dev/tcp/127.0.0.1/{server.port}; {talk}"
        assert sandbox.exec(script).stdout == "TWO\nONE\n"
        result = sandbox.exec(f"echo x > /dev/tcp/127.0.0.1/{wire.port}")
        assert result.exit_code == 1
        assert f"127.0.0.1:{wire.port} is not open to this sandbox" in result.stderr
        result = sandbox.exec("exec 3<>/dev/udp/127.0.0.1/53")
        assert "not open" in result.stderr
        assert not wire.touched()
        assert sandbox.exec("exec 3<>/dev/tcp/nohost; echo $?").stderr != ""


def test_without_a_grant() -> None:
    with Sandbox() as sandbox:
        for command in ("dig +short x.com", "host x.com", "nslookup x.com", "ping -c1 x.com", "nc -zv x.com 80"):
            result = sandbox.exec(command)
            assert "granted no network" in result.stderr, command
        result = sandbox.exec("curl -sS http://x.com")
        assert result.exit_code == 7
        assert result.stderr.startswith("curl: (7) Failed to connect to x.com port 80 after ")
        assert result.stderr.endswith(" ms: denied by policy: this sandbox was granted no network\n")
