"""Containers in snapshots: they come back as ended ones with their files, names, logs and exit codes."""

from __future__ import annotations

import asyncio
import io
import logging
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from belljar import AsyncSandbox, ContainerError, Event, Image, Limits, Sandbox, Snapshot, Store
from belljar.abi.capture import Record
from belljar.abi.limits import MIB
from belljar.abi.records import Owner
from belljar.api.captured_tree import TreeTable
from belljar.browser.inside.snapshots import Snapshots
from belljar.cli.__main__ import main
from belljar.kernel.fs.capture import Captured
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.fs.overlay import OverlayServer
from belljar.kernel.fs.quota import Quota
from belljar.kernel.machine import virtual_machine
from belljar.store.bundle import read_bundle
from belljar.store.collect import check, collect
from belljar.store.objects import Digest, digest_of
from belljar.store.snapshot import read_snapshot
from belljar.store.store import Objects
from belljar.store.tree import Kind, decode_directory
from belljar.worker.session import Session
from tests.adapter import new_session
from tests.state.test_capture import make, write

CHANGE = (
    "echo written > /srv/new; rm /etc/shells; mv /usr/share /usr/lib/moved; echo more >> /etc/group; ln /etc/group /g2;"
    "chmod 700 /opt; ln -s /srv/new /l; echo out; echo err >&2; exit 3"
)
LOOK = (
    "cat /srv/new /l; ls /etc/shells /usr/share; ls -d /usr/lib/moved; tail -1 /g2; stat -c '%h %i' /etc/group /g2 |"
    "uniq | cut -d' ' -f1; stat -c %a /opt"
)
SEEN = "written\nwritten\n/usr/lib/moved\nmore\n2\n700\n"


def table(sandbox: Sandbox) -> list[tuple[str, str, str, int]]:
    return [
        (each.name, each.image, each.state.status, each.state.exit_code) for each in reversed(sandbox.containers.list())
    ]


@pytest.mark.slow
def test_a_container_is_there_after_a_resume() -> None:
    store = Store.memory()
    with Sandbox(store=store) as sandbox:
        done = sandbox.containers.run("base", CHANGE, name="done", env={"A": "b"}, volumes={"kept": "/v"}, hostname="h")
        assert done.wait(60) == 3
        sandbox.containers.run("base", "echo from >> /v/file; sleep 99", name="busy", volumes={"kept": "/v"})
        sandbox.exec("sudo docker create --name never base true", check=True)
        ids = {each.name: each.id for each in sandbox.containers.list()}
        while not sandbox.exec("[ -s /var/lib/containers/volumes/kept/file ]").ok:
            pass
        ref = sandbox.pause()
    with Sandbox.resume(ref, store=store) as sandbox:
        assert table(sandbox) == [
            ("done", "base", "exited", 3),
            ("busy", "base", "exited", 137),
            ("never", "base", "created", 0),
        ]
        assert {each.name: each.id for each in sandbox.containers.list()} == ids
        shown = sandbox.exec("sudo docker ps -a").stdout
        assert "Exited (3)" in shown
        assert "Created" in shown
        done = sandbox.containers.get("done")
        assert done.logs() == "out\nerr\n"
        assert "is not running" in done.exec("true").stderr
        busy = sandbox.containers.get("busy")
        busy.start()
        assert busy.info().running
        assert busy.exec("cat /v/file; ls /srv").stdout.startswith("from\n")
        sandbox.exec("sudo docker start never", check=True)
        assert sandbox.containers.get("never").wait(60) == 0
        with pytest.raises(ContainerError, match="in use"):
            sandbox.containers.run("base", "true", name="done")
        assert sandbox.exec("sudo docker inspect done | jq -r '.[].Env[], .[].Mounts[].Source'").stdout == "A=b\nkept\n"
        sandbox.exec("sudo docker rm -f done busy never", check=True)
        assert table(sandbox) == []
        assert sandbox.exec("ls /var/log/containers").stdout == ""
        assert sandbox.files.read("/var/lib/containers/volumes/kept/file").startswith("from\n")


