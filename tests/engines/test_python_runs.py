"""`sandbox.python`: a session that keeps its state, prefixes that runs start from, and what each run may use."""

from __future__ import annotations

import asyncio
import struct
import threading
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import belljar
from belljar import AsyncSandbox, RunLimits, Sandbox
from belljar.abi.signals import Signal as SignalNumber
from belljar.abi.wire import Signal
from belljar.api.interpreter import Interpreter
from belljar.api.interpreter_core import PrefixError
from belljar.api.prefix import Prefix
from belljar.api.runs import NotExported, RunResult


@pytest.fixture
def python(shared: Sandbox) -> Iterator[Interpreter]:
    yield shared.python
    shared.python.reset()


def failed(result: RunResult, code: str) -> str:
    assert result.error is not None
    assert result.error.code == code, result.error
    return result.error.message


def test_a_session_keeps_its_variables(python: Interpreter) -> None:
    assert python.run("x = 41").value is None
    assert python.run("x + 1").value == 42
    assert python.run("_").value == 42
    python.run("def f(n):\n    return n * x")
    assert python.run("f(2)").value == 82
    python.reset()
    assert "name 'x' is not defined" in failed(python.run("x"), "RUNTIME_ERROR")


def test_the_value_of_a_line(python: Interpreter) -> None:
    """One that is one expression, one that is not, and one that only looks like it."""
    assert python.run("1, 2").value == [1, 2]
    assert python.run("*[1], 2  # a comment").value == [1, 2]
    assert python.run("x = 1; x + 1").value == 2
    assert python.run("x = 5").value is None
    assert python.run("await __import__('asyncio').sleep(0, 7)").value == 7
    assert "unexpected indent" in failed(python.run(" 1 + 1"), "SYNTAX_ERROR")
    assert failed(python.run("1 +"), "SYNTAX_ERROR") == "invalid syntax (<run 7>, line 1)"
    assert python.run(r"str('\d'); y = 1").stderr.count("SyntaxWarning") == 1


def test_what_it_prints(python: Interpreter) -> None:
    result = python.run("import sys\nprint('out')\nprint('err', file=sys.stderr)\nprint('x' * 100_000)")
    assert result.ok
    assert result.stdout == "out\n" + "x" * 100_000 + "\n"
    assert result.stderr == "err\n"
    child = python.run("import subprocess; print(subprocess.run('echo child', shell=True).returncode)")
    assert child.stdout == "child\n0\n"


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        3,
        -(2**80),
        1.5,
        "žluť",
        b"\x00\xff",
        [1, [2]],
        {"a": {"b": None}},
        {1: 2},
        datetime(2024, 1, 2, tzinfo=UTC),
    ],
)
def test_values_cross_both_ways(python: Interpreter, value: Any) -> None:
    result = python.run("given", globals={"given": value})
    assert result.value == value
    assert type(result.value) is type(value)


def test_a_value_that_can_not_cross(python: Interpreter) -> None:
    result = python.run("{'a': [1, {2}]}")
    assert result.ok
    with pytest.raises(NotExported, match=r"the last expression\['a'\]\[1\] is a set, which can't cross"):
        _ = result.value
    assert [(o.mime, o.text) for o in result.outputs] == [("text/plain", "{'a': [1, {2}]}")]
    assert "which can't cross" in failed(python.run("__all__ = ['f']\ndef f(): pass"), "RUNTIME_ERROR")
    with pytest.raises(ValueError, match=r"globals\['f'\] is a set"):
        python.run("1", globals={"f": {1}})


def test_errors_have_the_guests_own_traceback(python: Interpreter) -> None:
    python.run("def divide(a):\n    return a / 0")
    result = python.run("print('before')\ndivide(1)")
    assert failed(result, "RUNTIME_ERROR") == "division by zero"
    assert result.error is not None
    assert result.error.name == "ZeroDivisionError"
    assert result.stdout == "before\n"
    lines = result.error.stack.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert '  File "<run 2>", line 2, in <module>' in lines
    assert "    return a / 0" in lines
    assert "_belljar" not in result.error.stack
    assert "invalid syntax" in failed(python.run("def f(:"), "SYNTAX_ERROR")
    assert python.run("1").value == 1


def test_the_end_of_a_program_is_not_the_end_of_the_session(python: Interpreter) -> None:
    python.run("x = 1")
    assert python.run("import sys; sys.exit()").ok
    assert failed(python.run("raise SystemExit('bad')"), "RUNTIME_ERROR") == "bad"
    assert python.run("x").value == 1
    assert "exit code 3" in failed(python.run("import os; os._exit(3)"), "CRASHED")
    assert python.run("1").value == 1


