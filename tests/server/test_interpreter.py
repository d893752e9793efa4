"""The stock `e2b-code-interpreter` SDK, synchronous and asynchronous: each case runs with both."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import e2b_code_interpreter as interpreter
import pytest
from e2b import NotFoundException, TimeoutException

from tests.server.serving import Server, both
from tests.server.test_sdk import done, failure

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")

CASES: list[Callable[[Any], Any]] = []


def case(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    CASES.append(function)
    return function


@case
async def values_output_and_state(sandbox: Any) -> None:
    first = await done(sandbox.run_code("x = 41\nprint('out')\nimport sys\nprint('err', file=sys.stderr)\nx + 1"))
    assert first.text == "42"
    assert ("".join(first.logs.stdout), "".join(first.logs.stderr)) == ("out\n", "err\n")
    assert (first.error, first.execution_count) == (None, 1)
    second = await done(sandbox.run_code("x"))
    assert (second.text, second.execution_count) == ("41", 2)
    assert (await done(sandbox.run_code("y = 1"))).results == []


@case
async def texts_are_what_python_would_show(sandbox: Any) -> None:
    for code, text in (("'abc'", "abc"), ("{'a': [1, 2.5, None]}", "{'a': [1, 2.5, None]}"), ("{3, 4}", "{3, 4}")):
        assert (await done(sandbox.run_code(code))).text == text
    shown = await done(sandbox.run_code("class A:\n    def __repr__(self): return '<an A>'\nA()"))
    assert shown.text == "<an A>"


@case
async def results_have_all_their_formats(sandbox: Any) -> None:
    code = "class T:\n    def _repr_html_(self): return '<b>t</b>'\n    def __repr__(self): return 't'\nT()"
    (result,) = (await done(sandbox.run_code(code))).results
    assert (result.html, result.text, result.is_main_result) == ("<b>t</b>", "t", True)


@case
async def errors_have_a_name_and_a_traceback(sandbox: Any) -> None:
    execution = await done(sandbox.run_code("print('before')\nraise KeyError('gone')"))
    assert execution.error.name == "KeyError"
    assert "gone" in execution.error.value
    assert "Traceback" in execution.error.traceback
    assert execution.logs.stdout == ["before\n"]
    assert (await done(sandbox.run_code("def f(:"))).error.name == "SyntaxError"


@case
async def callbacks_hear_everything(sandbox: Any) -> None:
    heard: dict[str, list[Any]] = {"out": [], "err": [], "result": [], "error": []}
    await done(
        sandbox.run_code(
            "import sys\nprint(1)\nprint(2, file=sys.stderr)\n3",
            on_stdout=heard["out"].append,
            on_stderr=heard["err"].append,
            on_result=heard["result"].append,
        )
    )
    await done(sandbox.run_code("1/0", on_error=heard["error"].append))
    assert [message.line for message in heard["out"]] == ["1\n"]
    assert [message.line for message in heard["err"]] == ["2\n"]
    assert [result.text for result in heard["result"]] == ["3"]
    assert [error.name for error in heard["error"]] == ["ZeroDivisionError"]


@case
async def code_and_commands_share_files(sandbox: Any) -> None:
    await done(sandbox.run_code("open('note', 'w').write('from code')"))
    assert (await done(sandbox.commands.run("cat note"))).stdout == "from code"


@case
async def contexts_keep_apart(sandbox: Any) -> None:
    context = await done(sandbox.create_code_context(cwd="/tmp"))
    assert (context.language, context.cwd) == ("python", "/tmp")
    assert (await done(sandbox.run_code("x = 1\nimport os\nos.getcwd()", context=context))).text == "/tmp"
    assert (await done(sandbox.run_code("x"))).error.name == "NameError"
    assert context.id in [each.id for each in await done(sandbox.list_code_contexts())]
    await done(sandbox.restart_code_context(context))
    assert (await done(sandbox.run_code("x", context=context))).error.name == "NameError"
    await done(sandbox.remove_code_context(context))
    assert isinstance(await failure(lambda: sandbox.run_code("1", context=context)), NotFoundException)


@case
async def javascript_and_bash(sandbox: Any) -> None:
    run = await done(sandbox.run_code("const x = 40; console.log('hi'); x + 2", language="javascript"))
    assert (run.text, run.logs.stdout) == ("42", ["hi\n"])
    assert (await done(sandbox.run_code("throw new TypeError('no')", language="js"))).error.name == "TypeError"
    assert (await done(sandbox.run_code("echo $((6*7))", language="bash"))).logs.stdout == ["42\n"]
    assert (await done(sandbox.run_code("exit 4", language="bash"))).error.value == "4"
    assert "not supported" in str(await failure(lambda: sandbox.run_code("1", language="cobol")))


@case
async def the_environment_of_one_run(sandbox: Any) -> None:
    code = "import os\nos.environ.get('ONCE')"
    assert (await done(sandbox.run_code(code, envs={"ONCE": "yes"}))).text == "yes"
    assert (await done(sandbox.run_code(code))).text is None


@case
async def a_run_that_is_given_up_is_interrupted(sandbox: Any) -> None:
    await done(sandbox.run_code("kept = 1"))
    error = await failure(lambda: sandbox.run_code("import time\nwhile True: time.sleep(0.01)", timeout=1))
    assert isinstance(error, TimeoutException)
    assert (await done(sandbox.run_code("kept"))).text == "1"


@case
async def variables_survive_a_pause(sandbox: Any) -> None:
    await done(sandbox.run_code("x = {'deep': [1, 2]}"))
    await done(sandbox.pause())
    assert (await done(sandbox.run_code("x"))).text == "{'deep': [1, 2]}"


@pytest.mark.parametrize(("function", "which"), both(CASES))
def test_case(sdk: Server, function: Callable[[Any], Any], which: str) -> None:
    kind: Any = interpreter.Sandbox if which == "sync" else interpreter.AsyncSandbox

    async def run() -> None:
        sandbox = await done(kind.create(timeout=600))
        try:
            await function(sandbox)
        finally:
            await done(sandbox.kill())

    asyncio.run(run())
