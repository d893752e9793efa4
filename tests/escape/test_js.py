"""THREATS.md 86-96: a guest's JavaScript against the engine, the bridge and the host behind it."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import belljar
from belljar import RunLimits, RunResult, Sandbox
from belljar.api.js import JsInterpreter
from belljar.api.prefix import Prefix
from belljar.engines.owner.template_host import EngineProcess
from tests.escape.oracles import Watch, is_alive, wait_gone

LIMITS = RunLimits(cpu_ms=3000, wall_ms=8000, memory_mb=64)


class Jail:
    """A prefix with one host function that keeps what it was given."""

    def __init__(self, js: JsInterpreter) -> None:
        self.given: list[Any] = []
        wasm = js.engine == "v8"
        self.prefix: Prefix = js.precompile("globalThis.kept = 1", globals={"host": self._host}, wasm=wasm)

    def _host(self, *values: Any) -> Any:
        self.given.append(values)
        return {"values": list(values), "__proto__": {"polluted": True}}

    def run(self, code: str, limits: RunLimits = LIMITS) -> RunResult:
        return self.prefix.run(code, limits=limits)


@pytest.fixture(scope="module")
def jails(engines: None) -> Iterator[dict[str, Jail]]:
    """By engine, for those who want one."""
    made: dict[str, Jail] = {}
    yield made
    for jail in made.values():
        jail.prefix.close()


@pytest.fixture
def jail(engine: str, jails: dict[str, Jail]) -> Jail:
    if engine not in jails:
        jails[engine] = Jail(belljar.js())
        jails[engine].run("1")
    return jails[engine]


def seen(result: RunResult) -> bytes:
    return f"{result.stdout}{result.stderr}{dict(result.exports)}{result.exports.unsent}{result.error}".encode()


def check(watch: Watch, jail: Jail, code: str, limits: RunLimits = LIMITS) -> RunResult:
    """One attack: whatever comes of it, the host and the next run are as before, and nothing of the host was seen."""
    jail.given.clear()
    with watch.attack():
        result = jail.run(code, limits)
        watch.check_bytes(seen(result))
        after = jail.run("export default [kept, {}.polluted ?? null, typeof process, typeof require]")
        assert after.value == [1, None, "undefined", "undefined"], after.error
    return result


REALM = [
    "({}).constructor.constructor('return typeof process + typeof require + typeof module')()",
    "(async () => {}).constructor('return typeof process')()",
    "(function* () {}).constructor('return typeof process')().next().value",
    "(async function* () {}).constructor('return typeof process')().next().then((r) => r.value)",
    "console.log.constructor('return typeof process')()",
    "host.constructor('return typeof process')()",
    "URL.constructor('return typeof process')()",
    "fetch.constructor('return typeof process')()",
    "setTimeout.constructor('return typeof process')()",
    "new URL('a://b').searchParams.constructor.constructor('return typeof process')()",
    "host(1).catch(() => {}).constructor.constructor('return typeof process')()",
    "(await host(1)).constructor.constructor('return typeof process')()",
    "import('node:fs').catch((e) => e.constructor.constructor('return typeof process')())",
    "(() => { try { null.x } catch (e) { return e.constructor.constructor('return typeof process')() } })()",
]


@pytest.mark.parametrize("code", REALM)
def test_86_every_constructor_is_the_guests_own(watch: Watch, jail: Jail, code: str) -> None:
    result = check(watch, jail, f"export default await {code}")
    assert result.ok, result.error
    assert set(str(result.value).replace("undefined", "")) == set()


def test_86_nothing_of_ours_is_within_reach(watch: Watch, jail: Jail) -> None:
    walk = """
    const seen = new Set(), queue = [globalThis], names = new Set();
    while (queue.length && seen.size < 50000) {
      const value = queue.pop();
      if (value === null || (typeof value !== 'object' && typeof value !== 'function') || seen.has(value)) continue;
      seen.add(value);
      for (const key of Reflect.ownKeys(value)) {
        names.add(String(key));
        let d; try { d = Object.getOwnPropertyDescriptor(value, key) } catch { continue }
        for (const next of [d?.value, d?.get, d?.set]) queue.push(next);
      }
      queue.push(Object.getPrototypeOf(value));
    }
    const ours = /^(sendBytes|receiveBody|internalBinding|primordials|dlopen|binding)$/;
    export default [...names].filter((n) => ours.test(n));
    """
    assert check(watch, jail, walk).value == []


def test_87_nothing_pollutes_prototypes_through_the_bridge(watch: Watch, jail: Jail) -> None:
    code = """
    const got = await host(JSON.parse('{"__proto__": {"x": 1}, "constructor": {"prototype": {"y": 1}}}'));
    export default [
      {}.polluted, {}.x, {}.y, Object.hasOwn(got, '__proto__'), Object.getPrototypeOf(got) === Object.prototype,
      Object.hasOwn(got.values[0], '__proto__'), got.values[0].polluted,
    ].map(String);
    """
    result = check(watch, jail, code)
    assert result.value == ["undefined"] * 3 + ["true"] * 3 + ["undefined"]
    assert jail.given == [({"__proto__": {"x": 1}, "constructor": {"prototype": {"y": 1}}},)]


def test_87_getters_run_in_the_guest_and_setters_see_nothing(watch: Watch, jail: Jail, engine: str) -> None:
    code = """
    const stolen = [];
    Object.defineProperty(Object.prototype, 'values', { set(v) { stolen.push(v) }, configurable: true });
    Object.defineProperty(Array.prototype, 0, { set(v) { stolen.push(v) }, configurable: true });
    const got = await host({ get a() { return 'ran' } }, 5);
    delete Object.prototype.values; delete Array.prototype[0];
    let threw; try { await host({ get a() { throw new RangeError('mine') } }) } catch (e) { threw = e.name }
    export default [stolen.length, got.values[1], threw];
    """
    if engine == "quickjs":  # its own JSON.stringify assigns to an array: the setter sees the guest's own argument
        code = code.replace("Object.defineProperty(Array.prototype, 0,", "Object.defineProperty({}, 0,")
    assert check(watch, jail, code).value == [0, 5, "RangeError"]
    assert jail.given == [({"a": "ran"}, 5)]


@pytest.mark.parametrize(
    "value",
    [
        "{ toJSON() { return 'forged' }, a: 1 }",
        "Object.assign([1], { [Symbol.iterator]: function* () { yield 'forged' } })",
        "Object.assign([1], { constructor: { [Symbol.species]: function () { return { forged: 1 } } } })",
        "new (class extends Array { get length() { return 1e9 } })(1)",
        "new Proxy({}, { ownKeys() { throw 1 } })",
        "{ then(resolve) { resolve('forged') } }",
        "new Date(8.64e15)",
        "new (class extends Map { get size() { return 1e9 } entries() { throw 1 } })([[1, 2]])",
    ],
)
def test_88_objects_that_lie_about_themselves(watch: Watch, jail: Jail, value: str) -> None:
    code = f"const v = {value}; try {{ await host([v]) }} catch (e) {{ console.log(e.message) }}; export const out = v"
    result = check(watch, jail, code)
    assert result.error is None or result.error.code == "MEMORY_LIMIT"
    assert "forged" not in str(jail.given)
    assert "forged" not in str(result.exports)


def test_89_errors_show_guest_code_only(watch: Watch, jail: Jail) -> None:
    code = """
    const out = [];
    Error.prepareStackTrace = (e, sites) => {
      for (const s of sites) {
        out.push(String(s.getFileName()), typeof s.getThis(), typeof s.getFunction());
        const f = s.getFunction();
        if (f) out.push(typeof f.caller, Object.getOwnPropertyNames(f).join());
      }
      return 'mine';
    };
    const grab = (f) => { try { f() } catch (e) { out.push(String(e.stack)) } };
    grab(() => new URL('bad')); grab(() => structuredClone(() => {})); grab(() => atob('*'));
    await host(1).then(() => grab(() => null.x));
    const many = new AggregateError([new Error('a'), new TypeError('b')], 'all');
    out.push(String(many.errors.map((e) => e.stack)));
    export default out.join('\\n');
    throw many;
    """
    result = check(watch, jail, code)
    assert result.error is not None
    text = seen(result).decode()
    assert "/src/" not in text
    assert ".cjs" not in text


@pytest.mark.battery(sample=1)
@pytest.mark.parametrize("trap", ["name", "message", "stack"])
def test_89_an_error_whose_properties_are_traps(watch: Watch, jail: Jail, trap: str) -> None:
    for body in (
        "throw new Error('again')",
        "for (;;);",
        "return { toString() { throw 1 } }",
        "return 'x'.repeat(2 ** 28)",
    ):
        code = f"throw Object.defineProperty(new Error('m'), '{trap}', {{ get() {{ {body} }} }})"
        result = check(watch, jail, code, RunLimits(cpu_ms=300, wall_ms=5000, memory_mb=600))
        assert result.error is not None
        assert result.error.code in ("RUNTIME_ERROR", "CPU_LIMIT", "MEMORY_LIMIT")
        assert len(seen(result)) < 1 << 20


@pytest.mark.battery(sample=6)
@pytest.mark.parametrize(
    "code",
    [
        "new ArrayBuffer(2 ** 33)",
        "const a = []; for (;;) a.push('x'.repeat(2 ** 28) + a.length)",
        "const a = []; for (;;) a.push(...Array(1e5).fill({}))",
        "[...Array(1e9)]",
        "const b = new ArrayBuffer(0, { maxByteLength: 2 ** 32 }); for (let n = 1; ; n *= 2) fill(b, b.resize(n))",
        "const b = new SharedArrayBuffer(0, { maxByteLength: 2 ** 32 }); for (let n = 1; ; n *= 2) fill(b, b.grow(n))",
        "const a = []; for (;;) a.push(new SharedArrayBuffer(1e7))",
        "structuredClone(Array(2e8).fill(1))",
        "new Blob(Array(1e6).fill('x'.repeat(1e4)))",
        "new TextEncoder().encode('x'.repeat(5e8))",
        "let s = 'x'; for (;;) s += s",
        "const m = new Map(); for (let i = 0; ; i++) m.set(i, [i])",
        "const r = []; for (;;) r.push(new Promise(() => {}))",
        "for (;;) setTimeout(() => {}, 1e6)",
    ],
)  # fmt: skip
def test_90_memory_bombs(watch: Watch, jail: Jail, code: str) -> None:
    fill = "const fill = (b) => new Uint8Array(b).fill(1); "
    result = check(watch, jail, fill + code, RunLimits(cpu_ms=6000, wall_ms=15000, memory_mb=64))
    assert result.error is not None
    refused = result.error.code == "RUNTIME_ERROR" and result.error.name in ("RangeError", "InternalError")
    assert refused or result.error.code in ("MEMORY_LIMIT", "CPU_LIMIT", "WALL_LIMIT"), result.error


ADD = (
    "new Uint8Array("
    + str(list(bytes.fromhex("0061736d0100000001070160027f7f017f030201000707010361646400000a09010700200020016a0b")))
    + ")"
)


@pytest.mark.parametrize(
    "code",
    [
        "const m = new WebAssembly.Memory({ initial: 1, maximum: 65536 }); for (;;) fill(m.buffer, m.grow(256))",
        "const t = new WebAssembly.Table({ initial: 1, element: 'anyfunc' }); for (;;) t.grow(1e6)",
        f"const m = new WebAssembly.Module({ADD}), a = []; for (let i = 1e5; i--; ) a[i] = new WebAssembly.Instance(m)",
        "const a = []; for (;;) a.push(new WebAssembly.Memory({ initial: 100 }))",
    ],
)  # fmt: skip
def test_91_webassembly_bombs(watch: Watch, jail: Jail, code: str) -> None:
    fill = "const fill = (b) => new Uint8Array(b).fill(1); "
    check(watch, jail, fill + code, RunLimits(cpu_ms=4000, wall_ms=15000, memory_mb=64))


def test_91_webassembly_is_there_on_request_only(watch: Watch, jail: Jail, engine: str) -> None:
    code = f"export default (await WebAssembly.instantiate({ADD})).instance.exports.add(40, 2)"
    if engine == "v8":
        assert check(watch, jail, code).value == 42
    else:
        with belljar.js() as js, pytest.raises(belljar.EngineUnavailable, match=r"needs V8.*runs on QuickJS"):
            js.precompile("1", wasm=True)
    with belljar.js() as js, js.precompile("1") as plain:
        assert plain.run("export default typeof WebAssembly").value == "undefined"


def test_92_microtasks_pending_promises_and_rejections(watch: Watch, jail: Jail) -> None:
    starved = check(
        watch,
        jail,
        "const p = () => Promise.resolve().then(p); p(); await host(1)",
        RunLimits(cpu_ms=200, wall_ms=30_000),
    )
    never = check(watch, jail, "await new Promise(() => {})", RunLimits(wall_ms=1000))
    loose = check(watch, jail, "for (let i = 0; i < 1000; i++) Promise.reject(new Error('loose'))")
    assert [result.error.code for result in (starved, never, loose) if result.error] == [
        "CPU_LIMIT",
        "WALL_LIMIT",
        "RUNTIME_ERROR",
    ]


@pytest.mark.battery(sample=5)
@pytest.mark.parametrize(
    ("code", "codes"),
    [
        ("/^(a+)+$/.test('a'.repeat(60) + '!')", {"CPU_LIMIT"}),
        ("/(x+x+)+y/.exec('x'.repeat(100))", {"CPU_LIMIT"}),
        ("let n = 2n; for (;;) n **= 2n", {"MEMORY_LIMIT", "CPU_LIMIT", "RUNTIME_ERROR"}),
        ("JSON.parse('['.repeat(1e7))", {"RUNTIME_ERROR", "MEMORY_LIMIT"}),
        ("eval('('.repeat(1e6))", {"RUNTIME_ERROR"}),
        ("eval('['.repeat(1e5) + ']'.repeat(1e5))", {"RUNTIME_ERROR"}),
        ("new Function('a' + '=>a'.repeat(1e6))", {"RUNTIME_ERROR", "CPU_LIMIT", "MEMORY_LIMIT"}),
        ("(function f() { f() })()", {"RUNTIME_ERROR"}),
        ("'x'.repeat(2 ** 28).replace(/x/g, '$&$&$&$&')", {"RUNTIME_ERROR", "CPU_LIMIT", "MEMORY_LIMIT"}),
        ("[1e9].map((n) => Array(n).join('x'.repeat(1e3)))", {"RUNTIME_ERROR", "CPU_LIMIT", "MEMORY_LIMIT"}),
        ("Array(1e8).fill(0).sort(() => Math.random())", {"CPU_LIMIT", "MEMORY_LIMIT"}),
    ],
)
def test_93_small_programs_with_large_appetites(
    watch: Watch, jail: Jail, engine: str, code: str, codes: set[str]
) -> None:
    result = check(watch, jail, code, RunLimits(cpu_ms=600, wall_ms=10000, memory_mb=64))
    assert result.error is not None
    too_deep = engine == "quickjs" and (result.error.code, result.error.name) == ("CRASHED", "stack")
    assert too_deep or result.error.code in codes


@pytest.mark.parametrize(
    "name", ["node:fs", "fs", "data:text/javascript,export default 1", "file:///etc/passwd", "./x.js", "belljar/run"]
)
def test_94_nothing_can_be_imported(watch: Watch, jail: Jail, name: str) -> None:
    static = check(watch, jail, f"import x from {name!r}")
    assert static.error is not None
    assert "can't import" in static.error.message
    dynamic = check(watch, jail, f"await import({name!r})")
    assert dynamic.error is not None
    assert dynamic.error.code == "RUNTIME_ERROR"


def test_95_calls_that_come_too_late_or_too_many(watch: Watch, jail: Jail) -> None:
    many = check(
        watch, jail, "for (let i = 0; i < 1e5; i++) host(i); await host('last')", RunLimits(max_bridge_calls=100)
    )
    assert many.error is not None
    assert many.error.code == "BRIDGE_LIMIT"
    assert len(jail.given) <= 100
    with watch.attack(), belljar.js() as js:
        entered, release = threading.Event(), threading.Event()

        def slow() -> int:
            entered.set()
            release.wait(30)
            return 1

        prefix = js.precompile("1", globals={"slow": slow})
        results: list[Any] = []

        def run() -> None:
            results.append(prefix.run("await slow()"))

        thread = threading.Thread(target=run)
        thread.start()
        assert entered.wait(30)
        prefix.close()
        thread.join(30)
        release.set()
        assert results[0].error.code == "CRASHED"
        time.sleep(0.05)


def test_95_a_host_function_may_run_code_itself(watch: Watch, engine: str) -> None:
    with watch.attack(), belljar.js() as js:
        inner = js.precompile("globalThis.n = 1")
        outer = js.precompile("1", globals={"run": lambda code: inner.run(code).value})
        assert outer.run("export default await run('export default n + 1')").value == 2


def test_96_clocks_are_coarse(watch: Watch, jail: Jail) -> None:
    code = """
    const ticks = new Set();
    for (let i = 0; i < 5e4; i++) ticks.add(performance.now() % 1);
    const e = new Event('x');
    export default [[...ticks], Number.isInteger(e.timeStamp), typeof Atomics.wait, typeof SharedArrayBuffer];
    """
    result = check(watch, jail, code)
    assert result.value[:2] == [[0], True]
    waits = check(watch, jail, "Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)")
    assert waits.error is not None
    assert waits.error.name == "TypeError"


def test_the_outer_wall_is_up_and_the_processes_end(engine: str) -> None:
    with Sandbox() as sandbox:
        prefix = sandbox.js.precompile("1")
        link = prefix._core.open()  # type: ignore[attr-defined]
        assert isinstance(link.process, EngineProcess)
        pid = link.process.pid
        run, frame = link.dialogue.begin("export default 1", "module", "run.mjs", {}, {}, LIMITS)
        link.drive(run, frame, 60)
        assert run.result(0).value == 1
        assert {"seccomp", "no_new_privs", "rlimits"} <= set(link.dialogue.layers)
        status = dict(
            line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line
        )
        assert status["Seccomp"] == "2"
        assert status["NoNewPrivs"] == "1"
        if os.geteuid() == 0:
            assert status["Uid"].split()[0] == "65534"
            assert len(os.listdir(f"/proc/{pid}/fd")) == 1
        else:  # it can't be dumped, so its own user can't look
            with pytest.raises(PermissionError):
                os.listdir(f"/proc/{pid}/fd")
        assert is_alive(pid)
    assert wait_gone([pid]) == []
    link.kill()
