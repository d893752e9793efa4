"""The owner's side of an interpreter, with a shell script that speaks its protocol in the interpreter's place."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

import pytest

from belljar import Limits, RunLimits, Sandbox
from belljar.api.async_interpreter import AsyncInterpreter
from belljar.api.async_sandbox import AsyncSandbox
from belljar.api.core import Conversation
from belljar.api.dialogue import PYTHON, Dialogue, Engine
from belljar.api.errors import EngineUnavailable
from belljar.api.interpreter import Interpreter
from belljar.api.interpreter_core import check_rebinding
from belljar.api.runs import NotExported

# Runs the "code" of each request as shell commands; they say on descriptor 4 what an interpreter would.
_SHELL = r"""
echo '0 {"op":"ready"}' >&4
while read -r -u 3 line; do
    code=$(jq -r .code <<< "$line") run=$(jq -r .run <<< "$line")
    done='{"op":"done","ok":true,"exports":{},"unsent":{}}'
    eval "$code"
    [ -n "$done" ] && printf '%s %s\n' "$run" "$done" >&4
done
"""
FAKE = Engine("fake", ("bash", "-c", _SHELL), (), "<run {}>")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox() as made:
        yield made


@pytest.fixture
def fake(sandbox: Sandbox) -> Iterator[Interpreter]:
    made = Interpreter(lambda: sandbox._link, FAKE, sandbox._settings.limits, tools={})
    yield made
    made.reset()


def _exports(text: str) -> str:
    return f"""done='{{"op":"done","ok":true,"exports":{text},"unsent":{{}}}}'"""


def test_a_session_keeps_its_state(fake: Interpreter) -> None:
    assert fake.run("x=41").ok
    result = fake.run('done=\'{"op":"done","ok":true,"exports":{"default":\'$((x+1))\'},"unsent":{}}\'')
    assert result.value == 42
    assert result.exports == {"default": 42}
    fake.reset()
    assert fake.run('echo "[$x]"').stdout == "[]\n"


def test_what_was_printed_before_the_end_is_there_at_the_end(fake: Interpreter) -> None:
    for _ in range(20):
        result = fake.run("echo out; echo err >&2; seq 20000")
        assert result.stdout.startswith("out\n1\n")
        assert result.stdout.endswith("\n20000\n")
        assert result.stderr == "err\n"


@pytest.mark.parametrize("pieces", [[b'0 {"op":"ready"}\n'], [b"0 ", b'{"op":"ready"}', b"\n"]])
def test_it_may_be_ready_before_its_first_run_begins(pieces: list[bytes]) -> None:
    """Another thread may receive that; were it lost, the run's time limit would never begin to hold."""
    dialogue = Dialogue(Conversation(), lambda _frame: None, PYTHON, Limits(), lambda _dialogue, _call: None)
    for piece in pieces:
        dialogue._hear(piece)
    assert dialogue.ready


def test_values_cross_as_what_they_are(fake: Interpreter) -> None:
    result = fake.run(_exports('{"a":{"$bytes":"aGk="},"b":{"$int":"0x20000000000001"},"c":[null,1.5]}'))
    assert result.exports == {"a": b"hi", "b": 2**53 + 1, "c": [None, 1.5]}
    with pytest.raises(NotExported, match="exported no 'default'"):
        result.exports["default"]
    assert result.value is None


def test_a_value_that_could_not_cross_says_why(fake: Interpreter) -> None:
    result = fake.run("""done='{"op":"done","ok":true,"exports":{},"unsent":{"default":"it is a set"}}'""")
    assert result.ok
    with pytest.raises(NotExported, match="it is a set"):
        _ = result.value


def test_outputs_keep_their_order(fake: Interpreter) -> None:
    result = fake.run(
        """echo "$run" '{"op":"output","mime":"image/png","data":{"$bytes":"aGk="}}' >&4
        echo "$run" '{"op":"output","mime":"text/plain","data":"t"}' >&4"""
    )
    assert [(o.mime, o.data) for o in result.outputs] == [("image/png", b"hi"), ("text/plain", b"t")]
    assert result.outputs[1].text == "t"


