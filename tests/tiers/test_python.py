"""`python`: values, outputs, errors, limits, host functions, prefixes, saved variables."""

from __future__ import annotations

import math
import threading
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from belljar import FileError, RunFailed, RunLimits, Sandbox, SandboxClosed, SandboxError, SavedVariables, ToolError
from tests.tiers.conftest import Make

VALUES: dict[str, tuple[str, Any]] = {
    "None": ("None", None),
    "True": ("1 == 1", True),
    "int": ("6 * 7", 42),
    "a large int": ("2 ** 200", 2**200),
    "a negative large int": ("-(2 ** 100)", -(2**100)),
    "float": ("0.5", 0.5),
    "infinity": ("float('inf')", math.inf),
    "str": ("'żółć' + chr(0x1f514)", "żółć🔔"),
    "a lone surrogate": ("'\\ud800'", "\ud800"),
    "bytes": ("bytes([0, 255])", b"\x00\xff"),
    "bytearray": ("bytearray(b'x')", b"x"),
    "list": ("[1, [2, None]]", [1, [2, None]]),
    "a tuple": ("1, 'a'", [1, "a"]),
    "dict": ("{'a': {'b': 1}}", {"a": {"b": 1}}),
    "a dict with other keys": ("{1: 'a', (2, 3): 'b', None: 'c'}", {1: "a", (2, 3): "b", None: "c"}),
    "datetime": (
        "import datetime as d; d.datetime(2026, 1, 2, 3, 4, 5, tzinfo=d.timezone.utc)",
        datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
    ),
    "no expression": ("x = 1", None),
    "the last expression": ("x = 1\nx + 1\nx + 2", 3),
    "await": ("import asyncio\nawait asyncio.sleep(0, 7)", 7),
    "many": ("list(range(10000))", list(range(10_000))),
}


@pytest.mark.parametrize(("code", "value"), VALUES.values(), ids=VALUES)
def test_values(sb: Sandbox, code: str, value: Any) -> None:
    result = sb.python.run(code)
    assert (result.ok, result.error) == (True, None)
    assert result.value == value
    assert type(result.value) is type(value)


def test_nan(sb: Sandbox) -> None:
    assert math.isnan(sb.python.run("float('nan')").value)


def test_it_keeps_its_variables(sb: Sandbox) -> None:
    sb.python.run("x = 40\ndef f(n): return n + x")
    sb.python.run("import json as j")
    assert sb.python.run("f(2)").value == 42
    assert sb.python.run("j.dumps([1])").value == "[1]"
    assert sb.python.run("_ + '!'").value == "[1]!"


def test_printing(sb: Sandbox) -> None:
    result = sb.python.run("import sys\nprint('out', 1)\nprint('err', file=sys.stderr)")
    assert (result.stdout, result.stderr) == ("out 1\n", "err\n")
    assert sb.python.run("1").stdout == ""


def test_printing_is_heard_as_it_comes(sb: Sandbox) -> None:
    """The next is printed once the one before was heard."""
    heard: list[bytes] = []

    def wait_for(text: str) -> bool:
        ends = time.monotonic() + 120
        while not b"".join(heard).endswith(text.encode()) and time.monotonic() < ends:
            time.sleep(0.001)
        return b"".join(heard).endswith(text.encode())

    code = "[print(n) or wait_for(f'{n}\\n') for n in range(3)]"
    limits = RunLimits(wall_ms=300_000)
    result = sb.python.run(code, globals={"wait_for": wait_for}, limits=limits, on_stdout=heard.append)
    assert result.value == [True, True, True]
    assert b"".join(heard) == b"0\n1\n2\n"
    assert result.stdout == "0\n1\n2\n"


def test_what_a_subprocess_prints(sb: Sandbox) -> None:
    result = sb.python.run("import subprocess\nsubprocess.run(['echo', 'child']).returncode")
    assert (result.value, result.stdout) == (0, "child\n")


def test_exports(sb: Sandbox) -> None:
    result = sb.python.run("__all__ = ['a', 'b']\na = 1\nb = [2]\na + 2")
    assert dict(result.exports) == {"a": 1, "b": [2], "default": 3}


