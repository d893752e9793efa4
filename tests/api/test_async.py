"""The asynchronous front."""

from __future__ import annotations

import asyncio
import gc

import pytest

from belljar import AsyncSandbox, FileError, SandboxClosed, SandboxError, async_python


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
            # Each waits for the others: they end only if all run at once.
            meet = "touch {0}; until [ $(ls | wc -l) = 20 ]; do sleep 0.05; done; echo {0}"
            results = await asyncio.gather(*(sandbox.exec(meet.format(n), timeout=120) for n in range(20)))
            assert [r.stdout for r in results] == [f"{n}\n" for n in range(20)]

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


def test_waiting_may_be_bounded() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            process = await sandbox.spawn("read line; echo got $line; exit 3")
            assert await process.wait(timeout=0.05) is None
            assert await process.stdout.next_chunk(timeout=0.05) == b""
            await process.stdin.send("it\n")
            await process.stdin.close()
            assert await process.stdout.read() == b"got it\n"
            assert (await process.wait(timeout=20), process.limit, process.truncated) == (3, None, False)
            with pytest.raises(ValueError, match="stdin is closed"):
                await process.stdin.write("more")
            terminal = await sandbox.pty("sleep 100")
            assert await terminal.read(timeout=0.05) == b""
            assert not terminal.exited
            await terminal.kill()
            assert await terminal.wait(timeout=20) == 129

    asyncio.run(main())


def test_it_is_started_once() -> None:
    async def main() -> None:
        sandbox = AsyncSandbox()
        assert repr(sandbox).endswith("(not started)>")
        await asyncio.gather(*(sandbox.start() for _ in range(3)))
        await sandbox.exec("echo kept > file")
        async with sandbox:
            assert await sandbox.files.read("file") == "kept\n"
            assert (await sandbox.info).id == (await sandbox.info()).id == sandbox.name
        assert repr(sandbox).endswith("(closed)>")
        with pytest.raises(SandboxClosed):
            await sandbox.start()

    asyncio.run(main())


def test_python_alone_may_be_asked_twice_at_once() -> None:
    async def main() -> None:
        async with async_python() as python:
            await python.close()
        python = async_python()
        values = await asyncio.gather(python.run("1"), python.run("2"))
        assert [result.value for result in values] == [1, 2]
        await python.close()

    asyncio.run(main())


def test_another_loop_is_told_and_closing_needs_none() -> None:
    sandbox = AsyncSandbox()
    asyncio.run(_start(sandbox))
    with pytest.raises(SandboxError, match="another event loop"):
        asyncio.run(_echo(sandbox))
    asyncio.run(sandbox.close())
    assert repr(sandbox).endswith("(closed)>")


async def _start(sandbox: AsyncSandbox) -> None:
    await sandbox.start()


async def _echo(sandbox: AsyncSandbox) -> None:
    await sandbox.exec("echo")


def test_one_that_nobody_holds_is_ended() -> None:
    async def main() -> None:
        sandbox = await AsyncSandbox().start()
        worker = sandbox._link.worker
        del sandbox
        gc.collect()
        await asyncio.sleep(0)
        assert worker.pidfd == -1  # killed, and let go of

    asyncio.run(main())


def test_input_arrives_whole_however_late_it_is_read() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            process = await sandbox.spawn("sleep 0.2; wc -c")
            await process.stdin.write(bytes(3 << 20))
            await process.stdin.close()
            assert await process.stdout.read() == b"%d\n" % (3 << 20)

    asyncio.run(main())
