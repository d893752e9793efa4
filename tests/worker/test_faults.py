"""kill -9 at any moment, of worker, zygote and owner: nothing stays behind, and everybody else goes on."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from belljar import Limits, Sandbox, SandboxClosed, SandboxError
from belljar.owner.supervisor_host import shared
from tests.escape.oracles import check_open_files, is_alive, open_files, wait_gone

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are Linux's")


def rounds(some: int, many: int) -> list[object]:
    """The seeds of a quick run, and of a long one."""
    return [
        pytest.param(range(some), id="some"),
        pytest.param(range(some, many), id="many", marks=pytest.mark.slow),
    ]


def loop(sandbox: Sandbox) -> None:
    sandbox.exec("for i in {1..200}; do x=$(echo $i | tr 1 2); done")


def flood(sandbox: Sandbox) -> None:
    sandbox.exec("yes | head -c 20000000", on_stdout=lambda _data: None)


def files(sandbox: Sandbox) -> None:
    sandbox.files.write("/tmp/big", bytes(3 << 20))
    assert len(sandbox.files.read_bytes("/tmp/big")) == 3 << 20


def stream(sandbox: Sandbox) -> None:
    process = sandbox.spawn("cat")
    process.stdin.write(b"x" * 100_000)
    process.stdin.close()
    assert len(process.stdout.read()) == 100_000


def nap(sandbox: Sandbox) -> None:
    sandbox.exec("sleep 0.02")


WORK: list[Callable[[Sandbox], None]] = [loop, flood, files, stream, nap]


def kill_later(pid: int, delay: float, killed: list[float] | None = None) -> threading.Timer:
    """Kill a process on another thread, after so many seconds; the (monotonic) time of it is added to `killed`."""

    def strike() -> None:
        if is_alive(pid):
            if killed is not None:
                killed.append(time.monotonic())
            os.kill(pid, signal.SIGKILL)

    timer = threading.Timer(delay, strike)
    timer.start()
    return timer


@pytest.mark.battery
@pytest.mark.parametrize("seeds", rounds(24, 100))
def test_workers_killed_under_load(seeds: range) -> None:
    kill_workers(seeds)


def kill_workers(seeds: range) -> list[float]:
    """Seconds from each kill to the error."""
    killed: list[float] = []
    heard: list[float] = []
    with Sandbox(limits=Limits(output_bytes=1 << 40)) as other:
        other.exec("true")
        before = open_files()
        for seed in seeds:
            choice = random.Random(seed)
            victim = Sandbox(limits=Limits(output_bytes=1 << 40))
            pid = victim._link.pid
            timer = kill_later(pid, choice.uniform(0, 0.05), killed)
            try:
                while True:
                    choice.choice(WORK)(victim)
            except SandboxClosed:
                heard.append(time.monotonic())
            timer.join()
            victim.close()
            assert other.exec("echo ok").stdout == "ok\n"
            assert not wait_gone([pid])
        check_open_files(before)
        with Sandbox() as following:
            assert following.exec("echo ok").stdout == "ok\n"
    return delays(killed, heard)


def delays(killed: list[float], heard: list[float]) -> list[float]:
    return [end - begin for begin, end in zip(killed, heard, strict=True)]


@pytest.mark.battery
@pytest.mark.parametrize("seeds", rounds(10, 60))
def test_zygotes_killed_under_load(seeds: range) -> None:
    kill_zygotes(seeds)


def kill_zygotes(seeds: range) -> list[float]:
    """Seconds from each kill until another sandbox is made."""
    killed: list[float] = []
    made_again: list[float] = []
    with Sandbox() as other:
        other.exec("true")
        before = open_files()
        for seed in seeds:
            choice = random.Random(seed)
            with Sandbox():
                assert shared.zygote is not None
                zygote = shared.zygote.process
                assert zygote is not None
            timer = kill_later(zygote.pid, choice.uniform(0, 0.03), killed)
            made: list[int] = []
            deadline = time.monotonic() + 30
            while is_alive(zygote.pid) or len(made) < 2 or len(made_again) < len(killed):
                with Sandbox() as sandbox:
                    made.append(sandbox._link.pid)
                    assert sandbox.exec("echo ok").stdout == "ok\n"
                if len(made_again) < len(killed) and shared.zygote.process is not zygote:
                    made_again.append(time.monotonic())
                assert time.monotonic() < deadline
            timer.join()
            assert other.exec("echo ok").stdout == "ok\n"
            assert not wait_gone([*made, zygote.pid])
        check_open_files(before)
    return delays(killed, made_again)


OWNER = """
import random, sys
from belljar import Limits, Sandbox
from belljar.owner.supervisor_host import shared
choice = random.Random(int(sys.argv[1]))
sandboxes = [Sandbox() for _ in range(3)]
print(shared.zygote.process.pid, *(s._link.pid for s in sandboxes), flush=True)
sandboxes[0].spawn("while :; do :; done")
sandboxes[1].spawn("yes")
while True:
    with Sandbox() as another:
        another.exec("echo x | tr x y")
        another.files.write("f", bytes(choice.randrange(1 << 20)))
"""


def children_of(parent: int) -> list[int]:
    """The live children of a process: a zygote's workers, spares included."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
        except (FileNotFoundError, ProcessLookupError):
            continue
        if int(fields[1]) == parent and fields[0] not in "ZX":
            found.append(int(entry.name))
    return found


@pytest.mark.battery
@pytest.mark.parametrize("seeds", rounds(6, 40))
def test_owners_killed_under_load(seeds: range, tmp_path: Path) -> None:
    with Sandbox() as other:
        for seed in seeds:
            owner = subprocess.Popen(
                [sys.executable, "-c", OWNER, str(seed)],
                stdout=subprocess.PIPE,
                cwd=tmp_path,
                env={**os.environ, "TMPDIR": str(tmp_path)},
            )
            assert owner.stdout is not None
            pids = [int(word) for word in owner.stdout.readline().split()]
            time.sleep(random.Random(seed).uniform(0, 0.1))
            children = children_of(pids[0])
            owner.kill()
            owner.wait()
            owner.stdout.close()
            assert len(pids) == 4
            assert not wait_gone([*pids, *children])
            assert not list(tmp_path.iterdir()), "a file was left behind"
            assert other.exec("echo ok").stdout == "ok\n"


def test_many_threads_while_workers_die() -> None:
    """Each thread has its own sandboxes; a quarter of them are killed; no thread is ever stuck or misled."""
    wrong: list[str] = []
    closed = threading.Semaphore(0)

    def run(seed: int) -> None:
        choice = random.Random(seed)
        for turn in range(6):
            with Sandbox() as sandbox:
                doomed = choice.random() < 0.25
                if doomed:
                    os.kill(sandbox._link.pid, signal.SIGKILL)
                try:
                    out = sandbox.exec(f"echo {seed}.{turn}").stdout
                    if out != f"{seed}.{turn}\n":
                        wrong.append(out)
                except SandboxError as error:
                    closed.release()
                    if not doomed:
                        wrong.append(str(error))

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong
    assert closed.acquire(blocking=False)


def test_a_forked_child_of_the_owner_ends_no_sandbox() -> None:
    """Whatever becomes of its copies of our objects there."""
    with Sandbox() as sandbox:
        pid = os.fork()
        if pid == 0:
            sandbox.close()
            os._exit(0)
        os.waitpid(pid, 0)
        assert sandbox.exec("echo still").stdout == "still\n"
