"""The stock `e2b` SDK, synchronous and asynchronous, as it comes from PyPI: each case runs with both."""

from __future__ import annotations

import asyncio
import inspect
import io
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import e2b
import httpx
import pytest

from tests.server.serving import Server, both, from_elsewhere

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")

CASES: list[Callable[[Any], Any]] = []


def case(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    CASES.append(function)
    return function


async def done(value: Any) -> Any:
    """The result of a call of either SDK."""
    return await value if inspect.isawaitable(value) else value


async def failure(call: Callable[[], Any]) -> Exception:
    try:
        await done(call())
    except Exception as error:  # noqa: BLE001 - to be looked at
        return error
    raise AssertionError("it did not fail")


async def until(holds: Callable[[], Any], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end
        await asyncio.sleep(0.02)


# Commands.


@case
async def a_command_has_output_and_an_exit_code(sandbox: Any) -> None:
    result = await done(sandbox.commands.run("echo out; echo err >&2"))
    assert (result.stdout, result.stderr, result.exit_code, result.error) == ("out\n", "err\n", 0, None)


@case
async def a_command_runs_at_home_with_its_environment(sandbox: Any) -> None:
    result = await done(sandbox.commands.run('whoami; pwd; echo "$HOME $COLOUR $SHAPE"', envs={"SHAPE": "round"}))
    assert result.stdout == "user\n/home/user\n/home/user blue round\n"


@case
async def a_command_that_fails_raises_with_all_it_said(sandbox: Any) -> None:
    error = await failure(lambda: sandbox.commands.run("echo a; echo b >&2; exit 7"))
    assert isinstance(error, e2b.CommandExitException)
    assert (error.exit_code, error.stdout, error.stderr, error.error) == (7, "a\n", "b\n", "exit status 7")


@case
async def root_and_a_directory(sandbox: Any) -> None:
    assert (await done(sandbox.commands.run("whoami; pwd", user="root"))).stdout == "root\n/root\n"
    assert (await done(sandbox.commands.run("pwd", user="root", cwd="/etc"))).stdout == "/etc\n"
    assert (await done(sandbox.commands.run("pwd", cwd="/usr"))).stdout == "/usr\n"


@case
async def a_missing_directory_is_an_invalid_argument(sandbox: Any) -> None:
    for user in ("user", "root"):
        error = await failure(partial(sandbox.commands.run, "pwd", cwd="/nowhere", user=user))
        assert isinstance(error, e2b.InvalidArgumentException)
        assert "/nowhere" in str(error)
        assert "does not exist" in str(error)


@case
async def an_unknown_user_is_refused(sandbox: Any) -> None:
    error = await failure(lambda: sandbox.commands.run("id", user="mallory"))
    assert isinstance(error, e2b.AuthenticationException)


@case
async def output_comes_as_it_is_made(sandbox: Any) -> None:
    """What comes second is not made before the first was heard."""
    heard: list[str] = []

    def hear(text: str) -> None:
        heard.append(text)
        if len(heard) == 1:
            httpx.post(sandbox.upload_url("heard"), files={"file": ("heard", b"")}, timeout=30)

    script = "echo 1; until [ -e heard ]; do sleep 0.05; done; echo 2"
    result = await done(sandbox.commands.run(script, on_stdout=hear))
    assert "".join(heard) == result.stdout == "1\n2\n"


@case
async def much_output_is_whole_and_in_order(sandbox: Any) -> None:
    result = await done(sandbox.commands.run("seq 200000"))
    assert result.stdout == "".join(f"{i}\n" for i in range(1, 200001))


@case
async def bytes_that_are_no_text_survive_cuts(sandbox: Any) -> None:
    result = await done(sandbox.commands.run("printf 'é%.0s' $(seq 50000)"))
    assert result.stdout == "é" * 50000


@case
async def a_timeout_ends_the_command(sandbox: Any) -> None:
    error = await failure(lambda: sandbox.commands.run("sleep 1000; touch late", timeout=0.5))
    assert isinstance(error, e2b.TimeoutException)
    end = time.monotonic() + 60
    while await done(sandbox.commands.list()):
        assert time.monotonic() < end
        await asyncio.sleep(0.05)
    assert not await done(sandbox.files.exists("late"))


@case
async def input_reaches_a_command_in_the_background(sandbox: Any) -> None:
    handle = await done(sandbox.commands.run("cat; echo end", background=True, stdin=True))
    await done(sandbox.commands.send_stdin(handle.pid, "one\n"))
    await done(handle.send_stdin("two\n"))
    await done(handle.close_stdin())
    assert (await done(handle.wait())).stdout == "one\ntwo\nend\n"


@case
async def input_is_refused_where_there_is_none(sandbox: Any) -> None:
    handle = await done(sandbox.commands.run("sleep 30", background=True))
    error = await failure(lambda: sandbox.commands.send_stdin(handle.pid, "x"))
    assert "stdin not enabled" in str(error)
    assert await done(handle.kill())


@case
async def streamed_input_keeps_its_order(sandbox: Any) -> None:
    handle = await done(sandbox.commands.run("cat | md5sum", background=True, stdin=True))
    lines = [f"{number}\n" for number in range(200)]
    if isinstance(sandbox, e2b.AsyncSandbox):
        async with sandbox.commands.stream_input(handle.pid) as stream:
            for line in lines:
                await stream.send(line)
    else:
        sandbox.commands.stream_input(handle.pid, lines)
    await done(sandbox.commands.close_stdin(handle.pid))
    expected = await done(sandbox.commands.run("seq 0 199 | md5sum"))
    assert (await done(handle.wait())).stdout == expected.stdout


@case
async def running_commands_are_listed(sandbox: Any) -> None:
    handle = await done(sandbox.commands.run("sleep 30", background=True, envs={"A": "1"}, cwd="/tmp"))
    (info,) = await done(sandbox.commands.list())
    assert (info.pid, info.cmd, info.args, info.envs, info.cwd) == (
        handle.pid,
        "/bin/bash",
        ["-l", "-c", "sleep 30"],
        {"A": "1"},
        "/tmp",
    )
    assert await done(sandbox.commands.kill(handle.pid))
    assert not await done(sandbox.commands.kill(handle.pid + 1000))
    error = await failure(handle.wait)
    assert isinstance(error, e2b.CommandExitException)
    assert (error.exit_code, error.error) == (-1, "signal: killed")
    assert await done(sandbox.commands.list()) == []


@case
async def a_second_client_hears_a_command(sandbox: Any) -> None:
    handle = await done(sandbox.commands.run("read line; echo got $line", background=True, stdin=True))
    other = await done(sandbox.commands.connect(handle.pid))
    await done(sandbox.commands.send_stdin(handle.pid, "it\n"))
    assert (await done(other.wait())).stdout == "got it\n"
    assert (await done(handle.wait())).stdout == "got it\n"


@case
async def a_command_outlives_its_client(sandbox: Any) -> None:
    handle = await done(sandbox.commands.run("sleep 0.5; echo late > proof", background=True))
    await done(handle.disconnect())
    again = await done(sandbox.commands.connect(handle.pid))
    assert (await done(again.wait())).exit_code == 0
    assert await done(sandbox.files.read("proof")) == "late\n"


@case
async def the_end_of_a_command_can_be_asked_for_later(sandbox: Any) -> None:
    handle = await done(sandbox.commands.run("exit 5", background=True))
    await failure(handle.wait)
    again = await done(sandbox.commands.connect(handle.pid))
    error = await failure(again.wait)
    assert isinstance(error, e2b.CommandExitException)
    assert error.exit_code == 5
    missing = await failure(lambda: sandbox.commands.connect(4321))
    assert isinstance(missing, e2b.NotFoundException)


@case
async def a_terminal_types_resizes_and_ends(sandbox: Any) -> None:
    shown: list[bytes] = []
    options: dict[str, Any] = {"on_data": shown.append} if isinstance(sandbox, e2b.AsyncSandbox) else {}
    handle: Any = await done(sandbox.pty.create(e2b.PtySize(rows=24, cols=80), envs={"PS1": "> "}, **options))
    await done(sandbox.pty.resize(handle.pid, e2b.PtySize(rows=40, cols=132)))
    await done(sandbox.pty.send_stdin(handle.pid, b"stty size; exit 3\n"))
    error = await failure(handle.wait if options else partial(handle.wait, shown.append))
    assert isinstance(error, e2b.CommandExitException)
    assert error.exit_code == 3
    assert b"40 132" in b"".join(shown)


@case
async def a_terminal_is_killed(sandbox: Any) -> None:
    options = {"on_data": lambda data: None} if isinstance(sandbox, e2b.AsyncSandbox) else {}
    handle = await done(sandbox.pty.create(e2b.PtySize(rows=24, cols=80), **options))
    assert await done(sandbox.pty.kill(handle.pid))
    assert not await done(sandbox.pty.kill(handle.pid + 1000))


@case
async def many_commands_at_a_time(sandbox: Any) -> None:
    handles = [await done(sandbox.commands.run(f"sleep 0.2; echo {i}", background=True)) for i in range(12)]
    assert [(await done(handle.wait())).stdout for handle in handles] == [f"{i}\n" for i in range(12)]


# Files.


@case
async def files_are_written_and_read(sandbox: Any) -> None:
    info = await done(sandbox.files.write("notes/a.txt", "hello é"))
    assert (info.name, info.path, info.type) == ("a.txt", "/home/user/notes/a.txt", e2b.FileType.FILE)
    assert await done(sandbox.files.read("notes/a.txt")) == "hello é"
    assert await done(sandbox.files.read("/home/user/notes/a.txt", format="bytes")) == "hello é".encode()
    assert (await done(sandbox.commands.run("stat -c '%U %a' notes notes/a.txt"))).stdout == "user 755\nuser 644\n"
    await done(sandbox.files.write("notes/a.txt", "x"))
    assert await done(sandbox.files.read("~/notes/a.txt")) == "x"


@case
async def empty_and_odd_files(sandbox: Any) -> None:
    name = "odd name; $(x) 'q' \"d\" é.bin"
    await done(sandbox.files.write("empty", b""))
    assert await done(sandbox.files.read("empty")) == ""
    data = bytes(range(256)) * 4
    await done(sandbox.files.write(name, data))
    assert await done(sandbox.files.read(name, format="bytes")) == data
    assert name in [entry.name for entry in await done(sandbox.files.list("."))]


@case
async def several_files_in_one_call(sandbox: Any) -> None:
    files = [
        {"path": "one", "data": "1"},
        {"path": "/tmp/two", "data": b"2"},
        {"path": "d/three", "data": io.BytesIO(b"3")},
    ]
    written = await done(sandbox.files.write_files(files))
    assert [info.path for info in written] == ["/home/user/one", "/tmp/two", "/home/user/d/three"]
    assert (await done(sandbox.commands.run("cat one /tmp/two d/three"))).stdout == "123"
    assert await done(sandbox.files.write_files([])) == []


@case
async def large_files_by_every_way(sandbox: Any) -> None:
    data = bytes(i * 7 % 251 for i in range(3_000_001))
    for options in ({}, {"use_octet_stream": True}, {"gzip": True}):
        await done(sandbox.files.write("large", data, **options))
        for reading in ({}, {"gzip": True}):
            assert await done(sandbox.files.read("large", format="bytes", **reading)) == data
    stream = await done(sandbox.files.read("large", format="stream"))
    parts = [part async for part in stream] if hasattr(stream, "__aiter__") else list(stream)
    assert b"".join(parts) == data


@case
async def what_files_are(sandbox: Any) -> None:
    await done(sandbox.commands.run("mkdir -p d/e; echo hi > d/f; chmod 640 d/f; ln -s f d/link; ln -s no d/broken"))
    info = await done(sandbox.files.get_info("d/f"))
    assert (info.name, info.size, info.mode, info.permissions) == ("f", 3, 0o640, "-rw-r-----")
    assert (info.owner, info.group, info.symlink_target) == ("user", "user", None)
    assert abs(info.modified_time.timestamp() - time.time()) < 60
    link = await done(sandbox.files.get_info("d/link"))
    assert (link.type, link.symlink_target) == (e2b.FileType.SYMLINK, "/home/user/d/f")
    entries = {entry.name: entry.type for entry in await done(sandbox.files.list("d"))}
    assert entries == {"e": e2b.FileType.DIR, "f": e2b.FileType.FILE, "link": e2b.FileType.SYMLINK}
    deep = await done(sandbox.files.list(".", depth=2))
    assert {"/home/user/d", "/home/user/d/e", "/home/user/d/f"} <= {entry.path for entry in deep}


@case
async def directories_are_made_moved_and_removed(sandbox: Any) -> None:
    assert await done(sandbox.files.make_dir("a/b/c"))
    assert not await done(sandbox.files.make_dir("a/b/c"))
    moved = await done(sandbox.files.rename("a/b", "new/place"))
    assert moved.path == "/home/user/new/place"
    assert await done(sandbox.files.exists("new/place/c"))
    assert not await done(sandbox.files.exists("a/b"))
    await done(sandbox.files.remove("new"))
    assert not await done(sandbox.files.exists("new"))
    await done(sandbox.files.remove("new"))  # what is not there is removed already


@case
async def what_is_wrong_with_a_path_is_said(sandbox: Any) -> None:
    await done(sandbox.files.write("file", "x"))
    for call in (
        lambda: sandbox.files.read("missing"),
        lambda: sandbox.files.list("missing"),
        lambda: sandbox.files.get_info("missing"),
        lambda: sandbox.files.rename("missing", "other"),
    ):
        assert isinstance(await failure(call), e2b.FileNotFoundException)
    for call in (
        lambda: sandbox.files.list("file"),
        lambda: sandbox.files.make_dir("file"),
        lambda: sandbox.files.read("."),
        lambda: sandbox.files.write(".", "x"),
        lambda: sandbox.files.get_info("a\0b"),
    ):
        assert isinstance(await failure(call), e2b.InvalidArgumentException)


@case
async def metadata_goes_with_a_file(sandbox: Any) -> None:
    written = await done(sandbox.files.write("m", "1", metadata={"Kind": "note"}))
    assert written.metadata == {"kind": "note"}
    assert (await done(sandbox.files.get_info("m"))).metadata == {"kind": "note"}
    assert (await done(sandbox.files.rename("m", "n"))).metadata == {"kind": "note"}
    assert (await done(sandbox.files.write("n", "2"))).metadata is None


@case
async def changes_are_watched(sandbox: Any) -> None:
    await done(sandbox.files.make_dir("w/sub"))
    heard: list[Any] = []
    if isinstance(sandbox, e2b.AsyncSandbox):
        handle: Any = await sandbox.files.watch_dir("w", on_event=heard.append, include_entry=True)
    else:
        handle = sandbox.files.watch_dir("w", include_entry=True)
    await done(sandbox.commands.run("cd w; echo 1 > a; mv a b; chmod 600 b; rm b; touch sub/deep"))

    def news() -> list[tuple[str, str]]:
        if not isinstance(sandbox, e2b.AsyncSandbox):
            heard.extend(handle.get_new_events())
        return [(event.type.value, event.name) for event in heard]

    await until(lambda: ("remove", "b") in news())
    kinds = news()
    for expected in (("create", "a"), ("write", "a"), ("rename", "a"), ("create", "b"), ("chmod", "b")):
        assert expected in kinds
    assert not [name for _, name in kinds if "deep" in name]
    await done(handle.stop())


@case
async def watches_see_below_if_told(sandbox: Any) -> None:
    await done(sandbox.files.make_dir("w/sub"))
    heard: list[Any] = []
    if isinstance(sandbox, e2b.AsyncSandbox):
        handle: Any = await sandbox.files.watch_dir("w", on_event=heard.append, recursive=True)
    else:
        handle = sandbox.files.watch_dir("w", recursive=True)
    await done(sandbox.files.write("w/sub/deep", "x"))

    def news() -> list[str]:
        if not isinstance(sandbox, e2b.AsyncSandbox):
            heard.extend(handle.get_new_events())
        return [event.name for event in heard]

    await until(lambda: "sub/deep" in news())
    await done(handle.stop())
    options = {"on_event": heard.append} if isinstance(sandbox, e2b.AsyncSandbox) else {}
    error = await failure(lambda: sandbox.files.watch_dir("missing", **options))
    assert isinstance(error, e2b.FileNotFoundException)


@case
async def signed_urls_serve_one_file(sandbox: Any) -> None:
    await done(sandbox.files.write("a b.txt", "secret"))
    assert httpx.get(sandbox.download_url("a b.txt", use_signature_expiration=60), timeout=30).text == "secret"
    up = sandbox.upload_url("up.txt")
    assert httpx.post(up, files={"file": ("whatever", b"sent")}, timeout=30).json()[0]["path"] == "/home/user/up.txt"
    assert await done(sandbox.files.read("up.txt")) == "sent"


# Sandboxes.


@case
async def a_sandbox_is_described(sandbox: Any) -> None:
    info = await done(sandbox.get_info())
    assert info.sandbox_id == sandbox.sandbox_id
    assert info.metadata["case"] == "a_sandbox_is_described"
    assert info.state == e2b.SandboxState.RUNNING
    assert 300 < (info.end_at.timestamp() - time.time()) <= 601
    assert await done(sandbox.is_running())


@case
async def the_timeout_is_changed(sandbox: Any) -> None:
    await done(sandbox.set_timeout(1000))
    assert (await done(sandbox.get_info())).end_at.timestamp() - time.time() > 900
    await done(type(sandbox).set_timeout(sandbox.sandbox_id, 50))
    assert (await done(sandbox.get_info())).end_at.timestamp() - time.time() < 60


@case
async def a_sandbox_is_found_in_the_list(sandbox: Any) -> None:
    query = e2b.SandboxQuery(metadata={"case": "a_sandbox_is_found_in_the_list"}, state=[e2b.SandboxState.RUNNING])
    pages = type(sandbox).list(query)
    assert [info.sandbox_id for info in await done(pages.next_items())] == [sandbox.sandbox_id]
    assert not pages.has_next


@case
async def a_sandbox_is_paused_and_goes_on(sandbox: Any) -> None:
    await done(sandbox.files.write("kept", "yes", metadata={"a": "b"}))
    assert await done(sandbox.pause())
    assert not await done(sandbox.pause())
    assert not await done(sandbox.is_running())
    assert (await done(sandbox.get_info())).state == e2b.SandboxState.PAUSED
    again = await done(type(sandbox).connect(sandbox.sandbox_id, timeout=200))
    assert await done(again.files.read("kept")) == "yes"
    assert (await done(again.files.get_info("kept"))).metadata == {"a": "b"}
    assert (await done(again.commands.run("echo $COLOUR; whoami"))).stdout == "blue\nuser\n"
    assert (await done(again.get_info())).end_at.timestamp() - time.time() > 120


@case
async def a_paused_sandbox_goes_on_by_itself(sandbox: Any) -> None:
    await done(sandbox.files.write("kept", "yes"))
    await done(sandbox.pause())
    assert (await done(sandbox.commands.run("cat kept"))).stdout == "yes"
    assert await done(sandbox.is_running())


@case
async def a_sandbox_begins_as_a_snapshot_was(sandbox: Any) -> None:
    await done(sandbox.files.write("state", "before"))
    taken = await done(sandbox.create_snapshot())
    await done(sandbox.files.write("state", "after"))
    other = await done(type(sandbox).create(taken.snapshot_id, timeout=300))
    try:
        assert await done(other.files.read("state")) == "before"
        assert await done(sandbox.files.read("state")) == "after"
        listed = await done(sandbox.list_snapshots(sandbox_id=sandbox.sandbox_id).next_items())
        assert [snapshot.snapshot_id for snapshot in listed] == [taken.snapshot_id]
        assert await done(type(sandbox).delete_snapshot(taken.snapshot_id))
        assert not await done(type(sandbox).delete_snapshot(taken.snapshot_id))
        assert await done(other.files.read("state")) == "before"
    finally:
        await done(other.kill())


@case
async def a_sandbox_is_forked(sandbox: Any) -> None:
    await done(sandbox.files.write("state", "shared"))
    forks = await done(sandbox.fork(count=2, timeout=300))
    assert len(forks) == 2
    for number, fork in enumerate(forks):
        assert await done(fork.files.read("state")) == "shared"
        await done(fork.files.write("state", str(number)))
    assert await done(sandbox.files.read("state")) == "shared"
    assert [await done(fork.files.read("state")) for fork in forks] == ["0", "1"]
    for fork in forks:
        assert await done(fork.kill())


@case
async def a_sandbox_is_measured(sandbox: Any) -> None:
    await done(sandbox.files.write("big", b"x" * 100_000))
    end = time.monotonic() + 60
    while (sample := (await done(sandbox.get_metrics()))[-1]).disk_used <= 100_000:  # one from before the file
        assert time.monotonic() < end
        await asyncio.sleep(0.1)
    assert sample.mem_used > 0


@case
async def what_is_gone_is_gone(sandbox: Any) -> None:
    assert await done(sandbox.kill())
    assert not await done(sandbox.kill())
    assert not await done(sandbox.is_running())
    assert isinstance(await failure(lambda: sandbox.commands.run("true")), e2b.SandboxNotRunningException)
    assert isinstance(await failure(lambda: sandbox.files.read("x")), e2b.SandboxNotRunningException)
    assert isinstance(await failure(sandbox.get_info), e2b.SandboxNotFoundException)
    assert isinstance(await failure(lambda: sandbox.set_timeout(5)), e2b.SandboxNotFoundException)
    assert isinstance(await failure(sandbox.pause), e2b.SandboxNotFoundException)
    error = await failure(lambda: type(sandbox).connect(sandbox.sandbox_id))
    assert isinstance(error, e2b.SandboxNotFoundException)


@case
async def a_command_hears_of_its_sandbox_end(sandbox: Any) -> None:
    handle = await done(sandbox.commands.run("sleep 60", background=True))
    await done(sandbox.kill())
    assert isinstance(await failure(handle.wait), e2b.SandboxNotRunningException)


@case
async def wrong_keys_and_templates_are_told(sandbox: Any) -> None:
    error = await failure(lambda: type(sandbox).create(api_key="bj_wrong", headers=from_elsewhere()))
    assert isinstance(error, e2b.AuthenticationException)
    error = await failure(lambda: type(sandbox).create("no-such-template"))
    assert isinstance(error, e2b.SandboxException)
    assert "404" in str(error)
    error = await failure(lambda: type(sandbox).create(timeout=10**9))
    assert "Timeout cannot be greater than" in str(error)


@pytest.mark.parametrize(("function", "which"), both(CASES))
def test_case(sdk: Server, function: Callable[[Any], Any], which: str) -> None:
    kind: Any = e2b.Sandbox if which == "sync" else e2b.AsyncSandbox

    async def run() -> None:
        sandbox = await done(kind.create(timeout=600, envs={"COLOUR": "blue"}, metadata={"case": function.__name__}))
        try:
            await function(sandbox)
        finally:
            await done(sandbox.kill())

    asyncio.run(run())