@pytest.mark.slow
def test_its_files_are_what_they_were_again_and_again() -> None:
    """The base image is part of no store, the other one of another store; what is changed between is kept, too."""
    store, elsewhere = Store.memory(), Store.memory()
    image = Image().files({"/srv/data": "from the image\n", "/srv/deep/f": "deep\n"}).env(COLOUR="blue")
    image = image.user("root").run("ln /srv/data /srv/linked").build(elsewhere, name="app")
    with Sandbox(store=store) as sandbox:
        base = sandbox.containers.run("base", "sleep 99", name="base")
        app = sandbox.containers.run(image, "sleep 99", name="app")
        base.exec(CHANGE.partition(" echo out")[0]).check()
        app.exec("rm /srv/deep/f; mv /srv/deep /srv/moved").check()
        first = sandbox.snapshot()
        assert sandbox.snapshot().record.containers == first.record.containers
        base.exec("echo second > /srv/second").check()
        app.exec("echo more >> /srv/linked; echo x > /srv/moved/x").check()
        second = sandbox.snapshot("second")
        assert first.lost == second.lost == ()
    for round_ in range(3):
        with Sandbox.restore("second", store) as sandbox:
            for each in ("base", "app"):
                sandbox.containers.get(each).start()
            assert sandbox.containers.get("base").exec(LOOK).stdout == SEEN
            assert sandbox.containers.get("base").exec("cat /srv/second").stdout == "second\n"
            app = sandbox.containers.get("app")
            said = app.exec("cat /srv/data; stat -c %h /srv/linked; ls /srv/moved; echo $COLOUR").check().stdout
            assert said == "from the image\nmore\n2\n" + "".join(f"{n}\n" for n in range(round_)) + "x\nblue\n"
            app.exec(f"touch /srv/moved/{round_}").check()
            sandbox.snapshot("second")
        collect(store, 1e10, 0)
        collect(store, 2e10, 0)
        assert list(check(store)) == []
    with Sandbox.restore(first) as sandbox:
        sandbox.containers.get("app").start()
        assert sandbox.containers.get("app").exec("cat /srv/data; ls /srv/moved").stdout == "from the image\n"


@pytest.mark.slow
def test_another_store_and_a_bundle_have_all_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, second = Store.memory(), Store.sqlite(tmp_path / "db")
    with Sandbox(store=first) as sandbox:
        sandbox.containers.run("base", "echo hi > /srv/f", name="box").wait(60)
        taken = sandbox.snapshot("mine")
    taken.export(str(tmp_path / "bundle"))
    with Sandbox.restore(taken, store=second) as sandbox:
        sandbox.exec("echo x > y")
        copied = sandbox.snapshot("copied", store=second)
    assert list(check(second)) == []
    imported = Snapshot.import_(str(tmp_path / "bundle"), Store.memory())
    for each in (copied, imported):
        with Sandbox.restore(each) as sandbox:
            assert table(sandbox) == [("box", "base", "exited", 0)]
            assert sandbox.exec("sudo docker run --rm -v kept:/k base true; sudo docker start box").ok
    second.close()
    main(["snapshot", "show", "copied", "--store", str(tmp_path / "db")])
    assert "containers  box\n" in capsys.readouterr().out


@pytest.mark.slow
def test_checkpoints_keep_them_and_nothing_new_is_kept_of_one_that_only_runs() -> None:
    async def go() -> None:
        store = Store.memory()
        async with AsyncSandbox(name="lane", store=store, checkpoint="exec") as sandbox:
            await sandbox.exec("sudo docker run -d --name box base sh -c 'echo hi > /f; sleep 99'")
            await sandbox.exec("sudo docker exec box sh -c 'until [ -s /f ]; do sleep 0.01; done'", check=True)
            before = store.get("sandbox/lane")
            await sandbox.exec("sudo docker ps")
            assert store.get("sandbox/lane") == before
        async with await AsyncSandbox.resume("lane", store=store) as sandbox:
            box = await sandbox.containers.get("box")
            assert (await box.info()).state.exit_code == 137
            await box.start()
            assert (await box.exec("cat /f")).stdout == "hi\n"

    asyncio.run(go())


