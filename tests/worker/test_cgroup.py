"""The layer that is put up when it is required: a control group around all processes of a sandbox."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from belljar import IsolationUnavailable, Limits, Sandbox
from belljar.worker import cgroup_host
from belljar.worker.cgroup_host import place

linux = pytest.mark.skipif(sys.platform != "linux", reason="control groups are Linux's")
divisible = pytest.mark.skipif(sys.platform != "linux" or place() is None, reason="no control group to divide here")
pytestmark = linux


def groups() -> list[str]:
    where = place()
    assert where is not None
    return [name for name in os.listdir(where[0]) if name.startswith(f"belljar-{os.getpid()}-")]


def wait_no_groups() -> list[str]:
    deadline = time.monotonic() + 10
    while groups() and time.monotonic() < deadline:
        time.sleep(0.02)
        cgroup_host.remove_leftovers()
    return groups()


def test_where_there_is_none_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup_host, "place", lambda: None)
    with pytest.raises(IsolationUnavailable, match="cgroup"):
        Sandbox(require={"cgroup"})


@divisible
def test_a_worker_its_branches_and_their_ends() -> None:
    with Sandbox() as plain:
        assert "cgroup" not in plain.info.isolation
        assert not groups()
    with Sandbox(require={"cgroup"}) as sandbox:
        assert "cgroup" in sandbox.info.isolation
        mine = sandbox._link._worker.cgroup
        assert mine is not None
        assert str(sandbox._link.pid) in Path(f"{mine.directory}/cgroup.procs").read_text().split()
        with sandbox.fork() as branch:
            assert "cgroup" in branch.info.isolation
            other = branch._link._worker.cgroup
            assert other is not None
            assert Path(f"{other.directory}/cgroup.procs").read_text().split() == [str(branch._link.pid)]
            sandbox.close()
            assert branch.exec("echo on").stdout == "on\n"
    assert not wait_no_groups()


@divisible
def test_the_group_has_the_limit_of_the_sandbox() -> None:
    with Sandbox(require={"cgroup"}, limits=Limits(memory_bytes=64 << 20)) as sandbox:
        group = sandbox._link._worker.cgroup
        assert group is not None
        name = "memory.max" if place() == (os.path.dirname(group.directory), 2) else "memory.limit_in_bytes"
        assert int(Path(f"{group.directory}/{name}").read_text()) == (64 << 20) + (256 << 20)
    assert not wait_no_groups()


@divisible
@pytest.mark.usefixtures("probes", "echo_engine")
def test_engine_processes_are_in_it_too() -> None:
    with Sandbox(require={"cgroup"}) as sandbox:
        group = sandbox._link._worker.cgroup
        assert group is not None
        process = sandbox.spawn("engine echo spin more")
        assert process.stdout.next_chunk() == b"spinning\n"
        assert len(Path(f"{group.directory}/cgroup.procs").read_text().split()) == 2
    assert not wait_no_groups()


OWNER = """
import os, signal
from belljar import Sandbox
sandbox = Sandbox(require={"cgroup"})
print(sandbox._link._worker.cgroup.directory, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@divisible
def test_what_a_killed_owner_left_is_removed_by_the_next() -> None:
    done = subprocess.run([sys.executable, "-c", OWNER], capture_output=True, text=True, timeout=60, check=False)
    directory = Path(done.stdout.strip())
    assert directory.name.startswith("belljar-")
    deadline = time.monotonic() + 10
    while directory.exists() and time.monotonic() < deadline:
        place.cache_clear()
        place()
        time.sleep(0.02)
    assert not directory.exists()
