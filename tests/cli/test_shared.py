"""The zygote that runs of one user share: whom it serves, whom it does not, and when it goes."""

from __future__ import annotations

import fcntl
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from belljar.cli import shared_host, start_host
from belljar.cli.shared_host import SharedZygote
from belljar.cli.zygote_host import SharedZygoteServer, listen
from belljar.owner.handle_host import WorkerHandle, WorkerUnavailable
from belljar.owner.supervisor_host import Supervisor
from tests.escape.oracles import is_alive

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="there is a zygote to share only on Linux")

WHO = b"these very runs"
MEMORY = 1 << 30


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory of our own with a short name: the address of a socket has little room."""
    path = Path(tempfile.mkdtemp(prefix="bj"))
    yield path
    until(lambda: not end_servers(path))
    shutil.rmtree(path)


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """What asks here waits for an answer, however late: on a busy machine a run would help itself."""
    monkeypatch.setattr(shared_host, "ANSWER_SECONDS", 60.0)


class Sleepers(Supervisor):
    """Gives processes that are no workers, and remembers them."""

    def __init__(self) -> None:
        super().__init__()
        self.given: list[subprocess.Popen[bytes]] = []

    def take(self, memory_bytes: int) -> WorkerHandle:
        ours, theirs = socket.socketpair()
        process = subprocess.Popen(["cat"], stdin=theirs.fileno(), stdout=theirs.fileno())
        theirs.close()
        self.given.append(process)
        return WorkerHandle(process.pid, os.pidfd_open(process.pid), ours)


@pytest.fixture
def server(place: Path) -> Iterator[SharedZygoteServer]:
    sleepers = Sleepers()
    listener = listen(str(place / "z"))
    server = SharedZygoteServer(listener, sleepers, WHO)
    thread = threading.Thread(target=server.run, args=(60.0,), daemon=True)
    thread.start()
    yield server
    server.stop()
    thread.join(60)
    assert not thread.is_alive()
    listener.close()
    for process in sleepers.given:
        process.kill()
        process.wait()


def find(place: Path, who: bytes = WHO) -> SharedZygote:
    found = SharedZygote.find(str(place / "z"), who)
    assert found is not None
    return found


def until(ready: Callable[[], bool], seconds: float = 240.0) -> None:
    deadline = time.monotonic() + seconds
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_run_gets_a_worker_of_its_own(server: SharedZygoteServer, place: Path) -> None:
    one, two = find(place).take(MEMORY), find(place).take(MEMORY)
    assert one.pid != two.pid
    one.connection.send(b"hello")
    assert one.connection.recv(10) == b"hello"
    # The run holds the only connection: when it is gone, the other side hears of it.
    one.connection.close()
    assert select.select([one.pidfd], [], [], 30)[0]
    assert two.alive
    one.kill()
    two.kill()


@pytest.mark.parametrize("what", ["another identity", "no memory", "too much memory", "nonsense", "nothing"])
def test_others_get_nothing(server: SharedZygoteServer, place: Path, what: str) -> None:
    if what == "another identity":
        with pytest.raises(WorkerUnavailable):
            find(place, b"other runs").take(MEMORY)
    else:
        request = {
            "no memory": (0).to_bytes(8, "little") + WHO,
            "too much memory": b"\xff" * 8 + WHO,
            "nonsense": os.urandom(5000),
            "nothing": b"",
        }[what]
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
            client.connect(str(place / "z"))
            client.settimeout(30)
            if request:
                client.send(request)
            else:
                client.shutdown(socket.SHUT_WR)
            assert client.recv(10) == b""
    assert server._supervisor.given == []  # type: ignore[attr-defined]
    find(place).take(MEMORY).kill()


def test_a_silent_client_holds_up_nobody(server: SharedZygoteServer, place: Path) -> None:
    silent = [find(place) for _ in range(5)]
    find(place).take(MEMORY).kill()
    for client in silent:
        client._connection.close()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs to be somebody else")
def test_another_user_gets_nothing(server: SharedZygoteServer, place: Path) -> None:
    place.chmod(0o755)
    (place / "z").chmod(0o777)
    code = f"""
import os, socket
os.setuid(65534)
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as client:
    client.connect({str(place / "z")!r})
    client.settimeout(30)
    try:
        client.send({MEMORY.to_bytes(8, "little") + WHO!r})
        print(client.recv(10))
    except OSError:
        print(b"")