def test_figures_and_tables(python: Interpreter) -> None:
    shown = python.run("import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.show()")
    assert shown.ok, shown.error
    (png,) = shown.outputs
    assert png.mime == "image/png"
    assert png.data.startswith(b"\x89PNG\r\n")
    assert struct.unpack(">II", png.data[16:24])[0] > 100
    assert python.run("len(plt.get_fignums())").value == 0
    table = python.run("import pandas as pd\npd.DataFrame({'a': [1, 2]})")
    assert [o.mime for o in table.outputs] == ["text/html", "text/plain"]
    assert "<table" in table.outputs[0].text
    assert table.outputs[1].text.split() == ["a", "0", "1", "1", "2"]
    assert python.run("pd.DataFrame({'a': [1, 2]})['a'].sum()").value == 3
    assert [o.text for o in python.run("display('hi', 3)").outputs] == ["hi", "3"]


def test_host_functions(python: Interpreter) -> None:
    def look(a: int, *, b: int = 1) -> dict[str, int]:
        return {"sum": a + b}

    async def later(a: int) -> int:
        await asyncio.sleep(0.01)
        return a * 10

    def bad() -> None:
        raise LookupError("not there")

    bound = {"look": look, "later": later, "bad": bad, "odd": lambda: {1}}
    assert python.run("look(1), look(1, b=5)", globals=bound).value == [{"sum": 2}, {"sum": 6}]
    assert python.run("later(4)").value == 40
    assert python.run("await later(4)").value == 40
    gathered = python.run("import asyncio\nawait asyncio.gather(*(later(n) for n in range(5)))")
    assert gathered.value == [0, 10, 20, 30, 40]
    assert gathered.bridge_calls == 5
    failing = python.run("bad()")
    assert failed(failing, "RUNTIME_ERROR") == "not there"
    caught = python.run("try:\n    bad()\nexcept Exception as e:\n    name = type(e).__name__\nname")
    assert caught.value == "HostError"
    assert "which can't cross" in failed(python.run("odd()"), "RUNTIME_ERROR")
    assert "is a set" in failed(python.run("look({1})"), "RUNTIME_ERROR")


def test_tools_are_functions_too() -> None:
    with Sandbox(tools={"web-search": lambda query: [f"found {query}"]}) as sandbox:
        assert sandbox.python.run("web_search('bell jars')").value == ["found bell jars"]
        assert sandbox.python.run("web_search(query='x')").value == ["found x"]


@pytest.mark.parametrize(
    ("code", "limits", "error"),
    [
        ("while True: pass", RunLimits(cpu_ms=200), "CPU_LIMIT"),
        ("import re; re.match(r'(a+)+$', 'a' * 64 + 'b')", RunLimits(cpu_ms=200), "CPU_LIMIT"),
        ("9 ** 9 ** 8", RunLimits(cpu_ms=200), "CPU_LIMIT"),
        ("import time; time.sleep(60)", RunLimits(wall_ms=200), "WALL_LIMIT"),
        ("import subprocess; subprocess.run(['sleep', '60'])", RunLimits(wall_ms=300), "WALL_LIMIT"),
        ("x = bytearray(256 << 20)", RunLimits(memory_mb=64), "MEMORY_LIMIT"),
        ("x = []\nwhile True: x.append('y' * 100_000 + str(len(x)))", RunLimits(memory_mb=64), "MEMORY_LIMIT"),
        ("while True: host()", RunLimits(max_bridge_calls=20), "BRIDGE_LIMIT"),
        ("host('x' * 5000)", RunLimits(max_bridge_bytes=4000), "BRIDGE_LIMIT"),
        ("import sys; sys.setrecursionlimit(10**9)\ndef f(): f()\nf()", RunLimits(), "CRASHED"),
    ],
)
def test_limits(python: Interpreter, code: str, limits: RunLimits, error: str) -> None:
    """Each ends the run, with its own code; the next run is served, by a new interpreter or the same."""
    began = time.monotonic()
    failed(python.run(code, limits=limits, globals={"host": lambda *a: None}), error)
    assert time.monotonic() - began < 30
    assert python.run("1 + 1").value == 2


def test_each_run_has_its_own_allowance(python: Interpreter) -> None:
    spin = "import time\nuntil = time.process_time() + 0.15\nwhile time.process_time() < until: pass"
    for _ in range(4):
        assert python.run(spin, limits=RunLimits(cpu_ms=1000)).ok
    failed(python.run("while True: pass", limits=RunLimits(cpu_ms=100)), "CPU_LIMIT")


