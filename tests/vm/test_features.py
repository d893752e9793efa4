"""What the model of this tier promises, in its order: definitions, root filesystems, block stores, mounts, network,
exec, spawn, pty. Each as a user meets it."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from belljar import (
    AsyncSandbox,
    BlockStore,
    Event,
    Image,
    Machine,
    Mount,
    Network,
    Rootfs,
    Sandbox,
    SandboxCreationError,
    Store,
)
from belljar.net.message import HttpRequest as Request
from belljar.net.policy import Conn
from belljar.vm.blockstore import BlockContext, BlockRange, Chunk
from belljar.vm.parts_host import find_parts, run_tool
from tests.native.test_root_sandboxes import small_archive
from tests.net.servers import DnsServer
from tests.vm.conftest import MACHINE

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def api() -> Iterator[tuple[str, list[str]]]:
    """A web service of the owner's, and the credentials that arrived there."""
    seen: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("authorization", ""))
            self.send_response(200)
            self.send_header("content-length", "8")
            self.end_headers()
            self.wfile.write(b"octocat\n")

        def log_message(self, *args: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"127.0.0.1:{server.server_port}", seen
    server.shutdown()
    server.server_close()


def test_the_first_example(api: tuple[str, list[str]], debian: Rootfs, tmp_path: Path) -> None:
    """A durable lane with a host-controlled workspace, DNS and one API with an injected token, nothing else."""
    address, seen = api
    seen.clear()
    host, _, port = address.partition(":")

    def add_token(request: Request) -> None:
        request.headers.set("authorization", "Bearer short-lived")

    def policy(conn: Conn) -> None:
        if dns := conn.match_dns("api.github.test"):
            dns.accept()
        elif github := conn.match_http(f"api.github.test:{port}"):
            github.accept(add_token)

    machine = Machine(
        rootfs=Rootfs.cow(debian, BlockStore.directory(tmp_path / "lane")),
        cpus=2,
        memory_mib=512,
        accel="tcg",
        network=Network.policy(policy, hosts={"api.github.test": host}),
    )
    workspace = Mount.memory({"task.txt": "Summarize the current GitHub user\n"})
    with machine.boot(mounts={"/workspace": workspace}, cwd="/workspace", hostname="agent-42") as lane:
        script = f"cat task.txt && hostname && curl -fsSL --max-time 60 http://api.github.test:{port}/user"
        result = lane.exec(["sh", "-lc", script])
        assert (result.stdout, result.stderr) == ("Summarize the current GitHub user\nagent-42\noctocat\n", "")
        assert lane.exec("curl -sS --max-time 60 http://gitlab.test/").exit_code == 6
    assert seen == ["Bearer short-lived"]


def test_a_read_only_rootfs_and_a_memory_workspace(debian: Rootfs) -> None:
    mounts = {"/workspace": Mount.memory({"hello.txt": "hello from the host\n"})}
    with Sandbox(**MACHINE, rootfs=debian, mounts=mounts, user="root") as lane:
        assert lane.exec(["cat", "hello.txt"]).stdout == "hello from the host\n"
        assert "Read-only file system" in lane.exec("touch /usr/x").stderr
        assert lane.exec("touch /tmp/x /run/x && hostname").stdout == "belljar\n"


def test_rootfs_mutations_survive_in_a_block_store(debian: Rootfs, tmp_path: Path) -> None:
    """Two boots in sequence see each other's packages; two at once are refused; a reusable definition."""
    store = BlockStore.sqlite(tmp_path / "lane.db")
    machine = Machine(rootfs=Rootfs.cow(source=Rootfs.compose(debian, store)), accel="tcg")
    package = (
        "mkdir -p /p/DEBIAN /p/opt && printf 'Package: kept\\nVersion: 1\\nArchitecture: all\\nMaintainer: a <a@b>\\n"
        "Description: d\\n' > /p/DEBIAN/control && echo payload > /p/opt/kept && dpkg-deb -b /p /tmp/kept.deb && "
        "dpkg -i /tmp/kept.deb"
    )
    with machine.boot(user="root") as lane:
        lane.exec(package).check()
        with pytest.raises(SandboxCreationError, match="attached to a machine that runs"):
            machine.boot()
    with machine.boot(user="root") as lane:
        assert (
            lane.exec("cat /opt/kept; dpkg -s kept | grep ^Status").stdout == "payload\nStatus: install ok installed\n"
        )


@pytest.mark.battery
def test_flatten_and_bytes(debian: Rootfs, tmp_path: Path) -> None:
    """Offline image work: base and overlay as one standalone qcow2, which qemu-img accepts and which boots."""
    store = BlockStore.directory(tmp_path / "lane")
    with Sandbox(**MACHINE, rootfs=Rootfs.cow(debian, store), user="root") as lane:
        lane.exec("echo flat > /var/flat; sync").check()
    image = Rootfs.flatten(Rootfs.compose(debian, store), BlockStore.directory(tmp_path / "image", 1 << 20))
    file = tmp_path / "image.qcow2"
    with file.open("wb") as out:
        for chunk in Rootfs.bytes(image):
            out.write(chunk)
    checked = run_tool(find_parts(), ["qemu-img", "check", "-f", "qcow2", str(file)])
    assert checked.returncode == 0, checked.stdout
    with Sandbox(**MACHINE, rootfs=image) as lane:
        assert lane.exec("cat /var/flat").stdout == "flat\n"


def test_bytes_of_a_built_in_image(debian: Rootfs) -> None:
    stream = Rootfs.bytes(debian)
    assert next(stream)[:4] == b"QFI\xfb"


def test_an_ephemeral_rootfs_is_writable_bounded_and_forgotten(debian: Rootfs) -> None:
    events: list[Event] = []
    rootfs = Rootfs.ephemeral(debian, max_dirty_bytes=24 << 20)
    with Sandbox(**MACHINE, rootfs=rootfs, user="root", on_event=events.append) as lane:
        lane.exec("echo mine > /var/mine && sync").check()
        assert lane.exec("dd if=/dev/urandom of=/var/big bs=1M count=32 conv=fsync").exit_code != 0
    assert any("max_dirty_bytes" in str(event.data.get("error")) for event in events if event.kind == "store")
    with Sandbox(**MACHINE, rootfs=rootfs) as lane:
        assert lane.exec("ls /var/mine").exit_code == 2


def test_what_a_durable_rootfs_buffers_is_bounded(debian: Rootfs) -> None:
    """Beyond max_dirty_bytes changed blocks are written to the store, though nobody flushes."""
    calls: list[str] = []

    class Recorded(BlockStore):
        block_size = 1 << 16
        kept: ClassVar[dict[int, bytes]] = {}

        def list(self, context: BlockContext) -> Sequence[int]:
            return [*self.kept]

        def read(self, range: BlockRange, context: BlockContext) -> Sequence[Chunk]:
            return [(index, data) for index, data in self.kept.items() if range.start <= index < range.stop]

        def write(self, chunks: Sequence[Chunk], context: BlockContext) -> None:
            calls.append("write")
            self.kept.update(chunks)

        def flush(self, context: BlockContext) -> None:
            calls.append("flush")

    with Sandbox(**MACHINE, rootfs=Rootfs.cow(debian, Recorded(), max_dirty_bytes=1 << 20), user="root") as lane:
        lane.exec("head -c 12M /dev/zero > /var/big; sync").check()  # so that it has its place
        calls.clear()
        lane.exec("dd if=/dev/urandom of=/var/big bs=1M count=12 conv=notrunc oflag=direct").check()
        assert calls.count("write") >= calls.count("flush") + 3  # the guest's journal may flush meanwhile
        wanted = lane.exec("sha256sum < /var/big").stdout
    with Sandbox(**MACHINE, rootfs=Rootfs.cow(debian, Recorded())) as lane:
        assert lane.exec("sha256sum < /var/big").stdout == wanted


def test_a_store_of_another_base_is_refused(debian: Rootfs) -> None:
    class Picky(BlockStore):
        def list(self, context: object) -> list[int]:
            raise ValueError(f"not {str(context)[:40]}")

    with pytest.raises(SandboxCreationError, match="not BlockContext"):
        Sandbox(**MACHINE, rootfs=Rootfs.cow(debian, Picky()))


@pytest.mark.battery
def test_a_definition_is_booted_with_different_mounts(debian: Rootfs) -> None:
    """It boots nothing by itself; what is mounted, the directory and the host name are each machine's own."""
    machine = Machine(rootfs=debian, cpus=1, memory_mib=256, accel="tcg")
    for name in ("one", "two"):
        mounts = {f"/run/{name}": Mount.memory({"README.md": f"# {name}\n"})}
        with machine.boot(mounts=mounts, cwd=f"/run/{name}", hostname=name) as lane:
            look = "cat README.md; pwd; hostname; ls /run | grep -cE '^(one|two)$'; nproc"
            assert lane.exec(look).stdout == f"# {name}\n/run/{name}\n{name}\n1\n1\n"


def test_mount_points(debian: Rootfs, tmp_path: Path) -> None:
    """Missing ones are created in memory and in mounts; in a root that is kept, and in a read-only one, that fails."""
    tree = Mount.memory({"f": "1\n"})
    with Sandbox(**MACHINE, mounts={"/made/up/path": tree, "/made/up/path/below": tree}) as lane:
        assert lane.exec("cat /made/up/path/f /made/up/path/below/f").stdout == "1\n1\n"
    with pytest.raises(Exception, match="Read-only file system"):
        Sandbox(**MACHINE, rootfs=debian, mounts={"/made/up": tree})
    durable = Rootfs.cow(debian, BlockStore.directory(tmp_path / "lane"))
    with pytest.raises(Exception, match="would change the root filesystem"):
        Sandbox(**MACHINE, rootfs=durable, mounts={"/made/up": tree})
    with Sandbox(**MACHINE, rootfs=durable, mounts={"/run/a/b": tree}) as lane:
        assert lane.exec("cat /run/a/b/f").stdout == "1\n"


def test_the_network_is_denied_by_default(shared: Sandbox) -> None:
    assert shared.exec("curl -sS --max-time 20 http://93.184.216.34/").exit_code == 7
    assert shared.exec("curl -sS --max-time 20 http://example.test/").exit_code == 6


def test_policies_see_endpoints_and_grant_one_flow_each(api: tuple[str, list[str]]) -> None:
    """Raw TCP and names by a resolver of the owner's choice; what is to be HTTP and is not ends; the rest is denied."""
    port = int(api[0].rpartition(":")[2])
    seen: list[tuple[str, bool]] = []

    def policy(conn: Conn) -> None:
        seen.append((conn.src.ip, conn.dst.is_public_internet()))
        if dns := conn.match_dns("*.test"):
            dns.accept(resolvers=[names.authority])
        elif raw := conn.match_tcp(f"raw.test:{port}"):
            raw.accept()
        elif web := conn.match_http(f"web.test:{port}"):
            web.accept()

    hosts = {"raw.test": "127.0.0.1", "web.test": "127.0.0.1"}
    speak = "exec 3<>/dev/tcp/{}/{}; printf '{}' >&3; cat <&3"
    with (
        DnsServer({"public.test": ["93.184.216.34"]}) as names,
        Sandbox(**MACHINE, network=Network.policy(policy, hosts=hosts)) as lane,
    ):
        assert lane.exec("getent ahostsv4 public.test").stdout.split()[0] == "93.184.216.34"
        assert lane.exec("getent hosts public.example").exit_code == 2
        assert lane.exec(speak.format("raw.test", port, "GET / HTTP/1.0\\r\\n\\r\\n")).stdout.endswith("octocat\n")
        assert lane.exec(f"curl -sS --max-time 60 http://web.test:{port}/").stdout == "octocat\n"
        before = len(api[1])
        assert "octocat" not in lane.exec(speak.format("web.test", port, "no such protocol\\r\\n\\r\\n")).stdout
        assert lane.exec(f"curl -sS --max-time 60 http://raw.test:{port + 1}/").exit_code != 0
        assert len(api[1]) == before
        assert not any(public for _, public in seen)
        assert lane.exec("curl -sS --max-time 60 http://93.184.216.34/").exit_code != 0  # denied, and never dialled
        assert seen[-1][1]
    assert len({source for source, _ in seen}) <= 2, "its own addresses, of both versions"


def test_a_writable_root_without_a_trust_store_fails_closed(tmp_path: Path) -> None:
    image = Image.oci(small_archive(tmp_path)).build(Store.memory())
    with pytest.raises(SandboxCreationError, match="install the package ca-certificates"):
        Sandbox(**MACHINE, image=image, network=Network.policy(lambda conn: None))


def test_https_with_middleware_is_trusted_inside(shared: Sandbox, debian: Rootfs) -> None:
    """The sandbox's own authority is in the image's trust store; of a read-only root only below /run."""

    def policy(conn: Conn) -> None:
        if web := conn.match_http("example.test"):
            web.accept(lambda request: None)

    look = "grep -c BEGIN /etc/ssl/certs/ca-certificates.crt; echo $SSL_CERT_FILE; ls $SSL_CERT_FILE"
    usual = int(shared.exec(look).stdout.split()[0])
    with Sandbox(**MACHINE, network=Network.policy(policy)) as lane:
        assert lane.exec(look).stdout.split()[0] == str(usual + 1)
    with Sandbox(**MACHINE, network=Network.policy(policy), rootfs=debian) as lane:
        counted, place, found = lane.exec(look).stdout.split()
        assert (counted, place, found) == (str(usual), "/run/belljar-ca/ca-certificates.crt", place)


def test_exec_gives_everything_when_it_ends(shared: Sandbox) -> None:
    result = shared.exec(["sh", "-c", "echo $CI; echo err >&2; pwd; exit 3"], cwd="/tmp", env={"CI": "1"})
    assert (result.exit_code, result.stdout, result.stderr) == (3, "1\n/tmp\n", "err\n")


NO_SLEEP = "while pgrep sleep > /dev/null; do :; done"
"""What was killed is there until its parent has noticed."""


def test_a_timeout_ends_the_process_group_with_124(shared: Sandbox) -> None:
    result = shared.exec("(sleep 600 & sleep 600)", timeout=3)
    assert (result.exit_code, result.timed_out) == (124, True)
    assert shared.exec(f"{NO_SLEEP}; pgrep -c sleep", timeout=60).stdout == "0\n"


def test_cancelling_keeps_the_sandbox() -> None:
    async def run() -> str:
        async with AsyncSandbox(**MACHINE) as lane:
            task = asyncio.create_task(lane.exec("echo $$ > /tmp/pid; sleep 600"))
            await asyncio.sleep(3)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return (await lane.exec(f"{NO_SLEEP}; pgrep -c sleep; echo usable", timeout=60)).stdout

    assert asyncio.run(run()) == "0\nusable\n"


def test_spawn_streams(shared: Sandbox) -> None:
    child = shared.spawn("while read line; do echo got $line; done", stdin=b"")
    child = shared.spawn("cat")
    child.stdin.write(b"a\n")
    assert child.stdout.next_chunk(60) == b"a\n"
    child.stdin.close()
    assert child.wait(60) == 0


def test_pty_has_a_size(shared: Sandbox) -> None:
    terminal = shared.pty("stty size; read x; stty size", rows=40, cols=120)
    seen = b""
    while b"40 120" not in seen:
        seen += terminal.read(60)
    terminal.resize(24, 80)
    terminal.write(b"\n")
    while b"24 80" not in seen:
        seen += terminal.read(60)
    assert terminal.wait(60) == 0


def test_two_machines_draw_different_numbers() -> None:
    """Both continue one saved machine: randomness, boot id, clock and host name are their own."""
    look = "head -c 16 /dev/urandom | od -An -tx1; cat /proc/sys/kernel/random/uuid; hostname; date +%s"
    seen = []
    for name in ("one", "two"):
        with Sandbox(**MACHINE, hostname=name) as lane:
            seen.append(lane.exec(look).stdout.splitlines())
    (number, uuid, host, clock), (other, other_uuid, other_host, other_clock) = seen
    assert number != other
    assert uuid != other_uuid
    assert (host, other_host) == ("one", "two")
    assert 0 <= int(other_clock) - int(clock) < 600


def test_the_clock_keeps_up_with_ours(shared: Sandbox) -> None:
    """Also while others keep the machine waiting: it reads a counter, and counts no ticks."""
    burn = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(6)]
    try:
        (early, first, late), (_, _, _), (early_2, second, late_2) = (look_at_clock(shared) for _ in range(3))
    finally:
        for process in burn:
            process.kill()
            process.wait()
    assert early_2 - late - 0.1 <= second - first <= late_2 - early + 0.1
    assert shared.exec("cat /sys/devices/system/clocksource/clocksource0/current_clocksource").stdout == "tsc\n"


