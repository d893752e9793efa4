"""Each framework with a sandbox on a server, by one argument. Their own suites run there too (`make tiers`)."""

from __future__ import annotations

from pathlib import Path

import pytest
from agents.sandbox.entries import File
from agents.sandbox.manifest import Manifest
from mcp import Client

from belljar import RemoteSandbox, Store
from belljar.integrations.commands import CommandSandbox
from belljar.integrations.deepagents import BelljarSandbox
from belljar.integrations.deepagents_state import SnapshotMiddleware
from belljar.integrations.inspect_ai import BelljarConfig, BelljarSandboxEnvironment
from belljar.integrations.mcp import make_server
from belljar.integrations.openai_agents import BelljarSandboxClient
from belljar.integrations.pydantic_ai import BelljarWorkspace
from belljar.integrations.smolagents import BelljarExecutor
from tests.integrations.test_langchain import PROGRAMS, talk


@pytest.mark.parametrize("language", ["js", "python"])
def test_langchain(server_url: str, language: str) -> None:
    with RemoteSandbox(server_url) as sandbox:
        (shown,) = talk(language, PROGRAMS[language][1], sandbox=sandbox)
        assert "apple" in shown
        assert "plum" in shown
        assert "pear" not in shown


def test_deep_agents(server_url: str) -> None:
    with RemoteSandbox(server_url, env={"WHERE": "there"}) as sandbox:
        backend = BelljarSandbox(sandbox=sandbox)
        assert backend.execute("echo $WHERE").output == "there\n"
        assert backend.upload_files([("/workspace/a", b"1")])[0].error is None
        assert backend.download_files(["/workspace/a"])[0].content == b"1"


def test_deep_agents_files_of_conversations(server_url: str) -> None:
    middleware = SnapshotMiddleware(Store.memory(), url=server_url)
    try:
        sandbox = middleware._use()
        assert isinstance(sandbox, RemoteSandbox)
        sandbox.files.write("note", "kept")
        kept = middleware.before_model({}, None)
        assert kept
    finally:
        middleware.close()


def test_smolagents(server_url: str) -> None:
    with RemoteSandbox(server_url) as sandbox:
        executor = BelljarExecutor(sandbox=sandbox)
        executor.send_tools({"double": lambda number: number * 2, "final_answer": None})
        assert executor("final_answer(double(21))").output == 42


async def test_commands(server_url: str) -> None:
    sandbox = await CommandSandbox.create(url=server_url, env={"WHERE": "there"})
    assert (await sandbox.execute_command("echo $WHERE")).stdout == "there\n"
    await sandbox.dispose()


async def test_openai_agents(server_url: str) -> None:
    client = BelljarSandboxClient(url=server_url, env={"WHERE": "there"})
    session = await client.create(manifest=Manifest(entries={"a.txt": File(content=b"from the manifest\n")}))
    async with session:
        assert (await session.exec("cat a.txt; echo $WHERE")).stdout == b"from the manifest\nthere\n"
        assert (await session.read(Path("a.txt"))).read() == b"from the manifest\n"
    await client.delete(session)


async def test_pydantic_ai(server_url: str) -> None:
    workspace = BelljarWorkspace(url=server_url, env={"WHERE": "there"})
    sandbox = await workspace._sandbox()
    assert (await sandbox.exec("echo $WHERE")).stdout == "there\n"
    await workspace.destroy()


async def test_inspect(server_url: str) -> None:
    config = BelljarConfig(url=server_url, env={"WHERE": "there"})
    made = await BelljarSandboxEnvironment.sample_init("t", config, {})
    environment = made["default"]
    assert (await environment.exec(["sh", "-c", "echo $WHERE"])).stdout == "there\n"
    await BelljarSandboxEnvironment.sample_cleanup("t", config, made, False)


async def test_mcp(server_url: str) -> None:
    async with Client(make_server({"url": server_url, "env": {"WHERE": "there"}})) as client:
        result = await client.call_tool("exec", {"command": "echo $WHERE"})
        assert result.structured_content is not None
        assert "there" in str(result.structured_content)
