"""The MCP server, driven by the official client: in process, over stdio, and over HTTP."""

from __future__ import annotations

import asyncio
import gc
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, MCPError, StdioServerParameters

from belljar.cli.__main__ import main
from belljar.integrations.mcp import make_server
from examples.agents.repository import BEGIN, DIFF, RIGHT, TEST, WRONG, repository
from tests.ports import free_port


@asynccontextmanager
async def crowded() -> AsyncIterator[Client]:
    """With files that a tool must not trust."""
    async with connect() as client:
        await call(client, "exec", command=SETTING)
        yield client


SETTING = """
mkfifo pipe; ln -s /dev/zero endless; echo x > f; head -c 100 /dev/urandom > binary; printf '\\xff' >> binary
head -c 3000000 /dev/zero | tr '\\0' x > long
for i in {1..2000}; do printf '%01000d\\n' 7; done > lines
"""


TIER: dict[str, Any] = {}
"""The arguments that make a sandbox of the test's tier."""


@pytest.fixture
def each_tier(tier_options: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "TIER", tier_options)


on_each_tier = pytest.mark.usefixtures("each_tier")


@asynccontextmanager
async def connect(options: dict[str, Any] | None = None, **more: Any) -> AsyncIterator[Client]:
    async with Client(make_server({**TIER, **(options or {})}, **more)) as client:  # type: ignore[arg-type]
        yield client


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content
    content = result.structured_content
    return content["result"] if content is not None and set(content) == {"result"} else content


async def refused(client: Client, tool: str, **arguments: Any) -> str:
    result = await client.call_tool(tool, arguments)
    assert result.is_error
    return str(result.content[0].text)  # type: ignore[union-attr]


@on_each_tier
async def test_commands() -> None:
    async with connect() as client:
        said = await call(client, "exec", command="echo out; echo err >&2; cat; exit 3", stdin="in", cwd="/tmp")
        assert (said["stdout"], said["stderr"], said["exit_code"]) == ("out\nin", "err\n", 3)
        assert (await call(client, "exec", command="sleep 60", timeout=0.2))["timed_out"]
        await call(client, "exec", command="cd /workspace; echo kept > f")
        assert (await call(client, "exec", command="cat f"))["stdout"] == "kept\n"


@on_each_tier
async def test_background_processes() -> None:
    async with connect() as client:
        pid = await call(client, "process_start", command="echo ready; read x; echo got $x; exit 4")
        assert (await call(client, "process_output", pid=pid, wait=30))["stdout"] == "ready\n"
        quiet = await call(client, "process_output", pid=pid, wait=0)
        assert quiet == {"stdout": "", "stderr": "", "exit_code": None}
        await call(client, "process_input", pid=pid, text="it\n")
        said, code = "", None
        while code is None:
            news = await call(client, "process_output", pid=pid, wait=30)
            said, code = said + news["stdout"], news["exit_code"]
        assert (said, code) == ("got it\n", 4)
        assert "no background process" in await refused(client, "process_output", pid=pid)
        pid = await call(client, "process_start", command="exec sleep 1000")
        await call(client, "process_kill", pid=pid)
        assert (await call(client, "process_output", pid=pid, wait=30))["exit_code"] == 143


@on_each_tier
async def test_a_process_that_floods_waits_to_be_read() -> None:
    async with connect() as client:
        pid = await call(client, "process_start", command="head -c 8M /dev/zero | tr '\\0' x")
        size, code = 0, None
        while code is None:
            news = await call(client, "process_output", pid=pid, wait=30)
            size, code = size + len(news["stdout"]), news["exit_code"]
        assert (size, code) == (8 << 20, 0)


