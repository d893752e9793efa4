"""Connections that are lost at any moment, servers that end, clients that are killed: nothing lost, nothing doubled."""

from __future__ import annotations

import asyncio
import os
import random
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from belljar import (
    AsyncRemoteSandbox,
    InfrastructureError,
    Mount,
    RemoteSandbox,
    SandboxClosed,
    SandboxError,
)
from belljar.abi.clock_host import HostClock
from belljar.remote.links_host import RemoteLink
from tests.remote.proxy import Proxy
from tests.server.serving import Server, are_gone

LINES = 20_000
NUMBERS = "".join(f"{n}\n" for n in range(1, LINES + 1))
ROUNDS = 3


def cut_now_and_then(proxy: Proxy, seed: int, times: int = 4) -> threading.Thread:
    chance = random.Random(seed)

    def work() -> None:
        for _ in range(times):
            time.sleep(chance.uniform(0.01, 0.4))
            proxy.cut()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def sums(sb: RemoteSandbox, path: str) -> str:
    return sb.exec(["sha256sum", path]).stdout.split()[0]


def test_a_cut_before_a_call(sb: RemoteSandbox, proxy: Proxy) -> None:
    for n in range(3):
        proxy.cut()
        assert sb.exec(f"echo {n}").stdout == f"{n}\n"
    assert proxy.connections >= 3


def test_a_cut_while_a_command_runs(sb: RemoteSandbox, proxy: Proxy) -> None:
    process = sb.spawn("echo before; read line; echo after $line")
    assert next(iter(process.stdout)) == b"before\n"
    proxy.cut()
    process.stdin.write(b"the cut\n")
    assert b"".join(process.stdout) == b"after the cut\n"
    assert process.wait() == 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_no_output_of_exec_is_lost_or_doubled(sb: RemoteSandbox, proxy: Proxy, seed: int) -> None:
    cutting = cut_now_and_then(proxy, seed)
    result = sb.exec(f"for n in 1 2 3 4; do seq {LINES}; sleep 0.2; done")
    cutting.join()
    assert result.ok
    assert result.stdout == NUMBERS * 4


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_nor_of_a_process_that_is_talked_to(sb: RemoteSandbox, proxy: Proxy, seed: int) -> None:
    process = sb.spawn("cat")
    cutting = cut_now_and_then(proxy, 100 + seed, 6)
    heard = bytearray()

    def listen() -> None:
        for data in process.stdout:
            heard.extend(data)

    listener = threading.Thread(target=listen)
    listener.start()
    said = bytearray()
    chance = random.Random(seed)
    for n in range(200):
        piece = f"{n}:{'x' * chance.randrange(3000)}\n".encode()
        said += piece
        process.stdin.write(piece)
        time.sleep(0.005)
    process.stdin.close()
    assert process.wait(60) == 0
    listener.join(60)
    cutting.join()
    assert bytes(heard) == bytes(said)


@pytest.mark.slow
def test_a_terminal_survives(sb: RemoteSandbox, proxy: Proxy) -> None:
    terminal = sb.pty("cat")
    cutting = cut_now_and_then(proxy, 7, 5)
    heard = b""
    for n in range(40):
        terminal.write(f"line {n}\r".encode())
        time.sleep(0.03)
    until = time.monotonic() + 60
    while heard.count(b"line 39\r\n") < 2 and time.monotonic() < until:  # other lines may come between the two
        heard += terminal.read(1.0) or b""
    cutting.join()
    assert [heard.count(f"line {n}\r\n".encode()) for n in range(40)] == [2] * 40  # the echo, and cat's own
    terminal.kill("KILL")


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(ROUNDS))
def test_files_go_both_ways_whole(sb: RemoteSandbox, proxy: Proxy, seed: int, tmp_path: Path) -> None:
    data = random.Random(seed).randbytes(6 << 20)
    (tmp_path / "up").write_bytes(data)
    cutting = cut_now_and_then(proxy, 200 + seed, 6)
    sb.files.upload(str(tmp_path / "up"), "up")
    sb.files.download("up", str(tmp_path / "down"))
    cutting.join()
    assert (tmp_path / "down").read_bytes() == data


