"""Attacks from a compromised guest kernel, which says anything on every port, and from a QEMU that it took over."""

from __future__ import annotations

import fcntl
import os
import resource
import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from belljar import Mount, Network, Sandbox
from belljar.abi.wire import Failure, encode
from belljar.engines.zig_host import zig_compiler
from belljar.fuse.serve_host import Served, StreamDevice
from belljar.fuse.session import Session
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.fs.quota import Quota
from belljar.net.policy import Conn
from belljar.owner.handle_host import WorkerUnavailable
from belljar.vm.command import Disk, Hardware
from belljar.vm.memory_host import make_memory, seal
from belljar.vm.parts_host import Parts, find_parts
from belljar.vm.process_host import Process, Start, start_qemu
from belljar.vm.qmp_host import Monitor, MonitorError
from belljar.vm.relays_host import PortRelay
from belljar.vm.talk_host import await_hello, send_plan
from tests.net.servers import UdpEcho
from tests.vm.conftest import MACHINE

# QEMU, taken over.


@pytest.mark.slow
def test_qemu_can_open_connect_and_execute_nothing(tmp_path: Path) -> None:
    parts = find_parts()
    boot = tmp_path / "boot"
    shutil.copytree(parts.boot, boot)
    boot.chmod(0o755)
    compiler, environment = zig_compiler("cc", "x86_64-linux-musl", str(tmp_path))
    source = Path(__file__).with_name("attacks.c")
    words = [*compiler, "-static", "-Os", "-w", "-o", str(boot / "attacks"), str(source)]
    subprocess.run(words, env=environment, check=True, capture_output=True)
    memory = make_memory(256 << 20)
    seal(memory)
    taken = Parts(parts.root, str(boot), f"{parts.root}/boot/attacks", parts.tsc_khz, "attack")
    process = start_qemu(Start(taken, Hardware(1, 256), Disk(), -1, memory))
    try:
        assert process.wait(200)
        # An ordinary user's has one id, so the empty home of its root is its own.
        expected = ["tried 45, worked 0"] if os.geteuid() == 0 else ["WORKED: open /root", "tried 45, worked 1"]
        assert process.console_text().splitlines() == expected
    finally:
        process.end()
        process.control.close()
        os.close(memory)


# The first frames.


class Fake(Process):
    """A process whose machine says what a test says."""

    def __init__(self) -> None:
        self.control, self.machine = socket.socketpair()
        self.console, self._end = socket.socketpair()
        self._end.sendall(b"\x1b[31mkernel panic\x07\n" * 3)

    def close(self) -> None:
        for each in (self.control, self.machine, self.console, self._end):
            each.close()


@pytest.fixture
def fake() -> Iterator[Fake]:
    made = Fake()
    yield made
    made.close()


def frame(body: bytes) -> bytes:
    return struct.pack("<I", len(body)) + body


HELLOS = {
    "nothing": b"",
    "silence in a frame": struct.pack("<I", 100) + b"half",
    "a length of 0": struct.pack("<I", 0),
    "a length of 4 GiB": struct.pack("<I", 0xFFFFFFFF) + b"x" * 100,
    "another word": frame(msgspec.msgpack.encode(["hullo"])),
    "no msgpack": frame(b"\xc1\xff"),
    "a ready": encode(Failure(0, 1, b"x", None)),
}


@pytest.mark.parametrize("said", HELLOS)
def test_a_machine_that_begins_wrong(fake: Fake, said: str) -> None:
    fake.machine.sendall(HELLOS[said])
    with pytest.raises(WorkerUnavailable) as caught:
        await_hello(fake, 0.3)
    assert "\x1b" not in str(caught.value)
    assert "kernel panic" in str(caught.value)


ANSWERS = {
    "a length of 4 GiB": struct.pack("<I", 0xFFFFFFFF),
    "no msgpack": frame(b"\xc1" * 50),
    "a deep nest": frame(b"\x91" * 5000),
    "another message": encode(Failure(0, 2, b"step 3 (mount /root): \xff\xfe", None)),
    "an output": frame(msgspec.msgpack.encode(["output", 1, 1, b"x"])),
    "a ready without layers": frame(msgspec.msgpack.encode(["ready"])),
}


