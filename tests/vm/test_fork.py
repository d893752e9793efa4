"""Live branches of machines; and what a machine, or a QEMU that was taken over, may say while it is forked."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from belljar import AsyncSandbox, Mount, Network, Rootfs, Sandbox, SandboxClosed, SandboxError, SnapshotError
from belljar.api import machine_fork, operations
from belljar.api.operations import Steps
from belljar.api.outgoing import Outgoing
from belljar.net.policy import Conn
from belljar.owner.handle_host import WorkerUnavailable
from belljar.vm import live_host, machine_host
from belljar.vm.live_host import clear_ports, save_state
from belljar.vm.machine_host import MachineWorker
from belljar.vm.qmp_host import Monitor, MonitorError
from tests.escape.oracles import check_open_files, open_files
from tests.vm.conftest import MACHINE

COUNTER = """
mkfifo /tmp/in /tmp/out; exec 3<>/tmp/in 4<>/tmp/out; n=0
while read -r -u 3 word; do
    [ $word = up ] && n=$((n+1)); echo $n >&4
done
"""
"""It counts in its memory when it is told to."""
DRAW = """
while [ ! -e /dev/shm/over ]; do sleep 0.2; for n in {1..20}; do printf '%s ' $SRANDOM; done; done > /dev/shm/drawn
"""
TELL = "tell() { until [ -p /tmp/out ]; do sleep 0.1; done; echo $1 > /tmp/in; read -r said < /tmp/out; echo $said; }; "


def tell(sandbox: Sandbox, word: str) -> str:
    return sandbox.exec(f"{TELL} tell {word}").check().stdout.strip()


@contextmanager
def forked(origin: Sandbox, count: int) -> Iterator[list[Sandbox]]:
    made = origin.fork(count)
    with ExitStack() as undo:
        branches = made if isinstance(made, list) else [made]
        for branch in branches:
            undo.callback(branch.close)
        yield branches


@pytest.mark.slow
def test_processes_go_on_in_each_branch_from_the_same_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    before: list[int] = []
    set_up = machine_fork.set_up_branch

    def look_first(*arguments: Any) -> Steps[None]:
        before.append((yield from operations.stat("/dev/shm/drawn")).size)
        yield from set_up(*arguments)

    monkeypatch.setattr(machine_fork, "set_up_branch", look_first)
    look = "date +%s; cat f /dev/shm/t"
    with ExitStack() as undo:
        with Sandbox(**MACHINE, files={"/workspace/f": "file\n"}) as origin:
            origin.spawn(COUNTER)
            origin.spawn(DRAW)
            begun = "until [ -s /dev/shm/drawn ]; do sleep 0.1; done; echo memory > /dev/shm/t"
            said = origin.exec(f"{TELL} {begun}; tell up; tell up; tell up").check().stdout
            assert said == "1\n2\n3\n"
            branches = undo.enter_context(forked(origin, 2))
            everyone = (origin, *branches)
            wait = f"until [ $(stat -c %s /dev/shm/drawn) -gt {before[0] + 2000} ]; do sleep 0.5; done"
            drawn = [each.exec(f"{wait}; cat /dev/shm/drawn; touch /dev/shm/over").stdout for each in everyone]
            new = "head -c 16 /dev/urandom | od -An -tx1"
            seen = [each.exec(f"{TELL} tell up; {new}; {look}").stdout.splitlines() for each in everyone]
        assert before[0] == before[1]  # programs do not go on before there is other randomness
        assert len({text[: before[0]] for text in drawn}) == 1
        numbers = [set(text[before[0] : before[0] + 2000].split()) for text in drawn]
        assert all(len(one & other) < 3 for one, other in combinations(numbers, 2))
        assert len({each[1] for each in seen}) == 3
        assert [(each[0], each[3:]) for each in seen] == [("4", ["file", "memory"])] * 3
        assert max(int(each[2]) for each in seen) - min(int(each[2]) for each in seen) < 3600
        assert branches[0].exec(f"{TELL} tell up; echo changed > f").stdout == "5\n"
        (further,) = undo.enter_context(forked(branches[0], 1))
        assert further.exec(f"{TELL} tell up; cat f").stdout == "6\nchanged\n"
        assert branches[1].exec(f"{TELL} tell up; cat f").stdout == "5\nfile\n"


@pytest.mark.slow
def test_what_is_under_way_goes_on_in_the_origin_and_is_dropped_in_a_branch() -> None:
    with Sandbox(**MACHINE) as origin:
        # One waits for a reader, one for its input, one for its time.
        many = origin.spawn("seq 300000; echo $? > /tmp/many")
        copied = origin.spawn("cat; echo $? > /tmp/copied")
        terminal = origin.pty("while [ ! -e /tmp/go ]; do echo x; sleep 0.05; done; echo y > /tmp/went")
        copied.stdin.write(b"before\n")
        over = threading.Event()
        results: list[str] = []

        def work() -> None:
            while not over.is_set():
                results.append(origin.exec(["echo", "whole"]).stdout)

        thread = threading.Thread(target=work)
        thread.start()
        try:
            with forked(origin, 1) as (branch,):
                branch.files.write("/tmp/go", "")
                waited = "for n in $(seq 600); do [ -e /tmp/went ] && [ -e /tmp/many ] && break; sleep 0.1; done"
                assert branch.exec(f"{waited}; cat /tmp/went /tmp/many").stdout == "y\n0\n"
                assert branch.exec("cat", stdin="its own").stdout == "its own"
        finally:
            over.set()
            thread.join()
        assert set(results) == {"whole\n"}
        copied.stdin.write(b"after\n")
        copied.stdin.close()
        assert copied.stdout.read() == b"before\nafter\n"
        assert many.stdout.read() == b"".join(b"%d\n" % n for n in range(1, 300001))
        assert (many.wait(), copied.wait()) == (0, 0)
        origin.files.write("/tmp/go", "")
        assert terminal.wait(60) == 0


@pytest.mark.battery
@pytest.mark.slow
def test_mounts_tools_and_the_network_of_a_branch_are_its_own(tmp_path: Path) -> None:
    seen: list[str] = []

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"answer\n")

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"api.test:{server.server_port}"

    def policy(conn: Conn) -> None:
        if dns := conn.match_dns("api.test"):
            dns.accept()
        elif web := conn.match_http(address):
            web.accept(lambda request: None)

    (tmp_path / "host").write_text("of the host\n")
    mounts = {"/m": Mount.memory({"f": "memory\n"}), "/m/host": Mount.host(str(tmp_path))}
    network = Network.policy(policy, hosts={"api.test": "127.0.0.1"})
    look = "cat /m/f /m/host/host /late/g; double 21"
    ask = f"curl -sS --max-time 60 http://{address}/"
    with Sandbox(**MACHINE, mounts=mounts, tools={"double": lambda n: int(n) * 2}, network=network) as origin:
        origin.mount("/late", Mount.memory({"g": "late\n"}))
        assert origin.exec(f"{look}; {ask}origin").stdout == "memory\nof the host\nlate\n42\nanswer\n"
        with forked(origin, 2) as branches:
            for number, branch in enumerate(branches):
                result = branch.exec(f"{look}; {ask}{number}; echo changed > /m/f")
                assert (result.stdout, result.stderr) == ("memory\nof the host\nlate\n42\nanswer\n", "")
            assert branches[0].stats()["network_requests"] == 1
            assert origin.exec(f"{look}; {ask}again").stdout == "memory\nof the host\nlate\n42\nanswer\n"
    server.shutdown()
    server.server_close()
    assert seen == ["/origin", "/0", "/1", "/again"]


@pytest.mark.battery
@pytest.mark.slow
def test_a_read_only_root_and_interpreters(debian: Rootfs) -> None:
    async def main() -> None:
        async with AsyncSandbox(**MACHINE, rootfs=debian) as origin:
            await origin.python.run("import random; x = [1]; random.seed(5)")
            await origin.js.run("var y = 1")
            await origin.exec("echo scratch > /tmp/s")
            over = False

            async def work() -> None:
                while not over:
                    assert (await origin.exec(["cat"], stdin="x" * 100_000)).stdout == "x" * 100_000

            working = asyncio.create_task(work())
            branches = await origin.fork(2)
            over = True
            await working
            assert isinstance(branches, list)
            try:
                assert (await branches[0].python.run("x.append(2); x")).value == [1, 2]
                drawn = [(await each.python.run("random.random()")).value for each in (origin, *branches)]
                assert len(set(drawn)) == 3
                assert [(await each.python.run("x")).value for each in (origin, *branches)] == [[1], [1, 2], [1]]
                assert (await branches[1].js.run("y + 1")).value == 2
                assert (await branches[1].exec("cat /tmp/s")).stdout == "scratch\n"
            finally:
                for branch in branches:
                    await branch.close()

    asyncio.run(main())


@pytest.mark.slow
def test_a_fork_that_fails_leaves_its_origin_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_qemu(_: object) -> None:
        raise WorkerUnavailable("no QEMU today")

    def no_state(*_: object, **__: object) -> None:
        raise MonitorError("no state today")

    with Sandbox(**MACHINE) as origin:
        origin.spawn(COUNTER)
        assert tell(origin, "up") == "1"
        with monkeypatch.context() as patch:
            patch.setattr(machine_host, "start_qemu", no_qemu)
            with pytest.raises(SandboxError, match="no QEMU today"):
                origin.fork(2)
        assert tell(origin, "up") == "2"
        with monkeypatch.context() as patch:
            patch.setattr(Monitor, "begin_saving", no_state)
            with pytest.raises(SandboxError, match="no state today"):
                origin.fork()
        assert tell(origin, "up") == "3"
        worker = origin._link.worker
        assert isinstance(worker, MachineWorker)
        with monkeypatch.context() as patch:
            patch.setattr(machine_fork, "HOLD_SECONDS", 0.5)
            worker.process.monitor.call("stop")
            with pytest.raises(SandboxError, match=r"did not hold still within 0\.5 s"):
                origin.fork()
            worker.process.monitor.call("cont")
        assert tell(origin, "up") == "4"
        with forked(origin, 1) as (branch,):
            assert tell(branch, "up") == "5"
        with monkeypatch.context() as patch:
            patch.setattr(machine_host, "save_state", no_state)
            with pytest.raises(SandboxClosed, match="could not go on after it was saved, and was ended"):
                origin.fork()
        assert origin.closed


# What QEMU may say.


class FakeMonitor(Monitor):
    """One whose QEMU writes this as the machine's state, and answers so."""

    def __init__(self, said: Callable[[int], object], **answers: Exception) -> None:
        self._said, self._answers = said, answers
        self.heard: list[str] = []
        self._threads: list[threading.Thread] = []

    def call(self, command: str, fd: int | None = None, **arguments: Any) -> Any:
        self.heard.append(command)
        if error := self._answers.get(command.replace("-", "_")):
            raise error
        if fd is not None:
            theirs = os.dup(fd)

            def speak() -> None:
                with suppress(OSError):  # they may have heard enough
                    self._said(theirs)
                os.close(theirs)

            self._threads.append(threading.Thread(target=speak))
            self._threads[-1].start()
        return {"status": "completed"} if command == "query-migrate" else None

    def join(self) -> None:
        for thread in self._threads:
            thread.join()


