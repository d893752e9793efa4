"""Watching files, and events as they happen, through real sealed workers."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from belljar import AsyncSandbox, Change, Event, FileError, Limits, Mount, Sandbox

ALL = "mkdir d; echo 1 > d/f; echo 2 >> d/f; mv d/f d/g; chmod 600 d/g; rm d/g; rmdir d; ln -s x l; truncate -s 9 t"
SEEN = [
    ("created", "/workspace/d", None),
    ("created", "/workspace/d/f", None),
    ("modified", "/workspace/d/f", None),
    ("renamed", "/workspace/d/f", "/workspace/d/g"),
    ("attributes", "/workspace/d/g", None),
    ("deleted", "/workspace/d/g", None),
    ("deleted", "/workspace/d", None),
    ("created", "/workspace/l", None),
    ("created", "/workspace/t", None),
    ("modified", "/workspace/t", None),
]


def eventually(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def fields(changes: list[Change]) -> list[tuple[str, str, str | None]]:
    return [(change.kind, change.path, change.to) for change in changes]


def drain(sandbox: Sandbox, watch: Any) -> list[Change]:
    """Every change so far: up to one that we make now."""
    sandbox.files.write("/workspace/end-of-test", "")
    changes: list[Change] = []
    while (change := watch.next(timeout=30)).path != "/workspace/end-of-test":
        changes.append(change)
    return changes


def test_every_kind_of_change_is_seen_in_order() -> None:
    with Sandbox() as sandbox, sandbox.files.watch() as watch:
        sandbox.exec(ALL).check()
        assert fields(drain(sandbox, watch)) == SEEN


def test_a_watch_sees_only_its_part_of_the_tree() -> None:
    with Sandbox() as sandbox:
        sandbox.exec("mkdir -p a/b")
        with sandbox.files.watch("a", recursive=False) as watch:
            sandbox.exec("touch a/b/deep outside /tmp/x; touch a/near; mv a/near outside2; mv outside2 a/back")
            kinds = [watch.next(timeout=30) for _ in range(4)]
            assert [(c.kind, c.path) for c in kinds if c is not None and c.kind != "attributes"] == [
                ("created", "/workspace/a/near"),
                ("renamed", "/workspace/a/near"),
                ("renamed", "/workspace/outside2"),
            ]
            assert watch.next(timeout=0.05) is None


def test_a_file_can_be_watched_and_a_missing_one_is_an_error() -> None:
    with Sandbox(files={"f": "1"}) as sandbox:
        with pytest.raises(FileError):
            sandbox.files.watch("missing")
        with sandbox.files.watch("f") as watch:
            sandbox.exec("echo 2 > g; echo 3 > f")
            assert watch.next(timeout=30) == Change("modified", "/workspace/f")


def test_a_log_that_is_written_slowly_is_seen_while_it_is_open() -> None:
    with Sandbox() as sandbox, sandbox.files.watch() as watch:
        process = sandbox.spawn("exec > log; echo one; read line; echo two")
        changes = {watch.next(timeout=30), watch.next(timeout=30)}
        assert Change("modified", "/workspace/log") in changes
        process.stdin.write("go\n")
        assert watch.next(timeout=30) == Change("modified", "/workspace/log")
        process.wait()


def test_what_is_mounted_later_is_watched_too(tmp_path: Any) -> None:
    with Sandbox() as sandbox, sandbox.files.watch("/mnt") as watch:
        sandbox.mount("/mnt/m", Mount.memory())
        sandbox.mount("/mnt/h", Mount.host(tmp_path, read_only=False))
        sandbox.exec("touch /mnt/m/new; echo x > /mnt/h/real")
        paths = set()
        while (change := watch.next(timeout=30)) is not None and change.path != "/mnt/h/real":
            paths.add(change.path)
        assert change is not None
        assert "/mnt/m/new" in paths
    assert (tmp_path / "real").read_text() == "x\n"


def test_a_watcher_that_does_not_look_is_told_that_it_missed_some() -> None:
    with Sandbox() as sandbox, sandbox.files.watch() as watch:
        sandbox.exec("for i in {1..12000}; do > f$i; done", limits=Limits(wall_seconds=60)).check()
        count = 1
        while watch.next(timeout=30) != Change("overflow", "/workspace"):
            count += 1
        assert count == 10_001
        sandbox.exec("touch after")
        assert Change("created", "/workspace/after") in (watch.next(timeout=30), watch.next(timeout=30))


def test_closing_a_watch_ends_its_iteration() -> None:
    with Sandbox() as sandbox:
        watch = sandbox.files.watch()
        closer = threading.Timer(0.1, watch.close)
        closer.start()
        assert list(watch) == []
        closer.join()


def test_watching_awaited() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox, sandbox.files.watch() as watch:
            await sandbox.exec(ALL)
            seen = [change async for change in take(watch, len(SEEN))]
            assert fields(seen) == SEEN

    async def take(watch: Any, count: int) -> Any:
        async for change in watch:
            yield change
            if (count := count - 1) == 0:
                return

    asyncio.run(asyncio.wait_for(main(), 60))


def test_events_tell_of_commands_files_and_limits() -> None:
    events: list[Event] = []
    with Sandbox(on_event=events.append, name="jar") as sandbox:
        sandbox.exec("echo hi > made", cwd="/tmp")
        sandbox.exec("while :; do :; done", limits=Limits(steps=1000))
        eventually(lambda: any(event.kind == "file" for event in events))
    assert {event.sandbox for event in events} == {"jar"}
    starts = [event.data["argv"] for event in events if event.data.get("action") == "start"]
    assert starts == [["bash", "-c", "echo hi > made"], ["bash", "-c", "while :; do :; done"]]
    assert [event.data["exit_code"] for event in events if event.data.get("action") == "end"] == [0, 137]
    assert [event.data["limit"] for event in events if event.kind == "limit"] == ["steps"]
    files = [event.data for event in events if event.kind == "file"]
    assert {"action": "created", "path": "/tmp/made", "to": None} in files


def test_an_owner_whose_callback_fails_is_told_and_nothing_else_happens(caplog: pytest.LogCaptureFixture) -> None:
    def broken(_event: Event) -> None:
        raise RuntimeError("owner's bug")

    with Sandbox(on_event=broken) as sandbox:
        assert sandbox.exec("echo ok").stdout == "ok\n"
    assert "owner's bug" in caplog.text


def test_events_awaited() -> None:
    events: list[Event] = []

    async def main() -> None:
        async with AsyncSandbox(on_event=events.append) as sandbox:
            await sandbox.exec("touch /tmp/x")
            while not any(event.kind == "file" for event in events):
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(main(), 60))


def test_commands_run_as_the_user_that_was_asked_for() -> None:
    with Sandbox(user="dev") as sandbox:
        said = sandbox.exec("whoami; echo $USER ~; cd; pwd; touch f; stat -c %U:%G f; id -u").stdout
        assert said == "dev\ndev /home/dev\n/home/dev\ndev:dev\n1000\n"
        sandbox.files.write("/workspace/owned", "")
        assert sandbox.exec("stat -c %U owned").stdout == "dev\n"
    with Sandbox(user="root") as sandbox:
        assert sandbox.exec("id -u; echo ~; touch /etc/new && stat -c %U /etc/new").stdout == "0\n/root\nroot\n"


@pytest.mark.parametrize("name", ["", "Agent", "a b", "-x", "a" * 33, "a:b", "a\n"])
def test_a_user_name_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="user name"):
        Sandbox(user=name)


def test_a_user_name_that_is_taken_is_refused() -> None:
    with pytest.raises(ValueError, match="taken"):
        Sandbox(user="nobody")
