"""The asynchronous front."""

from __future__ import annotations

import asyncio

import pytest

from belljar import AsyncSandbox, FileError, SandboxClosed


def test_everything_awaited() -> None:
    async def double(number: int) -> int:
        await asyncio.sleep(0)
        return number * 2

    async def main() -> None:
        async with AsyncSandbox(files={"a": "1"}, tools={"double": double}) as sandbox:
            assert (await sandbox.exec("cat a; double 21")).stdout == "142\n"
            await sandbox.files.write("d/x", "y")
            assert await sandbox.files.read("d/x") == "y"
            with pytest.raises(FileError):
                await sandbox.files.read("nope")
            process = await sandbox.spawn(["cat"])
            await process.stdin.write("in")
            await process.stdin.close()
            assert await process.stdout.read() == b"in"
            assert await process.wait() == 0
            assert "seccomp" in (await sandbox.info()).isolation

    asyncio.run(main())


def test_execs_run_side_by_side() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            results = await asyncio.gather(*(sandbox.exec(f"sleep 0.2; echo {n}") for n in range(20)))
            assert [r.stdout for r in results] == [f"{n}\n" for n in range(20)]
            assert max(r.duration_ms for r in results) < 3000

    asyncio.run(main())


def test_cancelling_kills_only_that_command() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            task = asyncio.create_task(sandbox.exec("sleep 100"))
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await sandbox.exec("echo ok")).stdout == "ok\n"
            assert (await sandbox.stats())["processes"] == 0

    asyncio.run(main())


def test_many_sandboxes() -> None:
    async def one(number: int) -> str:
        async with AsyncSandbox() as sandbox:
            return (await sandbox.exec(f"echo {number}")).stdout

    async def main() -> None:
        assert await asyncio.gather(*(one(n) for n in range(30))) == [f"{n}\n" for n in range(30)]

    asyncio.run(main())


def test_not_started() -> None:
    async def main() -> None:
        with pytest.raises(SandboxClosed, match="not started"):
            await AsyncSandbox().exec("true")

    asyncio.run(main())
