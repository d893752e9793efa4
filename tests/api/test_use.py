"""`belljar.use`: a sandbox for the time of a function."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

import belljar
from belljar import AsyncSandbox, Limits, Sandbox, SandboxClosed


def test_a_function_gets_a_sandbox_which_is_closed_then() -> None:
    kept: list[Sandbox] = []

    def work(sandbox: Sandbox) -> str:
        kept.append(sandbox)
        return sandbox.exec("cat in; pwd").stdout

    assert belljar.use(work, files={"/tmp/in": "hi "}, cwd="/tmp") == "hi /tmp\n"
    with pytest.raises(SandboxClosed):
        kept[0].exec("true")


def test_it_is_closed_when_the_function_raises() -> None:
    kept: list[Sandbox] = []

    def work(sandbox: Sandbox) -> None:
        kept.append(sandbox)
        raise LookupError

    with pytest.raises(LookupError):
        belljar.use(work)
    with pytest.raises(SandboxClosed):
        kept[0].exec("true")


def test_an_async_function_is_awaited() -> None:
    async def work(times: int, sandbox: AsyncSandbox) -> str:
        return (await sandbox.exec("echo hi")).stdout * times

    class Work:
        async def __call__(self, sandbox: AsyncSandbox) -> str:
            return await work(2, sandbox)

    async def main() -> None:
        assert await belljar.use(partial(work, 1), limits=Limits(wall_seconds=20)) == "hi\n"
        assert await belljar.use(Work()) == "hi\nhi\n"

    asyncio.run(main())


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(TypeError, match="function"):
        belljar.use("echo hi")  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="nope"):
        belljar.use(lambda sandbox: None, nope=1)  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="async def"):
        _ = belljar.use(lambda sandbox: asyncio.sleep(0))