def look_at_clock(sandbox: Sandbox) -> tuple[float, float, float]:
    """The machine's time, after some work there, and ours before and after we asked for it."""
    sandbox.exec("for i in $(seq 20000); do :; done & for i in $(seq 20000); do :; done; wait")
    before = time.monotonic()
    seen = float(sandbox.exec("date +%s.%N").stdout)
    return before, seen, time.monotonic()


def test_ports(shared: Sandbox) -> None:
    server = shared.spawn(["python3", "-c", _ECHO])
    with shared.port(7000).wait(120).connect() as stream:
        stream.settimeout(60)
        stream.sendall(b"x" * 300_000)
        stream.shutdown(1)
        assert sum(iter(lambda: len(stream.recv(65_536)), 0)) == 300_000
    server.kill("KILL")


_ECHO = """
import socket
listener = socket.create_server(("127.0.0.1", 7000))
while True:
    connection, _ = listener.accept()
    while data := connection.recv(65536):
        connection.sendall(data)
    connection.close()
"""


def test_a_boot_that_fails_says_what_the_machine_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    kernel = tmp_path / "vmlinux"
    kernel.write_bytes(b"this is no kernel" * 1000)
    monkeypatch.setenv("BELLJAR_KERNEL", str(kernel))
    with pytest.raises(SandboxCreationError, match="did not boot"):
        Sandbox(**MACHINE, memory_mib=256)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"cpus": 0}, "cpus=0"),
        ({"memory_mib": 10}, "memory_mib=10"),
        ({"accel": "xen"}, "accel='xen'"),
        ({"rootfs": "debian"}, "rootfs= takes"),
    ],
)
def test_arguments_that_make_no_sense(options: dict[str, object], error: str) -> None:
    with pytest.raises((TypeError, ValueError), match=error):
        Sandbox(**{**MACHINE, **options})
    with pytest.raises(TypeError, match="give tier='microvm'"):
        Sandbox(**options)  # type: ignore[arg-type]