def test_what_can_not_cross(sb: Sandbox) -> None:
    result = sb.python.run("object()")
    assert result.ok
    with pytest.raises(SandboxError, match="can't cross"):
        _ = result.value
    assert [output.mime for output in result.outputs] == ["text/plain"]
    failed = sb.python.run("__all__ = ['f']\nf = [1, {'g': print}]")
    assert failed.error is not None
    assert "f[1]['g']" in failed.error.message


def test_display(sb: Sandbox) -> None:
    code = (
        "class T:\n    def _repr_html_(self): return '<b>t</b>'\n    def __repr__(self): return 't'\ndisplay(T(), 'x')"
    )
    assert [(o.mime, o.data) for o in sb.python.run(code).outputs] == [
        ("text/html", b"<b>t</b>"),
        ("text/plain", b"t"),
        ("text/plain", b"x"),
    ]


ERRORS: dict[str, tuple[str, str, str, str]] = {
    "syntax": ("1 +", "SYNTAX_ERROR", "SyntaxError", "invalid syntax"),
    "indentation": ("if 1:\nx", "SYNTAX_ERROR", "IndentationError", "expected an indented block"),
    "a name": ("missing", "RUNTIME_ERROR", "NameError", "'missing' is not defined"),
    "an exception": ("raise ValueError('bad')", "RUNTIME_ERROR", "ValueError", "bad"),
    "division": ("1 / 0", "RUNTIME_ERROR", "ZeroDivisionError", "division"),
    "a guest's own": ("class E(Exception): pass\nraise E('own')", "RUNTIME_ERROR", "E", "own"),
    "recursion": ("def f(): f()\nf()", "RUNTIME_ERROR", "RecursionError", "recursion"),
    "exit": ("import sys; sys.exit(3)", "RUNTIME_ERROR", "SystemExit", "3"),
    "a missing module": ("import no_such_module", "RUNTIME_ERROR", "ModuleNotFoundError", "no_such_module"),
    "a missing file": ("open('/no/such')", "RUNTIME_ERROR", "FileNotFoundError", "No such file"),
    "an interrupt": ("raise KeyboardInterrupt", "RUNTIME_ERROR", "KeyboardInterrupt", ""),
}


@pytest.mark.parametrize(("code", "kind", "name", "text"), ERRORS.values(), ids=ERRORS)
def test_errors(sb: Sandbox, code: str, kind: str, name: str, text: str) -> None:
    sb.python.run("kept = 1").check()
    result = sb.python.run(code)
    assert not result.ok
    assert result.error is not None
    assert (result.error.code, result.error.name) == (kind, name)
    assert text in result.error.message
    assert sb.python.run("kept").value == 1


def test_a_traceback_is_the_guests_own(sb: Sandbox) -> None:
    error = sb.python.run("def f():\n    raise ValueError('x')\n\nf()").error
    assert error is not None
    lines = error.stack.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert [line.strip() for line in lines if line.startswith("  File")] == [
        'File "<run 1>", line 4, in <module>',
        'File "<run 1>", line 2, in f',
    ]
    assert "    raise ValueError('x')" in lines
    assert lines[-1] == "ValueError: x"


def test_exit_without_a_code_is_no_error(sb: Sandbox) -> None:
    assert sb.python.run("raise SystemExit").ok
    assert sb.python.run("1 + 1").value == 2


def test_check(sb: Sandbox) -> None:
    assert sb.python.run("1").check().value == 1
    with pytest.raises(RunFailed, match="ValueError: bad"):
        sb.python.run("raise ValueError('bad')").check()


def test_the_end_of_the_process(sb: Sandbox) -> None:
    error = sb.python.run("import os; os._exit(3)").error
    assert error is not None
    assert error.code == "CRASHED"
    assert sb.python.run("1 + 1").value == 2


def test_processor_time(sb: Sandbox) -> None:
    sb.python.run("lost = 1").check()
    error = sb.python.run("while True: pass", limits=RunLimits(cpu_ms=300)).error
    assert error is not None
    assert error.code == "CPU_LIMIT"
    assert sb.python.run("'lost' in globals()").value is False


