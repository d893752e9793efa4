"""The public API, through real sealed workers."""

from __future__ import annotations

import errno
import gc
import hashlib
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from belljar import (
    ExecError,
    FileError,
    ImageError,
    IsolationUnavailable,
    Limits,
    Mount,
    Sandbox,
    SandboxClosed,
    SandboxCreationError,
    Store,
)
from belljar.api import link_host
from belljar.lockdown import polling_host
from belljar.owner.handle_host import WorkerHandle
from belljar.owner.supervisor_host import shared
from tests.escape.oracles import wait_gone


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as made:
        yield made


def test_exec(sandbox: Sandbox) -> None:
    result = sandbox.exec("echo hello | tr a-z A-Z; echo oops >&2; exit 3")
    assert (result.stdout, result.stderr, result.exit_code) == ("HELLO\n", "oops\n", 3)
    assert result.limit is None
    assert not result.timed_out
    with pytest.raises(ExecError, match="exit code 3"):
        result.check()


def test_argv_is_not_interpreted(sandbox: Sandbox) -> None:
    assert sandbox.exec(["echo", "$HOME", "*"]).stdout == "$HOME *\n"


def test_exec_arguments(sandbox: Sandbox) -> None:
    result = sandbox.exec("pwd; echo $WHO; cat", cwd="/tmp", env={"WHO": "me"}, stdin="in")
    assert result.stdout == "/tmp\nme\nin"
    merged = sandbox.exec("echo a; echo b >&2; echo c", merge_stderr=True)
    assert (merged.stdout, merged.stderr) == ("a\nb\nc\n", "")


def test_unknown_command_and_directory(sandbox: Sandbox) -> None:
    assert sandbox.exec(["no-such-command"]).exit_code == 127
    with pytest.raises(FileError):
        sandbox.exec("true", cwd="/nowhere")


@pytest.mark.parametrize("command", ["", [], [1], None, "a\0b"])
def test_bad_commands(sandbox: Sandbox, command: object) -> None:
    if command == "":
        assert sandbox.exec("").exit_code == 0
        return
    with pytest.raises((TypeError, ValueError)):
        sandbox.exec(command)  # type: ignore[call-overload]


def test_timeout_leaves_the_sandbox_usable(sandbox: Sandbox) -> None:
    result = sandbox.exec("sleep 100 & while :; do :; done", timeout=0.3)
    assert (result.exit_code, result.timed_out, result.limit) == (124, True, "wall_seconds")
    assert sandbox.exec("echo ok").stdout == "ok\n"
    assert sandbox.stats()["processes"] == 0


def test_limits_name_what_stopped_a_command(sandbox: Sandbox) -> None:
    flood = sandbox.exec("yes", limits=Limits(output_bytes=100_000))
    assert (flood.limit, flood.truncated, len(flood.stdout_bytes)) == ("output_bytes", True, 100_000)
    assert sandbox.exec("while :; do :; done", limits=Limits(steps=10_000)).limit == "steps"
    assert sandbox.exec("while :; do :; done", limits=Limits(cpu_seconds=0.2)).limit == "cpu_seconds"
    assert sandbox.exec("f(){ f; }; f").limit == "depth"
    assert sandbox.exec("echo ok").stdout == "ok\n"


def test_output_streams_while_it_runs(sandbox: Sandbox) -> None:
    seen: list[bytes] = []

    def hear(data: bytes) -> None:
        seen.append(data)
        if len(seen) == 1:
            sandbox.files.write("heard", "")

    result = sandbox.exec("echo one; until [ -e heard ]; do sleep 0.01; done; echo two", on_stdout=hear, timeout=60)
    assert seen == [b"one\n", b"two\n"]
    assert result.stdout == "one\ntwo\n"


def test_large_output_and_input(sandbox: Sandbox) -> None:
    data = os.urandom(3 << 20)
    assert sandbox.exec(["cat"], stdin=data).stdout_bytes == data
    assert len(sandbox.exec(["head", "-c", "20000000", "/dev/zero"]).stdout_bytes) == 20_000_000


