"""Each limit is reached where it says, reported with its code, and ends one run and nothing else."""

import threading
import time

import pytest

from belljar import RunLimits, RunResult
from belljar.api.js import JsInterpreter
from belljar.api.prefix import Prefix

SPIN = "for (;;);"
MICROTASKS = "const p = () => Promise.resolve().then(p); await p()"
HEAP = "const a = []; for (;;) a.push(new Array(1000).fill(1.5))"
STRINGS = "const a = []; for (let i = 0;; i++) a.push('x'.repeat(1000) + i)"
BUFFERS = "const a = []; for (;;) a.push(new Uint8Array(1e6).fill(1))"
GIANT = "new Array(2 ** 27).fill(0)"
RECURSION = "(function f() { f(); f() })()"


def code_of(result: RunResult) -> str:
    assert not result.ok
    assert result.error is not None
    return result.error.code


@pytest.mark.parametrize("code", [SPIN, MICROTASKS, "/(a+)+$/.test('a'.repeat(50) + 'b')", RECURSION])
def test_cpu(prefix: Prefix, code: str, engine: str) -> None:
    safe = f"for (;;) try {{ {code} }} catch {{}}" if "await" not in code else code
    result = prefix.run(f"console.log('before'); {safe}", limits=RunLimits(cpu_ms=150))
    # QuickJS has no error for a stack that is used up: there that is the end.
    assert code_of(result) == ("CRASHED" if code == RECURSION and engine == "quickjs" else "CPU_LIMIT")
    assert result.stdout == "before\n"


def test_waiting_is_not_cpu_time(prefix: Prefix) -> None:
    def slow(_key: int) -> int:
        time.sleep(0.1)
        return 1

    code = "for (let i = 4; i--; ) { await lookup(i); await new Promise((r) => setTimeout(r, 50)) } export default 1"
    assert prefix.run(code, limits=RunLimits(cpu_ms=300), globals={"lookup": slow}).value == 1


def test_wall_is_a_deadline_over_everything(prefix: Prefix) -> None:
    release = threading.Event()
    began = time.monotonic()
    for code in (
        "await new Promise((r) => setTimeout(r, 60000))",
        "await lookup(1)",
        SPIN,
        "setInterval(() => {}, 1)",
        "for (;;) await lookup(2)",
    ):
        limits = RunLimits(wall_ms=300, max_bridge_calls=1_000_000)
        result = prefix.run(code, limits=limits, globals={"lookup": lambda key: key == 1 and release.wait(60)})
        assert code_of(result) == "WALL_LIMIT", code
        assert result.duration_ms >= 299
    release.set()
    assert time.monotonic() - began < 30


def test_a_promise_that_nothing_can_settle_is_not_waited_for(prefix: Prefix) -> None:
    result = prefix.run("console.log(1); await new Promise(() => {})")
    assert code_of(result) == "WALL_LIMIT"
    assert result.error is not None
    assert "nothing is left to settle" in result.error.message
    assert result.duration_ms < 30_000
    assert result.stdout == "1\n"


@pytest.mark.parametrize("code", [HEAP, STRINGS, BUFFERS, GIANT, "new ArrayBuffer(2 ** 30)", "[...Array(1e9).keys()]"])
def test_memory(prefix: Prefix, code: str) -> None:
    result = prefix.run(f"console.log('before'); try {{ {code} }} catch {{}}", limits=RunLimits(memory_mb=50))
    assert code_of(result) == "MEMORY_LIMIT"
    assert result.stdout == "before\n"


def test_memory_below_the_limit_is_given(prefix: Prefix) -> None:
    heap = (
        "const a = []; for (let i = 0; i < 4e6; i++) a.push(i + 0.5); export default a.length"  # 32 MB and growing room
    )
    assert prefix.run(heap, limits=RunLimits(memory_mb=120)).value == 4_000_000
    buffers = "const a = []; for (let i = 0; i < 40; i++) a.push(new Uint8Array(1e6).fill(1)); export default a.length"
    assert prefix.run(buffers, limits=RunLimits(memory_mb=50)).value == 40
    churn = "let a; for (let i = 0; i < 400; i++) a = new Uint8Array(1e6).fill(1); export default a.length"
    assert prefix.run(churn, limits=RunLimits(memory_mb=50)).value == 1_000_000


def test_a_big_prefix_does_not_use_up_a_runs_memory(js: JsInterpreter) -> None:
    with js.precompile("globalThis.big = Array.from({ length: 2e6 }, (_, i) => ({ i }))") as prefix:
        assert prefix.run("export default big.length", limits=RunLimits(memory_mb=16)).value == 2_000_000


def test_bridge_calls(prefix: Prefix) -> None:
    loop = "for (let i = 0; i < {}; i++) await lookup(1); export default 'done'"
    assert prefix.run(loop.format(5), limits=RunLimits(max_bridge_calls=5)).value == "done"
    over = prefix.run(f"try {{ {loop.format(6)[:-22]} }} catch {{}}", limits=RunLimits(max_bridge_calls=5))
    assert code_of(over) == "BRIDGE_LIMIT"
    together = prefix.run(
        "await Promise.all([...Array(100000)].map(() => lookup(1)))", limits=RunLimits(max_bridge_calls=50)
    )
    assert code_of(together) == "BRIDGE_LIMIT"
    assert together.bridge_calls <= 51


def test_bridge_bytes_count_both_ways(prefix: Prefix) -> None:
    limits = RunLimits(max_bridge_bytes=100_000)
    assert prefix.run("await lookup('x'.repeat(40000))", limits=limits, globals={"lookup": len}).ok
    for code in ("await lookup('x'.repeat(200000))", "for (;;) await lookup('x'.repeat(9000))"):
        assert code_of(prefix.run(code, limits=limits, globals={"lookup": len})) == "BRIDGE_LIMIT"
    big = prefix.run("await lookup(1)", limits=limits, globals={"lookup": lambda _key: "x" * 200_000})
    assert code_of(big) == "BRIDGE_LIMIT"


def test_output(js: JsInterpreter) -> None:
    from belljar.api.js import JsInterpreter as Interpreter

    with Interpreter(output_bytes=100_000) as small:
        result = small.precompile().run("for (;;) console.log('x'.repeat(1000))")
        assert code_of(result) == "OUTPUT_LIMIT"
        assert 0 < len(result.stdout) <= 100_000
        assert small.precompile().run("console.log('x'.repeat(1000)); export default 1").value == 1


def test_no_limit_hurts_another_run(prefix: Prefix) -> None:
    bombs = [SPIN, HEAP, BUFFERS, GIANT, MICROTASKS, "await new Promise((r) => setTimeout(r, 60000))"]
    limits = RunLimits(cpu_ms=300, wall_ms=2000, memory_mb=40)
    results: list[RunResult] = []
    threads = [threading.Thread(target=lambda b=bomb: results.append(prefix.run(b, limits=limits))) for bomb in bombs]
    for thread in threads:
        thread.start()
    for _ in range(10):
        assert prefix.run("export default (await lookup(1)).name").value == "Ada"
    for thread in threads:
        thread.join(60)
    assert len(results) == len(bombs)
    assert not any(result.ok for result in results)