def test_an_error_of_the_guest(fake: Interpreter) -> None:
    result = fake.run(
        """done='{"op":"done","ok":false,"error":{"code":"RUNTIME_ERROR","name":"E","message":"m","stack":"s"}}'"""
    )
    assert not result.ok
    assert result.error is not None
    assert (result.error.code, result.error.name, result.error.message, result.error.stack) == (
        "RUNTIME_ERROR",
        "E",
        "m",
        "s",
    )
    assert fake.run("").ok


_CALL = """echo "$run" '{"op":"call","id":1,"name":"f","args":[2],"kwargs":{"b":3}}' >&4; read -r -u 3 answer
echo "$answer" """


def test_a_host_function(fake: Interpreter) -> None:
    who: ContextVar[str] = ContextVar("who")
    who.set("me")
    result = fake.run(_CALL, globals={"f": lambda a, b: [a * b, who.get()]})
    assert result.stdout == '{"op":"answer","id":1,"value":[6,"me"]}\n'
    assert result.bridge_calls == 1


def test_an_async_host_function(fake: Interpreter) -> None:
    async def f(a: int, b: int) -> int:
        await asyncio.sleep(0)
        return a + b

    assert fake.run(_CALL, globals={"f": f}).stdout == '{"op":"answer","id":1,"value":5}\n'


@pytest.mark.parametrize(
    ("function", "answer"),
    [
        (lambda a, b: {1, 2}, '{"name":"TypeError","message":"f() is a set, which can\'t cross'),
        (lambda a, b: 1 / 0, '{"name":"ZeroDivisionError","message":"division by zero"}'),
        (lambda: None, '{"name":"TypeError"'),
    ],
)
def test_a_host_function_that_fails(fake: Interpreter, function: Any, answer: str) -> None:
    assert f'"error":{answer}' in fake.run(_CALL, globals={"f": function}).stdout


def test_too_many_calls(fake: Interpreter) -> None:
    loop = f"for i in 1 2 3 4; do {_CALL}; done"
    result = fake.run(loop, globals={"f": lambda a, b: 1}, limits=RunLimits(max_bridge_calls=3))
    assert result.error is not None
    assert result.error.code == "BRIDGE_LIMIT"
    assert result.bridge_calls == 4
    assert fake.run("echo again").stdout == "again\n"


def test_too_many_bytes(fake: Interpreter) -> None:
    result = fake.run(_CALL, globals={"f": lambda a, b: "x" * 5000}, limits=RunLimits(max_bridge_bytes=4000))
    assert result.error is not None
    assert result.error.code == "BRIDGE_LIMIT"


def test_a_run_that_takes_too_long(fake: Interpreter) -> None:
    for wall_ms in (300, 3000, 30_000):  # until it had the time to begin
        result = fake.run("x=1; echo before; sleep 600", limits=RunLimits(wall_ms=wall_ms))
        assert result.error is not None
        assert result.error.code == "WALL_LIMIT"
        if result.stdout:
            break
    assert result.stdout == "before\n"
    assert fake.run('echo "[$x]"').stdout == "[]\n"


def test_a_host_function_that_takes_too_long(fake: Interpreter) -> None:
    release = threading.Event()
    result = fake.run(_CALL, globals={"f": lambda a, b: release.wait(60)}, limits=RunLimits(wall_ms=300))
    release.set()
    assert result.error is not None
    assert result.error.code == "WALL_LIMIT"


def test_an_interpreter_that_ends(fake: Interpreter) -> None:
    result = fake.run("echo last words >&2; exit 9")
    assert result.error is not None
    assert result.error.code == "CRASHED"
    assert "exit code 9" in result.error.message
    assert "last words" in result.error.message
    assert fake.run("").ok


