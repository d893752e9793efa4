"""OpenAI Agents' sandbox client and session, driven as its runtime does."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from agents.sandbox.entries import File
from agents.sandbox.errors import ExecTimeoutError, WorkspaceReadNotFoundError
from agents.sandbox.manifest import Manifest

from belljar.integrations.openai_agents import BelljarSandboxClient


async def test_a_session() -> None:
    client = BelljarSandboxClient(env={"CI": "1"})
    manifest = Manifest(entries={"src/a.txt": File(content=b"from the manifest\n")})
    session = await client.create(manifest=manifest)
    async with session:
        said = await session.exec("cat src/a.txt; echo $CI; pwd; echo oops >&2; exit 3")
        assert (said.stdout, said.stderr, said.exit_code) == (b"from the manifest\n1\n/workspace\n", b"oops\n", 3)
        await session.write(Path("b/new.txt"), io.BytesIO(b"new"))
        assert (await session.read(Path("b/new.txt"))).read() == b"new"
        assert sorted(Path(entry.path).name for entry in await session.ls(".")) == ["b", "src"]
        with pytest.raises(WorkspaceReadNotFoundError):
            await session.read(Path("nope"))
        with pytest.raises(ExecTimeoutError):
            await session.exec("sleep 60", timeout=0.2)
        assert await session.running()
    await client.delete(session)


async def test_a_workspace_goes_from_one_session_to_another() -> None:
    client = BelljarSandboxClient()
    one, two = await client.create(), await client.create()
    async with one, two:
        await one.exec("mkdir d; echo kept > d/f; ln -s d/f l; chmod 700 d/f")
        await two.hydrate_workspace(await one.persist_workspace())
        assert (await two.exec("cat l; stat -c %a d/f")).stdout == b"kept\n700\n"
    await client.delete(one)
    await client.delete(two)
