"""Checkpoints: a sandbox that is kept under its name, whatever happens to its owner."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from belljar import ExecError, Sandbox, Snapshot, SnapshotError
from belljar.store.collect import check
from belljar.store.errors import StoreError
from belljar.store.memory_host import MemoryStore
from belljar.store.snapshot import SANDBOX
from belljar.store.store import Store

AGENT = """
import sys
from belljar import Sandbox, Store
with Sandbox(name="lane", store=Store.sqlite(sys.argv[1]), checkpoint="exec") as sandbox:
    for step in range(10_000):
        sandbox.exec(f"mkdir -p done; echo {step} > done/{step}; head -c 100000 /dev/urandom > noise").check()
        print(step, flush=True)
"""


@pytest.mark.parametrize("delay", [0.0, 0.003, 0.011])
def test_a_killed_owner_loses_no_finished_exec(tmp_path: Path, delay: float) -> None:
    path = tmp_path / "store.db"
    agent = subprocess.Popen([sys.executable, "-c", AGENT, str(path)], stdout=subprocess.PIPE, text=True)
    assert agent.stdout is not None
    finished = [int(agent.stdout.readline()) for _ in range(4)]
    time.sleep(delay)  # so that it is killed at different moments
    agent.send_signal(signal.SIGKILL)
    finished += [int(line) for line in agent.communicate()[0].split()]
    with closing(Store.sqlite(path)) as store, Sandbox.resume("lane", store, checkpoint="exec") as sandbox:
        for step in finished:
            assert sandbox.files.read(f"done/{step}") == f"{step}\n"
        sandbox.exec("echo on > done/again").check()
        assert list(check(store)) == []


def test_a_name_is_not_taken_twice() -> None:
    store = Store.memory()
    with Sandbox(name="lane", store=store, checkpoint="exec") as first:
        first.exec("echo 1 > a").check()
        with pytest.raises(SnapshotError, match=r"resume\('lane'\)"):
            Sandbox(name="lane", store=store, checkpoint="exec")
        with Sandbox.resume("lane", store, checkpoint="exec") as second:
            second.exec("echo 2 > a").check()
            with pytest.raises(SnapshotError, match="another one goes on") as caught:
                first.exec("echo 3 > a; echo said")
            assert caught.value.result.stdout == "said\n"  # type: ignore[attr-defined]
    with Sandbox.resume("lane", store) as sandbox:
        assert sandbox.exec("cat a").stdout == "2\n"


def test_one_that_is_resumed_by_its_name_is_kept_as_before() -> None:
    store = Store.memory()
    with Sandbox(name="lane", store=store, checkpoint="exec") as sandbox:
        sandbox.exec("echo 1 > a").check()
    for step in range(2, 4):
        with Sandbox.resume("lane", store) as sandbox:
            sandbox.exec(f"echo {step} >> a").check()
    with Sandbox.resume("lane", store) as first, Sandbox.resume("lane", store) as second:
        assert first.exec("cat a; echo 4 >> a").stdout == "1\n2\n3\n"
        with pytest.raises(SnapshotError, match="another one goes on"):
            second.exec("echo 5 >> a")
    kept = store.get(SANDBOX + "lane")
    assert kept is not None
    with Sandbox.resume("lane", store, checkpoint=None) as sandbox:
        sandbox.exec("echo not kept >> a").check()
    with Sandbox.resume(f"sha256:{kept.hex()}", store) as sandbox:
        sandbox.exec("echo another sandbox >> a").check()
    assert store.get(SANDBOX + "lane") == kept
    with Sandbox.resume("lane", store, checkpoint=60) as sandbox:
        sandbox.pause()
    assert Snapshot.find("lane", store).record.checkpoint == 60.0


def test_every_exec_is_kept_whatever_its_end() -> None:
    store = Store.memory()
    with Sandbox(name="lane", store=store, checkpoint="exec") as sandbox:
        with pytest.raises(ExecError):
            sandbox.exec("echo failed > a; false", check=True)
        for seconds in (0.2, 2, 20):  # until it had the time to begin
            assert sandbox.exec("echo slow > b; sleep 60", timeout=seconds).timed_out
            if sandbox.files.exists("b"):
                break
        kept = store.get(SANDBOX + "lane")
        sandbox.exec("true")
        assert store.get(SANDBOX + "lane") == kept  # nothing has changed
    with Sandbox.resume("lane", store) as sandbox:
        assert sandbox.exec("cat a b").stdout == "failed\nslow\n"


def test_one_without_a_name_has_its_id() -> None:
    store = Store.memory()
    with Sandbox(store=store, checkpoint="exec") as sandbox:
        sandbox.exec("echo 1 > a").check()
        name = sandbox.name
    with Sandbox.resume(name, store) as sandbox:
        assert sandbox.exec("cat a").stdout == "1\n"


def test_every_so_many_seconds() -> None:
    store = Store.memory()
    with Sandbox(name="lane", store=store, checkpoint=0.05) as sandbox:
        process = sandbox.spawn("echo running > a; sleep 60")
        ends = time.monotonic() + 120
        while time.monotonic() < ends:
            time.sleep(0.05)
            if (found := store.get(SANDBOX + "lane")) is None:
                continue
            with Sandbox.restore(f"sha256:{found.hex()}", store) as later:
                if later.exec("cat a").stdout == "running\n":
                    break
        else:
            raise AssertionError("no checkpoint was made")
        process.kill()


class Failing(MemoryStore):
    """A store whose disk is full from some moment on."""

    full = False

    def write(self, objects: Any) -> None:
        if self.full:
            raise StoreError("no space is left")
        super().write(objects)


def test_a_store_that_fails_is_told_and_the_sandbox_goes_on() -> None:
    store = Failing()
    with Sandbox(name="lane", store=store, checkpoint="exec") as sandbox:
        sandbox.exec("echo 1 > a").check()
        store.full = True
        with pytest.raises(SnapshotError, match="no space is left"):
            sandbox.exec("echo 2 > b")
        with pytest.raises(SnapshotError, match="no space is left"):
            sandbox.snapshot()
        store.full = False
        sandbox.exec("echo 3 > c").check()
    assert list(check(store)) == []
    with Sandbox.resume("lane", store) as sandbox:
        assert sandbox.exec("cat a b c").stdout == "1\n2\n3\n"