def test_a_state_is_what_qemu_said() -> None:
    monitor = FakeMonitor(lambda fd: os.write(fd, b"state" * 1000))
    state = save_state(monitor, 1, lambda: [(3, b"block")])
    monitor.join()
    assert os.pread(state.fd, 10000, 0) == b"state" * 1000
    assert state.chunks == [(3, b"block")]
    assert (monitor.heard[0], monitor.heard[-1]) == ("stop", "cont")
    state.close()


def speak_on(fd: int) -> None:
    while True:
        os.write(fd, bytes(1 << 20))


def test_a_state_without_end_is_given_up_and_the_machine_goes_on() -> None:
    monitor = FakeMonitor(speak_on)
    with pytest.raises(SnapshotError, match="more than a machine has"):
        save_state(monitor, 1, list)
    monitor.join()
    assert monitor.heard[-1] == "cont"


def test_a_state_that_never_comes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(live_host, "SAVE_SECONDS", 0.2)
    over = threading.Event()
    monitor = FakeMonitor(lambda _: over.wait(60), query_migrate=MonitorError("not moved in time"))
    with pytest.raises(SnapshotError, match="not moved in time"):
        save_state(monitor, 1, list)
    over.set()
    monitor.join()
    assert monitor.heard[-1] == "cont"