@pytest.mark.parametrize("said", ANSWERS)
def test_a_machine_that_answers_a_plan_wrong(fake: Fake, said: str) -> None:
    fake.machine.sendall(ANSWERS[said])
    with pytest.raises(WorkerUnavailable):
        send_plan(fake, frame(b"plan"), 0.3)


MONITORS = {
    "garbage": b"\xff\xfe\n",
    "no end": b"x" * (3 << 20),
    "an array": b"[1,2]\n",
    "the end": b"",
}


@pytest.mark.parametrize("said", MONITORS)
def test_a_monitor_that_lies(said: str) -> None:
    ours, theirs = socket.socketpair()

    def speak() -> None:
        try:
            theirs.sendall(MONITORS[said])
        except OSError:
            return
        theirs.shutdown(socket.SHUT_WR)

    thread = threading.Thread(target=speak)
    thread.start()
    with pytest.raises(MonitorError):
        Monitor(ours).call("stop")
    ours.close()
    thread.join()
    theirs.close()


# FUSE.


def request(opcode: int, node: int = 1, body: bytes = b"", length: int | None = None, unique: int = 2) -> bytes:
    size = 40 + len(body) if length is None else length
    return struct.pack("<IIQQIIII", size, opcode, unique, node, 0, 0, 1, 0) + body


INIT = request(26, body=struct.pack("<IIII", 7, 38, 65_536, 0xFFFFFFFF) + bytes(48), unique=1)
FUSE = {
    "no such request": request(9999),
    "no such node": request(3, 77777, bytes(16)),
    "a short body": request(15, 1, b"x"),
    "a read of a handle that is not open": request(15, 1, struct.pack("<QQIIQII", 99, 0, 4096, 0, 0, 0, 0)),
    "a read of 4 GiB": request(15, 1, struct.pack("<QQIIQII", 0, 0, 0xFFFFFFFF, 0, 0, 0, 0)),
    "a write that says it is longer": request(16, 1, struct.pack("<QQIIQII", 0, 0, 1 << 20, 0, 0, 0, 0) + b"x"),
    "a name with a slash": request(1, 1, b"../../etc/passwd\0"),
    "a name without an end": request(1, 1, b"abc"),
    "a long name": request(1, 1, b"n" * 5000 + b"\0"),
    "forget far too often": request(2, 1, struct.pack("<Q", 1 << 63)),
    "forget many": request(42, 0, struct.pack("<II", 0xFFFFFFFF, 0)),
    "a second init": INIT,
    "a rename to nowhere": request(45, 1, struct.pack("<QII", 4242, 0, 0) + b"a\0b\0"),
}
ENDS = {
    "a length of 3": struct.pack("<I", 3),
    "a length of 4": struct.pack("<I", 4) + b"xxxx",
    "a length of 4 GiB": struct.pack("<I", 0xFFFFFFFF) + bytes(100),
    "the end in a message": request(3, 1, bytes(16))[:20],
}


@pytest.fixture
def mounted() -> Iterator[tuple[socket.socket, Served, list[BaseException]]]:
    ours, machine = socket.socketpair()
    problems: list[BaseException] = []
    session = Session(MemoryServer(time.time_ns, Quota(1 << 20, 100)), time.time_ns, report=problems.append)
    served = Served(StreamDevice(ours), session)
    machine.settimeout(60)
    machine.sendall(INIT)
    assert _reply(machine)[0] == 1
    yield machine, served, problems
    machine.close()
    served.close()
    ours.close()


Mounted = tuple[socket.socket, Served, list[BaseException]]


