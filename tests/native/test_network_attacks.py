"""Programs of a native sandbox that look for another way out of its network namespace. There is none."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from belljar import Network, NetworkLimits, Sandbox
from tests.native.boxes import native_sandbox, outward_address
from tests.native.conftest import needs_native
from tests.net.servers import HttpServer, Tripwire

pytestmark = needs_native
AT = "127.0.0.7"
EPERM, EACCES, EINVAL, ECONNREFUSED, ENETUNREACH, ECONNRESET = 1, 13, 22, 111, 101, 104


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer({"/": b"hello"}, address=AT) as made:
        yield made


@pytest.fixture(params=["granted", "granted to root", "none"])
def sandbox(request: pytest.FixtureRequest, server: HttpServer) -> Iterator[Sandbox]:
    granted = Network.allow(f"api.test:{server.port}", hosts={"api.test": AT})
    network = None if request.param == "none" else granted
    with native_sandbox(network=network, user="root" if "root" in request.param else "agent") as made:
        yield made


def python(sandbox: Sandbox, program: str, **words: Any) -> Any:
    """What a program says, as JSON. Each line of it that begins with `try` gives its result or its errno."""
    text = (
        HEAD + "".join(f"{name} = {value!r}\n" for name, value in words.items()) + program + "\nprint(json.dumps(said))"
    )
    result = sandbox.exec(f"python3 - <<'END'\n{text}\nEND")
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


HEAD = """
import json, os, socket, struct, time
said = []
def attempt(call, *words):
    began = time.monotonic()
    try:
        call(*words)
        said.append("done")
    except OSError as error:
        said.append(error.errno)
    if time.monotonic() - began > 10:
        said[-1] = f"{said[-1]} after {time.monotonic() - began:.1f} s"
def dial(address, port, kind=socket.SOCK_STREAM):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, kind) as s:
        s.settimeout(20)
        s.connect((address, port))
        s.send(b"GET / HTTP/1.0\\r\\n\\r\\n")
        if kind == socket.SOCK_STREAM and not s.recv(1):
            raise OSError(0, "ended")
"""

METADATA = [
    "169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254",
    "::ffff:169.254.169.254", "64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1",
]  # fmt: skip
PRIVATE = [
    "10.0.0.1", "172.17.0.1", "192.168.0.1", "10.0.2.2", "10.0.2.3", "fe80::1%lo", "fc00::1", "240.0.0.1", "240.0.0.7",
    "100::1", "255.255.255.254", "0.0.0.1",
]  # fmt: skip
REFUSED = {EPERM, EACCES, EINVAL, ECONNREFUSED, ENETUNREACH, ECONNRESET, 22, 99, 113, 0}


def test_metadata_and_private_addresses(sandbox: Sandbox, server: HttpServer) -> None:
    places = [(address, port) for address in METADATA + PRIVATE for port in (80, server.port)]
    said = python(sandbox, "for place in places: attempt(dial, *place)", places=places)
    assert {place: told for place, told in zip(places, said, strict=True) if told not in REFUSED} == {}
    assert not server.requests


def test_the_host_s_own_services(sandbox: Sandbox) -> None:
    """Whatever listens on the host, on loopback or on any of its addresses, and its abstract sockets."""
    outside = outward_address()
    with Tripwire("127.0.0.1") as wire, Tripwire("0.0.0.0") as wide, socket.socket(socket.AF_UNIX) as abstract:
        name = f"\0belljar-test-{wire.port}"
        abstract.bind(name)
        abstract.listen()
        places = [(address, wire.port) for address in ("127.0.0.1", "::1", "0.0.0.0", "::", "localhost", "240.0.0.1")]
        places += [(outside, wide.port), ("240.0.0.1", wide.port)]
        program = "for place in places: attempt(dial, *place)\n"
        program += "attempt(socket.socket(socket.AF_UNIX).connect, name)"
        said = python(sandbox, program, places=places, name=name)
        assert set(said) <= REFUSED
        assert said[-1] in (ECONNREFUSED, EPERM, EACCES)
        assert not wire.touched()
        assert not wide.touched()
        abstract.setblocking(False)
        with pytest.raises(BlockingIOError):
            abstract.accept()


def test_nothing_but_tcp_and_dns_leaves(sandbox: Sandbox) -> None:
    program = """
for address in ("8.8.8.8", "2606:4700:4700::1111", "224.0.0.251", "ff02::fb%lo", "169.254.169.254", "192.0.0.8"):
    for port in (123, 443, 5353, 1, 2):
        attempt(dial, address, port, socket.SOCK_DGRAM)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    attempt(s.sendto, b"x", ("255.255.255.255", 67))