def test_the_wall_clock(sb: Sandbox) -> None:
    error = sb.python.run("import time; time.sleep(60)", limits=RunLimits(wall_ms=300)).error
    assert error is not None
    assert (error.code, error.message) == ("WALL_LIMIT", "the run took longer than 300 ms")
    assert sb.python.run("1 + 1").value == 2


def test_memory(sb: Sandbox) -> None:
    sb.python.run("kept = 1").check()
    code = "x = []\nwhile True: x.append(bytearray(1 << 20))"
    error = sb.python.run(code, limits=RunLimits(memory_mb=64)).error
    assert error is not None
    assert error.code == "MEMORY_LIMIT"
    assert sb.python.run("kept").value == 1


def test_output(make: Make) -> None:
    from belljar import Limits

    sb = make(limits=Limits(output_bytes=10_000))
    error = sb.python.run("print('x' * 100000)").error
    assert error is not None
    assert error.code == "OUTPUT_LIMIT"
    assert sb.python.run("1 + 1").value == 2


def test_host_functions(sb: Sandbox) -> None:
    def join(*parts: str, sep: str = "-") -> str:
        return sep.join(parts)

    assert sb.python.run("join('a', 'b', sep='+')", globals={"join": join}).value == "a+b"
    assert sb.python.run("join('c', 'd')").value == "c-d"


def test_values_are_bound(sb: Sandbox) -> None:
    assert sb.python.run("n + len(text)", globals={"n": 40, "text": "ab"}).value == 42


def test_host_functions_may_be_async(sb: Sandbox) -> None:
    import asyncio

    async def slow(n: int) -> int:
        await asyncio.sleep(0.01)
        return n * 2

    code = "import asyncio\nawait asyncio.gather(*(slow(n) for n in range(5)))"
    result = sb.python.run(code, globals={"slow": slow})
    assert (result.value, result.bridge_calls) == ([0, 2, 4, 6, 8], 5)


def test_host_functions_that_raise(sb: Sandbox) -> None:
    def fail() -> None:
        raise ToolError("not today")

    error = sb.python.run("fail()", globals={"fail": fail}).error
    assert error is not None
    assert (error.code, error.message) == ("RUNTIME_ERROR", "not today")
    code = "try:\n    fail()\nexcept Exception as error:\n    caught = type(error).__name__, str(error)\ncaught"
    assert sb.python.run(code).value == ["HostError", "ToolError: not today"]


def test_calls_of_host_functions_are_bounded(sb: Sandbox) -> None:
    code = "for n in range(100): f(n)"
    error = sb.python.run(code, globals={"f": lambda n: n}, limits=RunLimits(max_bridge_calls=10)).error
    assert error is not None
    assert error.code == "BRIDGE_LIMIT"


def test_tools_are_bound(make: Make) -> None:
    sb = make(tools={"look-up": lambda key: key.upper()})
    assert sb.python.run("look_up('a')").value == "A"


def test_it_has_the_sandboxs_files(sb: Sandbox) -> None:
    sb.files.write("data.txt", "1\n2\n")
    assert sb.python.run("import os\nos.getcwd(), open('data.txt').read()").value == ["/workspace", "1\n2\n"]
    sb.python.run("with open('made', 'w') as file: file.write('x')")
    assert sb.exec("cat made").stdout == "x"


def test_modules_of_the_working_directory(sb: Sandbox) -> None:
    sb.files.write("mine.py", "answer = 42\n")
    assert sb.python.run("import mine; mine.answer").value == 42


def test_it_has_the_sandboxs_environment(make: Make) -> None:
    sb = make(env={"A": "1"})
    assert sb.python.run("import os; os.environ['A'], os.environ['HOME']").value == ["1", "/home/agent"]


