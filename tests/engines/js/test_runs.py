"""precompile and run: modules, exports, host functions, what crosses and what does not."""

import asyncio
import re
import time
from datetime import UTC, datetime
from typing import Any

import pytest

import belljar
from belljar import AsyncSandbox, PrefixError, RunLimits, Sandbox
from belljar.api.js import JsInterpreter
from belljar.api.prefix import Prefix
from belljar.api.runs import NotExported


def test_a_module_with_await_a_host_call_and_exports(prefix: Prefix) -> None:
    result = prefix.run(
        "const u = await lookup(1); console.log('hi', u.name); export default u.name; export const n = 2"
    )
    assert result.ok, result.error
    assert result.exports == {"default": "Ada", "n": 2}
    assert (result.stdout, result.stderr) == ("hi Ada\n", "")
    assert result.bridge_calls == 1
    assert result.duration_ms > 0


@pytest.mark.parametrize(
    ("code", "value"),
    [
        ("null", None),
        ("undefined", None),
        ("true", True),
        ("-7", -7),
        ("1.5", 1.5),
        ("2n ** 70n", 1 << 70),
        ("-(2n ** 70n)", -(1 << 70)),
        ("5n", 5),
        ("Infinity", float("inf")),
        ("'\\u00e9\\ud83d\\ude00'", "é😀"),
        ("'a\\ud800b\\ud83d\\ude00'", "a\ufffdb😀"),
        ("({ '\\udc00': ['\\udbff'] })", {"\ufffd": ["\ufffd"]}),
        ("[1, [2, , 3]]", [1, [2, None, 3]]),
        ("({ a: { b: [] } })", {"a": {"b": []}}),
        ("new Uint8Array([1, 2])", b"\x01\x02"),
        ("new ArrayBuffer(2)", b"\0\0"),
        ("new Float64Array([1.5])", [1.5]),
        ("new Date(0)", datetime(1970, 1, 1, tzinfo=UTC)),
        ("new Map([[1, 'a'], ['k', 2]])", {1: "a", "k": 2}),
        ("new Set([1, 2])", [1, 2]),
        ("({ $int: 1 })", {"$int": 1}),
        ("JSON.parse('{\"__proto__\": 1}')", {"__proto__": 1}),
        ("Object.create(null)", {}),
    ],
)
def test_values_cross_outwards(prefix: Prefix, code: str, value: object) -> None:
    result = prefix.run(f"export default {code}")
    assert result.ok, result.error
    assert result.value == value
    assert type(result.value) is type(value)


@pytest.mark.parametrize(
    ("value", "seen"),
    [
        (None, "null"),
        (True, "true"),
        (1 << 53, "9007199254740992"),
        (1 << 70, "1180591620717411303424n"),
        (1.5, "1.5"),
        ("é", "é"),
        (b"\x01", "Uint8Array(1) [ 1 ]"),
        ([1, (2,)], "[ 1, [ 2 ] ]"),
        ({"a": 1, "$b": 2}, "{ a: 1, '$b': 2 }"),
        ({1: 2}, "Map(1) { 1 => 2 }"),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02T00:00:00.000Z"),
    ],
)
def test_values_cross_inwards(prefix: Prefix, value: object, seen: str) -> None:
    result = prefix.run("console.log(await lookup(1))", globals={"lookup": lambda _key: value})
    assert (result.stdout, result.error) == (seen + "\n", None)


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("{ a: [1, { b() {} }] }", "default.a[1].b is a function"),
        ("{ s: Symbol() }", "default.s is a symbol"),
        ("[Promise.resolve(1)]", "default[0] is a Promise (is an `await` missing?)"),
        ("{ p: new Proxy({}, {}) }", "default.p is a Proxy"),
        ("new (class User {})()", "default is a User"),
        ("/x/", "default is a RegExp"),
        ("new WeakMap()", "default is a WeakMap"),
        ("new Date(NaN)", "default is a Date outside"),
        ("{ m: new Map([[{}, 1]]) }", "a key of default.m is no text or number"),
        ("(() => { const a = []; a.push(a); return a })()", "nested deeper than 200, or contains itself"),
    ],
)
def test_what_can_not_cross_is_named_by_its_path(prefix: Prefix, code: str, why: str) -> None:
    result = prefix.run(f"export default {code}; export const fine = 1")
    assert result.ok
    assert result.exports["fine"] == 1
    with pytest.raises(NotExported) as error:
        result.exports["default"]
    assert why in str(error.value)


