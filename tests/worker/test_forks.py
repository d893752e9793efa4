"""Forks from inside a worker: none without the owner's permit, one with it, and no process that nobody knows."""

from __future__ import annotations

import os
import random
import signal
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

import pytest

from belljar import Sandbox, SandboxError
from belljar.api import forking
from belljar.owner.supervisor_host import Supervisor, shared
from tests.escape.oracles import check_open_files, open_files, wait_gone

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are Linux's")


def members(session: int) -> list[int]:
    """The live processes of a session: a worker and whatever it forked."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split() if entry.name.isdigit() else []
        except (FileNotFoundError, ProcessLookupError):
            continue
        if fields and int(fields[3]) == session and fields[0] not in "ZX":
            found.append(int(entry.name))
    return found


def wait_members(session: int, count: int) -> list[int]:
    deadline = time.monotonic() + 30
    while len(found := members(session)) != count and time.monotonic() < deadline:
        time.sleep(0.01)
    return found


@pytest.mark.usefixtures("probes")
def test_a_worker_can_not_fork_by_itself() -> None:
    with Sandbox() as sandbox:
        assert sandbox.exec("fork").stdout == "EPERM\nEPERM\n"
        with sandbox.fork() as branch:
            assert branch.exec("fork").stdout == "EPERM\nEPERM\n"
            assert sandbox.exec("fork").stdout == "EPERM\nEPERM\n"
        assert wait_members(sandbox._link.pid, 1) == [sandbox._link.pid]


@pytest.mark.parametrize(
    "how", ["child-silent", "child-silent-reply", "parent-hello", "no-fork", "garbage", "twice", "nothing"]
)
def test_a_hostile_worker_keeps_no_process_of_its_own(
    how: str, probes: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Sandbox() as sandbox:
        pid = sandbox._link.pid
        sandbox.exec(f"misbehave {how}")
        before = open_files()
        with monkeypatch.context() as hurried:
            hurried.setattr(forking, "FORK_SECONDS", 1.0)
            with pytest.raises(SandboxError):
                sandbox.fork()
        deadline = time.monotonic() + 30
        while not set(left := members(pid)) <= {pid} and time.monotonic() < deadline:
            time.sleep(0.01)
        assert set(left) <= {pid}
        check_open_files(before)
    assert not wait_members(pid, 0)
    with Sandbox() as after, after.fork() as branch:
        assert branch.exec("echo ok").stdout == "ok\n"


def test_zombies_do_not_pile_up() -> None:
    with Sandbox() as origin:
        pids = []
        for _ in range(5):
            with origin.fork() as branch:
                pids.append(branch._link.pid)
        deadline = time.monotonic() + 30
        while any(Path(f"/proc/{pid}").exists() for pid in pids) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_an_orphaned_branch_is_waited_for_by_the_zygote() -> None:
    origin = Sandbox()
    branch = origin.fork()
    pid = branch._link.pid
    os.kill(origin._link.pid, signal.SIGKILL)
    assert branch.exec("echo on").stdout == "on\n"
    branch.close()
    origin.close()
    deadline = time.monotonic() + 30
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not Path(f"/proc/{pid}").exists()


def work(sandbox: Sandbox, made: list[int], choice: random.Random, struck: threading.Event) -> None:
    """Fork, use, close, until somebody was killed."""
    while not struck.is_set():
        with sandbox.fork() as branch:
            made.append(branch._link.pid)
            branch.exec("for i in {1..50}; do x=$(echo $i); done")
            if choice.random() < 0.3:
                with branch.fork() as second:
                    made.append(second._link.pid)
                    branch.close()
                    second.exec("echo x > f; cat f")


@pytest.mark.battery
@pytest.mark.parametrize(
    "seeds",
    [pytest.param(range(9), id="some"), pytest.param(range(9, 60), id="many", marks=pytest.mark.slow)],
)
def test_kill_anybody_while_forking(seeds: range) -> None:
    with Sandbox() as other:
        other.exec("true")
        before = open_files()
        for seed in seeds:
            choice = random.Random(seed)
            with Sandbox() as origin:
                origin.exec("true")
                session = origin._link.pid
                made = [session]
                assert shared.zygote is not None
                zygote = shared.zygote.process.pid
                victim = ("origin", "branch", "zygote")[seed % 3]

                struck = threading.Event()
                killed: list[int] = []  # the origin, if there was no branch yet

                def strike(
                    targets: tuple[str, list[int], int, int] = (victim, made, session, zygote),
                    struck: threading.Event = struck,
                    killed: list[int] = killed,
                ) -> None:
                    victim, made, session, zygote = targets
                    killed.append({"origin": session, "branch": made[-1], "zygote": zygote}[victim])
                    with suppress(ProcessLookupError):
                        os.kill(killed[0], signal.SIGKILL)
                    struck.set()

                timer = threading.Timer(choice.uniform(0.02, 0.2), strike)
                timer.start()
                with suppress(SandboxError):
                    work(origin, made, choice, struck)
                timer.join()
                if killed != [session] and session in members(session):
                    assert origin.exec("echo ok").stdout == "ok\n"
            assert not wait_gone(made)
            assert not wait_members(session, 0)
            assert other.exec("echo ok").stdout == "ok\n"
        with Sandbox() as following, following.fork() as branch:
            assert branch.exec("echo ok").stdout == "ok\n"
        check_open_files(before)
