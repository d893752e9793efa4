"""THREATS.md 109-116: a worker that is no longer ours, and what its owner makes of it."""

from __future__ import annotations

import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

import belljar
from belljar import Limits, Mount, Sandbox, SandboxClosed, SandboxError
from belljar.abi.wire import Ask, Exited, Failure, Incident, Output, Ready, Reply, Started, WorkerMessage, encode
from belljar.api import forking
from belljar.owner.handle_host import WorkerHandle
from belljar.owner.supervisor_host import shared
from tests.escape.oracles import Watch, check_open_files, needs_own_descriptors, open_files, wait_gone


class Impostor:
    """Stands in for a worker: an idle process to be killed, and a socket to send whatever one likes."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(["sleep", "600"])
        ours, self.socket = socket.socketpair()
        self.handle = WorkerHandle(self.process.pid, os.pidfd_open(self.process.pid), ours)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        self.socket.close()
        self.handle.kill()


@pytest.fixture
def impostor(watch: Watch) -> Iterator[Impostor]:
    with watch.attack():
        made = Impostor()
        yield made
        made.close()


def take_over(impostor: Impostor, monkeypatch: pytest.MonkeyPatch, **options: object) -> Sandbox:
    monkeypatch.setattr(shared, "take", lambda _memory: impostor.handle)
    return Sandbox(**options)  # type: ignore[arg-type]


def raw(value: object) -> bytes:
    body = msgspec.msgpack.encode(value)
    return struct.pack("<I", len(body)) + body


def exited(number: int = 1, out: bytes = b"") -> WorkerMessage:
    return Exited(number, 0, 0, None, out, b"", False)


HOSTILE: dict[str, bytes] = {
    "109a length 0": struct.pack("<I", 0),
    "109b length 2^32-1": struct.pack("<I", 0xFFFFFFFF),
    "109c a length over the limit": struct.pack("<I", (64 << 20) + 1) + b"x" * 100,
    "109d no msgpack": struct.pack("<I", 1) + b"\xc1",
    "109e an unknown tag": raw(["shutdown", 1]),
    "109f a field too many": raw(["output", 1, 1, b"x", 9]),
    "109g a field too few": raw(["output", 1]),
    "109h a field of another type": raw(["output", "1", 1, b"x"]),
    "109i a map": raw({"type": "output"}),
    "109j deep nesting": struct.pack("<I", 100_000) + b"\x91" * 100_000,
    "109k an answer to nothing": encode(Reply(77, None)),
    "109l a failure of nothing": encode(Failure(77, 1, b"")),
    "109m the end of nothing": encode(exited(77)),
    "109n the end, twice": encode(exited()) + encode(exited()),
    "109o output after the end": encode(exited()) + encode(Output(1, 1, b"x")),
    "109p a reply to a command": encode(Reply(1, None)) + encode(Output(1, 1, b"x")),
    "109q ready twice": encode(Ready([], 1)) * 2,
    "109r the start of nothing": encode(Started(77, 5)),
    "109s an id out of bounds": raw(["output", -1, 1, b"x"]),
    "111a more than was granted": b"".join(encode(Output(1, 1, b"x" * (256 << 10))) for _ in range(40)),
    "111b more than the limit at the end": encode(exited(out=b"x" * (3 << 20))),
    "111c a stream that is none": encode(Output(1, 3, b"x")),
    "111d output of another command": encode(Output(2, 1, b"x")),
    "111e a file of the owner": encode(Ask(1, b"0", "file", [{}])),
    "111f a tool of the owner": encode(Ask(1, b"search", "tool", [[]])),
    "111g an operation that is none": encode(Ask(1, b"", "eval", ["1+1"])),
    "111h a bug with no text": raw(["incident", b"i-1", b"ls", 1 << 40]),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_worker_that_breaks_the_rules_is_killed(
    what: str, impostor: Impostor, monkeypatch: pytest.MonkeyPatch
) -> None:
    sandbox = take_over(impostor, monkeypatch, limits=Limits(output_bytes=1 << 20))
    # In a thread: more than a socket holds is on its way.
    sender = threading.Thread(target=send_all, args=(impostor.socket, HOSTILE[what]))
    sender.start()
    with pytest.raises(SandboxError):  # noqa: PT012 - what breaks the rules late is found by the next call
        sandbox.exec("true")
        sandbox.exec("true", timeout=1)
    sandbox.close()
    impostor.process.wait(30)
    impostor.socket.close()
    sender.join(30)
    with pytest.raises(SandboxClosed):
        sandbox.exec("true")


def send_all(connection: socket.socket, data: bytes) -> None:
    try:
        connection.sendall(data)
    except OSError:
        return


def test_109_a_frame_cut_short(impostor: Impostor, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = take_over(impostor, monkeypatch)
    impostor.socket.sendall(encode(exited())[:-3])
    impostor.socket.close()
    with pytest.raises(SandboxClosed, match="ended unexpectedly"):
        sandbox.exec("true")


def test_109_a_flood_of_small_frames(impostor: Impostor, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = take_over(impostor, monkeypatch)
    done = threading.Event()

    def flood() -> None:
        frames = encode(Incident(b"i-1", b"ls", b"")) * 1000
        while not done.is_set():
            send_all(impostor.socket, frames)

    sender = threading.Thread(target=flood)
    sender.start()
    began = time.monotonic()
    try:
        with pytest.raises(SandboxError):
            sandbox.exec("true", timeout=0.2)
        assert time.monotonic() - began < 0.2 + 20
    finally:
        done.set()
        sandbox.close()
        impostor.socket.close()
        sender.join()


def test_111_control_characters_do_not_reach_messages(impostor: Impostor, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = take_over(impostor, monkeypatch)
    impostor.socket.sendall(encode(Failure(1, 2, b"", b"/x\n\x1b[31mERROR root: all is lost")))
    with pytest.raises(SandboxError) as caught:
        sandbox.files.read("/x")
    assert str(caught.value).isprintable()
    sandbox.close()


def test_112_descriptors_sent_along_are_dropped(impostor: Impostor, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = take_over(impostor, monkeypatch)
    before = open_files()
    with socket.socket() as gift:
        socket.send_fds(impostor.socket, [encode(exited())], [gift.fileno()] * 10)
    assert sandbox.exec("true").exit_code == 0
    check_open_files(before)
    sandbox.close()


def test_112_a_worker_that_half_closes(impostor: Impostor, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = take_over(impostor, monkeypatch)
    impostor.socket.shutdown(socket.SHUT_WR)
    with pytest.raises(SandboxClosed):
        sandbox.exec("true")
    impostor.process.wait(30)


@pytest.mark.battery
def test_114_a_worker_that_says_nothing(impostor: Impostor, monkeypatch: pytest.MonkeyPatch) -> None:
    sandbox = take_over(impostor, monkeypatch)
    began = time.monotonic()
    with pytest.raises(SandboxError, match="stopped answering"):
        sandbox.exec("true", timeout=0.2)
    assert time.monotonic() - began < 0.2 + 20
    impostor.process.wait(30)


@pytest.mark.parametrize(
    "arguments",
    [[], [1], [None], [{}], [{b"op": b"open"}], [[b"walk"]], [{b"x": [[[]]]}, 2], [{b"op": b"\xff" * 1000}]],
    ids=repr,
)
def test_111_nonsense_to_a_mount(
    arguments: list[object], impostor: Impostor, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Questions about an offered directory are answered with an error or end the sandbox; the owner goes on."""
    impostor.socket.sendall(encode(Reply(1, None)))
    sandbox = take_over(impostor, monkeypatch, mounts={"/m": Mount.host(str(tmp_path))})
    impostor.socket.sendall(encode(Ask(1, b"0", "file", arguments)) + encode(exited(2)))
    try:
        assert sandbox.exec("true").exit_code == 0
    except SandboxClosed:
        impostor.process.wait(30)
    sandbox.close()


