"""Many sandboxes at once, and many one after the other: nothing grows."""

from __future__ import annotations

import gc
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from belljar import Sandbox
from belljar.owner.supervisor_host import shared
from tests.escape.oracles import check_open_files, open_files, resident, wait_gone

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are Linux's")


def own_bytes(pid: int) -> int:
    """Memory that only this process has (USS). Of a worker only root can see that: else what it was given by faults."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except PermissionError:
        faults = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[7]
        return int(faults) * resource.getpagesize()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(("Private_Clean:", "Private_Dirty:")))


def children_of(pid: int) -> int:
    return len(Path(f"/proc/{pid}/task/{pid}/children").read_text().split())


@pytest.mark.battery
@pytest.mark.parametrize("count", [pytest.param(40, id="40"), pytest.param(500, id="500", marks=pytest.mark.slow)])
def test_live_at_once(count: int, record_property: Callable[[str, object], None]) -> None:
    before = open_files()
    sandboxes: list[Sandbox] = []
    try:
        for number in range(count):
            sandbox = Sandbox(name=str(number))
            sandboxes.append(sandbox)
            sandbox.exec(f"echo {number} > mine")
        for number, sandbox in enumerate(sandboxes):
            assert sandbox.exec("cat mine").stdout == f"{number}\n"
        sample = [own_bytes(s._link.pid) for s in sandboxes[:: max(1, count // 20)]]
        record_property("uss_mb", round(sum(sample) / len(sample) / 2**20, 2))
        assert sum(sample) / len(sample) < 8 << 20
        pids = [s._link.pid for s in sandboxes]
    finally:
        for sandbox in sandboxes:
            sandbox.close()
    assert not wait_gone(pids, 30)
    check_open_files(before, more=2)  # the zygote's own


@pytest.mark.battery
@pytest.mark.parametrize("count", [pytest.param(300, id="300"), pytest.param(2000, id="2000", marks=pytest.mark.slow)])
def test_one_after_the_other(count: int) -> None:
    def cycle() -> None:
        with Sandbox() as sandbox:
            assert sandbox.exec("echo hi").stdout == "hi\n"

    for _ in range(20):
        cycle()
    gc.collect()
    assert shared.zygote is not None
    zygote = shared.zygote.process
    assert zygote is not None
    open_before, memory, zygote_memory = open_files(), resident(), own_bytes(zygote.pid)
    workers = children_of(zygote.pid)  # of sandboxes that other tests still hold, and spares
    for _ in range(count):
        cycle()
    gc.collect()
    check_open_files(open_before)
    assert resident() - memory < 8 << 20
    assert shared.zygote is not None
    assert shared.zygote.process is zygote
    assert own_bytes(zygote.pid) - zygote_memory < 8 << 20
    deadline = time.monotonic() + 30
    while children_of(zygote.pid) > workers + 4 and time.monotonic() < deadline:
        time.sleep(0.02)
    assert children_of(zygote.pid) <= workers + 4, "only spares are left"
