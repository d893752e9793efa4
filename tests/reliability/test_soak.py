"""Many sandboxes in one owner, made, used, attacked, forked and closed in random order: at the end all is as it was.

The hostile commands are those of the escape corpus. A neighbour runs an ordinary one meanwhile, and is timed.
"""

from __future__ import annotations

import asyncio
import gc
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import AsyncExitStack
from typing import Any

import pytest

from belljar import AsyncSandbox, Limits, Sandbox, SandboxClosed
from belljar.api.process import Process
from belljar.owner.supervisor_host import shared
from tests.api.test_cancellation import comes_back, descendants
from tests.escape import cases_bombs, cases_files, cases_parse
from tests.escape.case import Case
from tests.escape.oracles import check_open_files, open_files, resident, start_time
from tests.reliability.amount import amount

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="workers are Linux's"), pytest.mark.slow]

SECONDS = float(os.environ.get("BELLJAR_SOAK_SECONDS", amount(10, 60)))
"""For each front; `make soak` takes ten minutes for each."""
LIVE = amount(12, 50)
"""Sandboxes at a time."""
ACTORS = 4
"""Tasks that use them, each its own."""
GROWTH = 64 << 20
DELAY = amount(5.0, 1.0)
"""Seconds that a neighbour's command may take longer than alone: the sample shares its processors with other tests."""
SPARES = 8
"""Processes that templates and zygotes may keep ready."""
LIMITS = Limits(memory_bytes=192 << 20, file_bytes=64 << 20, output_bytes=4 << 20, wall_seconds=60, cpu_seconds=2)
HOSTILE = [
    case
    for module in (cases_bombs, cases_files, cases_parse)
    for case in module.CASES
    if not case.slow and sum(map(len, case.files.values())) + len(case.stdin) < 1 << 20
]
ENGINES = ["python3 -c 'print(1)'", "node -e 'console.log(1)'"]
ENDLESS = ["python3 -c 'while True: pass'", "node -e 'for (;;);'", "python3 -c 'x = bytearray(1 << 40)'"]

Create = Callable[[], Awaitable[Any]]


class Awaited:
    """A synchronous object whose methods are awaited: each call is made on a thread."""

    def __init__(self, made: Any, executor: Executor) -> None:
        self._made = made
        self._executor = executor

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._made, name)
        if not callable(found):
            return Awaited(found, self._executor)

        async def call(*args: Any, **options: Any) -> Any:
            loop = asyncio.get_running_loop()
            result = await loop.run_in_executor(self._executor, lambda: found(*args, **options))
            return Awaited(result, self._executor) if isinstance(result, Sandbox | Process) else result

        return call