@on_each_tier
async def test_files() -> None:
    async with connect() as client:
        await call(client, "write_file", path="d/a.txt", content="one\ntwo\nthree\n")
        page = await call(client, "read_file", path="d/a.txt", first_line=2, lines=1)
        assert page == {"content": "two", "first_line": 2, "last_line": 2, "total_lines": 3, "truncated": False}
        assert await call(client, "edit_file", path="d/a.txt", old="two", new="2") == 1
        assert "does not occur" in await refused(client, "edit_file", path="d/a.txt", old="two", new="2")
        assert "2 times" in await refused(client, "edit_file", path="d/a.txt", old="e\n", new="")
        assert [entry["name"] for entry in await call(client, "list_directory", path="d")] == ["a.txt"]
        assert await call(client, "find_files", pattern="/workspace/**/*.txt") == ["/workspace/d/a.txt"]
        assert (await call(client, "search_files", pattern="thr.e"))[0]["line"] == 3
        content = (await client.read_resource("sandbox:///workspace/d/a.txt")).contents[0]
        assert content.text == "one\n2\nthree\n"  # type: ignore[union-attr]
        await call(client, "delete_file", path="d", recursive=True)
        assert "No such file" in await refused(client, "read_file", path="d/a.txt")
        assert "Is a directory" in await refused(client, "write_file", path="/etc", content="")


@on_each_tier
async def test_several_sandboxes() -> None:
    async with connect(most=2) as client:
        await call(client, "exec", command="echo mine > f")
        other = await call(client, "sandbox_create")
        assert (await call(client, "exec", command="ls", sandbox=other))["stdout"] == ""
        assert "2 sandboxes already" in await refused(client, "sandbox_create")
        await call(client, "sandbox_close", sandbox=other)
        assert "no sandbox" in await refused(client, "exec", command="ls", sandbox=other)
        assert (await call(client, "exec", command="cat f"))["stdout"] == "mine\n"


@on_each_tier
async def test_options_reach_the_sandbox() -> None:
    async with connect(options={"env": {"CI": "1"}, "hostname": "jar"}) as client:
        assert (await call(client, "exec", command="echo $CI; hostname"))["stdout"] == "1\njar\n"


CONFIG = """
cwd = "/tmp"
[env]
CI = "1"
"""


async def test_over_stdio(tmp_path: Path) -> None:
    config = tmp_path / "belljar.toml"
    config.write_text(CONFIG)
    server = StdioServerParameters(command=sys.executable, args=["-m", "belljar.cli", "mcp", "--config", str(config)])
    async with Client(server) as client:
        assert (await call(client, "exec", command="pwd; echo $CI"))["stdout"] == "/tmp\n1\n"
        await call(client, "exec", command="echo kept > f")
        assert (await call(client, "exec", command="cat f"))["stdout"] == "kept\n"


@contextmanager
def serving(*options: str) -> Iterator[str]:
    """A server over HTTP, and its address."""
    for _ in range(5):
        port = free_port()
        command = [sys.executable, "-m", "belljar.cli", "mcp", "--http", f"127.0.0.1:{port}", *options]
        with subprocess.Popen(command) as server:
            try:
                if is_up(server, port):
                    yield f"http://127.0.0.1:{port}/mcp"
                    return
            finally:
                server.terminate()
    raise AssertionError("every free port was taken by somebody else")


def is_up(server: subprocess.Popen[bytes], port: int) -> bool:
    """Whether it came to serve: not if somebody was faster to take its port."""
    deadline = time.monotonic() + 240
    while server.poll() is None:
        assert time.monotonic() < deadline
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return server.poll() is None
    return False


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving() as address:
        yield address


async def test_over_http_each_session_has_a_sandbox_of_its_own(address: str) -> None:
    async with Client(address, mode="legacy") as one, Client(address, mode="legacy") as two:
        await asyncio.gather(call(one, "exec", command="echo 1 > f"), call(two, "exec", command="echo 2 > f"))
        assert (await call(one, "exec", command="cat f"))["stdout"] == "1\n"
        assert (await call(two, "exec", command="cat f"))["stdout"] == "2\n"


async def test_over_http_without_a_session_a_sandbox_is_named(address: str) -> None:
    async with Client(address) as client:
        assert "sandbox_create" in await refused(client, "exec", command="ls")
        name = await call(client, "sandbox_create")
        await call(client, "exec", command="echo 1 > f", sandbox=name)
        assert (await call(client, "exec", command="cat f", sandbox=name))["stdout"] == "1\n"


async def test_a_sandbox_is_branched() -> None:
    async with connect() as client:
        await call(client, "exec", command="echo 1 > f")
        branch = await call(client, "sandbox_fork")
        await call(client, "exec", command="echo 2 > f", sandbox=branch)
        assert (await call(client, "exec", command="cat f"))["stdout"] == "1\n"
        assert (await call(client, "exec", command="cat f", sandbox=branch))["stdout"] == "2\n"


