"""What is peculiar to QuickJS: what is put in place of what V8 has, where it differs, and how a program finds out."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator

import pytest

import belljar
from belljar import Limits, RunLimits, Sandbox
from belljar.api.js import JsInterpreter
from belljar.api.prefix import Prefix
from belljar.engines.owner.js_build_host import node
from tests.engines.js_engines import using


@pytest.fixture(autouse=True)
def engine(engines: None) -> Iterator[None]:
    with using("quickjs"):
        yield


@pytest.fixture(scope="module")
def js(engines: None) -> Iterator[JsInterpreter]:
    with belljar.js() as made:
        yield made


@pytest.fixture(scope="module")
def prefix(js: JsInterpreter) -> Iterator[Prefix]:
    with using("quickjs"):
        made = js.precompile(globals={"host": lambda *values: list(values)})
    with made:
        yield made


def test_values_are_shown_as_node_shows_them(prefix: Prefix) -> None:
    """Kinds that no property tells apart."""
    code = """
    console.log(new Proxy({ a: 1 }, {}), Object.create(new Map()), [new Set([1])], async () => {}, function* g() {});
    console.log(Promise.resolve(1), new WeakMap(), Object(1n), new (class A {})(), Promise.reject(2).catch(() => {}));
    console.log((function () { return arguments })(1), new DataView(new ArrayBuffer(1)).byteLength, new Date(NaN));
    console.log(Object.create(null), [, 1], new Uint8Array(2), /x/g, Symbol('s'), { get a() { return 1 } });
    """
    real = subprocess.run([str(node()), "--input-type=module", "-e", code], capture_output=True, text=True, check=True)
    result = prefix.run(code)
    assert result.ok, result.error
    assert result.stdout == real.stdout


def test_structured_clone(prefix: Prefix) -> None:
    code = """
    const from = { d: new Date(5), r: /a/gi, m: new Map([[{ k: 1 }, new Set([1])]]), e: new RangeError('no') };
    from.n = Object(3); from.self = from;
    const b = new ArrayBuffer(4), view = new Uint8Array(b, 1, 2); view[0] = 7;
    const to = structuredClone({ from, view }, { transfer: [b] });
    const errors = [];
    for (const bad of [() => {}, Symbol('s'), new Proxy({}, {}), new WeakMap(), Promise.resolve()]) {
      try { structuredClone({ bad }) } catch (e) { errors.push(e.name) }
    }
    export default [to.from !== from, to.from.self === to.from, to.from.d.getTime(), `${to.from.r}`,
      [...to.from.m][0][0].k, to.from.e.name, to.from.e.message, to.from.n + 1,
      to.view[0], to.view.length, b.byteLength, errors];
    """
    assert prefix.run(code).value == [
        True, True, 5, "/a/gi", 1, "RangeError", "no", 4, 7, 2, 0, ["DataCloneError"] * 5,
    ]  # fmt: skip


def test_atomics_and_shared_memory(prefix: Prefix) -> None:
    code = """
    const a = new Int32Array(new SharedArrayBuffer(8));
    Atomics.store(a, 0, 5); Atomics.add(a, 0, 3); Atomics.compareExchange(a, 0, 8, 1); Atomics.exchange(a, 1, 9);
    let refused; try { Atomics.load([1], 0) } catch (e) { refused = e.name }
    export default [Atomics.load(a, 0), a[1], Atomics.notify(a, 0), Atomics.isLockFree(4), refused];
    """
    assert prefix.run(code).value == [1, 9, 0, True, "TypeError"]


def test_stacks_have_a_heading_and_can_be_prepared(prefix: Prefix) -> None:
    code = """
    class Mine extends Error { get name() { return 'Mine' } }
    const plain = new Mine('said').stack.split('\\n');
    Error.prepareStackTrace = (_, sites) => [sites[0].getFileName(), sites[0].getLineNumber(), `${sites[0]}`];
    const sites = new Error('x').stack;
    Error.prepareStackTrace = undefined;
    export default [plain[0], plain.some((line) => line.includes('run.mjs:3:')), sites];
    """
    assert prefix.run(code).value == ["Mine: said", True, ["run.mjs", 5, "run.mjs:5:23"]]


def test_a_rejection_nobody_handles_fails_the_run(prefix: Prefix) -> None:
    for code in (
        "async function f() { await host(1); throw new TypeError('lost') } f()",
        "Promise.reject(new TypeError('lost'))",
    ):
        result = prefix.run(code)
        assert result.error is not None
        assert (result.error.name, result.error.message) == ("TypeError", "lost")
    handled = (
        "const p = Promise.reject(1); p.catch(() => {}); await host(2); export default await Promise.allSettled([p])"
    )
    assert prefix.run(handled).value == [{"status": "rejected", "reason": 1}]


def test_what_a_script_declares_is_there_later(js: JsInterpreter) -> None:
    short = "const a = 1; let b = 2; class C {} function d() { return this === globalThis }"
    long = "var z = 0\nconst a = 1\nlet b = 2\nclass C {}\nfunction d() { return true }\n" + "// long\n" * 3000
    for code in (short, long):
        with js.precompile(code) as made:
            assert made.run("export default [a, b, typeof C, d()]").value == [1, 2, "function", True]


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("let x = )", "Unexpected token ')'"),
        ("const a = 1; const a = 2", "Identifier 'a' has already been declared"),
        ("a b", "Unexpected identifier 'b'"),
        ("export default [1,", "Unexpected end of input"),
    ],
)
def test_syntax_errors_are_told_in_words_that_are_known(prefix: Prefix, code: str, said: str) -> None:
    error = prefix.run(code).error
    assert error is not None
    assert (error.code, error.message) == ("SYNTAX_ERROR", said)


def test_calls_too_deep_end_the_run_and_say_so(prefix: Prefix) -> None:
    deep = "const f = (n) => n === 0 ? 0 : 1 + f(n - 1); export default f({})"
    assert prefix.run(deep.format(2000)).value == 2000
    error = prefix.run(deep.format(1_000_000)).error
    assert error is not None
    assert (error.code, error.name) == ("CRASHED", "stack")
    assert "too deep" in error.message


def test_one_long_step_of_the_engine_does_not_outlast_the_limit(prefix: Prefix) -> None:
    long_step = "const a = Array(5e6).fill(0).map((_, i) => i); for (;;) a.join('').length"
    error = prefix.run(long_step, limits=RunLimits(cpu_ms=500, wall_ms=60_000, memory_mb=512)).error
    assert error is not None
    assert error.code == "CPU_LIMIT"


def test_a_program_finds_out_what_it_runs_on(js: JsInterpreter) -> None:
    with Sandbox() as sandbox:
        assert re.fullmatch(r"v24\.\d+\.\d+-quickjs\n", sandbox.exec("node --version").stdout)
        shown = sandbox.exec("node -p 'process.versions.quickjs, typeof process.versions.v8 + typeof WebAssembly'")
        assert shown.stdout == "undefinedundefined\n"
        deep = sandbox.exec("node -e '(function f() { f() })()'")
        assert (deep.exit_code, deep.stderr) == (7, "Uncaught RangeError: Maximum call stack size exceeded\n")
        lost = sandbox.exec("node -e 'async function main() { throw new Error(1) } main()'")
        assert lost.exit_code == 1
        assert "Error: 1" in lost.stderr


def test_a_programs_limits(js: JsInterpreter) -> None:
    with Sandbox(limits=Limits(memory_bytes=96 << 20)) as sandbox:
        assert sandbox.exec("node -e 'for (;;);'", limits=Limits(cpu_seconds=2)).limit == "cpu_seconds"
        full = sandbox.exec("node -e 'const a = []; for (;;) a.push(new Uint8Array(1e6).fill(1))'")
        assert full.limit == "memory_bytes"
        assert sandbox.exec("node -p 1").stdout == "1\n"


def test_modules_are_skimmed_not_misread(js: JsInterpreter) -> None:
    """Braces that are none: in templates, expressions and texts. A function's inside is the engine's to judge."""
    library = """
    export function f(a) { if (a) { return [`}${`{${a}`}`, /[}/]}b/.test(a), '}'] } return { a } }
    export class C { static z = 1; #p = 2; get p() { return this.#p } m() { if (1) /x}/.test('y'); return `}` } }
    export const g = (a) => ({ a }), h = async function* () { yield* [1] }
    """
    user = "import { f, C, g } from './lib.mjs'; import * as all from './lib.mjs'\n"
    user += "console.log(f(1), new C().p, new C().m(), g(2), Object.keys(all), (await import('./lib.mjs')).C === C)"
    files = {"/w/lib.mjs": library, "/w/a.mjs": user, "/w/b.mjs": "function f() {\n  let a; let a }"}
    with Sandbox(files={**files, "/w/c.js": "// import x\nconsole.log('export', typeof require)"}) as sandbox:
        said = sandbox.exec("node /w/a.mjs")
        assert said.stdout == "[ '}{1', false, '}' ] 2 } { a: 2 } [ 'C', 'f', 'g', 'h' ] true\n", said.stderr
        assert "SyntaxError" in sandbox.exec("node /w/b.mjs").stderr
        assert sandbox.exec("node /w/c.js").stdout == "export function\n"
        absent = sandbox.exec("node -e 'require(\"zlib\")'").stderr
        assert "'zlib' is not available in this sandbox, whose JavaScript runs on QuickJS" in absent


def test_numbers_and_order_as_in_no_locale_in_particular(prefix: Prefix) -> None:
    code = """
    let seed = 7;
    const next = (n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
    const alphabet = [...'abcABCzZ019 _-.éÉüñÑ~$#(){}@/&+'];
    const word = () => Array.from({ length: next(5) }, () => alphabet[next(alphabet.length)]).join('');
    const options = [undefined, { numeric: true }, { sensitivity: 'base' }, { sensitivity: 'accent' }];
    const said = [];
    for (let i = 0; i < 800; i++) said.push(word().localeCompare(word(), undefined, options[i % 4]));
    const digits = [undefined, { minimumFractionDigits: 2 }, { maximumFractionDigits: 0 }, { useGrouping: false }];
    const number = () => (next(2e9) - 1e9) / 10 ** next(9) * 10 ** next(9);
    for (let i = 0; i < 400; i++) said.push(number().toLocaleString('en-US', digits[i % 4]));
    for (const odd of [12345n, -0, NaN, 1e25, 2.5e-8, -Infinity]) said.push(odd.toLocaleString());
    console.log(said.join(' '));
    """
    command, environment = [str(node()), "--input-type=module", "-e", code], {"LC_ALL": "en_US.UTF-8"}
    real = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    assert prefix.run(code).stdout == real.stdout
    refused = prefix.run("(1).toLocaleString('de', { style: 'currency', currency: 'EUR' })").error
    assert refused is not None
    assert refused.message == "toLocaleString: style needs Intl, which QuickJS has not"