def test_110_nothing_is_ever_unpickled() -> None:
    banned = re.compile(rb"^\s*(import|from) (pickle|marshal|shelve|multiprocessing|dill|joblib)\b", re.MULTILINE)
    package = Path(belljar.__file__).parent
    for path in package.rglob("*.py"):
        # What runs in the guest's own interpreter alone may read what that wrote.
        if not any(path.is_relative_to(package / room / "guest") for room in ("engines/python", "native")):
            assert not banned.search(path.read_bytes()), path


# Real workers that end, or stop.


def killed_before_the_first_byte(sandbox: Sandbox) -> None:
    os.kill(sandbox._link.pid, signal.SIGKILL)
    wait_gone([sandbox._link.pid])
    sandbox.exec("echo x")


def killed_while_it_sleeps(sandbox: Sandbox) -> None:
    kill_later(sandbox, 0.1)
    sandbox.exec("sleep 30")


def killed_while_it_works(sandbox: Sandbox) -> None:
    kill_later(sandbox, 0.1)
    sandbox.exec("while :; do :; done")


def killed_in_the_middle_of_output(sandbox: Sandbox) -> None:
    seen = 0

    def hear(data: bytes) -> None:
        nonlocal seen
        seen += len(data)
        if seen > 1 << 20:
            os.kill(sandbox._link.pid, signal.SIGKILL)

    sandbox.exec("yes", on_stdout=hear)


def killed_in_the_middle_of_input(sandbox: Sandbox) -> None:
    kill_later(sandbox, 0.05)
    while True:
        sandbox.files.write("f", bytes(4 << 20))


def killed_while_its_stream_is_read(sandbox: Sandbox) -> None:
    process = sandbox.spawn("yes")
    kill_later(sandbox, 0.1)
    for _chunk in process.stdout:
        pass
    process.wait()