async def repair(client: Client, **named: str) -> str:
    """A scripted agent; gives the diff of what it changed."""
    await call(client, "exec", command=BEGIN, **named)
    assert "FAILED" in (await call(client, "exec", command=TEST, **named))["stdout"]
    found = await call(client, "search_files", pattern="def mean", path="/work", **named)
    await call(client, "edit_file", path=found[0]["path"], old=WRONG, new=RIGHT, **named)
    assert (await call(client, "exec", command=TEST, **named))["stdout"] == "OK\n"
    return str((await call(client, "exec", command=DIFF, **named))["stdout"])


@pytest.mark.slow
@pytest.mark.parametrize("session", [True, False])
async def test_an_agent_over_http(session: bool) -> None:
    with repository() as directory, serving("--mount", f"{directory}:/work:overlay") as address:
        async with Client(address, mode="legacy" if session else "auto") as client:
            diff = await repair(client, **({} if session else {"sandbox": await call(client, "sandbox_create")}))
    assert diff.endswith("+    return sum(numbers) / len(numbers)\n")


async def test_a_session_s_sandboxes_are_its_own_and_end_with_it(address: str) -> None:
    async with Client(address, mode="legacy") as one, Client(address, mode="legacy") as two:
        mine = await call(one, "sandbox_create")
        await call(one, "write_file", path="f", content="mine", sandbox=mine)
        assert "no sandbox" in await refused(two, "exec", command="ls", sandbox=mine)
        assert "no sandbox" in await refused(two, "sandbox_close", sandbox=mine)
        text = (await one.read_resource(f"sandbox://{mine}/workspace/f")).contents[0]
        assert text.text == "mine"  # type: ignore[union-attr]
    async with Client(address) as client:
        # The session is ended by its client's last request; the sandbox right after.
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            result = await client.call_tool("exec", {"command": "true", "sandbox": mine})
            if result.is_error:
                return
            await asyncio.sleep(0.02)
        raise AssertionError("it outlived its session")


@on_each_tier
async def test_a_cancelled_call_ends_what_it_started() -> None:
    async with connect() as client:
        started = asyncio.create_task(call(client, "exec", command="touch started; sleep 1000"))
        while not await call(client, "find_files", pattern="/workspace/started"):
            await asyncio.sleep(0.02)
        started.cancel()
        with pytest.raises(asyncio.CancelledError):
            await started
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if (await call(client, "exec", command="pgrep -x sleep"))["exit_code"] == 1:
                return
            await asyncio.sleep(0.02)
        raise AssertionError("it still runs")


async def test_a_client_that_goes_leaves_nothing_behind(caplog: pytest.LogCaptureFixture) -> None:
    gc.collect()  # what other tests left is none of ours
    caplog.clear()
    server = make_server()
    async with Client(server) as client:
        await call(client, "process_start", command="while sleep 0.01; do echo x; done")
        name = await call(client, "sandbox_create")
        assert name
    gc.collect()  # a task whose error nobody looked at is reported now
    assert [record.getMessage() for record in caplog.records if record.name == "asyncio"] == []


BAD_CALLS: list[tuple[str, dict[str, Any], str]] = [
    ("exec", {"command": "echo \0"}, "NUL"),
    ("exec", {"command": "true", "cwd": "/nope"}, "/nope: No such file"),
    ("exec", {"command": "true", "timeout": -1}, "greater than 0"),
    ("exec", {}, "Field required"),
    ("exec", {"command": ["a"]}, "valid string"),
    ("nope", {}, "Unknown tool"),
    ("read_file", {"path": "a\0b"}, "Invalid argument"),
    ("read_file", {"path": "/dev/zero"}, "not a regular file"),
    ("read_file", {"path": "/workspace/pipe"}, "not a regular file"),
    ("read_file", {"path": "/workspace/endless"}, "not a regular file"),
    ("read_file", {"path": "/workspace/binary"}, "codec can't decode"),
    ("read_file", {"path": "/workspace/a" + "/a" * 5000}, "too long"),
    ("edit_file", {"path": "/workspace/pipe", "old": "a", "new": "b"}, "not a regular file"),
    ("edit_file", {"path": "/workspace/f", "old": "", "new": "b"}, "empty"),
    ("write_file", {"path": "/workspace", "content": ""}, "Is a directory"),
    ("search_files", {"pattern": "("}, "Unmatched"),
    ("process_output", {"pid": 1}, "no background process"),
    ("process_kill", {"pid": -1}, "no background process"),
    ("sandbox_close", {"sandbox": "../x"}, "no sandbox"),
    ("sandbox_fork", {"sandbox": "nope"}, "no sandbox"),
]