@pytest.fixture
def many_files() -> Iterator[None]:
    """The limit of open files is what it may be at most: often it is 1024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_port_of_a_high_number(many_files: None) -> None:
    """As an owner of many machines has."""
    low, machine = socket.socketpair()
    with low, machine, socket.socket(fileno=fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, 1024)) as high:
        high.setblocking(False)
        device = StreamDevice(high)
        end = threading.Timer(0.1, machine.sendall, [bytes(4)])
        end.start()
        device.close()
        end.join()
        assert machine.recv(4) == bytes(4)


def _reply(machine: socket.socket) -> tuple[int, int]:
    head = b""
    while len(head) < 16:
        head += machine.recv(16 - len(head))
    size, error, unique = struct.unpack("<IiQ", head)
    left = size - 16
    while left:
        left -= len(machine.recv(left))
    return unique, error


@pytest.mark.parametrize("attack", FUSE)
def test_fuse_messages_of_a_hostile_kernel(mounted: Mounted, attack: str) -> None:
    """Whatever it says, the next honest request is answered, and nothing breaks in the owner."""
    machine, _, problems = mounted
    machine.sendall(FUSE[attack])
    machine.sendall(request(3, 1, bytes(16), unique=77))
    while (answer := _reply(machine))[0] != 77:
        assert answer[1] <= 0
    assert answer == (77, 0)
    assert problems == []


@pytest.mark.parametrize("attack", ENDS)
def test_a_stream_that_makes_no_sense_ends(mounted: Mounted, attack: str) -> None:
    machine, served, problems = mounted
    machine.sendall(ENDS[attack])
    machine.shutdown(socket.SHUT_WR)
    assert served.wait(60)
    assert problems == []


# Connections.

CONNECTIONS: dict[str, bytes] = {
    "a length of 1": struct.pack("<I", 1),
    "a length of 4 GiB": struct.pack("<I", 0xFFFFFFFE) + bytes(50),
    "an abort": struct.pack("<I", 0xFFFFFFFF),
    "half a length": b"\x10",
    "half a piece": struct.pack("<I", 100) + b"abc",
}


@pytest.mark.parametrize("attack", CONNECTIONS)
def test_a_connection_that_makes_no_sense_ends(attack: str) -> None:
    relay, machine = socket.socketpair()
    with PortRelay(relay).join() as ours:
        ours.settimeout(60)
        machine.sendall(CONNECTIONS[attack])
        machine.shutdown(socket.SHUT_WR)
        assert ours.recv(10) == b""
    relay.close()
    machine.close()


def test_a_port_that_is_given_away_before_its_end_was_read() -> None:
    """The machine tells the end of a connection and begins the next one, while the owner's thread does not run."""
    relay, machine = socket.socketpair()
    port = PortRelay(relay)
    with port.join() as first, port.join() as second:
        second.settimeout(60)
        machine.sendall(struct.pack("<I", 0) + struct.pack("<I", 8) + b"next" + struct.pack("<I", 0))
        assert first.recv(10) == b""
        first.close()
        assert second.recv(10) == b"next"
        assert second.recv(10) == b""
    relay.close()
    machine.close()


# Packets.

_PACKETS = """
import os, socket, struct
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
raw.bind(("eth0", 0))
mac = bytes.fromhex("52540062656c")
send = lambda kind, body: raw.send(b"\\xff" * 6 + mac + struct.pack("!H", kind) + body)
for number in range(200):
    send(0x0806, os.urandom(28))
    send(0x0800, os.urandom(100))
    send(0x86DD, os.urandom(100))
    send(0x8100, os.urandom(60))
    send(number, os.urandom(1400))
dhcp = b"\\x01\\x01\\x06\\0" + os.urandom(240)
udp = struct.pack("!HHHH", 68, 67, 8 + len(dhcp), 0) + dhcp
ip = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 20 + len(udp), 1, 0, 64, 17, 0, bytes(4), b"\\xff" * 4)
send(0x0800, ip + udp)
def reach(*where, kind=socket.SOCK_STREAM):
    try:
        family = socket.AF_INET6 if ":" in where[0] else socket.AF_INET
        with socket.socket(family, kind) as s:
            s.settimeout(3)
            s.connect(where)
            s.send(b"GET / HTTP/1.0\\r\\n\\r\\n")
            return bool(s.recv(100))
    except OSError:
        return False
for port in (1, 2, 22, 80, 8080):
    for place in ("10.0.2.2", "fd00:6a61:7200::2", "127.0.0.1"):
        print(place, port, reach(place, port))
for port in (1, 2, 67, 123, 5353):
    print("udp", port, reach("10.0.2.2", port, kind=socket.SOCK_DGRAM))
print("metadata", reach("169.254.169.254", 80))
"""


