"""Calls about files, watches and the owner's commands by the agent; what blocks one blocks nobody else."""

from __future__ import annotations

import errno
import os
import socket
import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from belljar import Change, FileError, Sandbox
from belljar.abi.wire import Call, Failure, Reply
from tests.agent.running import Talk, sandbox


def test_reading_and_writing(box: Sandbox, tmp_path: Path) -> None:
    data = os.urandom(20 << 20)
    box.files.write("a/b/c", data, mode=0o640)
    assert (tmp_path / "a/b/c").read_bytes() == data
    assert stat.S_IMODE((tmp_path / "a/b/c").stat().st_mode) == 0o640
    assert box.files.read_bytes("a/b/c") == data
    box.files.write("a/b/c", b"end", append=True)
    assert box.files.read_bytes("a/b/c") == data + b"end"
    box.files.write("a/b/c", "")
    assert box.files.read("a/b/c") == ""
    assert box.files.read("/proc/self/stat").startswith(tuple("123456789")), "a file that has no size"


def test_names_are_bytes(box: Sandbox, tmp_path: Path) -> None:
    box.files.write("é\udcff\n", "x")
    assert [entry.name for entry in box.files.list(".")] == ["é\udcff\n"]
    assert os.listdir(os.fsencode(tmp_path)) == ["é".encode() + b"\xff\n"]


def test_a_long_directory_comes_in_pages(box: Sandbox, tmp_path: Path) -> None:
    names = [f"{n:05}" + "x" * (n % 200) for n in range(10_500)]
    for name in names:
        (tmp_path / name).touch()
    assert [entry.name for entry in box.files.list(".")] == sorted(names)


def test_kinds_links_and_changes(box: Sandbox, tmp_path: Path) -> None:
    box.files.symlink("nowhere", "d/link")
    assert box.files.readlink("d/link") == "nowhere"
    assert box.files.stat("d/link", follow=False).kind == "symlink"
    box.files.mkdir("d/e/f", parents=True)
    box.files.mkdir("d/e/f", parents=True)
    box.files.rename("d/e", "g")
    box.files.chmod("g", 0o700)
    assert box.files.stat("g").mode == 0o700
    (tmp_path / "old").touch()
    os.utime(tmp_path / "old", ns=(0, -1_500_000_001))
    assert box.files.stat("old").mtime == pytest.approx(-1.5)


ERRORS: dict[str, tuple[Callable[[Any], object], int]] = {
    "read nothing": (lambda files: files.read("nothing"), errno.ENOENT),
    "read a directory": (lambda files: files.read("."), errno.EISDIR),
    "write below a file": (lambda files: files.write("file/x", ""), errno.ENOTDIR),
    "write to a directory": (lambda files: files.write("dir", ""), errno.EISDIR),
    "make what is there": (lambda files: files.mkdir("dir"), errno.EEXIST),
    "remove nothing": (lambda files: files.remove("nothing"), errno.ENOENT),
    "remove what is full": (lambda files: files.remove("dir"), errno.ENOTEMPTY),
    "a link that is none": (lambda files: files.readlink("file"), errno.EINVAL),
    "rename nothing": (lambda files: files.rename("nothing", "x"), errno.ENOENT),
    "list a file": (lambda files: files.list("file"), errno.ENOTDIR),
    "a NUL": (lambda files: files.read("a\0b"), errno.EINVAL),
    "too long a name": (lambda files: files.read("x" * 300), errno.ENAMETOOLONG),
    "too long a path": (lambda files: files.read("x/" * 9000), errno.ENAMETOOLONG),
    "write to a FIFO that nobody reads": (lambda files: files.write("fifo", "x"), errno.ENXIO),
    "watch nothing": (lambda files: files.watch("nothing"), errno.ENOENT),
}


@pytest.mark.parametrize("what", ERRORS)
def test_errors(box: Sandbox, tmp_path: Path, what: str) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "dir/full").mkdir(parents=True)
    os.mkfifo(tmp_path / "fifo")
    act, number = ERRORS[what]
    with pytest.raises(FileError) as raised:
        act(box.files)
    assert raised.value.errno == number