@on_each_tier
async def test_bad_calls_are_told() -> None:
    async with crowded() as client:
        for tool, arguments, says in BAD_CALLS:
            assert says in await refused(client, tool, **arguments)
        assert (await call(client, "exec", command="echo fine"))["stdout"] == "fine\n"


@on_each_tier
async def test_what_is_large_is_cut_or_refused() -> None:
    async with crowded() as client:
        page = await call(client, "read_file", path="long")
        assert (len(page["content"]), page["truncated"]) == (1 << 20, True)
        page = await call(client, "read_file", path="lines", lines=2000)
        assert page["last_line"] < 2000
        assert not page["truncated"]
        with pytest.raises(MCPError, match="too many"):
            await client.read_resource("sandbox:///workspace/long")
        said = await call(client, "exec", command=f"x={'x' * 5_000_000}; /bin/true $x $x")
        assert "Argument list too long" in said["stderr"]
        refused = await client.call_tool("exec", {"command": "true " + "x" * 12_000_000})
        assert refused.is_error
        assert "is too long: write it to a file" in refused.content[0].text  # type: ignore[union-attr]
        assert await call(client, "find_files", pattern="$(touch /tmp/pwned)") == []
        assert (await call(client, "exec", command="ls /tmp"))["stdout"] == ""
        for uri in ("sandbox:///nope", "sandbox:///", "sandbox:///../../etc/shadow", "file:///etc/passwd"):
            with pytest.raises(MCPError):
                await client.read_resource(uri)


async def test_interpreters_show_what_they_show() -> None:
    async with connect() as client:
        said = await client.call_tool("python", {"code": "print('hi')\n{'a': (1, 2)}"})
        assert [part.text for part in said.content] == ["hi", '{"a": [1, 2]}']  # type: ignore[union-attr]
        said = await client.call_tool("python", {"code": "object.__new__(type('Odd', (), {}))"})
        assert "Odd object" in said.content[0].text  # type: ignore[union-attr]
        said = await client.call_tool("javascript", {"code": "const n = 20n; console.log('hi'); n + 1n"})
        assert [part.text for part in said.content] == ["hi", "21"]  # type: ignore[union-attr]


async def test_a_branch_has_the_interpreters_too() -> None:
    async with connect() as client:
        await client.call_tool("python", {"code": "x = 41"})
        branch = await call(client, "sandbox_fork")
        said = await client.call_tool("python", {"code": "x += 1; x", "sandbox": branch})
        assert said.content[0].text == "42"  # type: ignore[union-attr]
        said = await client.call_tool("python", {"code": "x"})
        assert said.content[0].text == "41"  # type: ignore[union-attr]


BAD_FILES = {
    "x = ": "Invalid value",
    "nope = 1": "has no option nope",
    "config = 'a'": "has no option config",
    "cwd = 'relative'": "must be an absolute path",
    "limits = 5": "[limits] is a table",
    "[limits]\nnope = 1": "[limits] has no option nope",
    "[limits]\nwall_seconds = -1": "must be positive",
    "[limits]\nwall_seconds = 'x'": "must be a number",
    "mount = ['./nope:/work']": "no such directory",
    "env = ['A']": "expected NAME=VALUE",
    "tier = 'microvm'": "tier",
    "http = '127.0.0.1:99999'": "expected HOST:PORT",
}


@pytest.mark.parametrize("text", BAD_FILES)
def test_a_bad_file_is_told(text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "belljar.toml").write_text(text)
    with pytest.raises(SystemExit):
        main(["mcp", "--config", str(tmp_path / "belljar.toml")])
    assert BAD_FILES[text] in capsys.readouterr().err
