"""Snapshots of live sandboxes, and sandboxes that go on from them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from belljar import AsyncSandbox, Limits, Mount, Sandbox, Snapshot, SnapshotError
from belljar.abi.capture import Record
from belljar.store.collect import check, collect
from belljar.store.snapshot import SANDBOX
from belljar.store.store import Store

BUILD = r"""
mkdir -p d/empty d/$'\xff\xfe'; echo hi > d/a; ln d/a d/b; ln -s nowhere d/link; mkfifo -m 600 d/fifo
truncate -s 40M d/sparse; printf x | dd of=d/sparse bs=1 seek=9000000 conv=notrunc 2>/dev/null
head -c 300000 /dev/urandom > d/big; chmod 4751 d/big; touch -d '2001-02-03 04:05:06.789123456' d/a
echo shared > /dev/shm/x; echo tmp > /tmp/t
"""
LOOK = r"""
find d /tmp /dev/shm ! -type p -printf '%p %y %m %U %G %n %s %T@ %l\n' | sort
find d -type f -exec sha256sum {} + | sort
cat /dev/shm/x
"""


@pytest.fixture(params=["memory", "sqlite", "packs"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Store]:
    match request.param:
        case "sqlite":
            made = Store.sqlite(tmp_path / "store.db")
        case "packs":
            made = Store.fsspec(str(tmp_path / "packs"))
        case _:
            made = Store.memory()
    yield made
    assert list(check(made)) == []
    made.close()


def test_everything_survives(store: Store) -> None:
    with Sandbox(store=store) as sandbox:
        sandbox.exec(BUILD).check()
        before = sandbox.exec(LOOK).check().stdout
        first = sandbox.snapshot("built")
        assert first.label == "built"
        assert first.lost == ()
        assert first.size > 40_300_000
    with Sandbox.restore("built", store) as sandbox:
        assert sandbox.exec("echo first").stdout == "first\n"
        assert sandbox.exec(LOOK).check().stdout == before
        again = sandbox.snapshot()
        assert (again.tree, again.size, again.parent) == (first.tree, first.size, first.ref)
    with Sandbox.restore(again) as sandbox:
        assert sandbox.exec(LOOK).check().stdout == before


def test_changes_after_a_restore_are_kept(store: Store) -> None:
    change = "echo more >> d/b; mv d e; rm e/link; rmdir e/empty; mkdir e/new; mv /tmp/t e/new; chmod 600 e/big"
    change += "; ln e/sparse s"
    look = LOOK.replace(" d ", " e s ")
    with Sandbox(store=store) as sandbox:
        sandbox.exec(BUILD).check()
        sandbox.snapshot("built")
        sandbox.exec(change).check()
        plain = sandbox.snapshot()
        wanted = sandbox.exec("cat e/a e/b; ls -R e; stat -c '%n %a %h %s' e/* s").stdout
    with Sandbox.restore("built", store) as sandbox:
        sandbox.exec(change).check()
        kept = sandbox.snapshot()
        assert kept.size == plain.size
        sandbox.exec("echo once more > e/new/file").check()
        last = sandbox.snapshot()
        before = sandbox.exec(look).stdout
    with Sandbox.restore(kept) as sandbox:
        assert sandbox.exec("cat e/a e/b; ls -R e; stat -c '%n %a %h %s' e/* s").stdout == wanted
    with Sandbox.restore(last) as sandbox:
        assert sandbox.exec(look).stdout == before


def test_a_file_changed_by_one_of_its_names_is_changed_by_all() -> None:
    store = Store.memory()
    with Sandbox(store=store) as sandbox:
        sandbox.exec("mkdir p q r; echo 1 > p/a; ln p/a q/b; ln p/a r/c; echo alone > q/x").check()
        sandbox.snapshot("linked")
    for change, wanted in (
        ("echo 2 > p/a", "2\n2\n"),
        ("echo 3 > p/a; rm p/a", "3\n3\n"),
        ("chmod 600 p/a; mv p/a q/z", "1\n1\n"),
    ):
        with Sandbox.restore("linked", store) as sandbox:
            sandbox.exec(change).check()
            now = sandbox.exec("cat q/b r/c; stat -c '%a %h' q/b r/c").stdout
            assert now.startswith(wanted)
            kept = sandbox.snapshot()
        with Sandbox.restore(kept) as sandbox:
            assert sandbox.exec("cat q/b r/c; stat -c '%a %h' q/b r/c").stdout == now


def test_only_what_changed_is_asked_for() -> None:
    with Sandbox(store=Store.memory()) as sandbox:
        sandbox.exec("mkdir d; for i in $(seq 500); do echo $i > d/$i; done").check()
        first = sandbox.snapshot()
        taken: list[int] = []
        import belljar.api.state as states

        take = states._Intake.take

        def counted(self: states._Intake, page: list[Record]) -> object:
            taken.append(len(page))
            return take(self, page)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(states._Intake, "take", counted)
            same = sandbox.snapshot()
            assert (sum(taken), same.tree) == (0, first.tree)
            sandbox.exec("echo changed > d/7").check()
            assert sandbox.snapshot().tree != first.tree
            assert sum(taken) == 1


def test_a_consistent_point_while_commands_run() -> None:
    with Sandbox(store=Store.memory()) as sandbox:
        process = sandbox.spawn(
            "i=0; while :; do i=$((i+1)); echo $i > new; mv new a"
            "; head -c 200000 /dev/zero | tr '\\0' $((i%10)) > b; done"
        )
        for _ in range(5):
            snapshot = sandbox.snapshot()
            with Sandbox.restore(snapshot) as later:
                assert later.exec("test ! -s a || grep -Ex '[0-9]+' a").exit_code in (0, 2)
                assert len(set(later.exec("cat b").stdout)) <= 1
        process.kill()


def test_deleted_but_open_files_are_named() -> None:
    with Sandbox(store=Store.memory()) as sandbox:
        process = sandbox.spawn("exec 3> gone; echo x >&3; rm gone; echo ready; read line")
        assert next(iter(process.stdout)) == b"ready\n"
        (lost,) = sandbox.snapshot().lost
        assert "gone" in lost


def test_settings_come_along_unless_given_anew() -> None:
    store = Store.memory()
    limits = Limits(wall_seconds=7)
    with Sandbox(store=store, env={"A": "1", "B": "2"}, user="kim", hostname="host", limits=limits) as sandbox:
        sandbox.exec("echo mine > ~/f").check()
        sandbox.snapshot("x")
    show = "echo $A $B $USER $HOME $(id -un) $(hostname); cat ~/f"
    with Sandbox.restore("x", store) as sandbox:
        assert sandbox.exec(show).stdout == "1 2 kim /home/kim kim host\nmine\n"
        assert sandbox._settings.limits == limits
    with Sandbox.restore("x", store, env={"B": "3"}, user="lee", hostname="other", limits=Limits()) as sandbox:
        assert sandbox.exec(show).stdout == "1 3 lee /home/lee lee other\nmine\n"
    with Sandbox.restore("x", store, user="root", files={"/f": "x"}) as sandbox:
        assert sandbox.exec("id -un; cat /f").stdout == "root\nx"


def test_variables_come_along() -> None:
    store = Store.memory()
    with Sandbox(store=store) as sandbox:
        sandbox.python.run("x = [1, 2]")
        sandbox.snapshot("x")
    with Sandbox.restore("x", store) as sandbox:
        unused = sandbox.snapshot()
        assert sandbox.python.run("x + [3]").value == [1, 2, 3]
        sandbox.python.run("x = 4")
        branch = sandbox.fork(durable=True)
    with branch, Sandbox.restore(unused) as other:
        assert branch.python.run("x").value == 4
        assert other.python.run("x").value == [1, 2]


def test_mounts_in_memory_come_along_and_missing_ones_are_named(tmp_path: Path) -> None:
    store = Store.memory()
    (tmp_path / "f").write_text("host")
    with Sandbox(store=store, mounts={"/m": Mount.memory({"a": "1"}), "/host": Mount.host(str(tmp_path))}) as sandbox:
        sandbox.exec("echo 2 > /m/b").check()
        sandbox.snapshot("x")
    with pytest.raises(SnapshotError, match="'/host'"):
        Sandbox.restore("x", store)
    with Sandbox.restore("x", store, mounts={"/host": Mount.host(str(tmp_path))}) as sandbox:
        assert sandbox.exec("cat /m/a /m/b /host/f").stdout == "12\nhost"
        sandbox.exec("echo 3 > /m/b").check()
        last = sandbox.snapshot()
    with Sandbox.restore(last, mounts={"/host": Mount.host(str(tmp_path)), "/m": Mount.memory()}) as sandbox:
        assert sandbox.exec("ls /m").stdout == ""


def test_another_store_gets_everything() -> None:
    first, second = Store.memory(), Store.memory()
    with Sandbox(store=first) as sandbox:
        sandbox.exec("mkdir d; echo 1 > d/a").check()
        sandbox.snapshot("x")
        sandbox.snapshot("y", second)
    with Sandbox.restore("x", first) as sandbox:
        sandbox.exec("echo 2 > d/b").check()
        sandbox.snapshot("z", second)
    for label, wanted in (("y", "1\n"), ("z", "1\n2\n")):
        with Sandbox.restore(label, second) as sandbox:
            assert sandbox.exec("cat d/*").stdout == wanted
    assert list(check(second)) == []


def test_what_was_collected_meanwhile_is_written_again() -> None:
    store = Store.memory()
    with Sandbox(store=store) as sandbox:
        sandbox.exec("echo 1 > a").check()
        old = sandbox.snapshot()
        old.remove()
        collect(store, 1.0, 0.0)
        collect(store, 2.0, 0.0)
        new = sandbox.snapshot()
        assert new.tree == old.tree
    with Sandbox.restore(new) as sandbox:
        new.remove()
        collect(store, 3.0, 3600.0)
        sandbox.exec("echo 2 > b").check()
        last = sandbox.snapshot()
    assert list(check(store)) == []
    with Sandbox.restore(last) as sandbox:
        assert sandbox.exec("cat a b").stdout == "1\n2\n"


def test_a_fork_has_snapshots_of_its_own() -> None:
    store = Store.memory()
    with Sandbox(store=store) as sandbox:
        sandbox.exec("echo 1 > a").check()
        sandbox.snapshot("x")
    with Sandbox.restore("x", store) as sandbox:
        sandbox.exec("echo 2 > b").check()
        common = sandbox.snapshot()
        with sandbox.fork() as branch:
            branch.exec("echo 3 > a").check()
            theirs = branch.snapshot()
            assert theirs.parent == common.ref
    with Sandbox.restore(theirs) as sandbox:
        assert sandbox.exec("cat a b").stdout == "3\n2\n"


def test_pause_and_resume() -> None:
    store = Store.memory()
    sandbox = Sandbox(store=store)
    sandbox.exec("echo 1 > a").check()
    ref = sandbox.pause()
    assert "closed" in repr(sandbox)
    with Sandbox.resume(ref, store) as again:
        assert again.exec("cat a").stdout == "1\n"
    named = Sandbox(store=store, name="lane")
    named.exec("echo 2 > a").check()
    named.pause()
    with Sandbox.resume("lane", store) as again:
        assert again.name == "lane"
        assert again.exec("cat a").stdout == "2\n"
        again.exec("echo 3 > a").check()
        again.pause()
    with Sandbox.resume("lane", store) as again:
        assert again.exec("cat a").stdout == "3\n"


def test_tools_are_given_again() -> None:
    store = Store.memory()
    with Sandbox(store=store, tools={"greet": lambda: "hello", "replaced": lambda: ""}) as sandbox:
        sandbox.exec("rm /usr/local/bin/replaced; echo mine > /usr/local/bin/replaced").check()
        sandbox.snapshot("x")
        with sandbox.fork(durable=True) as branch:
            assert branch.exec("greet").stdout == "hello\n"
    with pytest.raises(SnapshotError, match=r"tools=\{\}.*'greet', 'replaced'"):
        Sandbox.restore("x", store)
    with Sandbox.restore("x", store, tools={"greet": lambda: "again"}) as sandbox:
        assert sandbox.exec("greet").stdout == "again\n"
    with Sandbox.restore("x", store, tools={}) as sandbox:
        assert sandbox.exec("greet").exit_code == 127
        assert sandbox.exec("ls /usr/local/bin").stdout == "replaced\n"
        assert sandbox.exec("cat /usr/local/bin/replaced").stdout == "mine\n"


def test_the_asynchronous_front() -> None:
    store = Store.memory()

    async def main() -> None:
        async with AsyncSandbox(store=store, name="lane", checkpoint="exec") as sandbox:
            await sandbox.exec("echo 1 > a")
            await sandbox.python.run("x = 5")
            await sandbox.snapshot("x")
        async with await AsyncSandbox.restore("x", store) as sandbox:
            assert (await sandbox.exec("cat a")).stdout == "1\n"
            assert (await sandbox.python.run("x")).value == 5
            async with await sandbox.fork(durable=True) as branch:
                assert (await branch.exec("cat a")).stdout == "1\n"
            ref = await sandbox.pause()
        async with await AsyncSandbox.resume(ref, store) as sandbox:
            assert (await sandbox.exec("cat a")).stdout == "1\n"
        async with await AsyncSandbox.resume("lane", store) as sandbox:
            assert (await sandbox.exec("cat a")).stdout == "1\n"

    asyncio.run(main())
    assert store.get(SANDBOX + "lane") is not None


def test_wrong_arguments_say_what_to_do(tmp_path: Path) -> None:
    store = Store.memory()
    with pytest.raises(SnapshotError, match="no snapshot 'none'"):
        Sandbox.restore("none", store)
    with pytest.raises(TypeError, match="label"):
        Sandbox.restore(7, store)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="store="):
        Sandbox(store="s3://x")  # type: ignore[arg-type]
    for call in (
        lambda: Snapshot.find("x", "a.db"),  # type: ignore[arg-type]
        lambda: Snapshot.list("a.db"),  # type: ignore[arg-type]
        lambda: Snapshot.import_("file", "a.db"),  # type: ignore[arg-type]
        lambda: Sandbox.restore("x", "a.db"),  # type: ignore[arg-type]
    ):
        with pytest.raises(TypeError, match=r"store= takes Store\.sqlite"):
            call()
    with Sandbox(store=store) as sandbox:
        with pytest.raises(TypeError, match=r"store= takes Store\.sqlite"):
            sandbox.snapshot("z", store="a.db")  # type: ignore[arg-type]
        with pytest.raises(TypeError, match=r"snapshot\(label\) takes a str, not int"):
            sandbox.snapshot(5)  # type: ignore[arg-type]
        with pytest.raises(SnapshotError, match="not empty"):
            sandbox.snapshot("")
        digits = sandbox.snapshot().ref.removeprefix("sha256:")
    with pytest.raises(SnapshotError, match="at least 8 digits"):
        Sandbox.restore(digits[:7], store)
    with pytest.raises(SnapshotError, match=r"no sandbox called 'none' was kept, and .* in Store\.memory\(\)"):
        Sandbox.resume("none", store)
    (junk := tmp_path / "junk").write_text("junk")
    with pytest.raises(SnapshotError, match="/junk'"):
        Snapshot.import_(junk, store)
    with pytest.raises(TypeError, match="checkpoint="):
        Sandbox(checkpoint="always")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="positive"):
        Sandbox(checkpoint=0)