@pytest.mark.slow
def test_what_is_not_kept_is_named() -> None:
    with Sandbox(store=Store.memory(), limits=Limits(files=1000)) as sandbox:
        sandbox.containers.run("base", "sleep 99", name="passing", remove=True)
        sandbox.containers.run("base", "container run -d base sleep 99; sleep 99", name="outer")
        sandbox.files.write("/tmp/env", "B=" + "x" * 200_000)
        sandbox.files.write("/tmp/zero", b"A=\0\n")
        sandbox.exec("sudo docker create --name large --env-file /tmp/env base true", check=True)
        sandbox.exec("sudo docker create --name zero --env-file /tmp/zero base true", check=True)
        sandbox.exec("sudo docker create --name vast --memory 999999999999g base true", check=True)
        for number in range(60):  # more files of the base image than the sandbox may have
            sandbox.exec(f"sudo docker create --name c{number} base true", check=True)
        while len(sandbox.exec("sudo docker exec outer container ps -q").stdout.split()) < 1:
            pass
        taken = sandbox.snapshot()
    assert sorted(taken.lost) == [
        "the container large: its environment, command and options take more than 100000 bytes",
        "the container passing, which is removed when it ends (--rm)",
        "the container vast: a number is out of range",
        "the container zero: a text has a zero byte",
        "the containers in the container outer",
    ]
    with Sandbox.restore(taken) as sandbox:
        assert [name for name, *_ in table(sandbox)] == ["outer", *(f"c{number}" for number in range(60))]


@pytest.mark.slow
def test_a_tier_without_containers_says_what_it_drops(caplog: pytest.LogCaptureFixture) -> None:
    store, heard = Store.memory(), list[Event]()
    with Sandbox(store=store) as sandbox:
        sandbox.exec("echo hi > f; sudo docker create --name box base true", check=True)
        sandbox.snapshot("mine")
    with (
        caplog.at_level(logging.WARNING, "belljar"),
        Sandbox.restore("mine", store, tier="native", on_event=heard.append) as sandbox,
    ):
        assert sandbox.exec("cat /workspace/f").stdout == "hi\n"
        again = sandbox.snapshot()
    assert [event.data for event in heard if event.kind == "dropped"] == [{"containers": ["box"]}]
    assert "left out: box" in caplog.text
    assert again.record.containers == []


def test_a_page_keeps_them() -> None:
    """The session of a page, without a browser around it."""

    class Page:
        def root_replaced(self) -> None:
            pass

    def say(session: Session, command: str) -> str:
        result = session.exec(command)
        return (result.stdout + result.stderr).decode()

    session = new_session(machine=virtual_machine())
    say(
        session, f"sudo docker run --name box base bash -c '{CHANGE}'; sudo docker run -d --rm --name gone base sleep 9"
    )
    bundle = Snapshots(session, Page()).snapshot("mine")  # type: ignore[arg-type]
    assert isinstance(bundle, bytes)
    other = new_session(machine=virtual_machine())
    Snapshots(other, Page()).restore(bundle)  # type: ignore[arg-type]
    assert "Exited (3)" in say(other, "sudo docker ps -a")
    assert say(other, "sudo docker logs box") == "out\nerr\n"
    (box,) = other.containers.list()
    assert box.root.walk(box.root.root, "g2").is_dir is False
    objects = Objects(Store.memory())
    record = read_snapshot(objects, read_bundle(io.BytesIO(bundle), objects))
    assert record.lost == ["the container gone, which is removed when it ends (--rm)"]


