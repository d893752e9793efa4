"""UDP of native sandboxes: real programs' datagrams, under the policies of the virtual tier."""

from __future__ import annotations

import socket
import time
from pathlib import Path
from typing import Any

import pytest

from belljar import Event, Network, NetworkLimits, Sandbox
from belljar.native.network import _DATAGRAMS as DATAGRAMS
from belljar.native.network import NEAR, redirected
from belljar.native.network_host import NativeNetwork
from belljar.net.broker.gate_host import Gate
from belljar.net.broker.proxy_host import start_proxy
from belljar.net.broker.udp_host import Packets
from belljar.net.policy import Conn
from tests.native.boxes import native_sandbox
from tests.native.conftest import needs_native
from tests.native.test_network_attacks import python
from tests.native.test_unprivileged import needs_root, place, run_as_nobody
from tests.net.servers import HttpServer, UdpEcho

AT = "127.0.0.7"
EPERM, EACCES, EHOSTUNREACH = 1, 13, 113
HEAD = """
def meet(where, *payloads, connected=True, family=socket.AF_INET):
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        s.settimeout(10)
        got = []
        try:
            if connected:
                s.connect(where)
            for payload in payloads:
                s.send(payload) if connected else s.sendto(payload, where)
                data, peer = s.recvfrom(65536)
                got.append([len(data), data[:20].decode(), list(peer[:2]) == list(where[:2])])
        except TimeoutError:
            got.append("silence")
        except OSError as error:
            got.append(error.errno)
        return got
"""
__all__ = ["place"]


def granting(*ports: int, hosts: dict[str, str] | None = None, **options: Any) -> Network:
    def policy(conn: Conn) -> Any:
        if question := conn.match_dns("*.test"):
            return question.accept()
        flow = conn.match_udp()
        return flow.accept() if flow is not None and conn.dst.port in ports else None

    return Network.policy(policy, hosts=hosts or {"echo.test": AT}, **options)


@pytest.mark.battery(sample=1)
@needs_native
@pytest.mark.parametrize("user", ["agent", "root"])
def test_what_is_granted_and_nothing_else(user: str) -> None:
    events: list[Event] = []
    names: list[tuple[str, str | None]] = []
    with UdpEcho(AT) as echo, UdpEcho(AT) as other:

        def policy(conn: Conn) -> Any:
            if conn.protocol == "udp":
                names.append((str(conn.dst), conn.hostname))
            found = conn.match_dns("echo.test") or conn.match_udp(f"echo.test:{echo.port}")
            return found.accept() if found else None

        network = Network.policy(policy, hosts={"echo.test": AT})
        with native_sandbox(network=network, user=user, on_event=events.append) as sandbox:
            program = """
where = (socket.gethostbyname("echo.test"), granted)
said.append(meet(where, b"one", b"x" * 1200, b"y" * 9000, b"z" * 65507))
said.append(meet(where, b"one", b"two", connected=False))
said.append(meet((where[0], other), b"x"))
said.append(meet((where[0], other), b"x", connected=False))
said.append(meet(("8.8.8.8", granted), b"x"))
said.append(meet(("2606:4700:4700::1111", granted), b"x", family=socket.AF_INET6))
"""
            said = python(sandbox, HEAD + program, granted=echo.port, other=other.port)
            sizes = [1200, 9000, 65507]
            whole = [[size, letter * 20, True] for size, letter in zip(sizes, "XYZ", strict=True)]
            assert said == [
                [[3, "ONE", True], *whole],
                [[3, "ONE", True], [3, "TWO", True]],
                [EHOSTUNREACH],
                ["silence"],
                [EHOSTUNREACH],
                [EACCES],
            ]
            sent = sum(len(data) for data in echo.received)
            stats = sandbox.stats()
            assert (stats["network_bytes_out"], stats["network_bytes_in"]) == (sent, sent)
            assert (stats["network_connections"], stats["network_denied"]) == (2, 4)
        assert other.received == []
        assert names[:2] == [(f"{AT}:{echo.port}", "echo.test")] * 2
        assert names[4:] == [
            (f"8.8.8.8:{echo.port}", None),
            (f"[2606:4700:4700::1111]:{echo.port}", None),
        ]
        told = [event.data for event in events if event.kind == "network"]
        accepted = {"action": "connect", "protocol": "udp", "ip": AT, "port": echo.port, "hostname": "echo.test"}
        assert accepted | {"verdict": "accepted", "as": "raw"} in told
        denied = {"action": "connect", "protocol": "udp", "ip": "8.8.8.8", "port": echo.port, "hostname": None}
        assert denied | {"verdict": "denied", "reason": "no policy accepted it"} in told


