"""What callers get wrong is said where they did it, and costs no sandbox."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from belljar import AsyncSandbox, Event, IsolationUnavailable, Limits, Mount, RunLimits, Sandbox
from belljar.api.request import GRACE, FileContents

Attempt = Callable[[Sandbox], object]

WRONG: dict[str, tuple[Any, type[Exception], str]] = {
    "stdin int": (lambda s: s.exec("cat", stdin=5), TypeError, "stdin must be str or bytes, not int"),
    "stdin file": (lambda s: s.exec("cat", stdin=open), TypeError, "stdin must be"),
    "timeout text": (lambda s: s.exec("true", timeout="5"), TypeError, "timeout must be a number"),
    "timeout zero": (lambda s: s.exec("true", timeout=0), ValueError, "timeout must be positive"),
    "limits": (lambda s: s.exec("true", limits={"steps": 1}), TypeError, "limits must be Limits"),
    "cwd": (lambda s: s.exec("true", cwd=5), TypeError, "cwd is a str"),
    "env": (lambda s: s.exec("true", env=["A"]), TypeError, "env must be a dict, not list"),
    "env value": (lambda s: s.exec("true", env={"A": 1}), TypeError, "env must map str to str"),
    "on_stdout": (lambda s: s.exec("true", on_stdout=5), TypeError, "on_stdout must be a function"),
    "async on_stdout": (lambda s: s.exec("echo", on_stdout=_unheard), TypeError, "an async one needs an AsyncSandbox"),
    "command": (lambda s: s.exec(["echo", 1]), TypeError, "a command is a str"),
    "spawn stdin": (lambda s: s.spawn("cat", stdin=5), TypeError, "stdin must be str or bytes"),
    "spawn env": (lambda s: s.spawn("cat", env=["A"]), TypeError, "env must be a dict"),
    "typed": (lambda s: s.spawn("cat", stdin="").stdin.write(5), TypeError, "input must be str or bytes"),
    "rows": (lambda s: s.pty("true", rows="x"), TypeError, "rows and cols are ints"),
    "no rows": (lambda s: s.pty("true", rows=0), ValueError, "can't have 0 rows"),
    "read": (lambda s: s.files.read(None), TypeError, "a path in the sandbox is a str"),
    "write": (lambda s: s.files.write("a", 5), TypeError, "what is written to 'a' must be str or bytes"),
    "mode": (lambda s: s.files.write("a", "", mode="755"), TypeError, "an int such as 0o755"),
    "no mode": (lambda s: s.files.chmod("/tmp", -1), ValueError, "an int such as 0o755"),
    "write_many": (lambda s: s.files.write_many(["ab"]), TypeError, "pairs of a path and its contents"),
    "write_many contents": (lambda s: s.files.write_many([("a", 5)]), TypeError, r"files\['a'\] must be"),
    "watch": (lambda s: s.files.watch(5), TypeError, "a path in the sandbox is a str"),
    "mount": (lambda s: s.mount("/m", "x"), TypeError, "must be a Mount, not str"),
    "mount path": (lambda s: s.mount(5, Mount.memory()), TypeError, "where to mount is a str"),
    "run limits": (lambda s: s.python.run("1", limits=Limits()), TypeError, "a run's limits are RunLimits"),
    "globals": (lambda s: s.python.run("1", globals=[1]), TypeError, "globals must be a dict"),
}

WRONG_OPTIONS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "tier": ({"tier": "cloud"}, ValueError, "there is no tier 'cloud'"),
    "limits": ({"limits": 5}, TypeError, r"limits= takes Limits\(...\), not int"),
    "files": ({"files": ["a"]}, TypeError, "files= takes a dict, not list"),
    "file name": ({"files": {5: "a"}}, TypeError, "a path in the sandbox is a str"),
    "mounts": ({"mounts": ["/a"]}, TypeError, "mounts= takes a dict, not list"),
    "tools": ({"tools": [print]}, TypeError, "tools= takes a dict, not list"),
    "tool": ({"tools": {"biggest": max}}, TypeError, "tool 'biggest'.*write a function with named arguments"),
    "cwd": ({"cwd": "here"}, ValueError, "cwd='here'"),
    "hostname": ({"hostname": "a b"}, ValueError, "no host name"),
    "on_event": ({"on_event": 5}, TypeError, "on_event= takes a function"),
    "require": ({"require": "seccomp"}, TypeError, "require= takes a set"),
    "unknown layer": ({"require": {"secomp"}}, IsolationUnavailable, "no layer called secomp: choose from user"),
}


async def _unheard(data: bytes) -> None:
    """What nobody would await."""


@pytest.fixture(scope="module")
def shared() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_argument_is_named_and_harmless(shared: Sandbox, name: str) -> None:
    attempt, kind, message = WRONG[name]
    with pytest.raises(kind, match=message):
        attempt(shared)
    assert shared.exec("echo fine").stdout == "fine\n"


@pytest.mark.parametrize("name", WRONG_OPTIONS)
def test_a_wrong_option_is_named(name: str) -> None:
    options, kind, message = WRONG_OPTIONS[name]
    with pytest.raises(kind, match=message):
        Sandbox(**options)


def test_limits_are_whole_numbers_that_may_be_written_as_floats(shared: Sandbox) -> None:
    result = shared.exec("yes", limits=Limits(output_bytes=1e4))  # type: ignore[arg-type]
    assert (result.limit, len(result.stdout_bytes)) == ("output_bytes", 10_000)
    with pytest.raises(ValueError, match=r"Limits.output_bytes must be a whole number, not 1\.5"):
        Limits(output_bytes=1.5)  # type: ignore[arg-type]
    assert RunLimits(cpu_ms=2e2).cpu_ms == 200  # type: ignore[arg-type]


def test_no_stdin_is_an_empty_one(shared: Sandbox) -> None:
    assert shared.exec("cat; echo end", stdin=None, timeout=20).stdout == "end\n"


def test_bytes_of_every_kind(shared: Sandbox) -> None:
    for data in ("ab", b"ab", bytearray(b"ab"), memoryview(b"ab")):
        assert shared.exec("cat", stdin=data).stdout == "ab"
        shared.files.write("kind", data)
        assert shared.files.read("kind") == "ab"
    with Sandbox(files={"run": ("echo ran", 0o755)}) as sandbox:
        assert sandbox.exec("./run").stdout == "ran\n"


def test_paths_of_pathlib_are_paths(shared: Sandbox, tmp_path: Path) -> None:
    files, place = shared.files, PurePosixPath("paths/of")
    files.write(place / "a", "1")
    assert files.read(place / "a") == "1"
    assert [entry.name for entry in files.list(place)] == ["a"]
    assert files.stat(place / "a").size == 1
    files.rename(place / "a", place / "b")
    files.download(place / "b", tmp_path / "b")
    files.upload(tmp_path / "b", place / "c")
    assert files.glob(place / "*") == ["paths/of/b", "paths/of/c"]
    assert shared.exec("pwd", cwd=place).stdout == "/workspace/paths/of\n"
    with Sandbox(cwd="/srv/here") as sandbox:
        sandbox.files.mkdir("below")
        assert sandbox.exec("pwd", cwd="below").stdout == "/srv/here/below\n"


def test_files_may_be_given_as_a_dict(shared: Sandbox) -> None:
    several: dict[str, FileContents] = {"many/1": "a", "many/2": (b"b", 0o600)}
    assert [result.ok for result in shared.files.write_many(several)] == [True, True]
    assert shared.exec("cat many/*").stdout == "ab"


def test_a_download_keeps_what_can_be_executed(shared: Sandbox, tmp_path: Path) -> None:
    shared.files.write("tree/run", "x", mode=0o4755)
    shared.files.write("tree/note", "x", mode=0o644)
    shared.files.download("tree", tmp_path / "tree")
    os.close(os.open(tmp_path / "as a program makes it", os.O_CREAT, 0o755))  # whatever our umask is
    assert (tmp_path / "tree/run").stat().st_mode == (tmp_path / "as a program makes it").stat().st_mode
    assert not (tmp_path / "tree/note").stat().st_mode & 0o111


def test_trees_in_memory_keep_their_files_in_an_overlay(shared: Sandbox) -> None:
    shared.mount("/over/lower", Mount.overlay(Mount.memory({"a": "lower"})))
    shared.mount("/over/upper", Mount.overlay(Mount.memory(), Mount.memory({"a": "upper"})))
    assert shared.exec("cat /over/lower/a /over/upper/a").stdout == "lowerupper"
    with pytest.raises(ValueError, match="only the upper one may begin with files"):
        Mount.overlay(Mount.memory({"a": "lower"}), Mount.memory())
    with pytest.raises(TypeError, match="an overlay is made of Mounts"):
        Mount.overlay("somewhere")  # type: ignore[arg-type]


class _Root:
    mode, uid, gid = 0o040755, 0, 0


class _Broken:
    """A server that has a root, and nothing to say about it."""

    root = _Root()

    def _raise(self, *_: object) -> None:
        raise LookupError("a bug of the owner's")

    walk = locate = stat = readdir = open = _raise


def test_what_a_file_server_raises_is_told_to_its_owner(caplog: pytest.LogCaptureFixture) -> None:
    broken: Any = _Broken()
    with Sandbox() as sandbox:
        sandbox.mount("/broken", Mount.server(broken))
        assert "Input/output error" in sandbox.exec("for i in {1..50}; do ls /broken/x; done").stderr
    told = [record for record in caplog.records if record.name == "belljar" and record.exc_info]
    assert 0 < len(told) <= 20
    assert str(told[0].exc_info[1]) == "a bug of the owner's"  # type: ignore[index]


class _Heard(Exception):
    pass


def _refuse(data: bytes) -> None:
    raise _Heard(data)


def test_what_a_listener_raises_ends_its_command_and_no_other() -> None:
    with Sandbox() as sandbox:
        beside: list[str] = []
        other = threading.Thread(target=lambda: beside.append(sandbox.exec("sleep 0.3; echo beside").stdout))
        other.start()
        with pytest.raises(_Heard):
            sandbox.exec("while :; do echo again; sleep 0.01; done", on_stdout=_refuse)
        other.join()
        assert beside == ["beside\n"]
        deadline = time.monotonic() + 20
        while sandbox.stats()["processes"] and time.monotonic() < deadline:
            time.sleep(0.01)
        assert sandbox.stats()["processes"] == 0


def test_a_listener_may_use_the_sandbox() -> None:
    with Sandbox() as sandbox:
        heard: list[tuple[bytes, str]] = []
        done = sandbox.exec(
            "for n in 1 2 3; do echo $n; done",
            on_stdout=lambda data: heard.append((data, sandbox.exec(["cat"], stdin=data, timeout=30).stdout)),
            timeout=60,
        )
        assert done.exit_code == 0
        assert b"".join(data for data, _ in heard) == b"1\n2\n3\n"
        assert "".join(text for _, text in heard) == "1\n2\n3\n"


@pytest.mark.battery
def test_a_slow_listener_is_not_the_sandboxs_silence() -> None:
    with Sandbox() as sandbox:
        result = sandbox.exec("echo a; sleep 100", on_stdout=lambda data: time.sleep(GRACE + 1.5), timeout=0.5)
        assert (result.exit_code, result.timed_out) == (124, True)
        assert sandbox.exec("echo fine").stdout == "fine\n"


def test_an_async_listener() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            heard: list[bytes] = []

            async def hear(data: bytes) -> None:
                heard.append((await sandbox.exec(["cat"], stdin=data)).stdout_bytes)

            await sandbox.exec("echo a; echo b >&2; echo c", on_stdout=hear, on_stderr=hear)
            assert b"".join(heard) == b"a\nb\nc\n"

    asyncio.run(main())


def test_what_a_listener_raises_is_raised_by_an_async_exec_too() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            with pytest.raises(_Heard):
                await sandbox.exec("echo once; sleep 100", on_stderr=_refuse, on_stdout=_refuse)
            assert (await sandbox.exec("echo fine")).stdout == "fine\n"

    asyncio.run(main())


def test_an_observer_that_would_wait_for_ever_is_told(caplog: pytest.LogCaptureFixture) -> None:
    """It is called by whoever receives: nobody else would receive the answer."""

    def ask(event: Event) -> None:
        if event.kind == "exec":
            sandbox.exec("true")

    with Sandbox(on_event=ask) as sandbox:
        assert sandbox.exec("echo fine").stdout == "fine\n"
    assert "on_event is called while the sandbox is listened to" in caplog.text


def test_an_observer_may_start_a_task() -> None:
    async def main() -> None:
        tasks: list[asyncio.Task[Any]] = []

        def ask(event: Event) -> None:
            if event.kind == "exec" and event.data["action"] == "end" and not tasks:
                tasks.append(asyncio.create_task(sandbox.exec("echo task")))

        async with AsyncSandbox(on_event=ask) as sandbox:
            await sandbox.exec("true")
            assert (await tasks[0]).stdout == "task\n"

    asyncio.run(main())
