"""How fast JavaScript runs start, beside isolated-vm with a snapshot and `node -e`, turn by turn in the same run.

Usage: python benchmarks/js.py [--json] [--quick] [--npm DIRECTORY] [--fallback]

QuickJS, which is there for machines without V8, is measured after that, in a process of its own (--fallback: only it).

The prefix is a bundle of lodash, ajv and zod; a run is a module that awaits one host function and exports an object.
The other side's packages are installed from npm into DIRECTORY (by default in the cache), never into the repository.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import belljar
from belljar import RunLimits
from belljar.api.prefix import Prefix
from belljar.engines.owner.js_build_host import node
from belljar.engines.owner.template_host import EngineProcess

PACKAGES = ("lodash@4", "ajv@8", "zod@3", "esbuild@0.28", "isolated-vm@6")
ENTRY = (
    "import _ from 'lodash'; import Ajv from 'ajv'; import * as z from 'zod'; Object.assign(globalThis, { _, Ajv, z })"
)
RUN = "const u = await lookup(1); export default { name: u.name, s: _.sum([1, 2]) }"
NODE_RUN = "const lookup = async (k) => ({name: 'Ada', k}); lookup(1).then((u) => console.log(u.name))"
LOOPS = {
    "fib(30)": "function fib(n) { return n < 2 ? n : fib(n - 1) + fib(n - 2) } for (let i = 0; i < 4; i++) fib(30)",
    "integers": "let s = 0; for (let i = 0; i < 1e8; i++) s = (s + i) | 0",
    "objects": "let a = []; for (let i = 0; i < 2e6; i++) { a.push({ i, s: 'k' + i % 9 }); if (i % 1e4 == 0) a = [] }",
    "maps": "const m = new Map(); for (let i = 0; i < 5e5; i++) { const k = 'k' + i % 999; m.set(k, m.get(k) ?? i) }",
    "json": "const d = JSON.stringify(Array(2e4).fill({ a: 1, b: ['x'] })); for (let i = 0; i < 10; i++) JSON.parse(d)",
}
WALL = RunLimits(cpu_ms=60_000, wall_ms=60_000, memory_mb=1024)


def install(directory: Path) -> Path:
    """The npm packages and the bundle made of them; gives the bundle."""
    bundle = directory / "prefix.js"
    if not bundle.exists():
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "package.json").write_text('{"private": true}')
        npm = node().parent.parent / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
        environment = {**os.environ, "PATH": f"{node().parent}:{os.environ['PATH']}"}
        command = [node(), npm, "install", "--no-audit", "--no-fund", *PACKAGES]
        subprocess.run(command, cwd=directory, env=environment, check=True, stdout=subprocess.DEVNULL)
        (directory / "entry.mjs").write_text(ENTRY)
        (esbuild,) = (directory / "node_modules" / "@esbuild").glob("*/bin/esbuild")
        arguments = ["entry.mjs", "--bundle", "--format=iife", "--log-level=error", f"--outfile={bundle}"]
        subprocess.run([esbuild, *arguments], cwd=directory, check=True)
    return bundle


class IsolatedVm:
    """isolated-vm in a node of its own, one run at a time."""

    def __init__(self, directory: Path) -> None:
        script = Path(__file__).with_name("js_isolated_vm.cjs")
        module = directory / "node_modules" / "isolated-vm"
        command = [node(), "--no-node-snapshot", script, module, directory / "prefix.js"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self) -> float:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self) -> None:
        self._process.communicate()


def ours(prefix: Prefix) -> float:
    began = time.perf_counter()
    result = prefix.run(RUN)
    assert result.value == {"name": "Ada", "s": 3}, result.error
    return (time.perf_counter() - began) * 1e3


def node_run() -> float:
    began = time.perf_counter()
    subprocess.run([node(), "-e", NODE_RUN], check=True, stdout=subprocess.DEVNULL)
    return (time.perf_counter() - began) * 1e3


def loop_in_node(code: str) -> float:
    script = f"const t = performance.now(); {{ {code} }}; console.log(performance.now() - t)"
    return float(subprocess.run([node(), "-e", script], check=True, capture_output=True, text=True).stdout)


def loop_in_ours(prefix: Prefix, code: str) -> float:
    result = prefix.run(f"const t = performance.now(); {{ {code} }}; export default performance.now() - t", limits=WALL)
    assert result.ok, result.error
    return float(result.value)


def live_memory(prefix: Prefix, count: int) -> float:
    """Megabytes that are a run's own, while it waits for its host function."""
    sizes: list[float] = []

    def measure(_key: int) -> dict[str, str]:
        return {"name": "Ada"}

    processes = [prefix._core.open() for _ in range(count)]
    try:
        for link in processes:
            run, frame = link.dialogue.begin(
                RUN, "module", "run.mjs", {"lookup": measure}, {}, WALL, bound=prefix._core._functions
            )
            link._send(frame)
            while run.bridge.calls == 0:
                link._receive()  # its call of `lookup`, which is never answered
            assert isinstance(link.process, EngineProcess)
            text = Path(f"/proc/{link.process.pid}/smaps_rollup").read_text()
            fields = {line.split()[0]: int(line.split()[1]) for line in text.splitlines()[1:]}
            sizes.append((fields["Private_Dirty:"] + fields["Private_Clean:"]) / 1024)
    finally:
        for link in processes:
            link.kill()
    return statistics.median(sizes)