@needs_native
def test_ipv6_and_segments() -> None:
    with UdpEcho("::1") as echo, native_sandbox(network=granting(echo.port)) as sandbox:
        program = """
said.append(meet(("100::1", PORT), b"one", b"y" * 9000, family=socket.AF_INET6))
with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as s:
    s.settimeout(10)
    s.connect(("100::1", PORT))
    s.setsockopt(17, 103, 1000)  # UDP_SEGMENT
    try:
        s.send(b"x" * 2500)
    except OSError:  # an older kernel says no, and programs go without
        s.setsockopt(17, 103, 0)
        for size in (1000, 1000, 500):
            s.send(b"x" * size)
    said.append(sorted(len(s.recv(3000)) for _ in range(3)))
"""
        said = python(sandbox, HEAD + program, PORT=echo.port)
        assert said == [[[3, "ONE", True], [9000, "Y" * 20, True]], [500, 1000, 1000]]


@needs_native
def test_the_rest_of_the_network_is_as_it_was() -> None:
    """TCP, names and loopback in a namespace that has the pair of devices."""

    def policy(conn: Conn) -> Any:
        found = conn.match_dns("*.test") or conn.match_tcp("api.test")
        return found.accept() if found else None

    with (
        HttpServer({"/": b"hello"}, address=AT) as server,
        native_sandbox(network=Network.policy(policy, hosts={"api.test": AT})) as sandbox,
    ):
        assert sandbox.exec(f"curl -sS http://api.test:{server.port}/").stdout == "hello"
        assert sandbox.exec("curl -sS http://8.8.8.8/").exit_code in (7, 35, 56)
        assert sandbox.exec("curl -sS http://other.invalid/").exit_code == 6
        program = """
for address in ("127.0.0.1", "10.0.2.15"):
    with socket.socket(type=socket.SOCK_DGRAM) as here, socket.socket(type=socket.SOCK_DGRAM) as s:
        here.bind((address, 0))
        here.settimeout(5)
        s.sendto(b"inside", here.getsockname())
        said.append(here.recv(10).decode())
"""
        before = sandbox.stats()["network_denied"]
        assert python(sandbox, program) == ["inside", "inside"]
        assert sandbox.stats()["network_denied"] == before  # none of it is a flow


@needs_native
@pytest.mark.parametrize("user", ["agent", "root"])
def test_ways_around_the_policy(user: str) -> None:
    """Forged sources, the far device, multicast, the proxy's own addresses: nothing of it is a flow."""
    asked: list[str] = []

    def policy(conn: Conn) -> Any:
        asked.append(repr(conn))
        return conn.accept()

    with UdpEcho("0.0.0.0") as echo, native_sandbox(network=Network.policy(policy), user=user) as sandbox:
        program = """
def forge(source, destination, device=b"", options=()):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(0.3)
        for option in options:
            s.setsockopt(*option)
        if device:
            s.setsockopt(socket.SOL_SOCKET, 25, device)
        s.bind((source, 0))
        s.sendto(b"x", (destination, PORT))
        s.recv(10)
freely = [(socket.SOL_IP, 15, 1)]
attempt(forge, "127.0.0.1", "240.0.0.1")
attempt(forge, "8.8.8.8", "240.0.0.1", b"", freely)
attempt(forge, "240.0.0.1", "240.0.0.1", b"", freely)
attempt(forge, "10.0.2.15", "240.0.0.1", b"udp1")
attempt(forge, "10.0.2.15", "127.0.0.1", b"udp0")
attempt(forge, "10.0.2.15", "127.0.0.1", b"udp1")
attempt(forge, "10.0.2.15", "10.0.2.15", b"udp0")
attempt(forge, "10.0.2.15", "192.0.0.8")
attempt(forge, "10.0.2.15", "224.0.0.251")
attempt(forge, "10.0.2.15", "224.0.0.251", b"udp0")
attempt(forge, "10.0.2.15", "255.255.255.255", b"udp0", [(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)])
attempt(forge, "10.0.2.15", "240.0.0.1", b"", [(socket.SOL_SOCKET, 36, 1)])
"""
        said = python(sandbox, program, PORT=echo.port)
        assert "done" not in said
        assert (asked, echo.received) == ([], [])
        assert sandbox.exec(["python3", "-c", _ECHO.format(port=echo.port)]).stdout == "HI\n"