def test_files_are_the_sandboxs(shared: Sandbox, python: Interpreter) -> None:
    shared.files.write("/workspace/in.txt", "hello")
    python.run("text = open('in.txt').read()\nopen('out.txt', 'w').write(text.upper())")
    assert shared.exec("cat out.txt").stdout == "HELLO"


# Prefixes.


@pytest.fixture(scope="module")
def prefix() -> Iterator[Prefix]:
    with Sandbox(files={"/workspace/x": "file"}) as sandbox:
        code = "import json\nitems = [1, 2]\ndef total(): return sum(items)\nseen = look('at prefix')"
        yield sandbox.python.precompile(code, globals={"look": lambda text: f"saw {text}", "size": 3})


def test_runs_start_from_the_prefixs_exact_state(prefix: Prefix) -> None:
    assert prefix.run("items.append(3); total()").value == 6
    assert prefix.run("total(), seen, size").value == [3, "saw at prefix", 3]
    assert prefix.run("items").value == [1, 2]
    assert prefix.run("open('/workspace/x').read()").value == "file"


def test_exports(prefix: Prefix) -> None:
    result = prefix.run("__all__ = ['a', 'b']\na = 1\nb = {'x': [total()]}\nc = 3\nprint('said')")
    assert result.exports == {"a": 1, "b": {"x": [3]}, "default": None}
    assert result.stdout == "said\n"
    assert result.duration_ms > 0
    assert "names 'zzz'" in failed(prefix.run("__all__ = ['zzz']"), "RUNTIME_ERROR")
    with pytest.raises(NotExported, match="exported no 'other'"):
        result.exports["other"]


def test_names_are_rebound_for_one_run(prefix: Prefix) -> None:
    assert prefix.run("look(1), size", globals={"look": lambda n: n + 1, "size": 9}).value == [2, 9]
    assert prefix.run("look(1), size").value == ["saw 1", 3]
    with pytest.raises(ValueError, match="rebinds existing names only"):
        prefix.run("1", globals={"unknown": 1})


def test_a_run_finds_nothing_of_what_its_process_did_before(shared: Sandbox) -> None:
    """Copies made ahead have a run of their own, of which neither their variables nor their modules know."""
    code = "import builtins, linecache, sys\nbuiltins._ = 'mine'\n__all__ = ['kept']\nkept = 1"
    look = "[sorted(n for n in globals() if n[0] != '_'), _, [f for f in linecache.cache if 'warm-up' in f], before]"
    with shared.python.precompile(code + "\nbefore = len(sys.modules)") as prefix:
        for _ in range(3):
            names, value, files, before = prefix.run(look).value
            assert (names, value, files) == (["before", "builtins", "kept", "linecache", "sys"], "mine", [])
            assert prefix.run("len(sys.modules)").value == before
            time.sleep(0.05)


def test_what_a_prefix_makes_of_builtins_is_for_its_own_code(shared: Sandbox) -> None:
    spoilt = "import ast, builtins\ndef loop(*args, **more):\n    while True: pass\n"
    spoilt += "".join(f"{name} = loop\n" for name in ("ast.parse", "ast.Expr", "builtins.compile", "builtins.eval"))
    with shared.python.precompile(spoilt) as prefix:
        for code in ("1 + 1", "x = 2\nx", "2"):
            assert prefix.run(code).value == 2
        assert failed(prefix.run("eval('1')", limits=RunLimits(cpu_ms=200)), "CPU_LIMIT")


def test_random_numbers_differ_between_runs(prefix: Prefix) -> None:
    code = "import random, os, uuid\n[random.random(), os.urandom(8).hex(), str(uuid.uuid4())]"
    first, second = prefix.run(code).value, prefix.run(code).value
    assert all(a != b for a, b in zip(first, second, strict=True))


def test_parallel_runs(prefix: Prefix) -> None:
    results: dict[int, Any] = {}

    def work(number: int) -> None:
        results[number] = prefix.run(f"items.append({number}); look({number}), items[-1]").value

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == {number: [f"saw {number}", number] for number in range(6)}


@pytest.mark.parametrize(
    ("code", "limits", "error"),
    [
        ("while True: pass", RunLimits(cpu_ms=150), "CPU_LIMIT"),
        ("import time; time.sleep(60)", RunLimits(wall_ms=200), "WALL_LIMIT"),
        ("x = bytearray(256 << 20)", RunLimits(memory_mb=64), "MEMORY_LIMIT"),
        ("while True: look(1)", RunLimits(max_bridge_calls=20), "BRIDGE_LIMIT"),
        ("import os; os._exit(0)", RunLimits(), "CRASHED"),
        ("def f(:", RunLimits(), "SYNTAX_ERROR"),
        ("1 / 0", RunLimits(), "RUNTIME_ERROR"),
    ],
)
def test_a_run_that_fails_leaves_the_prefix_alone(prefix: Prefix, code: str, limits: RunLimits, error: str) -> None:
    failed(prefix.run(code, limits=limits), error)
    assert prefix.run("total()").value == 3