# The capture of a container over the built-in image.


class Whole:
    """An overlay in memory over files in memory, and its owner's table."""

    def __init__(self) -> None:
        ticks = count(1)
        self.now: Callable[[], int] = lambda: next(ticks)
        self.lower = MemoryServer(self.now, Quota(100 * MIB, 100_000))
        folder = self.lower.mkdir(self.lower.root, "d", 0o755, Owner(0, 0))
        deep = self.lower.mkdir(folder, "deep", 0o755, Owner(0, 0))
        for name, where in (("a", self.lower.root), ("b", folder), ("c", deep)):
            make(self.lower, name, name.encode(), where)
        self.server = OverlayServer(self.lower, MemoryServer(self.now, Quota(100 * MIB, 100_000)), self.now)
        self.server.dev = 1
        self.objects: dict[Digest, bytes] = {}
        self.table: TreeTable | None = None
        self.since = 0

    def capture(self) -> tuple[dict[str, Any], int]:
        """The tree as its owner knows it, and how many records that took."""
        captured = Captured()
        root = captured.add_whole(self.server, self.since)
        self.since = self.now()
        self.table = self.table or TreeTable(root, b"", {})
        pieces = [(each, self._pieces(each)) for each in captured.records]
        self.objects |= self.table.update(pieces, None, lambda digest: decode_directory(self.objects[digest]))
        return self._read(self.table.root.parts[0]), len(captured.records)

    def _pieces(self, record: Record) -> list[Digest]:
        if not record.data:
            return []
        digest = digest_of(record.data)
        self.objects[digest] = record.data
        return [digest]

    def _read(self, digest: Digest) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for entry in decode_directory(self.objects[digest]):
            name = entry.name.decode()
            found[name] = self._read(entry.parts[0]) if entry.kind is Kind.DIRECTORY else self.objects[entry.parts[0]]
        return found


def test_the_lower_files_are_captured_once_and_then_what_changed() -> None:
    whole = Whole()
    server, root = whole.server, whole.server.root
    assert whole.capture() == ({"a": b"a", "d": {"b": b"b", "deep": {"c": b"c"}}}, 6)
    assert whole.capture()[1] == 0
    folder = server.walk(root, "d")
    write(server, server.walk(folder, "b"), 0, b"B")
    assert whole.capture()[0] == {"a": b"a", "d": {"b": b"B", "deep": {"c": b"c"}}}
    server.rename(folder, "deep", root, "moved", 0)
    server.unlink(root, "a")
    assert whole.capture()[0] == {"d": {"b": b"B"}, "moved": {"c": b"c"}}
    write(server, server.walk(server.walk(root, "moved"), "c"), 0, b"C")
    make(server, "new", b"new", server.walk(root, "moved"))
    assert whole.capture()[0] == {"d": {"b": b"B"}, "moved": {"c": b"C", "new": b"new"}}
    server.link(server.walk(folder, "b"), root, "b2")
    server.unlink(folder, "b")
    server.rmdir(root, "d")
    assert whole.capture()[0] == {"b2": b"B", "moved": {"c": b"C", "new": b"new"}}
    whole.table, whole.since = None, 0
    assert whole.capture() == ({"b2": b"B", "moved": {"c": b"C", "new": b"new"}}, 5)


def test_a_lower_file_with_several_names_is_one_file() -> None:
    whole = Whole()
    whole.lower.link(whole.lower.walk(whole.lower.root, "a"), whole.lower.root, "a2")
    server, root = whole.server, whole.server.root
    assert whole.capture()[0]["a2"] == b"a"
    write(server, server.walk(root, "a"), 0, b"A")
    found = whole.capture()[0]
    assert (found["a"], found["a2"]) == (b"A", b"A")
    server.unlink(root, "a")
    whole.table, whole.since = None, 0
    assert whole.capture()[0] == {"a2": b"A", "d": {"b": b"b", "deep": {"c": b"c"}}}
