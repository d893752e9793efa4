"""What is cancelled leaves nothing behind: no process, no descriptor, no thread."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from belljar import AsyncSandbox, Sandbox, SandboxClosed, async_js, js
from belljar.api.await_host import CALLS_AT_ONCE
from belljar.owner.branch_host import Branching
from belljar.owner.handle_host import WorkerHandle
from belljar.owner.supervisor_host import shared


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


def descendants() -> set[int]:
    """Every process that comes from this one."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if fields[0] != "Z":
                    parents[int(entry.name)] = int(fields[1])
    found, grown = {os.getpid()}, True
    while grown:
        more = {pid for pid, parent in parents.items() if parent in found} - found
        found |= more
        grown = bool(more)
    return found


def comes_back(measure: Callable[[], int], most: int) -> int:
    """The figure once it is no more than that; else what it still is after a while."""
    deadline = time.monotonic() + 60
    while (figure := measure()) > most and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.1)
    return figure


def stacks() -> str:
    return "\n".join("".join(traceback.format_stack(frame)) for frame in sys._current_frames().values())


async def create() -> None:
    async with AsyncSandbox() as sandbox:
        await sandbox.exec("echo x")


async def run_alone() -> None:
    async with async_js() as alone:
        await alone.run("let x = 1; x + 1")


async def in_shared(sandbox: AsyncSandbox, seed: random.Random) -> None:
    acts: list[Callable[[], Awaitable[object]]] = [
        lambda: sandbox.exec("echo x; sleep 0.01"),
        lambda: sandbox.exec("cat", stdin=bytes(1 << 20)),
        lambda: sandbox.files.write("f", bytes(100_000)),
        lambda: sandbox.js.run("let y = 1"),
        lambda: sandbox.python.run("x = 1"),
        lambda: spawn(sandbox),
        lambda: branch(sandbox),
        lambda: prefix(sandbox),
    ]
    await seed.choice(acts)()


async def spawn(sandbox: AsyncSandbox) -> None:
    process = await sandbox.spawn("sleep 0.05")
    await process.wait()


async def branch(sandbox: AsyncSandbox) -> None:
    other = await sandbox.fork()
    try:
        await other.exec("true")
    finally:
        await other.close()


async def prefix(sandbox: AsyncSandbox) -> None:
    async with await sandbox.js.precompile("var p = 1") as made:
        await made.run("export default p")


async def cancelled(work: Callable[[], Awaitable[object]], seconds: float) -> None:
    task = asyncio.ensure_future(work())
    await asyncio.sleep(seconds)
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError, SandboxClosed):
        await task