def test_files(sandbox: Sandbox) -> None:
    files = sandbox.files
    files.write("a/b/c.txt", "hello")
    files.write("a/b/c.txt", " world", append=True)
    assert files.read("a/b/c.txt") == "hello world"
    files.write("run.sh", "#!/bin/bash\necho ran", mode=0o755)
    assert sandbox.exec("./run.sh").stdout == "ran\n"
    assert files.exists("a/b")
    assert not files.exists("a/x")
    files.mkdir("d/e", parents=True)
    files.symlink("c.txt", "a/b/link")
    assert [(e.name, e.kind) for e in files.list("a/b")] == [("c.txt", "file"), ("link", "symlink")]
    assert files.stat("a/b/link").size == 11
    files.rename("a/b/c.txt", "d/c.txt")
    files.remove("a", recursive=True)
    assert files.glob("**/*.txt") == ["d/c.txt"]
    assert [(m.path, m.line, m.text) for m in files.grep("wor", "d")] == [("d/c.txt", 1, "hello world")]
    with pytest.raises(FileError) as caught:
        files.read("missing")
    assert (caught.value.errno, caught.value.path) == (errno.ENOENT, "/workspace/missing")


def test_big_files_cross_in_pieces(sandbox: Sandbox) -> None:
    data = os.urandom(20 << 20)
    sandbox.files.write("big", data)
    assert sandbox.files.read_bytes("big") == data


def test_write_many_keeps_order_and_goes_on(sandbox: Sandbox) -> None:
    results = sandbox.files.write_many([("x", "1"), ("/proc/no", "2"), ("y", b"3")])
    assert [(r.path, r.ok) for r in results] == [("x", True), ("/proc/no", False), ("y", True)]


def test_upload_and_download(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "in" / "sub").mkdir(parents=True)
    (tmp_path / "in" / "sub" / "f").write_text("data")
    sandbox.files.upload(str(tmp_path / "in"), "/workspace/up")
    assert sandbox.exec("cat up/sub/f").stdout == "data"
    sandbox.exec("ln -s /etc/passwd up/evil; echo more > up/g").check()
    sandbox.files.download("up", str(tmp_path / "out"))
    assert sorted(p.name for p in (tmp_path / "out").rglob("*")) == ["f", "g", "sub"]


def test_mounts(tmp_path: Path) -> None:
    (tmp_path / "f").write_text("host\n")
    mounts = {
        "/ro": Mount.host(str(tmp_path)),
        "/rw": Mount.host(str(tmp_path), read_only=False),
        "/over": Mount.overlay(Mount.host(str(tmp_path))),
        "/mem": Mount.memory({"x": "y"}),
    }
    with Sandbox(mounts=mounts) as sandbox:
        assert sandbox.exec("cat /ro/f /over/f /mem/x").stdout == "host\nhost\ny"
        assert sandbox.exec("echo no > /ro/g").exit_code == 1
        sandbox.exec("echo mine > /over/f; rm /over/f; echo new > /over/n").check()
        sandbox.exec("echo out > /rw/made").check()
        assert sandbox.exec("ls /over").stdout == "made\nn\n"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["f", "made"]
    assert (tmp_path / "f").read_text() == "host\n"


def test_a_missing_host_directory_is_a_clear_error() -> None:
    with pytest.raises(SandboxCreationError, match="must be an existing directory"):
        Sandbox(mounts={"/x": Mount.host("/no/such/dir")})