_ECHO = """
import socket
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(10)
s.sendto(b"hi", ("240.0.0.1", {port}))
print(s.recv(10).decode())
"""


@needs_native
def test_floods_are_bounded_and_end() -> None:
    """Datagrams to one place, and to ever new ones: the kernel refuses most, flows stay few, and the next is served."""
    limits = NetworkLimits(connections=20, requests_per_second=100)
    with UdpEcho(AT) as echo, native_sandbox(network=granting(echo.port, limits=limits)) as sandbox:
        program = """
sent = refused = 0
began = time.monotonic()
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    while refused < 5_000 and time.monotonic() - began < 20:
        sent += 1
        try:
            s.sendto(b"x", (f"240.{sent >> 16 & 255}.{sent >> 8 & 255}.{sent & 255}", PORT))
        except OSError as error:
            refused += error.errno == 1
seconds = time.monotonic() - began
with open("/proc/sys/net/netfilter/nf_conntrack_count") as file:
    said += [sent - refused, seconds, int(file.read())]
"""
        passed, seconds, tracked = python(sandbox, program, PORT=echo.port)
        # How many are refused depends on how fast they are sent. A tenth is for clocks that differ.
        assert passed <= DATAGRAMS * (1 + seconds) * 1.1
        assert tracked < 100
        assert sandbox.stats()["network_connections"] < 2_000
        again = "for n in 1 2 3 4 5; do python3 -c '{}' && break; sleep 1; done"
        program = _ECHO.format(port=echo.port).replace("240.0.0.1", "240.0.0.7")
        assert "HI\n" in sandbox.exec(again.format(program), timeout=60).stdout


@needs_native
def test_nobody_else_pays_for_it() -> None:
    """Without a function that could grant datagrams there is no device, and nothing has changed."""
    plain = redirected((4, 6))
    assert NativeNetwork(Network.allow("*"), "box").steps() == plain
    assert NativeNetwork(Network.deny(audit=print), "box").steps() == plain
    assert not any(NEAR[1].encode() in bytes(step[2]) for step in plain if step[0] == "netlink")
    with native_sandbox(network=Network.allow("*")) as sandbox:
        assert devices(sandbox) == ["lo"]
        said = python(sandbox, HEAD + 'said.append(meet(("8.8.8.8", 443), b"x"))')
        assert said == [[EPERM]]
    with native_sandbox(network=Network.policy(lambda conn: None)) as sandbox:
        assert devices(sandbox) == ["lo", "udp0", "udp1"]


def devices(sandbox: Sandbox) -> list[str]:
    lines = sandbox.exec("cat /proc/net/dev").stdout.splitlines()[2:]
    return sorted(line.split(":")[0].strip() for line in lines)


@needs_native
@needs_root
def test_an_owner_who_is_not_root(place: Path) -> None:
    with UdpEcho(AT) as echo:
        said = run_as_nobody(
            place,
            f"""
network = Network.policy(lambda conn: conn.accept() if conn.match_udp("{AT}:{echo.port}") else None)
with Sandbox(tier="native", network=network) as sandbox:
    print(sandbox.exec(["python3", "-c", {_ECHO.format(port=echo.port).replace("240.0.0.1", "240.0.0.7")!r}]).stdout)
""",
            first="""
from belljar import Network, Sandbox
with Sandbox(tier="native", network=Network.policy(lambda conn: conn.accept())) as sandbox:
    sandbox.exec(["python3", "-c", "import socket; socket.socket(2, 2).sendto(b'x', ('240.0.0.7', 9))"])
    sandbox.stats()
""",
        )
    assert said.strip() == "HI"


def test_a_proxy_that_is_ended_just_before_its_gate_closes_its_sockets() -> None:
    """As of a companion whose sandbox is closed: the gate cancels what is under way, that end too."""
    gate = Gate(Network.policy(lambda conn: None))
    listener = socket.create_server(("127.0.0.1", 0))
    packets, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    with other:
        end = start_proxy(gate, tcp=[listener], dns_datagrams=[], udp=Packets([packets], (), bytes(6)))
        end()
        gate.close()
        deadline = time.monotonic() + 60
        while (listener.fileno(), packets.fileno()) != (-1, -1):
            assert time.monotonic() < deadline
            time.sleep(0.01)