def parallel(prefix: Prefix, ways: int, count: int) -> float:
    """Runs a second, so many at a time."""
    with ThreadPoolExecutor(ways) as pool:
        began = time.perf_counter()
        list(pool.map(lambda _: ours(prefix), range(count)))
        return count / (time.perf_counter() - began)


def fallback(bundle: Path, rounds: int, turns: int) -> dict[str, float]:
    """The figures of QuickJS, in this process."""
    os.environ["BELLJAR_JS"] = "quickjs"
    figures: dict[str, float] = {}
    with belljar.js() as js:
        began = time.perf_counter()
        js.precompile("1").close()
        figures["quickjs: template start, once (ms)"] = (time.perf_counter() - began) * 1e3
        began = time.perf_counter()
        prefix = js.precompile(bundle.read_text(), globals={"lookup": lambda key: {"name": "Ada", "key": key}})
        figures["quickjs: precompile lodash+ajv+zod (ms)"] = (time.perf_counter() - began) * 1e3
        figures["quickjs: prefix.run, best (ms)"], figures["quickjs: prefix.run, median (ms)"] = best(
            [ours(prefix) for _ in range(rounds)]
        )
        figures["quickjs: runs a second, 5 at a time"] = parallel(prefix, 5, rounds)
        figures["quickjs: memory of a live run's own (MB)"] = live_memory(prefix, 5)
        for name, code in LOOPS.items():
            pairs = [(loop_in_ours(prefix, code), loop_in_node(code)) for _ in range(turns)]
            figures[f"quickjs: {name}: ours / node"] = min(a for a, _ in pairs) / min(b for _, b in pairs)
    return figures


def best(values: list[float]) -> tuple[float, float]:
    return min(values), statistics.median(values)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--npm", type=Path, default=Path.home() / ".cache" / "belljar" / "benchmark-js")
    parser.add_argument("--fallback", action="store_true")
    options = parser.parse_args()
    rounds, turns = (20, 2) if options.quick else (100, 5)
    bundle = install(options.npm)
    if options.fallback:
        show(fallback(bundle, rounds, 1), as_json=options.json)
        return
    isolated = IsolatedVm(options.npm)
    figures: dict[str, float] = {}
    with belljar.js() as js:
        began = time.perf_counter()
        js.precompile("1").close()
        figures["template start, once (ms)"] = (time.perf_counter() - began) * 1e3
        began = time.perf_counter()
        prefix = js.precompile(bundle.read_text(), globals={"lookup": lambda key: {"name": "Ada", "key": key}})
        figures["precompile lodash+ajv+zod (ms)"] = (time.perf_counter() - began) * 1e3
        sides: dict[str, tuple[Callable[[], float], int]] = {
            "prefix.run": (lambda: ours(prefix), 1),
            "isolated-vm with a snapshot": (isolated.run, 1),
            "node -e": (node_run, 10),
        }
        times: dict[str, list[float]] = {name: [] for name in sides}
        for turn in range(rounds):
            for name, (side, every) in sides.items():
                if turn % every == 0:
                    times[name].append(side())
        for name, values in times.items():
            figures[f"{name}, best (ms)"], figures[f"{name}, median (ms)"] = best(values)
        for other in ("isolated-vm with a snapshot", "node -e"):
            ratio = statistics.median(times["prefix.run"]) / statistics.median(times[other])
            figures[f"prefix.run / {other} (medians)"] = ratio
        figures["runs a second, one at a time"] = parallel(prefix, 1, rounds)
        figures["runs a second, 5 at a time"] = parallel(prefix, 5, rounds)
        figures["memory of a live run's own (MB)"] = live_memory(prefix, 5)
        for name, code in LOOPS.items():
            pairs = [(loop_in_ours(prefix, code), loop_in_node(code)) for _ in range(turns)]
            figures[f"{name}: ours / node"] = min(a for a, _ in pairs) / min(b for _, b in pairs)
    isolated.close()
    again = [sys.executable, __file__, "--fallback", "--json", "--npm", options.npm, *["--quick"] * options.quick]
    figures |= json.loads(subprocess.run(again, check=True, capture_output=True, text=True).stdout)
    show(figures, as_json=options.json)


def show(figures: dict[str, float], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(figures, indent=2))
    else:
        for name, value in figures.items():
            print(f"{name:<55} {value:10.2f}")


if __name__ == "__main__":
    sys.exit(main())