"""
    assert set(python(sandbox, program)) <= {EPERM, ENETUNREACH, EINVAL, 99, ECONNREFUSED}


KINDS = {
    "raw": (2, 3, 1), "raw, any": (2, 3, 255), "raw ICMPv6": (10, 3, 58), "packet": (17, 3, 3), "cooked": (17, 2, 3),
    "ping": (2, 2, 1), "SCTP": (2, 1, 132), "SCTP messages": (2, 5, 132), "DCCP": (2, 6, 33), "UDP-Lite": (2, 2, 136),
    "VSOCK": (40, 1, 0), "netfilter": (16, 3, 12), "XDP": (44, 3, 0), "kernel crypto": (38, 5, 0),
    "Bluetooth": (31, 3, 1), "CAN": (29, 3, 1), "TIPC": (30, 1, 0), "RDS": (21, 5, 0), "SMC": (43, 1, 0),
    "MPTCP": (2, 1, 262), "key": (15, 3, 2),
}  # fmt: skip


def test_other_kinds_of_sockets(sandbox: Sandbox) -> None:
    program = """
def reach(family, kind, protocol):
    with socket.socket(family, kind, protocol) as s:
        if family == 16:
            s.send(struct.pack("=IHHII4s", 20, 10 << 8, 0x405, 1, 0, bytes(4)))
            error = struct.unpack_from("=i", s.recv(4096), 16)[0]
            if error:
                raise OSError(-error, "netlink")
        elif family == 40:
            s.connect((2, 22))
        else:
            s.settimeout(20)
            s.connect(("::ffff:8.8.8.8" if family == 10 else "8.8.8.8", 80))
            s.send(b"GET / HTTP/1.0\\r\\n\\r\\n")
            s.recv(1)
for kind in kinds:
    try:
        attempt(reach, *kind)
    except TypeError:
        said.append(22)
"""
    said = python(sandbox, program, kinds=list(KINDS.values()))
    refused = {EPERM, EACCES, EINVAL, 19, 22, 92, 93, 94, 95, 97, 99, ENETUNREACH, ECONNRESET, ECONNREFUSED, 113}
    assert {name: told for name, told in zip(KINDS, said, strict=True) if told not in refused} == {}


def test_the_namespace_can_not_be_changed(sandbox: Sandbox) -> None:
    """Routes, addresses, links and rules: by netlink, by ioctl, by sysctl, and by options of sockets."""
    program = """
import fcntl
def ask(protocol, kind, flags, body):
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol) as s:
        s.send(struct.pack("=IHHII", 16 + len(body), kind, flags | 5, 1, 0) + body)
        error = struct.unpack_from("=i", s.recv(4096), 16)[0]
        if error:
            raise OSError(-error, "netlink")
def attribute(kind, data):
    return struct.pack("=HH", 4 + len(data), kind) + data + bytes(-len(data) % 4)
lo = struct.pack("=i", 1)
attempt(ask, 0, 16, 0, struct.pack("=BxHiII", 0, 0, 1, 0, 1))
dummy = attribute(3, b"dummy9\\0") + attribute(18, attribute(1, b"dummy\\0"))
attempt(ask, 0, 16, 0x400, struct.pack("=BxHiII", 0, 0, 0, 0, 0) + dummy)
address = attribute(1, bytes(4)) + attribute(2, bytes(4))
attempt(ask, 0, 20, 0x400, struct.pack("=BBBBi", 2, 32, 0, 0, 1) + address)
attempt(ask, 0, 24, 0x400, struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 3, 0, 1, 0) + attribute(4, lo))
attempt(ask, 0, 25, 0, struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 3, 0, 1, 0))
attempt(ask, 0, 32, 0x400, struct.pack("=BBBBBBBBI", 2, 0, 0, 0, 254, 0, 0, 1, 0))
with socket.socket() as s:
    attempt(fcntl.ioctl, s, 0x8914, struct.pack("16sh14x", b"lo", 0))
    attempt(fcntl.ioctl, s, 0x8916, struct.pack("16sHH4s8x", b"lo:1", 2, 0, b"\\1\\1\\1\\1"))
    attempt(s.setsockopt, socket.SOL_IP, 19, 1)
    attempt(s.setsockopt, socket.SOL_SOCKET, 36, 7)
    attempt(s.setsockopt, socket.SOL_SOCKET, 33, 1)
attempt(os.open, "/dev/net/tun", os.O_RDWR)
for name in ("net/ipv4/ip_forward", "net/ipv4/conf/lo/route_localnet", "net/core/somaxconn"):
    attempt(os.open, "/proc/sys/" + name, os.O_WRONLY)
"""
    said = python(sandbox, program)
    assert set(said) <= {EPERM, EACCES, 2, 30, 95}, said


def test_ways_into_another_namespace(sandbox: Sandbox) -> None:
    program = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(function, *words):
    if function(*words) != 0:
        raise OSError(ctypes.get_errno(), "call")
attempt(call, libc.unshare, 0x40000000)
attempt(call, libc.unshare, 0x10000000 | 0x40000000)
for pid in (1, "self", os.getppid()):
    try:
        fd = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY)
    except OSError as error:
        said.append(error.errno)
    else:
        attempt(call, libc.setns, fd, 0)
"""
    assert set(python(sandbox, program)) <= {EPERM, EACCES, 2, 38}