def test_a_fifo_blocks_nobody(box: Sandbox, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    assert box.files.read("fifo") == ""
    writer = os.open(tmp_path / "fifo", os.O_RDWR)
    with pytest.raises(FileError) as raised:
        box.files.read("fifo")
    assert raised.value.errno == errno.EAGAIN
    os.write(writer, b"x")
    assert box.files.read("fifo") == "x"
    os.close(writer)


def test_more_calls_than_run_at_once_wait_for_their_turn(agent: Talk, tmp_path: Path) -> None:
    agent.hear()
    agent.say(*[Call(n, "stat", [os.fsencode(tmp_path), True]) for n in range(1, 301)])
    assert {message.id for _ in range(300) if isinstance(message := agent.hear(), Reply)} == set(range(1, 301))


def test_a_tree_deeper_than_any_path_is_removed(box: Sandbox, tmp_path: Path) -> None:
    name = "d" * 200
    top = os.open(tmp_path, os.O_RDONLY)
    for _ in range(200):
        os.mkdir(name, dir_fd=top)
        os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=top))
        below = os.open(name, os.O_RDONLY, dir_fd=top)
        os.close(top)
        top = below
    os.close(top)
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/kept").touch()
    os.symlink("../outside", tmp_path / name / "link")
    box.files.remove(name, recursive=True)
    assert sorted(os.listdir(tmp_path)) == ["f", "outside"]
    assert (tmp_path / "outside/kept").exists(), "a link is not followed"


def test_stats(box: Sandbox) -> None:
    found = box.stats()
    assert found["processes"] == 0
    assert found["uptime"] > 0


def drain(box: Sandbox, watch: Any, tmp_path: Path) -> list[tuple[str, str, str | None]]:
    box.files.write("end-of-test", "")
    changes = []
    while (change := watch.next(timeout=60)).path != str(tmp_path / "end-of-test"):
        changes.append((change.kind, change.path.removeprefix(f"{tmp_path}/"), change.to))
    return changes


def test_a_watch_sees_every_kind_of_change(box: Sandbox, tmp_path: Path) -> None:
    with box.files.watch() as watch:
        box.exec("echo 1 > f; sleep 0.05; echo 2 >> f; mv f g; chmod 600 g; rm g; ln -s x l; truncate -s 9 t")
        assert drain(box, watch, tmp_path) == [
            ("created", "f", None),
            ("modified", "f", None),
            ("renamed", "f", str(tmp_path / "g")),
            ("attributes", "g", None),
            ("deleted", "g", None),
            ("created", "l", None),
            ("created", "t", None),
            ("modified", "t", None),
        ]


def test_a_watch_follows_directories(box: Sandbox, tmp_path: Path) -> None:
    with box.files.watch() as watch:
        box.exec("mkdir -p a/b/c; echo x > a/b/c/f")
        seen = set(drain(box, watch, tmp_path))
        assert {("created", name, None) for name in ("a", "a/b", "a/b/c", "a/b/c/f")} <= seen
        box.exec("mv a z; sleep 0.05; echo y > z/b/c/f; sleep 0.05; rm -r z")
        seen = set(drain(box, watch, tmp_path))
        assert {("renamed", "a", str(tmp_path / "z")), ("modified", "z/b/c/f", None), ("deleted", "z", None)} <= seen


def test_a_watch_of_one_file_and_one_level(box: Sandbox, tmp_path: Path) -> None:
    box.exec("mkdir -p d/e; echo 1 > f")
    with box.files.watch("f") as one, box.files.watch("d", recursive=False) as level:
        box.exec("touch other d/e/deep; sleep 0.05; touch d/near; echo 2 > f")
        assert one.next(timeout=60) == Change("modified", str(tmp_path / "f"))
        assert level.next(timeout=60) == Change("created", str(tmp_path / "d/near"))


