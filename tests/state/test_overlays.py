"""Snapshots of overlays over the owner's trees: only the differences are kept, and shown again over the same mount."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from belljar import AsyncSandbox, Mount, Sandbox, SnapshotError
from belljar.api.review import FileChange
from belljar.store.collect import check
from belljar.store.store import Store
from belljar.store.tree import Kind, decode_directory

LOOK = """cd /repo && find . ! -type d -printf '%p %y %m %n %l\\n' | sort; find . -type d | sort
find . -type f -exec sha256sum {} + | sort"""
CHANGES = [
    "echo changed > /repo/a/one",
    "rm /repo/a/two; rm -r /repo/b",
    "mkdir /repo/new; echo x > /repo/new/x; ln /repo/new/x /repo/a/x",
    "mv /repo/a/one /repo/moved; chmod 600 /repo/a/two",
    "mv /repo/b /repo/a/under",
    "mv /repo/b /repo/c; echo more > /repo/c/deep/more; rm /repo/c/deep/er",
    "rm -r /repo/b; mkdir /repo/b; echo again > /repo/b/again",
    "rm /repo/link; ln -s new /repo/link; mv /repo/deep1 /repo/a; echo y > /repo/a/deep1/deep2/deep3/y",
    "mv /repo/a /repo/t; mv /repo/b /repo/a; mv /repo/t /repo/b",
    "mkdir -p /repo/deep1/deep2/new; touch /repo/deep1/deep2/new/f",
]


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    root = tmp_path / "repo"
    for path, text in {
        "a/one": "1", "a/two": "2" * 100_000, "b/f": "f", "b/deep/er": "deeper", "deep1/deep2/deep3/x": "x",
    }.items():  # fmt: skip
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text)
    (root / "link").symlink_to("a/one")
    return root


def mounts(repo: Path) -> dict[str, Mount]:
    return {"/repo": Mount.overlay(Mount.host(str(repo)))}


def files(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in root.rglob("*") if path.is_file()}


@pytest.mark.parametrize("change", CHANGES)
def test_changes_survive(repo: Path, change: str) -> None:
    store, before = Store.memory(), files(repo)
    with Sandbox(store=store, mounts=mounts(repo)) as sandbox:
        sandbox.exec(change).check()
        wanted = sandbox.exec(LOOK).check().stdout
        first = sandbox.snapshot("x")
    assert files(repo) == before
    with Sandbox.restore("x", store, mounts=mounts(repo)) as sandbox:
        assert sandbox.exec(LOOK).check().stdout == wanted
        again = sandbox.snapshot()
        assert again.record.trees == first.record.trees
        sandbox.exec("echo later > /repo/later; rm /repo/link").check()
        wanted = sandbox.exec(LOOK).check().stdout
        later = sandbox.snapshot()
    with Sandbox.restore(later, mounts=mounts(repo)) as sandbox:
        assert sandbox.exec(LOOK).check().stdout == wanted
    assert list(check(store)) == []


@pytest.mark.battery(sample=10)
@pytest.mark.parametrize("first", CHANGES[:6])
@pytest.mark.parametrize("second", CHANGES[4:9])
def test_changes_of_changes_survive(repo: Path, first: str, second: str) -> None:
    store = Store.memory()
    with Sandbox(store=store, mounts=mounts(repo)) as sandbox:
        sandbox.exec(first)
        sandbox.snapshot("x")
    with Sandbox.restore("x", store, mounts=mounts(repo)) as sandbox:
        sandbox.exec(second)
        wanted = sandbox.exec(LOOK).stdout
        sandbox.snapshot("y")
    with Sandbox.restore("y", store, mounts=mounts(repo)) as sandbox:
        assert sandbox.exec(LOOK).stdout == wanted


def test_only_differences_are_kept(repo: Path) -> None:
    store = Store.memory()
    with Sandbox(store=store, mounts=mounts(repo)) as sandbox:
        sandbox.exec("rm /repo/a/two; echo 1 > /repo/deep1/deep2/z").check()
        snapshot = sandbox.snapshot()
    tree = next(tree for tree in snapshot.record.trees if tree.kind == "overlay")
    found: dict[str, Kind] = {}
    todo = [("", tree.digest)]
    while todo:
        above, digest = todo.pop()
        for entry in decode_directory(store.read([digest])[digest]):
            path = f"{above}/{entry.name.decode()}"
            found[path] = entry.kind
            todo += [(path, part) for part in entry.parts if entry.kind is Kind.MERGED]
    assert found == {
        "/a": Kind.MERGED,
        "/a/two": Kind.WHITEOUT,
        "/deep1": Kind.MERGED,
        "/deep1/deep2": Kind.MERGED,
        "/deep1/deep2/z": Kind.FILE,
    }


def test_what_the_host_changed_meanwhile_shows_through(repo: Path) -> None:
    store = Store.memory()
    with Sandbox(store=store, mounts=mounts(repo)) as sandbox:
        sandbox.exec("echo mine > /repo/a/one").check()
        sandbox.snapshot("x")
    (repo / "a/one").write_text("theirs")
    (repo / "a/two").write_text("new two")
    (repo / "b/f").unlink()
    with Sandbox.restore("x", store, mounts=mounts(repo)) as sandbox:
        assert sandbox.exec("cat /repo/a/one /repo/a/two; ls /repo/b").stdout == "mine\nnew twodeep\n"


def test_the_mount_is_needed_as_it_was(repo: Path) -> None:
    store = Store.memory()
    with Sandbox(store=store, mounts=mounts(repo)) as sandbox:
        sandbox.snapshot("x")
    with pytest.raises(SnapshotError, match="'/repo'"):
        Sandbox.restore("x", store)
    with pytest.raises(SnapshotError, match=r"Mount\.overlay"):
        Sandbox.restore("x", store, mounts={"/repo": Mount.host(str(repo))})


def test_incremental_snapshots_of_an_overlay(repo: Path) -> None:
    store = Store.memory()
    with Sandbox(store=store, mounts=mounts(repo)) as sandbox:
        sandbox.snapshot()
        for number, change in enumerate(CHANGES):
            sandbox.exec(change)
            wanted = sandbox.exec(LOOK).stdout
            snapshot = sandbox.snapshot()
            if number % 3 == 2:
                with Sandbox.restore(snapshot, mounts=mounts(repo)) as later:
                    assert later.exec(LOOK).stdout == wanted


@pytest.mark.battery(sample=18)
@pytest.mark.parametrize("first", CHANGES)
@pytest.mark.parametrize("second", ["true", "echo later > /repo/later; rm -r /repo/link /repo/a", *CHANGES[4:9]])
def test_a_restored_overlay_tells_all_its_changes(repo: Path, first: str, second: str) -> None:
    store = Store.memory()
    look = "cd /repo; find . -type f -o -type l | sort; find . -type f | sort | xargs cat"

    def changes(sandbox: Sandbox) -> list[list[FileChange]]:
        return [list(sandbox.changes(top)) for top in ("/repo", "/repo/b", "/repo/deep1") if sandbox.files.exists(top)]

    with Sandbox(store=store, mounts=mounts(repo)) as sandbox:
        sandbox.exec(first)
        sandbox.snapshot("x")
        sandbox.exec(second)
        wanted, diff = changes(sandbox), sandbox.changes("/repo").diff()
    with Sandbox.restore("x", store, mounts=mounts(repo)) as sandbox:
        sandbox.exec(second)
        assert changes(sandbox) == wanted
        found = sandbox.changes("/repo")
        assert found.diff() == diff
        shown = sandbox.exec(look).stdout
        found.apply(repo)
        assert list(sandbox.changes("/repo")) == []
    with Sandbox(mounts=mounts(repo)) as sandbox:
        assert sandbox.exec(look).stdout == shown


def test_a_durable_fork_tells_the_changes_before_it(repo: Path) -> None:
    with Sandbox(store=Store.memory(), mounts=mounts(repo)) as sandbox:
        sandbox.exec("echo changed > /repo/a/one").check()
        with sandbox.fork(durable=True) as branch, branch.fork() as twig:
            assert branch.changes("/repo").summary == twig.changes("/repo").summary == "M a/one\n"
            branch.changes("/repo").apply(repo)
    assert (repo / "a/one").read_text() == "changed\n"


def test_the_asynchronous_front_tells_them_as_well(repo: Path) -> None:
    async def main() -> None:
        async with AsyncSandbox(store=Store.memory(), mounts=mounts(repo)) as sandbox:
            await sandbox.exec("echo changed > /repo/a/one; rm -r /repo/b")
            snapshot = await sandbox.snapshot()
        async with await AsyncSandbox.restore(snapshot, mounts=mounts(repo)) as sandbox:
            await sandbox.exec("rm /repo/link")
            found = await sandbox.changes("/repo")
            assert [(change.kind, change.path) for change in found] == [
                ("modified", "a/one"),
                *[("deleted", path) for path in ("b", "b/deep", "b/deep/er", "b/f", "link")],
            ]

    asyncio.run(main())