def test_the_listeners_are_no_way_in(server: HttpServer) -> None:
    """Their addresses can't be connected to, bound, or come from; neither are their ports in the way of programs."""
    with native_sandbox(network=Network.allow(f"api.test:{server.port}", hosts={"api.test": AT})) as sandbox:
        program = """
for address in ("192.0.0.8", "100::8"):
    for port in (1, 2, 3, 53, 80):
        attempt(dial, address, port)
"""
        assert set(python(sandbox, program)) == {ECONNREFUSED}
        program = """
for family, address in ((2, "192.0.0.8"), (10, "100::8")):
    for port in (1, 2):
        with socket.socket(family) as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            attempt(s.bind, (address, port))
"""
        assert set(python(sandbox, program)) <= {EACCES, 98, 99}
        stats = sandbox.stats()
        assert stats["network_connections"] == 0
        # It still serves whoever comes by the front door.
        assert sandbox.exec(f"curl -sS http://api.test:{server.port}/").stdout == "hello"


@pytest.mark.parametrize("order", [("allowed", "denied"), ("denied", "allowed")])
def test_one_source_port_for_two_destinations(server: HttpServer, order: tuple[str, str]) -> None:
    """Each connection is judged by its own destination, whatever it shares with another."""
    with (
        Tripwire(AT) as wire,
        native_sandbox(network=Network.allow(f"api.test:{server.port}", hosts={"api.test": AT})) as sandbox,
    ):
        program = """
socket.getaddrinfo("api.test", 80)
held = []
for name in order:
    s = socket.socket()
    s.settimeout(30)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind(("10.0.2.15", 5555))
    held.append(s)
for s, name in zip(held, order):
    try:
        s.connect(("240.0.0.7", ports[name]))
        s.sendall(b"GET / HTTP/1.0\\r\\n\\r\\n")
        said.append(s.recv(12).decode())
    except OSError as error:
        said.append(error.errno)
"""
        said = python(sandbox, program, order=order, ports={"allowed": server.port, "denied": wire.port})
        assert said[order.index("denied")] in REFUSED
        assert said[order.index("allowed")] == "HTTP/1.1 200"
        assert not wire.touched()


def test_floods_are_bounded_and_end(server: HttpServer) -> None:
    """Connections and questions without end: refused beyond the limits, and the next client is served."""
    limits = NetworkLimits(connections=20, dns_per_second=20)
    network = Network.allow(f"api.test:{server.port}", hosts={"api.test": AT}, limits=limits)
    with native_sandbox(network=network) as sandbox:
        program = """
held = []
for number in range(400):
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex(("240.0.0.7", PORT))
    held.append(s)
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as names:
    names.setblocking(False)
    for number in range(3000):
        try:
            names.sendto(struct.pack("!6H", number, 256, 1, 0, 0, 0) + b"\\3abc\\4evil\\0\\0\\1\\0\\1", ("8.8.8.8", 53))
        except OSError:
            pass
said.append(len(held))
"""
        assert python(sandbox, program, PORT=server.port) == [400]
        # The kernel refuses a flood, before it tracks it or the owner hears of it.
        program = """
refused, began = 0, time.monotonic()
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as names:
    for number in range(20000):
        try:
            names.sendto(b"x", (f"1.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}", 53))
        except OSError as error:
            refused += error.errno == 1
seconds = time.monotonic() - began
with open("/proc/sys/net/netfilter/nf_conntrack_count") as file:
    said += [20_000 - refused, seconds, int(file.read())]
"""
        passed, seconds, tracked = python(sandbox, program)
        # Twice the rate, and a burst of 4 seconds of it. A tenth is for clocks that differ.
        assert passed <= 2 * limits.requests_per_second * (4 + seconds) * 1.1
        assert tracked < passed + 1_000
        assert sandbox.exec(f"curl -sS --retry 5 --retry-all-errors http://api.test:{server.port}/").stdout == "hello"


def test_two_sandboxes_do_not_meet() -> None:
    """The same addresses, in two namespaces."""
    network = Network.allow("api.test:80", hosts={"api.test": AT})
    with native_sandbox(network=network) as first, native_sandbox(network=network) as second:
        serve = "(setsid python3 -m http.server 8007 >/dev/null 2>&1 &); "
        reach = (
            "for a in 127.0.0.1 10.0.2.15; do curl -s -o /dev/null -m 30 http://$a:8007/ && echo reached; done; true"
        )
        wait = "for n in $(seq 600); do curl -sfo /dev/null localhost:8007 && break; sleep 0.05; done; "
        assert first.exec(serve + wait + reach).stdout == "reached\n" * 2
        assert second.exec(reach).stdout == ""