@pytest.mark.parametrize(
    ("path", "mount", "message"),
    [
        ("/x", "/etc", r"'/x' must be a Mount, not str: make one by Mount.host\('/etc'\)"),
        ("/x", None, "must be a Mount, not NoneType"),
        ("x", Mount.memory(), "can't mount at 'x'"),
        ("/", Mount.memory(), "can't mount at '/'"),
    ],
)
def test_what_cannot_be_mounted_is_said_before_anything_starts(path: str, mount: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        Sandbox(mounts={path: mount})


def test_an_object_that_is_no_server_is_refused() -> None:
    with pytest.raises(TypeError, match="int is no file server: it has no root, walk, locate, stat, readdir, open"):
        Mount.server(42)  # type: ignore[arg-type]


def test_tools_are_commands() -> None:
    calls: list[tuple[str, int]] = []

    def search(query: str, limit: int = 3) -> list[str]:
        """Search the notes."""
        calls.append((query, limit))
        if query == "bad":
            raise RuntimeError("nothing found")
        return [query] * limit

    with Sandbox(tools={"search": search}) as sandbox:
        assert sandbox.exec("search bell --limit 2 | tr a-z A-Z").stdout == '["BELL", "BELL"]\n'
        assert sandbox.exec("""search '{"query": "x", "limit": 1}'""").stdout == '["x"]\n'
        bad = sandbox.exec("search bad")
        assert (bad.stderr, bad.exit_code) == ("search: nothing found\n", 1)
        assert "Search the notes." in sandbox.exec("search --help").stdout
        assert sandbox.exec("search").exit_code == 2
    assert calls == [("bell", 2), ("x", 1), ("bad", 3)]


def test_what_comes_unasked_is_taken_beside_callers_and_without() -> None:
    """Files of the owner's, for a program that nobody waits for at first, while others are waited for."""
    with Sandbox(mounts={"/host": Mount.host(str(Path(__file__).parent))}) as sandbox:
        process = sandbox.spawn("for i in $(seq 200); do cat /host/test_sandbox.py >/dev/null; done; echo read")
        for _ in range(20):
            assert sandbox.exec("echo beside").stdout == "beside\n"
        assert process.stdout.read() == b"read\n"
        assert process.wait(60) == 0
        reader = sandbox._link._reader
        assert reader is not None
    reader.join(30)
    assert not reader.is_alive()


def test_spawn(sandbox: Sandbox) -> None:
    process = sandbox.spawn(["cat"])
    assert process.pid > 1
    process.stdin.write("hello")
    process.stdin.close()
    assert process.stdout.read() == b"hello"
    assert process.wait(60) == 0
    sleeper = sandbox.spawn("sleep 100")
    assert sleeper.wait(0.05) is None
    sleeper.kill()
    assert sleeper.wait(60) == 143


def test_an_unread_stream_waits_instead_of_growing(sandbox: Sandbox) -> None:
    process = sandbox.spawn("yes | head -c 40000000")
    time.sleep(0.3)
    assert sum(len(chunk) for chunk in process.stdout) == 40_000_000
    assert process.wait(60) == 0


def test_pty(sandbox: Sandbox) -> None:
    terminal = sandbox.pty("read -r line; echo got $line; test -t 0 && echo tty", rows=10, cols=40)
    terminal.write("hi\r")
    shown = b""
    while chunk := terminal.read(timeout=60):
        shown += chunk
    assert terminal.wait(60) == 0
    assert shown == b"hi\r\ngot hi\r\ntty\r\n"


def test_concurrent_execs_from_threads(sandbox: Sandbox) -> None:
    results: dict[int, str] = {}

    def work(number: int) -> None:
        # Each waits for the others: they end only if all run at once.
        meet = f"touch here/{number}; until [ $(ls here | wc -l) = 8 ]; do sleep 0.01; done; echo {number}"
        results[number] = sandbox.exec(meet, timeout=60).stdout

    sandbox.files.mkdir("here")
    threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {n: f"{n}\n" for n in range(8)}


def test_sandboxes_do_not_see_each_other() -> None:
    with Sandbox() as one, Sandbox() as two:
        one.files.write("/tmp/secret", "x")
        assert two.exec("ls /tmp").stdout == ""
        random = [s.exec("echo $RANDOM$RANDOM$RANDOM; head -c 8 /dev/urandom | od -An -tx1").stdout for s in (one, two)]
        assert random[0] != random[1]


def test_require() -> None:
    with Sandbox(require={"seccomp", "rlimits"}) as sandbox:
        assert {"seccomp", "rlimits"} <= set(sandbox.info.isolation)
    with pytest.raises(IsolationUnavailable, match="unobtainium"):
        Sandbox(require={"unobtainium"})


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"tier": "nonsense"}, ValueError),
        ({"image": "x", "store": Store.memory()}, ImageError),
        ({"env": {"A=B": "x"}}, ValueError),
        ({"env": {"A": 1}}, TypeError),
        ({"files": {"/a": 1}}, TypeError),
        ({"cwd": "relative"}, ValueError),
        ({"nonsense": 1}, TypeError),
    ],
)
def test_bad_options(options: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        Sandbox(**options)  # type: ignore[arg-type]


def test_closing() -> None:
    sandbox = Sandbox()
    sandbox.close()
    sandbox.close()
    with pytest.raises(SandboxClosed):
        sandbox.exec("true")


def test_a_killed_worker_ends_its_sandbox_only() -> None:
    with Sandbox() as victim, Sandbox() as other:
        timer = threading.Timer(0.2, os.kill, (victim._link.pid, signal.SIGKILL))
        timer.start()
        with pytest.raises(SandboxClosed, match="ended unexpectedly"):
            victim.exec("sleep 30")
        assert other.exec("echo fine").stdout == "fine\n"


def test_a_dropped_sandbox_leaves_no_worker() -> None:
    sandbox = Sandbox()
    pid = sandbox._link.pid
    del sandbox
    gc.collect()
    assert not wait_gone([pid], 60)


def test_a_dropped_sandbox_warns_of_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Here the collector comes to its connection first: young objects are finalized before older ones."""
    said: list[str] = []
    take = shared.take

    def take_late(memory_bytes: int) -> WorkerHandle:
        gc.collect(0)  # the sandbox that is being made is older now than its connection
        return take(memory_bytes)

    monkeypatch.setattr(shared, "take", take_late)
    gc.collect()
    monkeypatch.setattr(sys, "unraisablehook", lambda unraisable: said.append(repr(unraisable.exc_value)))
    gc.disable()
    try:
        pid = Sandbox()._link.pid
        gc.collect()
    finally:
        gc.enable()
    assert not wait_gone([pid], 60)
    assert said == []


def test_nothing_outlives_a_killed_owner() -> None:
    script = (
        "import os, signal; from belljar import Sandbox; s = Sandbox(); p = s.spawn('while :; do :; done');"
        "print(s._link.pid, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    pid = int(done.stdout)
    assert not wait_gone([pid], 60)  # not that it is reaped: the init of a container may reap nobody


def test_files_can_be_used_with_the_rights_of_commands(sandbox: Sandbox) -> None:
    sandbox.exec("echo secret > f; chmod 000 f; mkdir d; chmod 500 d")
    assert sandbox.files.read("f") == "secret\n"
    as_user = sandbox.files.as_user()
    with pytest.raises(FileError) as refused:
        as_user.read("f")
    assert refused.value.errno == errno.EACCES
    for path in ("d/new", "/etc/passwd"):
        with pytest.raises(FileError):
            as_user.write(path, "x")
    as_user.write("mine/deep.txt", "x")
    assert as_user.exists("mine/deep.txt")
    assert not as_user.exists("nothing")
    assert sandbox.exec("stat -c %U mine/deep.txt").stdout == "agent\n"


def test_nothing_is_lost_of_a_command_that_ends_before_it_is_read(sandbox: Sandbox) -> None:
    size = (4 << 20) + (96 << 10)  # what may be on its way, and as much again as waits in pipes
    process = sandbox.spawn(f"head -c {size} /dev/zero; echo end >&2")
    time.sleep(0.5)
    assert len(process.stdout.read()) == size
    assert process.stderr.read() == b"end\n"
    assert process.wait() == 0


def test_a_killed_command_that_nobody_reads_can_be_waited_for(sandbox: Sandbox) -> None:
    process = sandbox.spawn("yes")
    time.sleep(0.2)
    process.kill("KILL")
    assert process.wait(timeout=30) == 137


def test_a_file_without_end_is_not_read_into_our_memory(sandbox: Sandbox) -> None:
    sandbox.exec("ln -s /dev/zero report.txt").check()
    for read in (sandbox.files.read, sandbox.files.read_bytes, sandbox.files.as_user().read_bytes):
        with pytest.raises(FileError, match="File too large"):
            read("report.txt")
    assert sandbox.files.read("/proc/version")


def test_a_word_that_is_no_pattern_matches_only_what_is_there(sandbox: Sandbox) -> None:
    sandbox.files.write("a[1].txt", "")
    assert sandbox.files.glob("nope") == []
    assert sandbox.files.glob("$(touch pwned)") == []
    assert sandbox.files.glob("/workspace") == ["/workspace"]
    assert sandbox.files.glob("*") == ["a[1].txt"]


def test_stats_tell_of_everything_it_uses(sandbox: Sandbox) -> None:
    before = sandbox.stats()
    assert {"steps", "processes", "files", "bytes", "uptime", "cpu", "memory"} <= set(before)
    sandbox.exec("for ((n = 0; n < 200000; n++)); do :; done; head -c 30M /dev/zero > big")
    after = sandbox.stats()
    assert after["steps"] >= before["steps"] + 200_000
    assert after["cpu"] > before["cpu"]
    assert after["memory"] > before["memory"] + (20 << 20)
    assert after["bytes"] >= before["bytes"] + (30 << 20)


_FORKED = """
import os, sys
from belljar import Sandbox, SandboxClosed

with Sandbox() as sandbox:
    sandbox.exec("echo kept > file")
    child = os.fork()
    if child == 0:
        try:
            sandbox.exec("true")
        except SandboxClosed as error:
            assert "belongs to the process" in str(error), error
            with Sandbox() as own:
                own.exec("true").check()
            sandbox.close()
            os._exit(7)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
    print(sandbox.files.read("file"), end="")
"""


def test_a_forked_child_has_no_part_in_a_sandbox() -> None:
    done = subprocess.run([sys.executable, "-c", _FORKED], capture_output=True, text=True, check=False, timeout=120)
    assert (done.stdout, done.stderr, done.returncode) == ("kept\n", "", 0)


@pytest.mark.parametrize("size", [300_000, 5 << 20])
def test_input_arrives_whole_however_late_it_is_read(sandbox: Sandbox, size: int) -> None:
    data = os.urandom(size)
    wanted = hashlib.sha256(data).hexdigest()
    process = sandbox.spawn("sleep 0.2; sha256sum")
    process.stdin.write(data[:1000])
    process.stdin.write(data[1000:])
    process.stdin.close()  # long before the command reads any of it
    assert process.stdout.read().decode().split()[0] == wanted
    assert process.wait(60) == 0


def test_more_input_than_fits_in_a_frame(sandbox: Sandbox) -> None:
    data = bytes(70 << 20)
    assert sandbox.exec("wc -c", stdin=data).stdout == f"{len(data)}\n"
    assert sandbox.exec("head -c 1 | wc -c", stdin=data).stdout == "1\n"
    assert sandbox.exec("true", stdin=data).exit_code == 0
    with pytest.raises(ValueError, match="too long: write it to a file"):
        sandbox.exec("x" * (9 << 20))
    with pytest.raises(ValueError, match="env is too large"):
        sandbox.exec("true", env={"A": "x" * (9 << 20)})
    assert sandbox.exec("echo fine").stdout == "fine\n"


def test_threads_that_send_at_once_wait_without_polling(monkeypatch: pytest.MonkeyPatch) -> None:
    polls: list[float] = []

    def writable(connection: socket.socket, seconds: float) -> bool:
        polls.append(seconds)
        return polling_host.writable(connection, seconds)

    monkeypatch.setattr(link_host, "writable", writable)
    with Sandbox() as sandbox, ThreadPoolExecutor(20) as pool:
        said = list(pool.map(lambda number: sandbox.exec(f"echo {number}").stdout, range(400)))
    assert said == [f"{number}\n" for number in range(400)]
    assert not polls


def test_a_thread_that_stops_receiving_hands_over() -> None:
    """Threads that wait behind one whose time is over, or whose call is interrupted, get their answers."""
    with Sandbox() as sandbox:
        processes = [sandbox.spawn("cat") for _ in range(3)]
        with ThreadPoolExecutor(10) as pool:
            short = [pool.submit(process.wait, 0.05 * n) for n, process in enumerate(processes, 1)]
            long = [pool.submit(sandbox.exec, f"sleep 0.{n}; echo {n}") for n in range(1, 8)]
            assert [wait.result(60) for wait in short] == [None, None, None]
            assert [call.result(60).stdout for call in long] == [f"{n}\n" for n in range(1, 8)]


def test_all_threads_that_wait_learn_of_the_end() -> None:
    with Sandbox() as sandbox, ThreadPoolExecutor(10) as pool:
        calls = [pool.submit(sandbox.exec, "sleep 100") for _ in range(10)]
        while sandbox._link._reading == 0 or len(sandbox._link._waiters) < 9:
            time.sleep(0.01)
        os.kill(sandbox._link.pid, signal.SIGKILL)
        for call in calls:
            with pytest.raises(SandboxClosed, match="ended unexpectedly"):
                call.result(60)