class Actor:
    """Uses some sandboxes of its own."""

    def __init__(self, create: Create, seed: int, *, cancels: bool) -> None:
        self._create = create
        self._choice = random.Random(seed)
        self._steps = ["exec"] * 6 + ["hostile"] * 6 + ["engine", "endless", "spawn", "abandon", "files", "files"]
        self._steps += ["create", "fork", "close", *(["cancel", "cancel"] if cancels else [])]
        self.live: list[Any] = []
        self.processes: set[tuple[int, int]] = set()
        """Pids, with the times at which they began: in a long run pids come again."""
        self.done: Counter[str] = Counter()

    async def work(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        try:
            while time.monotonic() < until:
                await self._step(self._choice.choice(self._steps))
        finally:
            while self.live:
                await self.live.pop().close()

    async def _step(self, step: str) -> None:
        self.done[step] += 1
        if len(self.live) < LIVE // ACTORS or step == "create":
            self.live.append(await self._create())
        sandbox = self._choice.choice(self.live)
        link = sandbox._link
        pids = (link._made if isinstance(link, Awaited) else link).pids()
        self.processes.update((pid, start_time(pid)) for pid in pids)
        match step:
            case "exec":
                assert (await sandbox.exec("echo a | tr a b")).stdout == "b\n"
            case "hostile":
                await self._attack(sandbox, self._choice.choice(HOSTILE))
            case "engine":
                assert (await sandbox.exec(self._choice.choice(ENGINES))).stdout == "1\n"
            case "endless":
                assert (await sandbox.exec(self._choice.choice(ENDLESS), timeout=0.5)).exit_code != 0
            case "spawn":
                process = await sandbox.spawn("cat")
                await process.stdin.write(b"x" * 10_000)
                await process.stdin.close()
                assert len(await process.stdout.read()) == 10_000
                assert await process.wait() == 0
            case "abandon":
                await (await sandbox.spawn("sleep 100")).kill()
            case "cancel":
                with pytest.raises(TimeoutError):
                    async with asyncio.timeout(self._choice.uniform(0, 0.01)):
                        await sandbox.exec("sleep 100")
            case "files":
                await sandbox.files.write("/tmp/f", bytes(self._choice.randrange(100_000)))
            case "fork":
                self.live.append(await sandbox.fork())
        if step == "close" or len(self.live) > LIVE // ACTORS:
            await self.live.pop(self._choice.randrange(len(self.live))).close()

    async def _attack(self, sandbox: Any, case: Case) -> None:
        """Whatever it does, it costs the command and not the sandbox."""
        try:
            for path, data in case.files.items():
                await sandbox.files.write(path, data)
            await sandbox.exec(case.script, stdin=case.stdin or None, timeout=self._choice.uniform(0.1, 1.0))
            assert (await sandbox.exec("echo ok")).stdout == "ok\n", case.id
        except SandboxClosed:
            assert case.dies, case.id
            self.live.remove(sandbox)
            await sandbox.close()


class Neighbour:
    """Runs an ordinary command again and again."""

    def __init__(self, sandbox: Any) -> None:
        self._sandbox = sandbox
        self.worst = 0.0

    async def work(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            began = time.monotonic()
            assert (await self._sandbox.exec("echo ok")).stdout == "ok\n"
            self.worst = max(self.worst, time.monotonic() - began)
            await asyncio.sleep(0.02)


async def soak(stack: AsyncExitStack, *, is_async: bool, seed: int, seconds: float) -> tuple[list[Actor], float]:
    """Do things for a while; return who did them, and how much longer than alone a neighbour's command took."""

    async def create(executor: Executor) -> Any:
        if is_async:
            return await AsyncSandbox(limits=LIMITS).__aenter__()
        loop = asyncio.get_running_loop()
        return Awaited(await loop.run_in_executor(executor, lambda: Sandbox(limits=LIMITS)), executor)

    own, shared_by_all = (stack.enter_context(ThreadPoolExecutor(count)) for count in (1, ACTORS))
    sandbox = await create(own)
    stack.push_async_callback(sandbox.close)
    alone, among = Neighbour(sandbox), Neighbour(sandbox)
    await alone.work(1.0)
    actors = [
        Actor(lambda: create(shared_by_all), seed * ACTORS + number, cancels=is_async) for number in range(ACTORS)
    ]
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(among.work(seconds))
        for actor in actors:
            tasks.create_task(actor.work(seconds))
    return actors, among.worst - alone.worst


def run(*, is_async: bool, seed: int, seconds: float) -> tuple[list[Actor], float]:
    async def main() -> tuple[list[Actor], float]:
        async with AsyncExitStack() as stack:
            return await soak(stack, is_async=is_async, seed=seed, seconds=seconds)

    return asyncio.run(main())


@pytest.mark.battery
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_soak(is_async: bool, record_property: Callable[[str, object], None]) -> None:
    with Sandbox() as other:
        for command in ENGINES:
            other.exec(command).check()
        run(is_async=is_async, seed=1, seconds=2.0)  # what is loaded and started once
        gc.collect()
        zygote = shared.zygote
        memory, files, threads, processes = resident(), open_files(), threading.active_count(), len(descendants())
        actors, delay = run(is_async=is_async, seed=2, seconds=SECONDS)
        gc.collect()
        ours = set[tuple[int, int]]().union(*(actor.processes for actor in actors))
        alive = comes_back(lambda: sum(began > 0 and start_time(pid) == began for pid, began in ours), 0)
        assert not alive
        check_open_files(files, more=0 if shared.zygote is zygote else 2)
        assert comes_back(threading.active_count, threads) <= threads, [each.name for each in threading.enumerate()]
        assert comes_back(lambda: len(descendants()), processes + SPARES) <= processes + SPARES
        done = sum((actor.done for actor in actors), Counter[str]())
        grown = resident() - memory
        record_property(
            f"soak, {'async' if is_async else 'sync'}, {LIVE} sandboxes",
            f"{done.total()} steps ({done['hostile']} attacks) in {SECONDS:.0f} s, {grown / (1 << 20):.1f} MB more; "
            f"a neighbour's command took at most {delay:.2f} s longer than alone",
        )
        assert grown < GROWTH, f"grew by {grown} bytes in {done.total()} steps"
        assert delay < DELAY, f"a neighbour's command took {delay:.2f} s longer than alone"
        assert other.exec("echo ok").stdout == "ok\n"