@pytest.mark.slow
@pytest.mark.parametrize("after", [0, 1, 100, 5_000, 300_000, 1_000_000])
def test_a_cut_in_the_midst_of_an_answer(sb: RemoteSandbox, proxy: Proxy, after: int) -> None:
    sb.files.write("data", bytes(range(256)) * 8192)
    proxy.cut_after = after
    assert sb.files.read_bytes("data") == bytes(range(256)) * 8192
    proxy.cut_after = None


def test_tools_and_mounts_are_answered_once(server: Server, proxy: Proxy, tmp_path: Path) -> None:
    calls: list[int] = []

    def count(n: int) -> int:
        calls.append(n)
        if n % 5 == 0:
            proxy.cut()
        return n

    mounts = {"/host": Mount.host(str(tmp_path), read_only=False)}
    with RemoteSandbox(proxy.url, server.key, tools={"count": count}, mounts=mounts) as sb:
        result = sb.exec("for n in {1..20}; do count $n; echo $n >> /host/log; done")
    assert result.stdout == "".join(f"{n}\n" for n in range(1, 21))
    assert calls == list(range(1, 21))
    assert (tmp_path / "log").read_text() == result.stdout


def test_interpreters_keep_their_state(sb: RemoteSandbox, proxy: Proxy) -> None:
    sb.python.run("total = 0")
    sb.js.run("var total = 0")
    for n in range(4):
        proxy.cut()
        assert sb.python.run(f"total += {n}; total").value == sb.js.run(f"total += {n}; total").value


@pytest.mark.battery
@pytest.mark.slow
def test_a_half_open_connection_is_noticed(sb: RemoteSandbox, proxy: Proxy) -> None:
    proxy.freeze()
    results: list[str] = []
    caller = threading.Thread(target=lambda: results.append(sb.exec("echo through").stdout))
    caller.start()
    time.sleep(1)
    assert not results
    before = proxy.connections
    until = time.monotonic() + 60
    while proxy.connections == before and time.monotonic() < until:  # the client gives the silent one up
        time.sleep(0.1)
    assert proxy.connections > before
    proxy.thaw()
    caller.join(60)
    assert results == ["through\n"]


@pytest.mark.slow
def test_a_slow_reader_stops_nobody_else(sb: RemoteSandbox, server: Server) -> None:
    """What is not read waits in the sandbox, and is all there later."""
    process = sb.spawn(f"for n in {{1..40}}; do seq {LINES}; done")
    time.sleep(1.5)
    began = time.monotonic()
    assert sb.exec("echo quick").stdout == "quick\n"
    assert time.monotonic() - began < 60
    assert len(b"".join(process.stdout)) == 40 * len(NUMBERS)
    assert process.wait() == 0


def test_a_slow_connection(sb: RemoteSandbox, proxy: Proxy) -> None:
    proxy.delay = 0.02
    try:
        assert sb.exec(f"seq {LINES}").stdout == NUMBERS
    finally:
        proxy.delay = 0.0


def test_calls_that_are_cancelled_while_there_is_no_connection(server: Server, proxy: Proxy) -> None:
    async def main() -> None:
        async with AsyncRemoteSandbox(proxy.url, server.key) as sb:
            proxy.cut(refuse=True)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(sb.exec("sleep 1000"), 0.5)
            proxy.accept_again()
            assert (await sb.exec("echo on")).stdout == "on\n"
            assert "sleep 1000" not in (await sb.exec("ps -ef")).stdout

    asyncio.run(main())


def test_a_server_that_is_not_there(server: Server) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # nobody listens there
        with pytest.raises(InfrastructureError, match=r"can't be reached") as caught:
            RemoteSandbox(f"http://127.0.0.1:{taken.getsockname()[1]}", server.key)
    assert not isinstance(caught.value, SandboxError)


@pytest.mark.slow
def test_a_server_that_is_restarted(steady: Server) -> None:
    """What ran is lost; what was kept is gone on with by attaching."""
    sb = RemoteSandbox(steady.url, steady.key)
    sb.files.write("kept", "yes")
    process = sb.spawn("sleep 1000")
    port = steady.port
    assert steady.stop() == 0
    with pytest.raises(InfrastructureError):
        process.wait(120)  # longer than it tries to come back
    with pytest.raises(InfrastructureError):
        sb.exec("true")
    steady.start(port)
    with RemoteSandbox.attach(steady.url, steady.key, sb.id) as again:
        assert again.files.read("kept") == "yes"
        assert "sleep 1000" not in again.exec("ps -ef").stdout
    sb.close()


