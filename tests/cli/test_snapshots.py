"""`belljar snapshot` and `belljar store`."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from belljar.abi.limits import Limits
from belljar.api.sandbox import Sandbox
from belljar.api.snapshot import Snapshot
from belljar.cli import __main__ as cli
from belljar.store.objects import PIECE, digest_of
from belljar.store.store import Store
from tests.contract.calls import write
from tests.contract.servers import memory, view_of
from tests.state.test_snapshot import take


class Command:
    """Runs the command on a store of its own."""

    def __init__(self, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.path = store
        self._capsys = capsys

    def __call__(self, *args: str, status: int = 0) -> str:
        self._capsys.readouterr()
        found = cli.main([*args, "--store", str(self.path)])
        said = self._capsys.readouterr()
        assert (found, said.err == "") == (status, status in (0, 1)), said
        return said.out or said.err

    def json(self, *args: str, status: int = 0) -> Any:
        return json.loads(self(*args, "--json", status=status))


@pytest.fixture
def belljar(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(tmp_path / "store.db", capsys)


@pytest.fixture
def history(belljar: Command) -> list[Snapshot]:
    """One, two that came from it, and one that came from another store."""
    store = Store.sqlite(belljar.path)
    server = memory()
    view = view_of(server)
    write(view, "/a", b"one\ntwo\n")
    found = [take(store, (b"/", server), label="begin", created=10**18, size=8)]
    for number, label in enumerate(("left", "right")):
        write(view, "/a", b"one\n%s\n" % label.encode())
        write(view, f"/{label}\x1b", b"x")
        found.append(take(store, (b"/", server), label=label, parent=found[0].digest, created=10**18 + number + 1))
    store.set("sandbox/lane", found[2].digest, None)
    store.close()
    return found


def test_ls(belljar: Command, history: list[Snapshot]) -> None:
    short = [snapshot.ref[7:19] for snapshot in history]
    lines = [line.split(" 2001-09-")[0] for line in belljar("snapshot", "ls").splitlines()]
    assert lines == [f"* {short[2]} (right, sandbox/lane)", f"| * {short[1]} (left)", "|/", f"* {short[0]} (begin)"]
    listed = belljar.json("snapshot", "ls")
    assert [each["ref"] for each in listed] == [history[2].ref, history[1].ref, history[0].ref]
    assert [each["parent"] for each in listed] == [history[0].ref, history[0].ref, None]
    assert listed[0]["names"] == ["label/right", "sandbox/lane"]


def test_an_empty_store(belljar: Command) -> None:
    for args in (["snapshot", "ls"], ["snapshot", "show", "x"], ["store", "gc"], ["store", "stats"]):
        assert "there is no store at" in belljar(*args, status=125)
        assert not belljar.path.exists()
    Store.sqlite(belljar.path).list()
    assert "no snapshots yet" in belljar("snapshot", "ls")
    assert belljar.json("snapshot", "ls") == []
    assert "no snapshot 'x'" in belljar("snapshot", "show", "x", status=125)


def test_show(belljar: Command, history: list[Snapshot]) -> None:
    shown = belljar("snapshot", "show", "left")
    assert f"ref         {history[1].ref}\n" in shown
    assert f"parent      {history[0].ref}\n" in shown
    assert belljar.json("snapshot", "show", history[1].ref[7:20])["label"] == "left"


def test_diff(belljar: Command, history: list[Snapshot]) -> None:
    assert belljar("snapshot", "diff", "left", status=1) == "M /a\nA /left\\x1b\n"
    assert belljar("snapshot", "diff", "left", "begin", status=1) == "M /a\nD /left\\x1b\n"
    assert belljar("snapshot", "diff", "left", "left") == ""
    assert belljar.json("snapshot", "diff", "left", "right", status=1) == [
        {"path": "/a", "kind": "modified"},
        {"path": "/right\x1b", "kind": "added"},
    ]
    patch = belljar("snapshot", "diff", "-p", "begin", "left", status=1)
    assert patch.startswith("diff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1,2 +1,2 @@\n one\n-two\n+left\n")
    assert "\x1b" not in patch
    assert "no parent" in belljar("snapshot", "diff", "begin", status=125)


def test_export_and_import(belljar: Command, history: list[Snapshot], tmp_path: Path) -> None:
    file = str(tmp_path / "left.belljar")
    belljar("snapshot", "export", "left", file)
    belljar.path = tmp_path / "other.db"
    assert belljar("snapshot", "import", file) == history[1].ref + "\n"
    assert [each["ref"] for each in belljar.json("snapshot", "ls")] == [history[1].ref]
    assert "has no snapshot" in belljar("snapshot", "diff", "left", status=125)  # its parent is elsewhere
    (tmp_path / "bad").write_bytes(b"x" + Path(file).read_bytes())
    belljar.path = tmp_path / "empty.db"
    assert "no snapshot that was exported" in belljar("snapshot", "import", str(tmp_path / "bad"), status=125)
    assert not belljar.path.exists()


def test_rm_and_gc(belljar: Command, history: list[Snapshot]) -> None:
    belljar("snapshot", "rm", "left", "begin")
    assert [each["ref"] for each in belljar.json("snapshot", "ls")] == [history[2].ref]
    assert "no snapshot 'left'" in belljar("snapshot", "rm", "left", status=125)
    before = belljar.json("store", "stats")
    assert (before["snapshots"], before["labels"], before["sandboxes"]) == (1, 1, 1)
    assert belljar.json("store", "gc")["removed"] == 0
    removed = belljar.json("store", "gc", "--grace", "0")
    assert removed["removed"] > 0
    assert belljar.json("store", "stats")["objects"] == before["objects"] - removed["removed"]
    assert belljar("store", "check") == "all objects are as they were written\n"
    assert "on disk" in belljar("store", "stats")


def test_check_names_the_damage(belljar: Command, history: list[Snapshot]) -> None:
    import sqlite3

    with sqlite3.connect(belljar.path) as connection:
        connection.execute("DELETE FROM objects WHERE digest = ?", (digest_of(PIECE + b"one\nleft\n"),))
    connection.close()
    found = belljar.json("store", "check", status=1)
    assert {(each["ref"], each["path"], each["what"]) for each in found} == {
        (ref, "/a", "missing") for ref in ("label/left", f"snapshot/{history[1].digest.hex()}")
    }
    assert "missing" in belljar("store", "check", status=1)
    with sqlite3.connect(belljar.path) as connection:
        connection.execute("DELETE FROM objects WHERE digest = ?", (history[1].digest,))
    connection.close()
    assert "(left) can't be read" in belljar("snapshot", "ls")
    assert len(belljar.json("snapshot", "ls")) == 2
    belljar("snapshot", "rm", "left")
    assert belljar.json("store", "check") == []


def test_other_stores(belljar: Command, tmp_path: Path) -> None:
    belljar.path = tmp_path / "packs"
    belljar.path.mkdir()
    assert belljar.json("store", "stats")["objects"] == 0
    belljar.path = tmp_path / "no.db"
    belljar.path.write_bytes(b"this is something else" * 100)
    assert "not a database" in belljar("snapshot", "ls", status=125)


@pytest.mark.parametrize(
    "args",
    [
        ("snapshot",),
        ("store",),
        ("snapshot", "diff"),
        *(("store", "gc", "--grace", text) for text in ("x", "-1", "nan")),
    ],
)
def test_wrong_command_lines(args: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit) as caught:
        cli.main(args)
    assert caught.value.code == 2


def test_run_goes_on_from_a_snapshot(home: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "note").write_text("a note")

    def run(*args: str, status: int = 0) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "belljar.cli", "run", "--store", str(tmp_path / "s.db"), *args],
            capture_output=True, text=True, check=False, timeout=240, env=home, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == status, done
        return done.stdout or done.stderr

    run("--snapshot", "one", "--env", "A=1", "--cwd", "/w", "--hostname", "h1", "echo kept > f; exit 3", status=3)
    text = run(
        "--restore",
        "one",
        "--env",
        "B=2",
        "--file",
        "note",
        "--snapshot",
        "two",
        'cat f note; pwd; hostname; echo "$A$B"',
    )
    assert text == "kept\na note/w\nh1\n12\n"
    assert run("--restore", "two", "--cwd", "/", "--memory", "300M", "pwd; cat /w/note; rm /w/f") == "/\na note"
    result = json.loads(run("--restore", "one", "--snapshot", "three", "--json", "--timeout", "99", "cat f"))
    assert (result["stdout"], result["snapshot"][:7]) == ("kept\n", "sha256:")
    store = Store.sqlite(tmp_path / "s.db")
    one, two, three = (Snapshot.find(label, store) for label in ("one", "two", "three"))
    assert (one.parent, two.parent, three.parent) == (None, one.ref, one.ref)
    assert ("/w/note", "added") in [(change.path, change.kind) for change in one.diff(two)]
    assert three.ref == result["snapshot"]
    store.close()
    assert "no snapshot 'four'" in run("--restore", "four", "true", status=125)
    assert "can't be a label" in run("--snapshot", "x\ny", "echo not run", status=125)
    (repo := tmp_path / "repo").mkdir()
    (repo / "soup").write_text("tomato\n")
    mount, diff = ("--mount", f"{repo}:/repo:overlay"), tmp_path / "diff"
    run(*mount, "--snapshot", "five", "echo potato > /repo/soup")
    assert run("--restore", "five", *mount, "--diff", str(diff), "cat /repo/soup") == "potato\n"
    assert "-tomato\n+potato\n" in diff.read_text()
    assert "--mount" in run("--restore", "five", "true", status=125)
    store = Store.sqlite(tmp_path / "s.db")
    with Sandbox(store=store, tools={"greet": lambda: "hello"}) as sandbox:
        sandbox.snapshot("six")
    store.close()
    assert run("--restore", "six", "type greet || echo none", status=0).endswith("none\n")
    (tmp_path / "s.db").write_text("something else" * 100)
    assert "not a database" in run("--snapshot", "x", "echo not run", status=125)


def test_run_keeps_the_limits_of_a_snapshot(belljar: Command) -> None:
    """Those that no option changes."""
    store = Store.sqlite(belljar.path)
    with Sandbox(limits=Limits(open_files=50, memory_bytes=300 << 20), store=store) as sandbox:
        sandbox.snapshot("tight")
    belljar("run", "true", "--restore", "tight", "--snapshot", "same")
    belljar("run", "true", "--restore", "tight", "--snapshot", "less", "--memory", "200M")
    found = [Snapshot.find(label, store).limits for label in ("same", "less")]
    store.close()
    assert found == [Limits(open_files=50, memory_bytes=size << 20) for size in (300, 200)]
