"""Sandboxes made, used, forked and closed in random order for a while: at the end everything is as it was."""

from __future__ import annotations

import asyncio
import gc
import random
import sys
import threading
import time
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, ExitStack

import pytest

from belljar import AsyncSandbox, Sandbox
from belljar.owner.supervisor_host import shared
from tests.escape.oracles import check_open_files, open_files, resident, wait_gone
from tests.reliability.amount import amount

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="workers are Linux's"), pytest.mark.slow]

SECONDS = amount(8.0, 120.0)
LIVE_MAX = 6
GROWTH = 24 << 20
"""Far below what one leaked sandbox in a hundred would take over a run."""


def sync_steps(choice: random.Random, seconds: float) -> list[int]:
    """Do things for a while; return the pids of the workers that there were."""
    pids: list[int] = []
    until = time.monotonic() + seconds
    with ExitStack() as stack:
        live: list[Sandbox] = []

        @stack.callback
        def close_all() -> None:
            for sandbox in live:
                sandbox.close()

        while time.monotonic() < until:
            step = choice.choice(("create", "exec", "exec", "spawn", "abandon", "files", "fork", "close"))
            if step == "create" or not live:
                live.append(Sandbox())
            sandbox = choice.choice(live)
            pids.extend(sandbox._link.pids())
            match step:
                case "exec":
                    assert sandbox.exec("echo a | tr a b").stdout == "b\n"
                case "spawn":
                    process = sandbox.spawn("cat")
                    process.stdin.write(b"x" * 10_000)
                    process.stdin.close()
                    assert len(process.stdout.read()) == 10_000
                    assert process.wait() == 0
                case "abandon":
                    sandbox.spawn("sleep 100").kill()
                case "files":
                    sandbox.files.write("/tmp/f", bytes(choice.randrange(100_000)))
                case "fork":
                    live.append(sandbox.fork())
            if step == "close" or len(live) > LIVE_MAX:
                live.pop(choice.randrange(len(live))).close()
    return pids


async def async_steps(choice: random.Random, seconds: float) -> list[int]:
    """As `sync_steps`; some calls are cancelled under way as well."""
    pids: list[int] = []
    until = time.monotonic() + seconds
    async with AsyncExitStack() as stack:
        live: list[AsyncSandbox] = []

        async def close_all() -> None:
            for sandbox in live:
                await sandbox.close()

        stack.push_async_callback(close_all)
        while time.monotonic() < until:
            step = choice.choice(("create", "exec", "exec", "spawn", "cancel", "files", "fork", "close"))
            if step == "create" or not live:
                live.append(await AsyncSandbox().__aenter__())
            sandbox = choice.choice(live)
            pids.extend(sandbox._link.pids())
            match step:
                case "exec":
                    done = await asyncio.gather(*(sandbox.exec("echo a | tr a b") for _ in range(3)))
                    assert [each.stdout for each in done] == ["b\n"] * 3
                case "spawn":
                    process = await sandbox.spawn("cat")
                    await process.stdin.write(b"x" * 10_000)
                    await process.stdin.close()
                    assert len(await process.stdout.read()) == 10_000
                    assert await process.wait() == 0
                case "cancel":
                    await cancelled(sandbox.exec("sleep 100"), choice.uniform(0, 0.01))
                case "files":
                    await sandbox.files.write("/tmp/f", bytes(choice.randrange(100_000)))
                case "fork":
                    live.append(await sandbox.fork())
            if step == "close" or len(live) > LIVE_MAX:
                await live.pop(choice.randrange(len(live))).close()
    return pids


async def cancelled(call: Awaitable[object], delay: float) -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(delay):
            await call


def run_sync(seed: int, seconds: float) -> list[int]:
    return sync_steps(random.Random(seed), seconds)


def run_async(seed: int, seconds: float) -> list[int]:
    return asyncio.run(async_steps(random.Random(seed), seconds))


@pytest.mark.parametrize("run", [run_sync, run_async])
def test_soak(run: Callable[[int, float], list[int]], record_property: Callable[[str, object], None]) -> None:
    with Sandbox() as other:
        run(1, 1.0)  # what is loaded and started once
        gc.collect()
        zygote = shared.zygote
        memory, files, threads = resident(), open_files(), threading.active_count()
        pids = run(2, SECONDS)
        gc.collect()
        assert not wait_gone(list(set(pids) - {other._link.pid}))
        check_open_files(files, more=0 if shared.zygote is zygote else 2)
        deadline = time.monotonic() + 10
        while threading.active_count() > threads and time.monotonic() < deadline:
            time.sleep(0.01)
        assert threading.active_count() <= threads, [thread.name for thread in threading.enumerate()]
        assert resident() - memory < GROWTH, f"grew by {resident() - memory} bytes in {len(pids)} steps"
        grown = (resident() - memory) / (1 << 20)
        record_property(f"soak, {run.__name__}", f"{len(pids)} steps in {SECONDS:.0f} s, {grown:.1f} MB more")
        assert other.exec("echo ok").stdout == "ok\n"