def kill_later(sandbox: Sandbox, seconds: float) -> None:
    threading.Timer(seconds, os.kill, (sandbox._link.pid, signal.SIGKILL)).start()


@pytest.mark.parametrize(
    "scene",
    [
        killed_before_the_first_byte,
        killed_while_it_sleeps,
        killed_while_it_works,
        killed_in_the_middle_of_output,
        killed_in_the_middle_of_input,
        killed_while_its_stream_is_read,
    ],
)
def test_113_a_killed_worker(scene: Callable[[Sandbox], None], watch: Watch) -> None:
    with watch.attack():
        sandbox = Sandbox(limits=Limits(output_bytes=1 << 40))
        with pytest.raises(SandboxClosed):
            scene(sandbox)
        pid = sandbox._link.pid
        sandbox.close()
        assert not wait_gone([pid])


def test_114_a_stopped_worker_is_killed_on_time(watch: Watch) -> None:
    with watch.attack(), Sandbox() as sandbox:
        sandbox.exec("true")
        os.kill(sandbox._link.pid, signal.SIGSTOP)
        began = time.monotonic()
        with pytest.raises(SandboxError):
            sandbox.exec("echo x", timeout=0.3)
        assert time.monotonic() - began < 0.3 + 20
        assert not wait_gone([sandbox._link.pid])


@pytest.mark.battery(sample=1)
@pytest.mark.parametrize("act", ["read", "write", "spawn", "wait", "fork"])
def test_114_nothing_waits_for_a_stopped_worker_for_ever(act: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(forking, "FORK_SECONDS", 0.5)
    # What is waited for must not have met its own limit before the worker is stopped.
    with Sandbox(limits=Limits(wall_seconds=5 if act == "wait" else 0.5)) as sandbox:
        process = sandbox.spawn("sleep 100")
        os.kill(sandbox._link.pid, signal.SIGSTOP)
        acts: dict[str, Callable[[], object]] = {
            "read": lambda: sandbox.files.read("/etc/passwd"),
            "write": lambda: sandbox.files.write("f", bytes(20 << 20)),
            "spawn": lambda: sandbox.spawn("true"),
            "wait": process.wait,
            "fork": sandbox.fork,
        }
        with pytest.raises(SandboxError):
            acts[act]()
        assert not wait_gone([sandbox._link.pid])


OWNER = """
import os, signal, sys
from belljar import Sandbox
sandboxes = [Sandbox() for _ in range(3)]
processes = [s.spawn("while :; do :; done") for s in sandboxes[:1]] + [s.spawn("sleep 1000") for s in sandboxes[1:]]
from belljar.owner.supervisor_host import shared
print(shared.zygote.process.pid, *(s._link.pid for s in sandboxes), flush=True)
{end}
"""


@pytest.mark.parametrize(
    "end",
    [
        "os.kill(os.getpid(), signal.SIGKILL)",
        "os.kill(os.getpid(), signal.SIGTERM)",
        "os._exit(3)",
        "sys.exit(0)",
        "raise RuntimeError",
        "pid = os.fork()\nif pid == 0: os._exit(0)\nos.waitpid(pid, 0)",
    ],
)
def test_115_nothing_outlives_its_owner(end: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", OWNER.replace("{end}", end)], capture_output=True, text=True, timeout=120, check=False
    )
    pids = [int(word) for word in done.stdout.split()]
    assert len(pids) == 4, done.stderr
    assert not wait_gone(pids)


FEW_DESCRIPTORS = """
import resource
from belljar import Sandbox, SandboxCreationError
with Sandbox() as first:
    first.exec("true")
    # The hard limit stays: a server of processes may raise its own, as those on their way count for a whole user.
    resource.setrlimit(resource.RLIMIT_NOFILE, (24, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    made = []
    try:
        for _ in range(50):
            made.append(Sandbox())
    except SandboxCreationError as error:
        assert error.__cause__ is not None
    else:
        raise SystemExit("there was no limit")
    assert made[0].exec("echo ok").stdout == "ok\\n"
    assert first.exec("echo ok").stdout == "ok\\n"
    for sandbox in made:
        sandbox.close()
    with Sandbox() as again:
        print(again.exec("echo recovered").stdout, end="")
"""


@needs_own_descriptors
def test_116_no_descriptors_left_is_a_clean_refusal() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FEW_DESCRIPTORS], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.stdout, done.returncode) == ("recovered\n", 0), done.stderr


def test_116_a_dead_zygote_is_replaced(watch: Watch) -> None:
    with Sandbox() as before:
        assert shared.zygote is not None
        zygote = shared.zygote.process
        assert zygote is not None
        os.kill(zygote.pid, signal.SIGKILL)
        with Sandbox() as after:
            assert after.exec("echo new").stdout == "new\n"
        assert before.exec("echo old").stdout == "old\n"
        assert watch.other.exec("echo ok").stdout == "ok\n"
    assert wait_gone([zygote.pid]) == []