def cancel_many(count: int) -> None:
    """Cancel so many calls at random moments: descriptors, processes and threads are as before."""
    seed = random.Random(7)

    async def warm_up() -> None:
        await create()
        await run_alone()
        async with AsyncSandbox() as sandbox:
            await sandbox.js.run("1")
            await sandbox.python.run("1")
            await branch(sandbox)

    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            for _ in range(count // 10):
                works: list[Callable[[], Awaitable[object]]] = [create, create, run_alone]
                works += [lambda: in_shared(sandbox, seed)] * 7
                await asyncio.gather(*(cancelled(work, seed.random() ** 3 * 0.08) for work in works))
            assert (await sandbox.exec("echo on")).stdout == "on\n"
            assert (await sandbox.js.run("40 + 2")).value == 42

    asyncio.run(warm_up())
    gc.collect()
    time.sleep(0.5)
    before = descriptors(), len(descendants()), threading.active_count()
    asyncio.run(main())
    # A spare process of each kind may have been made meanwhile.
    assert comes_back(descriptors, before[0] + 6) <= before[0] + 6
    assert comes_back(lambda: len(descendants()), before[1] + 4) <= before[1] + 4
    assert comes_back(threading.active_count, before[2]) <= before[2], stacks()


def test_cancelled_forks_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that has no time for them is not sent ever more."""
    asked: list[int] = []
    permit = Branching.permit

    def counted(making: Branching) -> int:
        asked.append(1)
        return permit(making)

    monkeypatch.setattr(Branching, "permit", counted)

    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            await sandbox.exec("true")
            worker = sandbox._link.worker.pid
            os.kill(worker, signal.SIGSTOP)
            for _ in range(20):
                await cancelled(sandbox.fork, 0.001)
            assert len(asked) == 1
            os.kill(worker, signal.SIGCONT)
            assert (await sandbox.exec("echo on")).stdout == "on\n"
            await branch(sandbox)

    asyncio.run(main())


def test_cancelled_creates_do_not_pile_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """While no sandbox can be made, those that are given up cost no thread each, and are not made later."""
    taken: list[int] = []
    go_on = threading.Event()
    take = shared.take

    def slow(memory_bytes: int) -> WorkerHandle:
        taken.append(memory_bytes)
        go_on.wait()
        return take(memory_bytes)

    monkeypatch.setattr(shared, "take", slow)

    async def main() -> None:
        try:
            for _ in range(20):
                await asyncio.gather(*(cancelled(create, 0.001) for _ in range(20)))
            assert threading.active_count() <= before + CALLS_AT_ONCE
        finally:
            go_on.set()  # every other sandbox of this process would wait for these threads
        await create()

    before = threading.active_count()
    asyncio.run(main())
    assert len(taken) <= CALLS_AT_ONCE + 1
    assert comes_back(threading.active_count, before) <= before


def test_a_sandbox_that_is_made_too_late_is_ended() -> None:
    async def main() -> None:
        for _ in range(20):
            task = asyncio.ensure_future(create())
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(create())
    before = descriptors(), len(descendants())
    asyncio.run(main())
    assert comes_back(descriptors, before[0]) <= before[0]
    assert comes_back(lambda: len(descendants()), before[1] + 1) <= before[1] + 1


def test_a_cancelled_spawn_ends_its_process() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            for _ in range(50):
                task = asyncio.ensure_future(sandbox.spawn("sleep 100"))
                await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            deadline = time.monotonic() + 60
            while (await sandbox.stats())["processes"] and time.monotonic() < deadline:
                await asyncio.sleep(0.05)
            assert (await sandbox.stats())["processes"] == 0

    asyncio.run(main())


def test_a_timeout_is_never_lost() -> None:
    """A wait that is over at the moment at which it is cancelled is cancelled."""

    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            for number in range(200):
                task = asyncio.ensure_future(forever(sandbox))
                await asyncio.sleep(0.0001 * (number % 30))
                task.cancel()
                done, _ = await asyncio.wait([task], timeout=60)
                assert done, "a cancellation was lost"
                assert task.cancelled()

    async def forever(sandbox: AsyncSandbox) -> None:
        while True:
            await sandbox.exec("true")

    asyncio.run(main())


def test_close_during_a_run_raises_as_pythons_does() -> None:
    said: dict[str, BaseException] = {}
    begun = threading.Semaphore(0)

    def run(name: str, act: Callable[[], object]) -> None:
        try:
            act()
        except SandboxClosed as error:
            said[name] = error

    sandbox, alone = Sandbox(), js()
    given = {"begun": begun.release}
    prefix = alone.precompile("1", globals=given)
    forever = "await begun(); await new Promise(done => setTimeout(done, 600000))"
    acts: dict[str, Callable[[], object]] = {
        "python": lambda: sandbox.python.run("import time; begun(); time.sleep(600)", globals=given),
        "js": lambda: sandbox.js.run(forever, globals=given),
        "alone": lambda: alone.run(forever, globals=given),
        "prefix": lambda: prefix.run(forever),
    }
    threads = [threading.Thread(target=run, args=item) for item in acts.items()]
    for thread in threads:
        thread.start()
    for _ in threads:
        assert begun.acquire(timeout=120)
    sandbox.close()
    alone.close()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert said.keys() == acts.keys()
    with pytest.raises(SandboxClosed):
        alone.run("1")


def test_close_during_a_run_awaited() -> None:
    async def main() -> None:
        sandbox = AsyncSandbox()
        await sandbox.start()
        begun = asyncio.Event()

        async def begin() -> None:
            begun.set()

        forever = "await begin(); await new Promise(done => setTimeout(done, 600000))"
        run = asyncio.ensure_future(sandbox.js.run(forever, globals={"begin": begin}))
        await asyncio.wait_for(begun.wait(), 120)
        await sandbox.close()
        with pytest.raises(SandboxClosed):
            await run

    asyncio.run(main())


def test_many_slow_tools_do_not_delay_another_sandbox() -> None:
    go_on = threading.Event()

    def slow() -> str:
        go_on.wait(120)
        return "done"

    async def main() -> None:
        async with AsyncSandbox(tools={"slow": slow}) as busy, AsyncSandbox() as other:
            task = asyncio.ensure_future(busy.exec("for i in $(seq 60); do slow & done; wait"))
            await asyncio.sleep(0.3)
            try:
                async with AsyncSandbox():
                    assert (await other.exec("echo x")).stdout == "x\n"
                assert not task.done()
            finally:
                go_on.set()
            assert (await task).stdout == "done\n" * 60

    asyncio.run(main())