@pytest.mark.parametrize(
    "line",
    [
        "not json",
        "[]",
        '{"op":"nonsense"}',
        '{"op":"done"}',
        '{"op":"done","ok":true,"exports":[],"unsent":{}}',
        '{"op":"done","ok":true,"exports":{"a":{"$eval":"1"}},"unsent":{}}',
        '{"op":"done","ok":false,"error":{"code":"CPU_LIMIT","name":"","message":"","stack":""}}',
        '{"op":"call","id":1,"name":"nobody","args":[],"kwargs":{}}',
        '{"op":"call","id":"1","name":"f","args":[],"kwargs":{}}',
        '{"op":"output","mime":1,"data":""}',
    ],
)
def test_an_interpreter_that_breaks_the_rules_is_ended(fake: Interpreter, line: str) -> None:
    result = fake.run(f"done='{line}'", globals={"f": lambda: 1})
    assert result.error is not None
    assert (result.error.code, result.error.name) == ("CRASHED", "ProtocolError")
    assert fake.run("").ok


def test_output_is_bounded() -> None:
    from belljar import Limits

    with Sandbox(limits=Limits(output_bytes=100_000)) as sandbox:
        fake = Interpreter(lambda: sandbox._link, FAKE, sandbox._settings.limits, tools={})
        for _ in range(3):
            assert fake.run("seq 10000").ok
        result = fake.run("yes")
        assert result.error is not None
        assert result.error.code == "OUTPUT_LIMIT"
        assert sandbox.exec("echo fine").stdout == "fine\n"


def test_an_engine_that_is_not_there(sandbox: Sandbox) -> None:
    absent = Interpreter(
        lambda: sandbox._link, Engine("x", ("no-such-engine",), (), ""), sandbox._settings.limits, tools={}
    )
    with pytest.raises(EngineUnavailable, match="no-such-engine"):
        absent.run("1")


def test_arguments_are_checked(fake: Interpreter) -> None:
    with pytest.raises(TypeError, match="code is a str"):
        fake.run(1)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"globals\['a b'\]"):
        fake.run("", globals={"a b": 1})
    with pytest.raises(ValueError, match=r"globals\['s'\]\[0\] is a set"):
        fake.run("", globals={"s": [{1}]})
    with pytest.raises(ValueError, match=r"RunLimits\.cpu_ms must be positive"):
        RunLimits(cpu_ms=0)
    with pytest.raises(ValueError, match="rebinds existing names only"):
        check_rebinding({"x": 1}, frozenset({"y"}))


def test_sessions_of_two_threads_do_not_mix(sandbox: Sandbox) -> None:
    seen: list[tuple[str, str]] = []

    def work(name: str) -> None:
        fake = Interpreter(lambda: sandbox._link, FAKE, sandbox._settings.limits, tools={})
        fake.run(f"x={name}")
        seen.extend((name, fake.run("echo $x").stdout) for _ in range(5))
        fake.reset()

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(seen) == [(name, f"{name}\n") for name in "abcd" for _ in range(5)]


async def _async_session() -> None:
    async with AsyncSandbox() as sandbox:
        fake = AsyncInterpreter(lambda: sandbox._link, FAKE, sandbox._settings.limits, tools={})
        assert (await fake.run("x=1")).ok
        assert (await fake.run("echo $x")).stdout == "1\n"

        async def f(a: int, b: int) -> int:
            await asyncio.sleep(0)
            return a + b

        assert (await fake.run(_CALL, globals={"f": f})).stdout == '{"op":"answer","id":1,"value":5}\n'
        late = await fake.run("sleep 60", limits=RunLimits(wall_ms=200))
        assert late.error is not None
        assert late.error.code == "WALL_LIMIT"
        task = asyncio.create_task(fake.run("sleep 60"))
        await asyncio.sleep(0.2)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (await fake.run("echo fine")).stdout == "fine\n"


def test_async() -> None:
    asyncio.run(_async_session())
