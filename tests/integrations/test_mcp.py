"""The MCP server, driven by the official client: in process, over stdio, and over HTTP."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from belljar.integrations.mcp import make_server


@asynccontextmanager
async def connect(**options: Any) -> AsyncIterator[Client]:
    async with Client(make_server(**options)) as client:
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


async def test_commands() -> None:
    async with connect() as client:
        said = await call(client, "exec", command="echo out; echo err >&2; cat; exit 3", stdin="in", cwd="/tmp")
        assert (said["stdout"], said["stderr"], said["exit_code"]) == ("out\nin", "err\n", 3)
        assert (await call(client, "exec", command="sleep 60", timeout=0.2))["timed_out"]
        await call(client, "exec", command="cd /workspace; echo kept > f")
        assert (await call(client, "exec", command="cat f"))["stdout"] == "kept\n"


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


async def test_a_process_that_floods_waits_to_be_read() -> None:
    async with connect() as client:
        pid = await call(client, "process_start", command="head -c 8M /dev/zero | tr '\\0' x")
        size, code = 0, None
        while code is None:
            news = await call(client, "process_output", pid=pid, wait=30)
            size, code = size + len(news["stdout"]), news["exit_code"]
        assert (size, code) == (8 << 20, 0)


async def test_files() -> None:
    async with connect() as client:
        await call(client, "write_file", path="d/a.txt", content="one\ntwo\nthree\n")
        page = await call(client, "read_file", path="d/a.txt", first_line=2, lines=1)
        assert page == {"content": "two", "first_line": 2, "last_line": 2, "total_lines": 3}
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
        assert "Permission denied" in await refused(client, "write_file", path="/etc/passwd", content="")


async def test_several_sandboxes() -> None:
    async with connect(most=2) as client:
        await call(client, "exec", command="echo mine > f")
        other = await call(client, "sandbox_create")
        assert (await call(client, "exec", command="ls", sandbox=other))["stdout"] == ""
        assert "2 sandboxes already" in await refused(client, "sandbox_create")
        await call(client, "sandbox_close", sandbox=other)
        assert "no sandbox" in await refused(client, "exec", command="ls", sandbox=other)
        assert (await call(client, "exec", command="cat f"))["stdout"] == "mine\n"


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


@pytest.fixture
def address() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with subprocess.Popen([sys.executable, "-m", "belljar.cli", "mcp", "--http", f"127.0.0.1:{port}"]) as server:
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert time.monotonic() < deadline
                assert server.poll() is None
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}/mcp"
        server.terminate()


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