"""
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False, timeout=240)
    assert done.stdout == "b''\n", done.stderr
    assert server._supervisor.given == []  # type: ignore[attr-defined]


def test_one_whose_code_has_changed_goes(server: SharedZygoteServer, place: Path) -> None:
    server._sources = [(str(place / "changed.py"), 1)]
    with pytest.raises(WorkerUnavailable):
        find(place).take(MEMORY)
    until(lambda: server.ended)


def test_one_that_nobody_asks_goes(place: Path) -> None:
    with listen(str(place / "z")) as listener:
        SharedZygoteServer(listener, Sleepers(), WHO).run(idle_seconds=0.1)


def test_what_an_earlier_one_left_is_no_hindrance(place: Path) -> None:
    listen(str(place / "z")).close()
    assert (place / "z").exists()
    assert SharedZygote.find(str(place / "z"), WHO) is None
    listen(str(place / "z")).close()


def test_identity_is_what_must_be_the_same() -> None:
    ours = shared_host.identity()
    code = "from belljar.cli.shared_host import identity; import sys; sys.stdout.buffer.write(identity())"
    program = [sys.executable, "-I", "-c", code]
    assert subprocess.run(program, capture_output=True, check=True, timeout=240).stdout == ours
    limited = ["bash", "-c", 'ulimit -n 100; exec "$@"', "bash", *program]
    assert subprocess.run(limited, capture_output=True, check=True, timeout=240).stdout != ours


def test_the_real_one(place: Path, home: dict[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    """The first run leaves it behind, the next uses it, two at once are one, and its worker dies with its run."""
    env = {**home, "XDG_RUNTIME_DIR": str(place), "BELLJAR_NO_DAEMON": ""}
    command = [sys.executable, "-m", "belljar.cli", "run", "echo hi"]
    for _ in range(2):
        assert subprocess.run(command, env=env, capture_output=True, check=True, timeout=240).stdout == b"hi\n"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
    monkeypatch.setenv("XDG_CACHE_HOME", home["XDG_CACHE_HOME"])
    path = shared_host.address(shared_host.identity())
    assert path is not None

    def listens() -> bool:
        found = SharedZygote.find(path, shared_host.identity())
        if found is not None:
            found.close()
        return found is not None

    until(listens)

    servers: list[int] = []

    def is_alone() -> bool:
        servers[:] = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if path in arguments(pid)]
        return len(servers) == 1

    until(is_alone)  # one that came second, or that makes another, is there for a moment
    [server] = servers
    assert Path(path).stat().st_mode & 0o777 == 0o600
    unused = start_host.Start(shared=True)
    unused.close()
    assert unused._zygote is not None
    assert unused._zygote._connection.fileno() == -1
    start = start_host.Start(shared=True)
    worker = start.take(MEMORY)
    start.finish()
    assert not start._alone, "it came from the shared one"
    assert worker.connection.recv(1 << 16), "it reports that it is ready"
    assert subprocess.run(command, env=env, capture_output=True, check=True, timeout=240).stdout == b"hi\n"
    assert is_alive(worker.pid)
    worker.connection.close()
    assert select.select([worker.pidfd], [], [], 30)[0]
    os.close(worker.pidfd)
    os.kill(server, 15)
    until(lambda: not is_alive(server))


def test_a_wrong_command_line_leaves_nothing_behind(place: Path, home: dict[str, str]) -> None:
    env = {**home, "XDG_RUNTIME_DIR": str(place), "BELLJAR_NO_DAEMON": ""}
    for wrong, code in (["run", "--nope"], 2), (["run", "--help"], 0):
        done = subprocess.run([sys.executable, "-m", "belljar.cli", *wrong], env=env, capture_output=True, timeout=240)
        assert done.returncode == code
    assert not list((place / "belljar").iterdir())


def test_what_a_caller_left_open_ends_with_the_run(place: Path, home: dict[str, str]) -> None:
    """Whoever waits for the end of a pipe that a run was given would wait for what it leaves behind."""
    env = {**home, "XDG_RUNTIME_DIR": str(place), "BELLJAR_NO_DAEMON": ""}
    reader, writer = os.pipe()
    command = [sys.executable, "-m", "belljar.cli", "run", "echo hi"]
    done = subprocess.run(command, env=env, pass_fds=[writer], stdout=subprocess.PIPE, check=True, timeout=240)
    os.close(writer)
    assert done.stdout == b"hi\n"
    assert select.select([reader], [], [], 30)[0], "something still holds the other end"
    os.close(reader)


def end_servers(place: Path) -> list[int]:
    """End those that runs left behind; return them."""
    left = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if str(place) in "".join(arguments(pid))]
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, 15)
    return left


def arguments(pid: int) -> list[str]:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    except OSError:
        return []


def test_a_run_that_waits_in_vain_helps_itself(
    place: Path, home: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A listener that never answers costs half a second, not the run."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(place))
    path = shared_host.address(shared_host.identity())
    assert path is not None
    with listen(path):
        env = {**home, "XDG_RUNTIME_DIR": str(place), "BELLJAR_NO_DAEMON": "0"}
        command = [sys.executable, "-m", "belljar.cli", "run", "echo hi"]
        with (place / "belljar" / (Path(path).name + ".lock")).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            assert subprocess.run(command, env=env, capture_output=True, check=True, timeout=240).stdout == b"hi\n"