def test_an_argument_that_can_not_cross_is_the_guests_error(prefix: Prefix) -> None:
    result = prefix.run("try { await lookup(1, { f() {} }) } catch (e) { console.log(e.name, e.message) }")
    assert result.stdout.startswith("TypeError lookup() argument 2.f is a function")
    assert result.bridge_calls == 0


def test_what_a_host_function_raises_reaches_the_guest_as_name_and_message_only(prefix: Prefix) -> None:
    caught = prefix.run(
        "try { await lookup(0) } catch (e) { console.log(e.name, '|', e.message, '|', Object.keys(e)) }"
    )
    assert caught.stdout == "ValueError | no such user | []\n"
    loose = prefix.run("await lookup(0)")
    assert loose.error is not None
    assert (loose.error.code, loose.error.name, loose.error.message) == ("RUNTIME_ERROR", "ValueError", "no such user")
    assert __file__ not in loose.error.stack


def test_a_host_function_that_gives_what_can_not_cross_is_an_error_in_the_guest(prefix: Prefix) -> None:
    result = prefix.run("await lookup(1)", globals={"lookup": lambda _key: {"a": [object()]}})
    assert result.error is not None
    assert "lookup()['a'][0] is a object" in result.error.message


def test_runs_rebind_existing_names_only(prefix: Prefix) -> None:
    assert prefix.run("export default await lookup(1)", globals={"lookup": lambda key: key + 1}).value == 2
    assert prefix.run("export default (await lookup(1)).name").value == "Ada"
    with pytest.raises(ValueError, match="nope not in the prefix"):
        prefix.run("1", globals={"nope": len})


def test_async_host_functions_run_side_by_side(prefix: Prefix) -> None:
    together: list[int] = []

    async def count(key: int) -> int:
        together.append(key)
        deadline = time.monotonic() + 30
        while len(together) < 3 and time.monotonic() < deadline:
            await asyncio.sleep(0.01)
        return len(together)

    result = prefix.run("export default await Promise.all([1, 2, 3].map((k) => lookup(k)))", globals={"lookup": count})
    assert result.value == [3, 3, 3]


def test_every_run_starts_from_the_prefix_and_leaves_nothing(prefix: Prefix) -> None:
    prefix.run("globalThis.leak = 1; Array.prototype.leak = 1; globalThis.base = 'x'; export default 1")
    result = prefix.run("export default [typeof leak, [].leak, base]")
    assert result.value == ["undefined", None, "https://api.example.com"]


def test_randomness_differs_from_run_to_run(prefix: Prefix) -> None:
    code = "export default [Math.random(), crypto.randomUUID(), [...crypto.getRandomValues(new Uint8Array(8))].join()]"
    runs = [prefix.run(code).value for _ in range(6)]
    assert all(len({run[place] for run in runs}) == 6 for place in range(3))


def test_work_that_was_not_awaited_is_done_before_the_run_ends(prefix: Prefix) -> None:
    code = "async function main() { await lookup(1); setTimeout(() => console.log('late'), 5) } main()"
    assert prefix.run(code).stdout == "late\n"


def test_typescript_is_stripped(prefix: Prefix) -> None:
    code = (
        "interface U { name: string }\nenum E { A = 4 }\nconst u = await lookup(1) as U; export default [u.name, E.A]"
    )
    assert prefix.run(code).value == ["Ada", 4]


@pytest.mark.parametrize(
    ("code", "error", "name", "message"),
    [
        ("export default (", "SYNTAX_ERROR", "SyntaxError", "Unexpected end of input"),
        ("const a = 1; const a = 2", "SYNTAX_ERROR", "SyntaxError", "already been declared"),
        ("undefined.x", "RUNTIME_ERROR", "TypeError", "undefined"),
        ("eval('(')", "RUNTIME_ERROR", "SyntaxError", "nexpected"),
        ("throw { odd: true }", "RUNTIME_ERROR", "object", "{ odd: true }"),
        ("Promise.reject(new RangeError('lost')); await lookup(1)", "RUNTIME_ERROR", "RangeError", "lost"),
        ("import fs from 'node:fs'", "RUNTIME_ERROR", "TypeError", "can't import 'node:fs'"),
    ],
)
def test_errors_have_code_name_and_message(prefix: Prefix, code: str, error: str, name: str, message: str) -> None:
    result = prefix.run(code)
    assert not result.ok
    assert result.error is not None
    assert (result.error.code, result.error.name) == (error, name)
    assert message in result.error.message


