"""Limits of a native sandbox: what is used up ends or fails inside, and neither the sandbox nor its neighbours."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from belljar import IsolationUnavailable, Limits, Sandbox
from belljar.abi.limits import GIB, MIB
from belljar.owner import cgroup_host
from tests.native.conftest import needs_native

pytestmark = needs_native
EAT = "python3 -c \"held = []\nfor _ in range(400): held.append(bytearray(b'x') * (1 << 20))\nprint('ate it')\""
"""400 MiB."""
TREES = {
    "/sys/fs/cgroup/pids": (1, "tasks"),
    "/sys/fs/cgroup/unified": (2, "cgroup.controllers"),
    "/sys/fs/cgroup": (2, "cgroup.controllers"),
}
"""The trees of control groups that machines have, with their versions, and a file that tells."""


def alive(sandbox: Sandbox) -> bool:
    return sandbox.exec("echo alive").stdout == "alive\n"


@pytest.fixture
def without_cgroups(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cgroup_host, "find_places", lambda: ())


def test_memory_of_all_processes_together() -> None:
    if not cgroup_host.find_places():
        pytest.skip("no control group may be made here")
    limits = Limits(memory_bytes=192 * MIB, file_bytes=64 * MIB)
    with Sandbox(tier="native") as neighbour, Sandbox(tier="native", limits=limits, require={"cgroup"}) as sandbox:
        for command in (EAT, f"{EAT}; exit $?", ["python3", "-c", EAT.split('"')[1]]):
            result = sandbox.exec(command)
            assert (result.exit_code, result.limit) == (137, "memory_bytes")
            said = "belljar: needed more than 192 MiB of memory (limit memory_bytes) and was stopped\n"
            assert result.stderr.endswith(said)
        # Each keeps what it has until one of them is gone: they might run one after another.
        hold = "print('ate it', flush=True)\nimport os, time\nwhile not os.path.exists('gone'): time.sleep(0.05)"
        half = EAT.replace("400", "160").replace("print('ate it')", hold)
        wait = "while [ $(jobs -r | wc -l) = 3 ]; do sleep 0.05; done; touch gone; wait; echo done"
        together = sandbox.exec(f"{half} & {half} & {half} & {wait}")
        assert together.stdout.count("ate it") < 3
        assert together.stdout.endswith("done\n")
        assert together.limit is None, "the command went on without it"
        assert sandbox.exec("kill -9 $$").limit is None, "nobody wanted memory"
        assert alive(sandbox)
        assert alive(neighbour)


def test_memory_of_each_process_without_a_control_group(without_cgroups: None) -> None:
    with Sandbox(tier="native", limits=Limits(memory_bytes=192 * MIB)) as sandbox:
        assert {"cgroup", "cgroup_cpu", "cgroup_pids"} <= set(sandbox.info.missing)
        assert "MemoryError" in sandbox.exec(EAT).stderr
        assert alive(sandbox)


def test_a_layer_that_is_not_there_is_not_promised(without_cgroups: None) -> None:
    with pytest.raises(IsolationUnavailable, match="cgroup"):
        Sandbox(tier="native", require={"cgroup"})


@pytest.mark.battery(sample=1)
@pytest.mark.parametrize("bounded", [True, False])
def test_a_fork_bomb(bounded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not bounded:
        monkeypatch.setattr(cgroup_host, "find_places", lambda: ())
    with Sandbox(tier="native") as neighbour, Sandbox(tier="native", limits=Limits(processes=50)) as sandbox:
        result = sandbox.exec("b() { b | b & }; b; sleep 4", timeout=10)
        assert "Resource temporarily unavailable" in result.stderr or result.limit
        assert alive(neighbour)
        before = time.monotonic()
        sandbox.close()
        assert time.monotonic() - before < 20


def test_a_full_disk_is_an_error_of_the_command() -> None:
    with Sandbox(tier="native", limits=Limits(file_bytes=16 * MIB)) as sandbox:
        result = sandbox.exec("head -c 64M /dev/zero > big")
        assert "No space left on device" in result.stderr
        assert int(sandbox.exec("stat -c %s big").stdout) <= 16 * MIB
        sandbox.exec("rm big", check=True)
        sandbox.exec("head -c 8M /dev/zero > fits", check=True)
        for place in ("/tmp", "/home/agent", "/var/tmp"):
            assert "No space left" in sandbox.exec(f"head -c 64M /dev/zero > {place}/big").stderr
        assert alive(sandbox)


def test_memory_that_looks_like_files_is_bounded() -> None:
    with Sandbox(tier="native", limits=Limits(file_bytes=16 * MIB, memory_bytes=1 * GIB)) as sandbox:
        assert "No space left on device" in sandbox.exec("head -c 64M /dev/zero > /dev/shm/big").stderr
        # An ordinary user's sandbox has one id, so this directory is its user's own.
        refused = "Permission denied" if os.geteuid() == 0 else "No space left on device"
        assert refused in sandbox.exec("head -c 64M /dev/zero > /dev/big").stderr


def test_too_many_files() -> None:
    with Sandbox(tier="native", limits=Limits(files=200)) as sandbox:
        result = sandbox.exec("for i in {1..400}; do : > f$i || break; done")
        assert "No space left on device" in result.stderr
        assert alive(sandbox)


def test_open_files() -> None:
    with Sandbox(tier="native", limits=Limits(open_files=32)) as sandbox:
        result = sandbox.exec("python3 -c \"held = [open('/dev/null') for _ in range(64)]\"")
        assert "Too many open files" in result.stderr


@pytest.mark.parametrize(
    ("command", "limits", "limit"),
    [
        ("while :; do :; done", Limits(cpu_seconds=1), "cpu_seconds"),
        ("sleep 60", Limits(wall_seconds=1), "wall_seconds"),
        ("yes", Limits(output_bytes=100_000), "output_bytes"),
    ],
)
def test_a_spent_limit_is_named(command: str, limits: Limits, limit: str) -> None:
    with Sandbox(tier="native", limits=limits) as sandbox:
        result = sandbox.exec(command)
        assert result.limit == limit
        assert alive(sandbox)


def test_stats_count_what_runs_inside() -> None:
    with Sandbox(tier="native") as sandbox:
        process = sandbox.spawn("python3 -c \"held = b'x' * (64 << 20); import time; time.sleep(60)\"")
        deadline = time.monotonic() + 60
        while sandbox.stats()["memory"] < 64 * MIB:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.kill()
        assert sandbox.stats()["cpu"] > 0


@pytest.mark.parametrize("tree", TREES)
def test_it_is_in_its_control_group_from_the_start(tree: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of version 2 pid 1 is born there, of version 1 it is moved: even without any controller, as here."""
    version, mark = TREES[tree]
    if not os.access(f"{tree}/cgroup.procs", os.W_OK) or not os.path.exists(f"{tree}/{mark}"):
        pytest.skip(f"no control group may be made in {tree}")
    monkeypatch.setattr(cgroup_host, "find_places", lambda: (cgroup_host.Place(tree, version, frozenset()),))

    def groups() -> set[Path]:
        return set(Path(tree).glob(f"belljar-{os.getpid()}-*"))

    before = groups()  # of sandboxes that another test has, or did not close
    with Sandbox(tier="native") as sandbox:
        [made] = groups() - before
        assert sandbox.exec("true").exit_code == 0
        inside = (made / "cgroup.procs").read_text().split()
        assert inside, "pid 1 is there"
        assert str(os.getpid()) not in inside
        assert made.name not in sandbox.exec("cat /proc/self/cgroup").stdout
    assert not made.exists()
