"""Many runs, one after another and side by side, each with garbage to collect: none fails, nothing is left behind."""

from __future__ import annotations

import gc
import os
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

import belljar
from belljar import RunLimits
from belljar.api.prefix import Prefix
from tests.reliability.amount import amount

CODE = """
const seed = (await lookup({n})).key;
let kept = [];
for (let i = 0; i < 20000; i++) {{ kept.push({{ i, text: 'k' + i }}); if (i % 5000 === 0) kept = kept.slice(-50) }}
export default [seed, kept.length];
"""
LIMITS = RunLimits(cpu_ms=30_000, wall_ms=120_000)


def children(pid: int) -> int:
    """Processes below a process."""
    count = 0
    with suppress(FileNotFoundError, ProcessLookupError):  # it ends just now
        for task in Path(f"/proc/{pid}/task").iterdir():
            for child in (task / "children").read_text().split():
                count += 1 + children(int(child))
    return count


def run(prefix: Prefix, number: int) -> bool:
    result = prefix.run(CODE.format(n=number), limits=LIMITS, globals={"lookup": lambda key: {"key": key}})
    assert result.ok, result.error
    return bool(result.value[0] == number)


def settled(measure: object, wanted: int) -> bool:
    """Whether a count comes down to what it should be: processes take a moment to go."""
    assert callable(measure)
    deadline = time.monotonic() + 20
    while measure() > wanted and time.monotonic() < deadline:
        time.sleep(0.05)
    return bool(measure() <= wanted)


@pytest.mark.battery
@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "count", "ways"),
    [("v8", amount(500, 2000), 1), ("v8", amount(200, 500), 50), ("quickjs", 100, 1), ("quickjs", 100, 20)],
    indirect=["engine"],
    ids=["consecutive", "parallel", "quickjs-consecutive", "quickjs-parallel"],
)
def test_many_runs(engine: str, count: int, ways: int) -> None:
    threads = threading.active_count()
    with belljar.js() as js, js.precompile("globalThis.base = 1", globals={"lookup": lambda key: key}) as prefix:
        template = prefix._core._process._process.pid  # type: ignore[attr-defined]

        def descriptors() -> int:
            return len(os.listdir("/proc/self/fd"))

        def memory() -> int:
            gc.collect()
            return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

        with ThreadPoolExecutor(ways) as pool:
            assert all(pool.map(lambda n: run(prefix, n), range(20)))
            gc.collect()
            fds, processes, resident = descriptors(), children(template), memory()
            own = int(Path(f"/proc/{template}/statm").read_text().split()[1])
            assert all(pool.map(lambda n: run(prefix, n), range(count)))
        assert settled(descriptors, fds + 4)
        assert settled(lambda: children(template), processes + 1)
        assert memory() - resident < 32 << 20
        assert int(Path(f"/proc/{template}/statm").read_text().split()[1]) - own < 512
        assert threading.active_count() < threads + 20


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["v8"], indirect=True)
def test_many_prefixes_at_once(engine: str) -> None:
    """Each keeps a run ready, whose descriptors are under way: the kernel counts those of all processes together."""
    with ExitStack() as opened:
        interpreters = [opened.enter_context(belljar.js()) for _ in range(24)]
        prefixes = [made.precompile(f"globalThis.n = {number}") for number, made in enumerate(interpreters)]
        assert [prefix.run("export default n").value for prefix in prefixes] == list(range(24))