def test_a_stack_names_the_guests_code_only(prefix: Prefix) -> None:
    result = prefix.run("function f() {\n  throw new Error('here') }\nf()")
    assert result.error is not None
    assert re.search(r"at f \(run\.mjs:2:\d+\)\n +at run\.mjs:3:1$", result.error.stack)
    assert "belljar" not in result.error.stack


def test_a_failing_prefix_says_why(js: JsInterpreter) -> None:
    with pytest.raises(PrefixError, match="the prefix failed: RUNTIME_ERROR: Error: no"):
        js.precompile("throw new Error('no')")
    with pytest.raises(PrefixError, match="SYNTAX_ERROR"):
        js.precompile("let let")


def test_a_prefix_may_be_a_script_or_a_module_and_call_the_host(js: JsInterpreter) -> None:
    with js.precompile("var lib = this === globalThis; const kept = 1") as script:
        assert script.run("export default [lib, kept]").value == [True, 1]
    with js.precompile("globalThis.got = await fetchIt()", globals={"fetchIt": lambda: 7}) as module:
        assert module.run("export default got").value == 7


def test_plain_globals_are_values(js: JsInterpreter) -> None:
    with js.precompile(globals={"config": {"limit": 3}}) as prefix:
        assert prefix.run("export default config.limit").value == 3
        assert prefix.run("export default config.limit", globals={"config": {"limit": 4}}).value == 4


def test_a_session_keeps_its_variables(engine: str) -> None:
    with belljar.js() as js:
        assert js.run("let x = 41").value is None
        assert js.run("x + 1").value == 42
        assert (
            js.run("const y = await f(2); class A { z() { return y } }; y", globals={"f": lambda n: n * 2}).value == 4
        )
        assert js.run("let x = 1; const y = 5; new A().z() + x + await f(1)").value == 8
        failed = js.run("throw new TypeError('no')")
        assert failed.error is not None
        assert failed.error.name == "TypeError"
        spun = js.run("for (;;);", limits=RunLimits(cpu_ms=50))
        assert spun.error is not None
        assert spun.error.code == "CPU_LIMIT"
        assert js.run("x").value == 1
        js.reset()
        assert js.run("typeof x").value == "undefined"


def test_a_sandbox_has_its_tools_as_functions(engine: str) -> None:
    with Sandbox(tools={"add": lambda a, b: a + b}) as sandbox:
        assert sandbox.js.run("await add(1, 2)").value == 3
        assert sandbox.js.precompile("globalThis.k = 5").run("export default k + await add(1, 1)").value == 7


def test_async_fronts(engine: str) -> None:
    async def main() -> list[Any]:
        async def add(a: int, b: int) -> int:
            await asyncio.sleep(0)
            return a + b

        async with AsyncSandbox(tools={"add": add}) as sandbox:
            await sandbox.js.run("let x = 1")
            first = (await sandbox.js.run("await add(x, 1)")).value
            prefix = await sandbox.js.precompile("globalThis.k = 5")
            runs = await asyncio.gather(*(prefix.run(f"export default k + await add({i}, 0)") for i in range(5)))
            task = asyncio.create_task(prefix.run("await add(1, 1); await new Promise(r => setTimeout(r, 60000))"))
            await asyncio.sleep(0.2)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return [first, [run.value for run in runs], (await prefix.run("export default k")).value]

    assert asyncio.run(main()) == [2, [5, 6, 7, 8, 9], 5]


def test_a_closed_prefix_says_so(js: JsInterpreter) -> None:
    prefix = js.precompile("1")
    prefix.close()
    prefix.close()
    with pytest.raises(belljar.SandboxError, match="the prefix is closed"):
        prefix.run("1")


def test_many_prefixes_wait_at_once() -> None:
    """Each has a run ready, whose descriptors are on their way; the kernel counts those of all our processes."""
    with belljar.js() as js:
        prefixes = [js.precompile(f"globalThis.n = {n}") for n in range(24)]
        assert [prefix.run("export default n").value for prefix in prefixes] == list(range(24))
        for prefix in prefixes:
            prefix.close()
