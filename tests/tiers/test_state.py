"""Snapshots, and sandboxes that go on from one."""

from __future__ import annotations

from pathlib import Path

import pytest

from belljar import Mount, SandboxClosed, Snapshot, SnapshotError, Store
from tests.tiers.conftest import Make, Tier

pytestmark = pytest.mark.feature("snapshots")


@pytest.fixture
def store() -> Store:
    return Store.memory()


TREE = """
mkdir -p d/e; echo one > d/a; chmod 640 d/a; ln d/a d/hard; ln -s a d/soft; mkfifo d/fifo
printf 'x\\000y' > 'd/e/with space'; touch -d '2020-01-02 03:04:05 UTC' d/a; chmod 1777 d/e
"""
LOOK = "cd d; find . | sort; stat -c '%a %h %Y' a; readlink soft; od -c 'e/with space'; stat -c '%a %F' e fifo"


def test_a_snapshot_keeps_the_files(make: Make, store: Store) -> None:
    sb = make(store=store)
    sb.exec(TREE).check()
    before = sb.exec(LOOK).check().stdout
    snapshot = sb.snapshot("tree")
    sb.exec("rm -r d")
    restored = make.restore(snapshot)
    assert restored.exec(LOOK).check().stdout == before
    assert not sb.files.exists("d")


def test_files_all_over_the_root(make: Make, store: Store, tier: Tier) -> None:
    sb = make(store=store, user="root")
    sb.exec("echo 1 > /etc/new; echo 2 > /opt/f; rm /etc/hostname; echo 3 > ~/f; mkdir -p /srv/own")
    restored = make.restore(sb.snapshot(), store)
    said = restored.exec("cat /etc/new /opt/f ~/f; ls -d /srv/own; ls /etc/hostname").stdout
    assert said == "1\n2\n3\n/srv/own\n" + tier.behaviour("a removed /etc/hostname", "")


def test_owners_are_kept(make: Make, tier: Tier, store: Store) -> None:
    sb = make(store=store, user="root")
    sb.exec("touch f g; chown 1000:1000 f; chown 1234:5678 g").check()
    kept = "1000:1000\n1234:5678\n" if tier.behaviour("users are separate", True) else "0:0\n0:0\n"
    assert make.restore(sb.snapshot(), store).exec("stat -c %u:%g f g").stdout == kept


def test_by_label_ref_and_digits(make: Make, store: Store) -> None:
    sb = make(store=store)
    sb.files.write("f", "1")
    first = sb.snapshot("first")
    sb.files.write("f", "2")
    sb.snapshot("second")
    for name in ("first", first.ref, first.ref[:20], first):
        assert make.restore(name, store).files.read("f") == "1"
    assert make.restore("second", store).files.read("f") == "2"


def test_settings_are_kept(make: Make, store: Store) -> None:
    sb = make(store=store, env={"A": "1"}, cwd="/srv/x", user="other", hostname="box")
    snapshot = sb.snapshot()
    look = "echo $A; pwd; id -un; hostname"
    assert make.restore(snapshot).exec(look).stdout == "1\n/srv/x\nother\nbox\n"
    assert make.restore(snapshot, env={"A": "2"}, hostname="new").exec(look).stdout == "2\n/srv/x\nother\nnew\n"


def test_the_tier_is_kept(make: Make, store: Store) -> None:
    sb = make(store=store)
    restored = make.restore(sb.snapshot())
    assert (restored.info.tier, restored.info.image) == (sb.info.tier, sb.info.image)


def test_a_snapshot_tells_of_itself(make: Make, store: Store) -> None:
    sb = make(store=store)
    first = sb.snapshot("first")
    sb.files.write("f", "x" * 100_000)
    second = sb.snapshot()
    assert (first.label, first.parent, second.label, second.parent) == ("first", None, None, first.ref)
    assert second.size >= 100_000
    assert [snapshot.ref for snapshot in Snapshot.list(store)] == [first.ref, second.ref]


def test_diff(make: Make, store: Store) -> None:
    sb = make(store=store)
    sb.exec("echo 1 > a; echo 2 > b; echo 3 > c")
    before = sb.snapshot()
    sb.exec("echo more >> a; rm b; echo new > d; chmod 700 c")
    changes = {(c.kind, c.path) for c in before.diff(sb.snapshot()) if c.path.startswith("/workspace/")}
    assert changes == {
        ("modified", "/workspace/a"),
        ("deleted", "/workspace/b"),
        ("added", "/workspace/d"),
        ("attributes", "/workspace/c"),
    }


