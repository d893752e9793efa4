"""Programs that are built on the stock SDKs, unmodified: smolagents' E2BExecutor, OpenAI Agents' E2BSandboxClient."""

from __future__ import annotations

import asyncio
import io
import os
from pathlib import Path
from typing import Any

import pytest
from agents.extensions.sandbox.e2b import E2BSandboxClient, E2BSandboxClientOptions
from agents.sandbox.entries import File
from agents.sandbox.manifest import Manifest
from smolagents.monitoring import AgentLogger
from smolagents.remote_executors import E2BExecutor

from tests.server.serving import Server

pytestmark = [
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning"),
    pytest.mark.slow,  # they load half of PyPI
]


def test_smolagents(sdk: Server) -> None:
    executor = E2BExecutor([], AgentLogger())
    try:
        executor.send_variables({"x": [1, 2, 3]})
        assert executor("print(sum(x))\ntotal = sum(x)").logs.strip() == "6"
        assert executor("total + 1").output == "7"
        with pytest.raises(Exception, match="ZeroDivisionError"):
            executor("1 / 0")
    finally:
        executor.cleanup()


@pytest.mark.parametrize("kind", ["e2b", "e2b_code_interpreter"])
def test_openai_agents(sdk: Server, kind: str) -> None:
    async def run() -> None:
        client = E2BSandboxClient()
        manifest = Manifest(entries={"src/a.txt": File(content=b"from the manifest\n")})
        options: Any = E2BSandboxClientOptions(sandbox_type=kind)
        session = await client.create(manifest=manifest, options=options)
        async with session:
            said = await session.exec("cat src/a.txt; echo oops >&2; exit 3")
            assert (said.stdout, said.stderr, said.exit_code) == (b"from the manifest\n", b"oops\n", 3)
            await session.write(Path("b/new.txt"), io.BytesIO(b"new"))
            assert (await session.read(Path("b/new.txt"))).read() == b"new"
            archive = await session.persist_workspace()
            assert len(archive.read()) > 100
            assert await session.running()
        await client.delete(session)

    asyncio.run(run())
    assert os.environ["E2B_API_URL"] == sdk.url