def test_too_many_blocks_and_the_machine_goes_on() -> None:
    def refuse() -> list[Any]:
        raise SnapshotError("too many blocks")

    monitor = FakeMonitor(lambda _: None)
    with pytest.raises(SnapshotError, match="too many blocks"):
        save_state(monitor, 1, refuse)
    monitor.join()
    assert monitor.heard[-1] == "cont"


@pytest.mark.parametrize("command", ["stop", "cont"])
def test_a_machine_that_does_not_stop_or_go_on(command: str) -> None:
    before = open_files()
    monitor = FakeMonitor(lambda _: None, **{command: MonitorError("no")})
    with pytest.raises(MonitorError, match="no"):
        save_state(monitor, 1, list)
    monitor.join()
    check_open_files(before)


def test_a_monitor_that_only_tells_of_events_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    from belljar.vm import qmp_host

    monkeypatch.setattr(qmp_host, "_SECONDS", 0.3)
    ours, theirs = socket.socketpair()
    over = threading.Event()

    def speak() -> None:
        with suppress(OSError):
            while not over.is_set():
                theirs.sendall(b'{"event": "STOP"}\n' * 100)

    thread = threading.Thread(target=speak)
    thread.start()
    with ours, pytest.raises(MonitorError, match="does not answer"):
        Monitor(ours).call("stop")
    over.set()
    thread.join()
    theirs.close()