@pytest.mark.slow
def test_a_server_that_is_killed(steady: Server) -> None:
    sb = RemoteSandbox(steady.url, steady.key)
    workers = steady.workers()
    port = steady.port
    steady.kill()
    assert are_gone(workers)
    steady.start(port)
    with pytest.raises(InfrastructureError, match="no such session"):
        sb.exec("true")
    with pytest.raises(SandboxClosed):
        RemoteSandbox.attach(steady.url, steady.key, sb.id)
    sb.close()


CLIENT = """
import os, sys
from belljar import RemoteSandbox
sb = RemoteSandbox(sys.argv[1], sys.argv[2], tools={"ask": lambda: "here"})
sb.files.write("note", "left behind")
sb.exec("(while ask > /dev/null; do echo yes >> answers; sleep 0.1; done; echo no > over) &")
print(sb.id, flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_a_client_that_is_killed(tmp_path: Path) -> None:
    """Its tools fail when it has been gone for too long, and its sandbox is paused: it can be gone on with."""
    own = Server(tmp_path, "--session", "2")
    try:
        command = [sys.executable, "-c", CLIENT, own.url, own.key]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as client:
            assert client.stdout is not None
            number = client.stdout.readline().strip()
            client.kill()
        until = time.monotonic() + 60
        while time.monotonic() < until:
            shown = own.request("GET", f"/sandboxes/{number}").json()
            if shown["state"] == "paused":
                break
            time.sleep(0.2)
        assert shown["state"] == "paused"
        with RemoteSandbox.attach(own.url, own.key, number) as sb:
            assert sb.files.read("note") == "left behind"
    finally:
        own.stop()


@pytest.mark.battery
@pytest.mark.slow
def test_one_whose_files_are_the_clients_ends_with_it(tmp_path: Path) -> None:
    """The server could not pause it: its files are changes to a tree that only the client has."""
    own = Server(tmp_path, "--session", "2")
    try:
        for options in (
            "mounts={'/w': Mount.overlay(Mount.host('/etc'))}",
            "image=Image().files({'/a': 'x'}), store=Store.memory()",
        ):
            program = (
                "import sys\nfrom belljar import Image, Mount, RemoteSandbox, Store\n"
                "def built(image, store, **more):\n    return dict(image=image.build(store), store=store, **more)\n"
                f"options = dict({options})\n"
                "options = built(**options) if 'image' in options else options\n"
                "print(RemoteSandbox(sys.argv[1], sys.argv[2], **options).id, flush=True)\n"
                "import os; os.kill(os.getpid(), 9)"
            )
            done = subprocess.run(
                [sys.executable, "-c", program, own.url, own.key], capture_output=True, text=True, check=False
            )
            number = done.stdout.strip()
            assert number, done.stderr
            until = time.monotonic() + 60
            while own.request("GET", f"/sandboxes/{number}").status_code != 404:
                assert time.monotonic() < until
                time.sleep(0.2)
    finally:
        own.stop()


def test_a_forked_child_has_no_part_in_it(sb: RemoteSandbox) -> None:
    child = os.fork()
    if not child:
        code = 1
        try:
            sb.exec("true")
        except SandboxClosed:
            code = 0
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert sb.exec("echo still").stdout == "still\n"


def until(happens: Callable[[], object]) -> None:
    end = time.monotonic() + 60
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.01)


class HurriedClock(HostClock):
    """The host's clock, moved ahead by hand."""

    ahead = 0.0

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


def test_a_server_that_stays_away_is_given_up(sb: RemoteSandbox, proxy: Proxy, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = HurriedClock()
    monkeypatch.setattr(cast(RemoteLink, sb._link).client, "_clock", clock)
    process = sb.spawn("cat")
    proxy.cut(refuse=True)
    until(lambda: proxy.refused > 1)  # the client counts its time from the cut
    clock.ahead = 3600.0
    with pytest.raises(InfrastructureError, match="none again within"):
        process.wait(60)