def test_interrupt(sb: Sandbox) -> None:
    sb.python.run("kept = 1").check()
    begun = threading.Event()

    def interrupt() -> None:
        begun.wait(120)
        sb.python.interrupt()

    thread = threading.Thread(target=interrupt)
    thread.start()
    code = "import time\nprint('begun')\nwhile True: time.sleep(0.01)"
    error = sb.python.run(code, limits=RunLimits(wall_ms=120_000), on_stdout=lambda _data: begun.set()).error
    begun.set()
    thread.join()
    assert error is not None
    assert error.name == "KeyboardInterrupt"
    assert sb.python.run("kept").value == 1


def test_reset(sb: Sandbox) -> None:
    sb.python.run("x = 1")
    sb.python.reset()
    assert sb.python.run("'x' in globals()").value is False


def test_a_prefix(sb: Sandbox) -> None:
    prefix = sb.python.precompile("import json\ncount = [0]\ndef up():\n    count[0] += 1\n    return count[0]")
    assert [prefix.run("up(), json.dumps(1)").value for _ in range(3)] == [[1, "1"]] * 3
    prefix.close()
    with pytest.raises(SandboxError, match="closed"):
        prefix.run("1")


def test_a_prefix_with_host_functions(sb: Sandbox) -> None:
    prefix = sb.python.precompile("base = 10", globals={"f": lambda n: n + 1, "k": 5})
    assert prefix.run("f(base) + k").value == 16
    assert prefix.run("f(base) + k", globals={"f": lambda n: n * 2, "k": 0}).value == 20
    with pytest.raises(ValueError, match="not in the prefix"):
        prefix.run("1", globals={"other": 1})


def test_a_run_of_a_prefix_ends_only_itself(sb: Sandbox) -> None:
    prefix = sb.python.precompile("x = 1")
    error = prefix.run("while True: pass", limits=RunLimits(cpu_ms=300)).error
    assert error is not None
    assert error.code == "CPU_LIMIT"
    assert prefix.run("x").value == 1


def test_a_prefix_that_fails(sb: Sandbox) -> None:
    with pytest.raises(SandboxError, match="the prefix failed"):
        sb.python.precompile("1 / 0")


def test_saved_variables(make: Make) -> None:
    first, second = make(), make()
    first.python.run(
        "rows = [1, 2]\nsame = rows\ndef total(): return sum(rows)\nimport math\nfile = open('/tmp/f', 'w')"
    )
    saved = first.python.save()
    assert list(saved.left_out) == ["file"]
    sealed = saved.seal(b"a key", "mine")
    assert second.python.load(SavedVariables.unseal(sealed, b"a key", "mine")) == {}
    assert second.python.run("same.append(3)\ntotal(), math.floor(1.5)").value == [6, 1]


@pytest.mark.feature("fork")
def test_a_fork_has_its_variables(make: Make) -> None:
    sb = make()
    sb.python.run("x = [1]")
    branch = make.keep(sb.fork())
    branch.python.run("x.append(2)")
    assert branch.python.run("x").value == [1, 2]
    assert sb.python.run("x").value == [1]


WRONG: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "code": ({"code": b"1"}, TypeError, "code is a str"),
    "limits": ({"code": "1", "limits": 5}, TypeError, "RunLimits"),
    "globals": ({"code": "1", "globals": {"not a name": 1}}, ValueError, "not a name"),
    "a value": ({"code": "1", "globals": {"x": object()}}, ValueError, "can't cross"),
}


@pytest.mark.parametrize(("options", "error", "text"), WRONG.values(), ids=WRONG)
def test_what_makes_no_sense(sb: Sandbox, options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        sb.python.run(**options)


def test_after_the_end(sb: Sandbox) -> None:
    sb.python.run("1")
    sb.close()
    with pytest.raises(SandboxClosed):
        sb.python.run("1")


def test_python_as_a_command(sb: Sandbox) -> None:
    result = sb.exec(["python3", "-c", "import sys; print(sys.argv[1], sys.stdin.read())", "arg"], stdin="in")
    assert result.stdout == "arg in\n"
    assert sb.exec("python3 -c 'raise SystemExit(3)'").exit_code == 3
    with pytest.raises(FileError):
        sb.files.read("never")
