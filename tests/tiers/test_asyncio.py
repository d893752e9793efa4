"""What only asyncio has: cancellation, gathering, bounded waits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from belljar import AsyncSandbox, SandboxClosed, SandboxError

AMake = Callable[..., AsyncSandbox]


def run(make: AMake, body: Callable[[AsyncSandbox], Awaitable[None]], **options: Any) -> None:
    async def main() -> None:
        async with make(**options) as sandbox:
            await body(sandbox)

    asyncio.run(main())


CALLS: dict[str, Callable[[AsyncSandbox], Awaitable[Any]]] = {
    "exec": lambda sb: sb.exec("sleep 60"),
    "exec that computes": lambda sb: sb.exec("while :; do :; done"),
    "exec that talks": lambda sb: sb.exec("while :; do echo talking; sleep 0.005; done"),
    "exec with long input": lambda sb: sb.exec("sleep 60", stdin=b"x" * 20_000_000),
    "python": lambda sb: sb.python.run("import time; time.sleep(60)"),
    "js": lambda sb: sb.js.run("await new Promise(() => {setTimeout(() => {}, 60000)})"),
    "a port": lambda sb: sb.port(81).wait(60),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_call_is_cancelled(amake: AMake, call: Callable[[AsyncSandbox], Awaitable[Any]]) -> None:
    async def body(sb: AsyncSandbox) -> None:
        await sb.exec("true")
        task = asyncio.ensure_future(call(sb))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await sb.exec("echo usable")).stdout == "usable\n"
        ends = time.monotonic() + 60
        while (await sb.stats())["processes"] and time.monotonic() < ends:
            await asyncio.sleep(0.05)
        assert (await sb.stats())["processes"] == 0

    run(amake, body)


def test_cancelling_ends_the_whole_tree(amake: AMake) -> None:
    async def body(sb: AsyncSandbox) -> None:
        beat = "while :; do echo >> {}; sleep 0.05; done"
        script = f"({beat.format('one')}) & (trap '' TERM; {beat.format('two')}) & wait"
        task = asyncio.ensure_future(sb.exec(script))
        await sb.exec("until [ -s one ] && [ -s two ]; do sleep 0.05; done", timeout=60)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        ends, size = time.monotonic() + 60, ""
        while size != (now := (await sb.exec("cat one two | wc -c")).stdout):
            assert time.monotonic() < ends, "one of them goes on"
            size = now
            await asyncio.sleep(1)

    run(amake, body)


def test_a_timeout_of_asyncio(amake: AMake) -> None:
    async def body(sb: AsyncSandbox) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await sb.exec("sleep 60")
        assert (await sb.exec("echo usable")).stdout == "usable\n"

    run(amake, body)


def test_waiting_for_a_process_is_cancelled(amake: AMake) -> None:
    """The process goes on: only the wait ends."""

    async def body(sb: AsyncSandbox) -> None:
        process = await sb.spawn("read x; exit 3")
        for wait in (process.wait(), process.stdout.read(), process.result()):
            task = asyncio.ensure_future(wait)
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        assert not process.exited
        await process.stdin.write("\n")
        assert await process.wait() == 3

    run(amake, body)


def test_gather(amake: AMake) -> None:
    async def body(sb: AsyncSandbox) -> None:
        results = await asyncio.gather(*(sb.exec(f"sleep 0.0{n}; echo {n}") for n in range(10)))
        assert [result.stdout for result in results] == [f"{n}\n" for n in range(10)]

    run(amake, body)


def test_many_sandboxes(amake: AMake) -> None:
    async def one(number: int) -> str:
        async with amake() as sb:
            return (await sb.exec(f"echo {number}")).stdout

    async def main() -> None:
        assert await asyncio.gather(*(one(n) for n in range(10))) == [f"{n}\n" for n in range(10)]

    asyncio.run(main())


def test_listeners_may_be_async_and_use_the_sandbox(amake: AMake) -> None:
    async def body(sb: AsyncSandbox) -> None:
        heard: list[str] = []

        async def hear(data: bytes) -> None:
            heard.append((await sb.exec(["cat"], stdin=data.upper())).stdout)

        await sb.exec("echo one; sleep 0.2; echo two", on_stdout=hear)
        assert "".join(heard) == "ONE\nTWO\n"

    run(amake, body)


def test_the_loop_goes_on_during_a_call(amake: AMake) -> None:
    async def body(sb: AsyncSandbox) -> None:
        task = asyncio.ensure_future(sb.exec("until [ -e go ]; do sleep 0.05; done", timeout=60))
        for _ in range(20):
            await asyncio.sleep(0.01)
        assert not task.done()
        await sb.files.write("go", "")
        assert (await task).ok

    run(amake, body)


def test_not_started(amake: AMake) -> None:
    async def main() -> None:
        with pytest.raises(SandboxClosed, match="not started"):
            await amake().exec("true")

    asyncio.run(main())


def test_starting_is_cancelled(amake: AMake) -> None:
    async def main() -> None:
        for delay in (0.0, 0.001, 0.005, 0.02):
            task = asyncio.ensure_future(amake().start())
            await asyncio.sleep(delay)
            task.cancel()
            for made in await asyncio.gather(task, return_exceptions=True):
                if isinstance(made, AsyncSandbox):
                    await made.close()
                else:
                    assert isinstance(made, asyncio.CancelledError)

    asyncio.run(main())


def test_another_loop(amake: AMake) -> None:
    async def start() -> AsyncSandbox:
        return await amake().start()

    sandbox = asyncio.run(start())

    async def use() -> None:
        await sandbox.exec("true")

    with pytest.raises(SandboxError, match="another event loop"):
        asyncio.run(use())

    async def close() -> None:
        await sandbox.close()

    asyncio.run(close())


def test_streams_are_iterated(amake: AMake) -> None:
    async def body(sb: AsyncSandbox) -> None:
        process = await sb.spawn(r"printf 'one\ntwo\n'", text=True)
        assert [line async for line in process.stdout] == ["one\n", "two\n"]
        assert await process.wait() == 0

    run(amake, body)


def test_tools_run_on_the_loop(amake: AMake) -> None:
    loops: list[asyncio.AbstractEventLoop] = []

    async def note() -> str:
        loops.append(asyncio.get_running_loop())
        return "noted"

    async def body(sb: AsyncSandbox) -> None:
        assert (await sb.exec("note")).stdout == "noted\n"
        assert loops == [asyncio.get_running_loop()]

    run(amake, body, tools={"note": note})


def test_closing_while_calls_are_under_way(amake: AMake) -> None:
    async def body(sb: AsyncSandbox) -> None:
        tasks = [asyncio.ensure_future(sb.exec("sleep 60")) for _ in range(3)]
        await asyncio.sleep(0.2)
        await sb.close()
        results = await asyncio.gather(*tasks, return_exceptions=True)
        assert [type(result) for result in results] == [SandboxClosed] * 3

    run(amake, body)