@pytest.mark.battery
@pytest.mark.slow
def test_packets_of_a_hostile_kernel() -> None:
    """Frames of any kind, DHCP, the proxy's own listeners, other ports of the gateway: nothing answers, and the owner
    goes on."""
    with Sandbox(**MACHINE, user="root", network=Network.allow("nothing.test")) as lane:
        said = lane.exec(["python3", "-c", _PACKETS], timeout=300).check().stdout
        assert "True" not in said
        assert said.count("False") == 21
        assert lane.exec("curl -sS --max-time 60 http://nothing.invalid/").exit_code == 6


_DATAGRAMS = """
import os, socket, struct
raw = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
raw.bind(("eth0", 0))
macs = bytes.fromhex("52540062656d52540062656c")
def summed(data):
    return struct.pack("!H", 0xFFFF - int.from_bytes(data, "big") % 0xFFFF)
def send(src, dst, fragment=0, size=14, protocol=17):
    body = struct.pack("!HHHH", 4000, PORT, size, 0) + b"forged"
    ends = socket.inet_aton(src), socket.inet_aton(dst)
    head = struct.pack("!BBHHHBBH4s4s", 0x45, 0, 34, 7, fragment, 64, protocol, 0, *ends)
    head = head[:10] + summed(head) + head[12:]
    raw.send(macs + b"\\x08\\0" + head + body)
for src in ("10.0.2.2", "10.0.2.14", "127.0.0.1", "8.8.8.8", "240.0.0.1", "0.0.0.0", "192.0.0.9", "255.255.255.255"):
    send(src, "240.0.0.1")
for dst in ("127.0.0.1", "10.0.2.2", "10.0.2.15", "224.0.0.1", "255.255.255.255", "10.0.2.255", "0.0.0.0"):
    send("10.0.2.15", dst)
send("10.0.2.15", "240.0.0.1", fragment=0x2000)
send("10.0.2.15", "240.0.0.1", fragment=5)
for size in (0, 7, 1000, 65535):
    send("10.0.2.15", "240.0.0.1", size=size)
send("10.0.2.15", "240.0.0.1", protocol=136)
six = [socket.inet_pton(socket.AF_INET6, text) for text in ("fd00:6a61:7200::16", "100::1")]
inner = struct.pack("!IHBB16s16s", 6 << 28, 14, 17, 64, *six)
raw.send(macs + b"\\x86\\xdd" + inner + struct.pack("!HHHH", 4000, PORT, 14, 0) + b"forged")
for number in range(2000):
    raw.send(macs + b"\\x08\\0" + b"\\x45" + os.urandom(99))
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
    s.settimeout(20)
    for payload in (b"true", b"t" * 5000):
        s.sendto(payload, ("240.0.0.1", PORT))
        print(len(s.recv(9000)))
"""


@pytest.mark.slow
def test_datagrams_of_a_hostile_kernel() -> None:
    """Forged sources, addresses of the namespace, fragments that never become whole: no flow begins with any of it."""
    asked: list[str] = []

    def policy(conn: Conn) -> Any:
        asked.append(repr(conn))
        return conn.accept()

    with UdpEcho() as echo, Sandbox(**MACHINE, user="root", network=Network.policy(policy)) as lane:
        program = _DATAGRAMS.replace("PORT", str(echo.port))
        assert lane.exec(["python3", "-c", program], timeout=300).check().stdout == "4\n5000\n"
        assert [len(data) for data in echo.received] == [4, 5000]
        assert asked == [f"<Conn udp 127.0.0.1:{echo.port}>"]


@pytest.mark.slow
def test_root_inside_reaches_nothing_of_the_owner() -> None:
    """The kernel is the guest's own: it may write to every port and every device of its machine."""
    with Sandbox(**MACHINE, user="root", mounts={"/m": Mount.memory({"f": "1"})}) as lane:
        devices = "for port in /dev/vport*; do head -c 100000 /dev/urandom > $port 2>/dev/null; done; echo done"
        assert lane.exec(devices, timeout=120).stdout == "done\n"
        assert lane.exec("dd if=/dev/urandom of=/dev/vda bs=4k count=1 2>&1; cat /m/f", timeout=120).stdout.endswith(
            "1"
        )
