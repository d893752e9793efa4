"""Snapshots and power cuts, kills, full disks: each that was acknowledged restores to the same tree."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from belljar import Sandbox, Snapshot, SnapshotError
from belljar.store.collect import check
from belljar.store.store import Store
from tests.reliability.amount import amount
from tests.store.powercut import materialise
from tests.store.test_powercut import recorded
from tests.store.test_stores import DURABLE, Open

ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
CHANGE = "mkdir -p d; echo {0} > d/{0}; ln -f d/{0} linked; head -c 70000 /dev/urandom > noise; rm -f d/$(({0} - 3))"

WRITER = f"""
import sys
from pathlib import Path
from belljar import Sandbox
from tests.store import test_stores
with Sandbox(store=getattr(test_stores, sys.argv[1])(Path(sys.argv[2]))) as sandbox:
    number = int(sys.argv[3])
    while True:
        number += 1
        sandbox.exec({CHANGE!r}.format(number)).check()
        print(number, sandbox.snapshot(f"s{{number}}").tree, flush=True)
"""
RESTORER = """
import sys
from pathlib import Path
from belljar import Sandbox
from tests.store import test_stores
store = getattr(test_stores, sys.argv[1])(Path(sys.argv[2]))
for label in sys.argv[3:]:
    with Sandbox.restore(label, store=store) as sandbox:
        sandbox.exec("find /workspace -type f | xargs cat > /dev/null").check()
        print(sandbox.snapshot().tree)
store.close()
"""


def check_snapshots(store: Store, acknowledged: dict[str, str]) -> None:
    """All that were acknowledged are there, others are whole, and nothing is damaged."""
    found = {snapshot.label: snapshot.tree for snapshot in Snapshot.list(store)}
    assert found.items() >= acknowledged.items()
    assert len(found) <= len(acknowledged) + 1
    assert {label: Snapshot.find(label, store).tree for label in acknowledged} == acknowledged
    assert list(check(store)) == []


@DURABLE
@pytest.mark.slow
def test_an_owner_killed_while_it_makes_snapshots(tmp_path: Path, open_store: Open) -> None:
    rng = random.Random(5)
    acknowledged: dict[str, str] = {}
    number = 0
    for _ in range(amount(2, 150)):
        command = [sys.executable, "-c", WRITER, open_store.__name__, str(tmp_path), str(number)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as writer:
            assert writer.stdout is not None
            lines = [writer.stdout.readline()]
            time.sleep(rng.uniform(0.0, 0.15))
            writer.send_signal(signal.SIGKILL)
            lines += writer.stdout.readlines()
        said = {f"s{line.split()[0]}": line.split()[1] for line in lines if line.endswith("\n")}
        acknowledged |= said
        number += len(said) + 1
        store = open_store(tmp_path)
        found = {str(snapshot.label): snapshot.tree for snapshot in Snapshot.list(store)}
        assert found.items() >= acknowledged.items()
        assert list(check(store)) == []
        acknowledged = found
        store.close()
    some = sorted(acknowledged)[-4:]
    done = subprocess.run(
        [sys.executable, "-c", RESTORER, open_store.__name__, str(tmp_path), *some],
        check=False,
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [acknowledged[label] for label in some]


@DURABLE
@pytest.mark.slow
def test_a_power_cut_while_snapshots_are_made(tmp_path: Path, open_store: Open) -> None:
    (tmp_path / "recorded").mkdir()
    acknowledged: dict[str, str] = {}
    with recorded(tmp_path / "recorded") as disk, closing(open_store(disk.root / "store")) as store:
        with Sandbox(store=store) as sandbox:
            for number in range(1, 5):
                sandbox.exec(CHANGE.format(number)).check()
                acknowledged[f"s{number}"] = sandbox.snapshot(f"s{number}").tree
                disk.acknowledge(dict(acknowledged))
        with Sandbox.restore("s2", store=store) as sandbox:
            sandbox.exec(CHANGE.format(5)).check()
            acknowledged["s5"] = sandbox.snapshot("s5").tree
            disk.acknowledge(dict(acknowledged))
    rng = random.Random(6)
    cuts = disk.cuts()
    again = tmp_path / "again"
    for cut in cuts if amount(False, True) else rng.sample(cuts, min(12, len(cuts))):
        for state in disk.states(cut, rng, samples=amount(1, 6)):
            materialise(state, again)
            store = open_store(again / "store")
            check_snapshots(store, disk.known(cut)[0] or {})
            store.close()
            shutil.rmtree(again)


@DURABLE
def test_a_restored_snapshot_has_the_same_tree(tmp_path: Path, open_store: Open) -> None:
    with closing(open_store(tmp_path)) as store:
        with Sandbox(store=store) as sandbox:
            sandbox.exec(CHANGE.format(1)).check()
            made = sandbox.snapshot("made")
        with Sandbox.restore("made", store=store) as sandbox:
            assert sandbox.snapshot().tree == made.tree
            sandbox.exec("cat noise d/1 linked > /dev/null").check()
            assert sandbox.snapshot().tree == made.tree
        with closing(open_store(tmp_path / "other")) as other, Sandbox.restore(made) as sandbox:
            assert sandbox.snapshot("copied", store=other).tree == made.tree
            assert list(check(other)) == []
            with Sandbox.restore("copied", store=other) as again:
                assert again.exec("cat d/1").stdout == "1\n"


@DURABLE
def test_a_disk_that_fails_for_a_while(tmp_path: Path, open_store: Open) -> None:
    """The snapshot is an error that says so, the sandbox and its earlier snapshots are as they were."""
    (tmp_path / "recorded").mkdir()
    with (
        recorded(tmp_path / "recorded") as disk,
        closing(open_store(disk.root / "store")) as store,
        Sandbox(store=store) as sandbox,
    ):
        sandbox.exec(CHANGE.format(1)).check()
        made = {"s1": sandbox.snapshot("s1").tree}
        sandbox.exec(CHANGE.format(2)).check()
        for fails_after in range(1, 12, amount(3, 1)):
            disk.errno, disk.lasts, disk.fails_at = 28, True, disk.calls + fails_after
            with pytest.raises(SnapshotError, match="the store"):
                sandbox.snapshot("s2")
            disk.fails_at = 0
            check_snapshots(store, made)
        made["s2"] = sandbox.snapshot("s2").tree
        check_snapshots(store, made)