def test_a_prefix_that_fails(shared: Sandbox) -> None:
    with pytest.raises(PrefixError, match="ZeroDivisionError") as caught:
        shared.python.precompile("1 / 0")
    assert caught.value.result.error is not None


def test_async() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            assert (await sandbox.python.run("x = 2")).ok
            assert (await sandbox.python.run("x * 3")).value == 6

            async def look(n: int) -> int:
                await asyncio.sleep(0.01)
                return n * 2

            prefix = await sandbox.python.precompile("y = 5", globals={"look": look})
            results = await asyncio.gather(*(prefix.run(f"look({n}) + y") for n in range(4)))
            assert [result.value for result in results] == [5, 7, 9, 11]
            late = await prefix.run("while True: pass", limits=RunLimits(cpu_ms=150))
            failed(late, "CPU_LIMIT")
            await prefix.close()

    asyncio.run(main())


def test_without_a_sandbox() -> None:
    with belljar.python() as alone:
        assert alone.run("x = 20").ok
        assert alone.run("x + 1").value == 21
        with alone.precompile("y = 2") as prefix:
            assert prefix.run("y * 2").value == 4
        alone.reset()
        failed(alone.run("x"), "RUNTIME_ERROR")

    async def main() -> None:
        async with belljar.async_python() as also:
            assert (await also.run("1 + 1")).value == 2

    asyncio.run(main())


def test_an_interrupted_run_leaves_the_variables(python: Interpreter) -> None:
    began = threading.Event()

    def interrupt() -> None:
        began.wait(60)
        time.sleep(0.2)
        python.interrupt()

    python.run("x = 5")
    thread = threading.Thread(target=interrupt)
    thread.start()
    result = python.run("began()\nwhile True: pass", limits=RunLimits(cpu_ms=20_000), globals={"began": began.set})
    thread.join()
    assert result.error is not None
    assert result.error.name == "KeyboardInterrupt", result.error
    assert python.run("x").value == 5


def test_an_interrupt_between_runs_is_none(python: Interpreter) -> None:
    python.run("x = 5")
    python.interrupt()
    assert python.run("x").value == 5


def test_an_interrupt_that_comes_too_late_costs_no_variables(python: Interpreter) -> None:
    python.run("x = 5")
    dialogue = python.core.dialogue
    assert dialogue is not None
    for _ in range(20):
        dialogue._send(dialogue._conversation.message(Signal(dialogue.number, SignalNumber.INT)))
        result = python.run("x")
        # It may still have come in time for this run, which is then what it ends.
        assert result.error is None or result.error.name == "KeyboardInterrupt", result.error
    assert python.run("x").value == 5


def test_what_a_host_function_raises_is_told_once(python: Interpreter) -> None:
    def refuse() -> None:
        raise ValueError("not today")

    error = python.run("refuse()", globals={"refuse": refuse}).error
    assert error is not None
    assert (error.name, error.message) == ("ValueError", "not today")
    assert "During handling" not in error.stack
    assert error.stack.endswith("ValueError: not today\n")


def test_memory_that_is_not_there_is_told_by_its_limit(python: Interpreter) -> None:
    result = python.run("a = bytes(300 << 20)", limits=RunLimits(memory_mb=64))
    assert "memory_mb=64" in failed(result, "MEMORY_LIMIT")


def test_a_traceback_is_whole_and_the_programs_own(python: Interpreter) -> None:
    python.run("def outer(x):\n    return inner(x)")
    python.run("async def inner_later(x):\n    return 1 / x\ndef inner(x):\n    return 1 / x")
    result = python.run("try:\n    outer(0)\nexcept ZeroDivisionError as error:\n    raise ValueError('no') from error")
    assert result.error is not None
    shown = [line.strip() for line in result.error.stack.splitlines() if line.startswith("    ") and "^" not in line]
    assert shown == ["outer(0)", "return inner(x)", "return 1 / x", "raise ValueError('no') from error"]
    later = python.run("await inner_later(0)")
    assert later.error is not None
    files = [line.split('"')[1] for line in later.error.stack.splitlines() if line.startswith("  File")]
    assert len(files) == 2
    assert all(name.startswith("<run ") for name in files), files