def test_a_watcher_that_does_not_look_is_told_that_it_missed_some(box: Sandbox, tmp_path: Path) -> None:
    with box.files.watch() as watch:
        box.exec("for i in {1..11000}; do > f$i; done").check()
        deadline, count = time.monotonic() + 60, 0
        while (change := watch.next(timeout=60)) != Change("overflow", str(tmp_path)):
            assert change is not None
            assert time.monotonic() < deadline
            count += 1
        assert 5_000 < count <= 10_000


def test_a_watch_that_is_closed_ends(box: Sandbox) -> None:
    import threading

    watch = box.files.watch()
    closer = threading.Timer(0.1, watch.close)
    closer.start()
    assert list(watch) == []
    closer.join()


def shout(text: str) -> str:
    return text.upper()


def test_the_owners_commands(program: Path, tmp_path: Path) -> None:
    def slow() -> str:
        deadline = time.monotonic() + 60
        while not (tmp_path / "go").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        return "slow"

    with sandbox(
        program, cwd=str(tmp_path), tools={"shout": shout, "slow": slow, "long": lambda: "x" * 5_000_000}
    ) as box:
        assert box.exec("shout hello").stdout == "HELLO\n"
        assert box.exec('echo -n \'{"text": "piped"}\' | shout -').stdout == "PIPED\n"
        failed = box.exec("shout")
        assert (failed.exit_code, failed.stderr.splitlines()[0]) == (2, "shout: missing argument: text")
        assert len(box.exec("long").stdout) == 5_000_001
        assert box.exec("slow & shout first; touch go; wait; rm go").stdout == "FIRST\nslow\n"
        assert box.exec("timeout 0.1 slow; echo $?; touch go").stdout == "124\n"
        assert box.exec("for i in {1..30}; do shout $i & done; wait").stdout.count("\n") == 30
        assert box.exec("head -c 17000000 /dev/zero | shout -").stderr == "shout: File too large\n"
        assert box.exec("shout after").stdout == "AFTER\n"


def test_callers_that_break_the_rules_of_commands_hurt_only_themselves(program: Path, tmp_path: Path) -> None:
    with sandbox(program, cwd=str(tmp_path), tools={"shout": shout}) as box:
        place = box.exec("command -v shout").stdout.strip().removesuffix("bin/shout") + "socket"
        frames = (
            b"\xff\xff\xff\xff",
            b"\x01\0\0\0\xc1",
            b"\x02\0\0\0\x92\xa1",
            b"\x05\0\0\0\x92\xa1x\x90\0",
            b"\0\0\0\0",
            b"\x01",
        )
        for frame in frames:
            with socket.socket(socket.AF_UNIX) as caller:
                caller.connect(place)
                caller.sendall(frame)
                caller.shutdown(socket.SHUT_WR)
                caller.settimeout(60)
                with suppress(ConnectionResetError):
                    caller.recv(100)
        idle = [socket.socket(socket.AF_UNIX) for _ in range(50)]
        for each in idle:
            each.connect(place)
            each.send(b"\0")
        assert box.exec("shout ok").stdout == "OK\n"
        for each in idle:
            each.close()


def test_an_argument_that_may_be_left_out(agent: Talk, tmp_path: Path) -> None:
    agent.hear()
    (tmp_path / "f").touch()
    agent.say(Call(1, "list", [os.fsencode(tmp_path)]))
    assert isinstance(said := agent.hear(), Reply)
    assert [entry[0] for entry in said.value] == [b"f"]


def test_calls_that_it_does_not_know(agent: Talk) -> None:
    agent.hear()
    agent.say(
        Call(1, "mount", [b"/x", [b"memory"], False]),
        Call(2, "stat", [1, 2]),
        Call(3, "changes", [7]),
        Call(4, "input", [1]),
    )
    answers = {message.id: message for _ in range(4) if isinstance(message := agent.hear(), Failure)}
    assert {number: answer.errno for number, answer in answers.items()} == {
        1: errno.ENOSYS,
        2: 0,
        3: 0,
        4: errno.ENOSYS,
    }