def test_files_of_a_snapshot(make: Make, store: Store) -> None:
    sb = make(store=store)
    sb.exec("mkdir d; echo x > d/f")
    files = sb.snapshot().files
    assert files.read("/workspace/d/f") == "x\n"
    assert [entry.name for entry in files.list("/workspace/d")] == ["f"]


def test_a_snapshot_of_a_restored_one(make: Make, store: Store) -> None:
    sb = make(store=store)
    sb.exec("echo 1 > a; echo 2 > b")
    restored = make.restore(sb.snapshot(), store)
    restored.exec("echo 3 > c; rm a")
    again = make.restore(restored.snapshot(), store)
    assert again.exec("cat b c; ls").stdout == "2\n3\nb\nc\n"


def test_commands_go_on_during_a_snapshot(make: Make, store: Store) -> None:
    sb = make(store=store)
    process = sb.spawn("for n in $(seq 20); do echo $n >> log; sleep 0.02; done")
    snapshots = [sb.snapshot() for _ in range(3)]
    assert process.wait(240) == 0
    assert sb.exec("wc -l < log").stdout.strip() == "20"
    kept = [
        len(s.files.read("/workspace/log").split()) if "log" in str(s.files.list("/workspace")) else 0
        for s in snapshots
    ]
    assert kept == sorted(kept)


def test_pause_and_resume(make: Make, store: Store) -> None:
    sb = make(store=store, env={"A": "1"})
    sb.files.write("f", "x")
    ref = sb.pause()
    with pytest.raises(SandboxClosed):
        sb.exec("true")
    assert make.resume(ref, store).exec("cat f; echo $A").stdout == "x1\n"


def test_a_named_one_goes_on_under_its_name(make: Make, store: Store) -> None:
    sb = make(name="lane", store=store)
    sb.files.write("f", "1")
    sb.pause()
    resumed = make.resume("lane", store)
    assert (resumed.name, resumed.files.read("f")) == ("lane", "1")
    resumed.files.write("f", "2")
    resumed.pause()
    assert make.resume("lane", store).files.read("f") == "2"


def test_checkpoints(make: Make, store: Store) -> None:
    sb = make(name="lane", store=store, checkpoint="exec")
    sb.exec("echo 1 > f")
    sb.files.write("g", "not yet")
    assert make.restore("lane", store).exec("ls").stdout == "f\n"
    sb.exec("true")
    assert make.restore("lane", store).exec("ls").stdout == "f\ng\n"


def test_a_command_that_fails_is_kept_as_well(make: Make, store: Store) -> None:
    sb = make(name="lane", store=store, checkpoint="exec")
    assert sb.exec("echo 1 > f; exit 3").exit_code == 3
    for seconds in (0.3, 3, 30):  # until it had the time to begin
        assert sb.exec("echo 2 > g; sleep 60", timeout=seconds).timed_out
        if sb.exec("[ -s g ]").ok:
            break
    assert make.restore("lane", store).exec("cat f g").stdout == "1\n2\n"


def test_export_and_import(make: Make, store: Store, tmp_path: Path) -> None:
    sb = make(store=store)
    sb.exec(TREE).check()
    sb.snapshot("mine").export(str(tmp_path / "mine.belljar"))
    other = Store.memory()
    assert Snapshot.import_(str(tmp_path / "mine.belljar"), other).label == "mine"
    assert make.restore("mine", other).exec(LOOK).stdout == sb.exec(LOOK).stdout


@pytest.mark.feature("mounts")
def test_mounts_are_given_again(make: Make, store: Store, tmp_path: Path, tier: Tier) -> None:
    (tmp_path / "f").write_text("host")
    memory = {"/m": Mount.memory({"g": "memory"})}
    sb = make(store=store, mounts={"/data": Mount.host(str(tmp_path)), **memory})
    snapshot = sb.snapshot()
    with pytest.raises(SnapshotError, match="/data"):
        make.restore(snapshot)
    again = {} if tier.behaviour("snapshots keep memory mounts", True) else memory
    restored = make.restore(snapshot, mounts={"/data": Mount.host(str(tmp_path)), **again})
    assert restored.exec("cat /data/f /m/g").stdout == "hostmemory"


def test_tools_are_given_again(make: Make, store: Store) -> None:
    snapshot = make(store=store, tools={"double": lambda n: int(n) * 2}).snapshot()
    restored = make.restore(snapshot, tools={"double": lambda n: int(n) * 3})
    assert restored.exec("double 2").stdout == "6\n"


def test_python_variables_are_kept(make: Make, store: Store) -> None:
    sb = make(store=store)
    sb.python.run("x = 41\ndef more(): return x + 1")
    restored = make.restore(sb.snapshot(), store)
    assert restored.python.run("more()").value == 42