def test_what_was_under_way_by_a_port_is_dropped_and_has_an_end() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.sendall(b"half of a message")
        clear_ports([ours])
        theirs.sendall(b"new")
        assert ours.recv(100) == b"new"
    with Endless() as endless, pytest.raises(WorkerUnavailable, match="does not stop talking"):
        clear_ports([endless])


class Endless(socket.socket):
    """One whose machine says more than anybody has read."""

    def recv(self, size: int, *_: object) -> bytes:
        return bytes(size)


# Frames that are held back.


def flush(queue: Outgoing) -> bytes:
    data = b""
    while queue:
        views, _ = queue.first()
        data += (piece := b"".join(views))
        queue.sent(len(piece))
    return data


def test_frames_are_held_back_and_wait_until_they_are_sent() -> None:
    queue = Outgoing()
    queue.put(b"one")
    before = queue.put(b"hold")
    queue.hold()
    mark = queue.put(b"two")
    assert flush(queue) == b"onehold"
    assert queue.written == before
    queue.release(b"go on")
    views, _ = queue.first()
    assert b"".join(views) == b"go ontwo"
    queue.sent(len(b"go ontw"))
    assert queue.written < mark
    assert flush(queue) == b"o"
    assert queue.written == mark


def test_a_release_before_all_is_sent_goes_in_between() -> None:
    queue = Outgoing()
    queue.put(b"hold")
    queue.hold()
    queue.put(b"later")
    queue.release(b"go on")
    assert flush(queue) == b"holdgo onlater"


def test_nothing_is_sent_once_it_is_over() -> None:
    queue = Outgoing()
    queue.put(b"hold")
    queue.hold()
    queue.put(b"later")
    queue.clear()
    queue.release(b"go on")
    assert flush(queue) == b""
