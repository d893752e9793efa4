"""The layer that is put up when it is required: a control group around all processes of a sandbox."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from belljar import IsolationUnavailable, Limits, Sandbox
from belljar.owner import cgroup_host
from belljar.owner.cgroup_host import CORES, PROCESSES_MAX, Cgroup, find_places

linux = pytest.mark.skipif(sys.platform != "linux", reason="control groups are Linux's")
divisible = pytest.mark.skipif(sys.platform != "linux" or not find_places(), reason="no control group to divide here")
pytestmark = linux


def groups() -> set[str]:
    return {
        f"{place.directory}/{name}"
        for place in find_places()
        for name in os.listdir(place.directory)
        if name.startswith(f"belljar-{os.getpid()}-")
    }


@pytest.fixture
def before() -> set[str]:
    """The groups of sandboxes that other tests made, and of those that are just being removed."""
    return groups()


def wait_no_more_groups(before: set[str]) -> set[str]:
    deadline = time.monotonic() + 30
    while groups() - before and time.monotonic() < deadline:
        time.sleep(0.02)
        cgroup_host.remove_leftovers()
    return groups() - before


def test_where_there_is_none_it_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup_host, "find_places", lambda: ())
    with pytest.raises(IsolationUnavailable, match="cgroup"):
        Sandbox(require={"cgroup"})


@divisible
def test_a_worker_its_branches_and_their_ends(before: set[str]) -> None:
    with Sandbox() as plain:
        assert "cgroup" not in plain.info.isolation
        assert groups() <= before
    with Sandbox(require={"cgroup"}) as sandbox:
        assert "cgroup" in sandbox.info.isolation
        mine = sandbox._link.worker.cgroup
        assert mine is not None
        assert str(sandbox._link.pid) in Path(f"{mine.directory}/cgroup.procs").read_text().split()
        with sandbox.fork() as branch:
            assert "cgroup" in branch.info.isolation
            other = branch._link.worker.cgroup
            assert other is not None
            assert Path(f"{other.directory}/cgroup.procs").read_text().split() == [str(branch._link.pid)]
            sandbox.close()
            assert branch.exec("echo on").stdout == "on\n"
    assert not wait_no_more_groups(before)


@divisible
def test_the_group_has_the_limit_of_the_sandbox(before: set[str]) -> None:
    with Sandbox(require={"cgroup"}, limits=Limits(memory_bytes=64 << 20)) as sandbox:
        group = sandbox._link.worker.cgroup
        assert group is not None
        name = "memory.max" if find_places()[0].version == 2 else "memory.limit_in_bytes"
        assert int(Path(f"{group.directory}/{name}").read_text()) == (64 << 20) + (256 << 20)
    assert not wait_no_more_groups(before)


@divisible
@pytest.mark.usefixtures("probes", "echo_engine")
def test_engine_processes_are_in_it_too(before: set[str]) -> None:
    with Sandbox(require={"cgroup"}) as sandbox:
        group = sandbox._link.worker.cgroup
        assert group is not None
        process = sandbox.spawn("engine echo spin more")
        assert process.stdout.next_chunk() == b"spinning\n"
        assert len(Path(f"{group.directory}/cgroup.procs").read_text().split()) == 2
    assert not wait_no_more_groups(before)


OWNER = """
import os, signal
from belljar import Sandbox
sandbox = Sandbox(require={"cgroup"})
print(sandbox._link.worker.cgroup.directory, flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


@divisible
def test_what_a_killed_owner_left_is_removed_by_the_next() -> None:
    done = subprocess.run([sys.executable, "-c", OWNER], capture_output=True, text=True, timeout=60, check=False)
    directory = Path(done.stdout.strip())
    assert directory.name.startswith("belljar-")
    deadline = time.monotonic() + 30
    while directory.exists() and time.monotonic() < deadline:
        find_places.cache_clear()
        find_places()
        time.sleep(0.02)
    assert not directory.exists()


@divisible
def test_every_layer_that_there_is_holds_and_the_others_are_named(before: set[str]) -> None:
    there = {cgroup_host.CONTROLLERS[name] for place in find_places() for name in place.controllers}
    with Sandbox(require={"cgroup"}) as sandbox:
        assert there <= set(sandbox.info.isolation)
        assert not there & set(sandbox.info.missing)
        mine = sandbox._link.worker.cgroup
        assert mine is not None
        for directory in mine.directories:
            assert str(sandbox._link.pid) in Path(f"{directory}/cgroup.procs").read_text().split()
            for name, value in (("cpu.cfs_quota_us", CORES * 100_000), ("pids.max", PROCESSES_MAX)):
                bound = Path(f"{directory}/{name}")
                assert not bound.exists() or bound.read_text() == f"{value}\n"
    assert not wait_no_more_groups(before)


def tree(monkeypatch: pytest.MonkeyPatch, root: Path, ours: str, controls: dict[str, str]) -> None:
    """A stand-in for the kernel's files."""
    for directory, controllers in controls.items():
        (root / directory).mkdir(parents=True, exist_ok=True)
        (root / directory / "cgroup.procs").touch()
        (root / directory / "cgroup.subtree_control").write_text(controllers)
    (root / "ours").write_text(ours)
    monkeypatch.setattr(cgroup_host, "ROOT", str(root))
    monkeypatch.setattr(cgroup_host, "OURS", str(root / "ours"))
    monkeypatch.setattr(cgroup_host, "find_places", find_places.__wrapped__)


def test_the_files_of_version_2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A delegated group with processes in it: the new one is made beside it, where the controllers are handed on."""
    tree(
        monkeypatch,
        tmp_path,
        "0::/user.slice/app.scope\n",
        {"user.slice": "cpu memory pids\n", "user.slice/app.scope": "", "": "cpu io memory pids\n"},
    )
    group = Cgroup(1 << 30)
    assert group.layers == ["cgroup", "cgroup_cpu", "cgroup_pids"]
    assert group.directories == [group.directory]
    made = Path(group.directory)
    assert made.parent == tmp_path / "user.slice"
    group.add(4711)
    assert {file.name: file.read_text() for file in made.iterdir()} == {
        "memory.max": str(1 << 30),
        "memory.swap.max": "0",
        "memory.oom.group": "1",
        "cpu.max": f"{CORES * 100_000} 100000",
        "pids.max": str(PROCESSES_MAX),
        "cgroup.procs": "4711",
    }
    group.remove()
    assert (made / "cgroup.kill").read_text() == "1"


def test_version_2_with_memory_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree(monkeypatch, tmp_path, "0::/a\n", {"a": "memory\n"})
    group = Cgroup(1 << 30)
    assert group.layers == ["cgroup"]
    group.remove()


def test_version_1_has_a_tree_for_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ours = "4:memory:/m\n2:cpu,cpuacct:/\n8:pids:/gone\n0::/\n"
    tree(monkeypatch, tmp_path, ours, {"memory/m": "", "memory": "", "cpu,cpuacct": "", "pids": "", "unified": ""})
    group = Cgroup(1 << 30)
    assert group.layers == ["cgroup", "cgroup_cpu", "cgroup_pids"]
    assert [Path(directory).parent for directory in group.directories] == [
        tmp_path / "memory/m",
        tmp_path / "cpu,cpuacct",
        tmp_path / "pids",
    ]
    group.add(4711)
    memory, cpu, pids = map(Path, group.directories)
    assert (memory / "memory.limit_in_bytes").read_text() == str(1 << 30)
    assert (cpu / "cpu.cfs_quota_us").read_text() == str(CORES * 100_000)
    assert (pids / "pids.max").read_text() == str(PROCESSES_MAX)
    assert all((Path(directory) / "cgroup.procs").read_text() == "4711" for directory in group.directories)
    group.remove()


@pytest.mark.parametrize("ours", ["", "0::/a\n", "2:cpu:/\n8:pids:/\n"])
def test_without_memory_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ours: str) -> None:
    tree(monkeypatch, tmp_path, ours, {"a": "cpu pids\n", "cpu": "", "pids": ""})
    with pytest.raises(IsolationUnavailable, match="cgroup_pids"):
        Sandbox(require={"cgroup_pids"})
