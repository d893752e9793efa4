"""Commands a second in one sandbox: 50 at a time against one at a time, by threads and by tasks.

Each pair is measured in turn, several times; the ratio is of the medians. The target is 1.5 at most.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from belljar import AsyncSandbox, Sandbox

COMMANDS = 500
AT_A_TIME = 50
ROUNDS = 5
COMMAND = "echo a"


def sync_rate(sandbox: Sandbox, at_a_time: int) -> float:
    """Commands a second, by threads."""
    with ThreadPoolExecutor(at_a_time) as pool:
        began = time.perf_counter()
        done = list(pool.map(lambda _: sandbox.exec(COMMAND).stdout, range(COMMANDS)))
        seconds = time.perf_counter() - began
    assert done == ["a\n"] * COMMANDS
    return COMMANDS / seconds


async def async_rate(sandbox: AsyncSandbox, at_a_time: int) -> float:
    """Commands a second, by tasks."""

    async def work() -> None:
        for _ in range(COMMANDS // at_a_time):
            assert (await sandbox.exec(COMMAND)).stdout == "a\n"

    began = time.perf_counter()
    await asyncio.gather(*(work() for _ in range(at_a_time)))
    return COMMANDS / (time.perf_counter() - began)


def report(name: str, rate: Callable[[int], float]) -> None:
    rate(AT_A_TIME)
    rates = [(rate(1), rate(AT_A_TIME)) for _ in range(ROUNDS)]
    one, many = (statistics.median(column) for column in zip(*rates, strict=True))
    print(f"{name}: {one:.0f}/s one at a time, {many:.0f}/s {AT_A_TIME} at a time: {one / many:.2f} times slower")


def main() -> None:
    with Sandbox() as sandbox:
        report("sync", lambda at_a_time: sync_rate(sandbox, at_a_time))
    with asyncio.Runner() as runner:
        box = runner.run(AsyncSandbox().__aenter__())
        report("async", lambda at_a_time: runner.run(async_rate(box, at_a_time)))
        runner.run(box.close())


if __name__ == "__main__":
    main()
