"""Conveniences that people who build agents expect of the API."""

from __future__ import annotations

import asyncio
import pickle
import time
from collections.abc import Iterator
from typing import Any

import pytest

from belljar import AsyncSandbox, ExecError, Limits, RunFailed, Sandbox


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(limits=Limits(output_bytes=200 << 20)) as box:
        yield box


def test_exec_checks_and_takes_input(sandbox: Sandbox) -> None:
    assert sandbox.exec("cat", input="text", check=True).stdout == "text"
    with pytest.raises(ExecError, match="exit"):
        sandbox.exec("exit 3", check=True)
    with pytest.raises(TypeError, match="the same"):
        sandbox.exec("cat", input="a", stdin="b")


def test_a_listener_and_the_result_hear_the_same(sandbox: Sandbox) -> None:
    heard: list[bytes] = []
    result = sandbox.exec("echo out; echo err >&2", on_stdout=heard.append)
    assert (b"".join(heard), result.stdout, result.stderr) == (b"out\n", "out\n", "err\n")


def test_limits_of_a_command_leave_the_others_as_they_are(sandbox: Sandbox) -> None:
    result = sandbox.exec("head -c 80000000 /dev/zero", limits=Limits(wall_seconds=30))
    assert (len(result.stdout_bytes), result.limit) == (80_000_000, None)
    assert sandbox.exec("sleep 9", limits=Limits(wall_seconds=0.1)).limit == "wall_seconds"
    with pytest.raises(ValueError, match="output_bytes=314,572,800 is more than the sandbox's own 209,715,200"):
        sandbox.exec("true", limits=Limits(output_bytes=300 << 20))


def test_spawn_has_limits_and_one_stream(sandbox: Sandbox) -> None:
    for seconds in (0.5, 5, 50):  # until it had the time to begin
        process = sandbox.spawn("echo out; echo err >&2; sleep 900", timeout=seconds, merge_stderr=True)
        said = list(process.stdout.lines())[:2]
        assert process.wait() == 137
        assert process.limit == "wall_seconds"
        if said == ["out", "err"]:
            break
    assert said == ["out", "err"]


def test_lines(sandbox: Sandbox) -> None:
    process = sandbox.spawn("printf 'one\\n\\ntwo\\xff\\nlast'")
    assert list(process.stdout.lines()) == ["one", "", "two\ufffd", "last"]


def test_edit(sandbox: Sandbox) -> None:
    sandbox.files.write("/tmp/f", "a b a\n")
    with pytest.raises(ValueError, match="2 times"):
        sandbox.files.edit("/tmp/f", "a", "c")
    with pytest.raises(ValueError, match="not there"):
        sandbox.files.edit("/tmp/f", "z", "c")
    assert sandbox.files.edit("/tmp/f", "b", "x") == 1
    assert sandbox.files.edit("/tmp/f", "a", "c", every=True) == 2
    assert sandbox.files.read("/tmp/f") == "c x c\n"


def test_results_travel(sandbox: Sandbox) -> None:
    result = sandbox.exec("echo hi")
    assert pickle.loads(pickle.dumps(result)) == result  # noqa: S301 - our own


def test_async() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            heard: list[bytes] = []
            result = await sandbox.exec("cat", input="x", check=True, on_stdout=heard.append)
            assert (result.stdout, heard) == ("x", [b"x"])
            for seconds in (0.5, 5, 50):  # until it had the time to begin
                process = await sandbox.spawn("seq 3; sleep 900", timeout=seconds)
                if said := [line async for line in process.stdout.lines()]:
                    break
            assert said == ["1", "2", "3"]
            await sandbox.files.write("/tmp/f", "a")
            assert await sandbox.files.edit("/tmp/f", "a", "b") == 1

    asyncio.run(main())


def test_a_command_in_the_background(sandbox: Sandbox) -> None:
    process = sandbox.exec("read -r line; echo got:$line; echo err >&2; exit 3", background=True, input="x\n")
    result = process.result()
    assert (result.stdout, result.stderr, result.exit_code, result.ok) == ("got:x\n", "err\n", 3, False)
    assert process.wait() == 3


def test_a_command_in_the_background_does_not_wait_for_a_reader(sandbox: Sandbox) -> None:
    process = sandbox.exec("head -c 30000000 /dev/zero; echo end > /tmp/ended", background=True)
    assert process.wait(120) == 0
    assert sandbox.files.read("/tmp/ended") == "end\n"
    assert len(process.stdout.read()) == 30_000_000
    assert process.result().stdout == ""  # it was read already


def test_a_command_in_the_background_has_no_input_unless_given(sandbox: Sandbox) -> None:
    assert sandbox.exec("cat; test -c /dev/stdin && echo null", background=True).result().stdout == "null\n"


def test_a_command_in_the_background_is_killed_and_timed_out(sandbox: Sandbox) -> None:
    process = sandbox.exec("sleep 60", background=True)
    assert process.wait(0.01) is None
    assert not process.exited
    process.kill()
    assert process.result().exit_code == 143
    for seconds in (0.3, 3, 30):  # until it had the time to begin
        late = sandbox.exec("echo begun; sleep 60", background=True, timeout=seconds).result()
        assert (late.timed_out, late.exit_code) == (True, 124)
        if late.stdout:
            break
    assert late.stdout == "begun\n"


@pytest.mark.parametrize("wrong", [{"check": True}, {"on_stdout": print}, {"on_stderr": print}])
def test_what_a_command_in_the_background_can_not_do_is_said(sandbox: Sandbox, wrong: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="background"):
        sandbox.exec("true", background=True, **wrong)


def test_a_started_command_has_a_result(sandbox: Sandbox) -> None:
    process = sandbox.spawn("cat; echo err >&2")
    process.stdin.write("x" * 3_000_000)
    process.stdin.close()
    result = process.result()
    assert (len(result.stdout), result.stderr, result.ok) == (3_000_000, "err\n", True)


def test_text_is_read_by_lines_however_it_is_cut(sandbox: Sandbox) -> None:
    process = sandbox.spawn(r"printf 'gr\xc3'; sleep 0.2; printf '\xbcn\n\nend\xff'", text=True)
    assert list(process.stdout) == ["grün\n", "\n", "end\ufffd"]
    pieces = sandbox.spawn(r"printf '\xc3'; sleep 0.2; printf '\xbc'; sleep 0.2; printf '\xc3'", text=True)
    assert (pieces.stdout.next_chunk(), pieces.stdout.read()) == ("ü", "\ufffd")
    assert list(sandbox.spawn("seq 2", text=True).stdout.lines()) == ["1", "2"]
    assert sandbox.spawn("seq 2", text=True).stdout.read() == "1\n2\n"
    assert sandbox.spawn("sleep 5", text=True).stdout.next_chunk(timeout=0.05) == ""


def test_lines_of_bytes_that_are_cut_within_a_character(sandbox: Sandbox) -> None:
    process = sandbox.spawn(r"printf '\xc3'; sleep 0.2; printf '\xbc\n\xc3'")
    assert list(process.stdout.lines()) == ["ü", "\ufffd"]


LISTEN = {
    "python": "import time, sys\nfor n in range(3):\n    print(n)\n    step()\nprint('late', file=sys.stderr)\nn",
    "js": "for (let n = 0; n < 3; n++) { console.log(n); await step() }; console.error('late'); 2",
}


@pytest.mark.parametrize("language", LISTEN)
def test_a_run_is_heard_line_by_line(sandbox: Sandbox, language: str) -> None:
    heard: list[bytes] = []
    seen: list[int] = []
    errors: list[bytes] = []

    def step() -> None:
        while b"".join(heard).count(b"\n") <= len(seen):
            time.sleep(0.001)
        seen.append(len(heard))

    interpreter: Any = getattr(sandbox, language)
    result = interpreter.run(LISTEN[language], globals={"step": step}, on_stdout=heard.append, on_stderr=errors.append)
    assert (result.value, result.error) == (2, None)
    assert (b"".join(heard), b"".join(errors)) == (b"0\n1\n2\n", b"late\n")
    assert (result.stdout, result.stderr) == ("0\n1\n2\n", "late\n")
    with interpreter.precompile() as prefix:
        assert prefix.run("1", on_stdout=heard.append).ok


@pytest.mark.parametrize("language", LISTEN)
def test_what_a_listener_of_a_run_raises_is_raised(sandbox: Sandbox, language: str) -> None:
    def refuse(data: bytes) -> None:
        raise LookupError(data)

    say = {"python": "print(1)", "js": "console.log(1)"}[language]
    interpreter: Any = getattr(sandbox, language)
    with pytest.raises(LookupError):
        interpreter.run(say, on_stdout=refuse)
    assert interpreter.run(say).stdout == "1\n"


def test_an_interpreter_does_not_keep_what_earlier_runs_said(sandbox: Sandbox) -> None:
    for _ in range(3):
        sandbox.python.run("print('x' * 100_000)")
    dialogue = sandbox.python.core.dialogue
    assert dialogue is not None
    assert not any(dialogue.running.parts.values())


def test_the_same_awaited() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            process = await sandbox.exec("echo out; exit 4", background=True)
            result = await process.result()
            assert (result.stdout, result.exit_code) == ("out\n", 4)
            text = await sandbox.spawn("seq 3", text=True)
            assert [line async for line in text.stdout] == ["1\n", "2\n", "3\n"]
            assert await (await sandbox.spawn("seq 1", text=True)).stdout.read() == "1\n"
            heard: list[bytes] = []

            async def hear(data: bytes) -> None:
                await asyncio.sleep(0)
                heard.append(data)

            assert (await sandbox.python.run("print(1)\nprint(2)", on_stdout=hear)).ok
            assert b"".join(heard) == b"1\n2\n"
            assert (await sandbox.js.run("console.log(3)", on_stdout=hear)).ok
            assert b"".join(heard) == b"1\n2\n3\n"
            with pytest.raises(TypeError, match="plain function"), Sandbox() as plain:
                plain.python.run("print(1)", on_stdout=hear)

    asyncio.run(main())


def test_an_interpreter_imports_from_its_directory(sandbox: Sandbox) -> None:
    sandbox.files.write("/workspace/helper.py", "answer = 42\n")
    assert sandbox.python.another().run("import helper; helper.answer").value == 42
    with sandbox.python.precompile("import helper") as prefix:
        assert prefix.run("helper.answer").value == 42


@pytest.mark.parametrize("seconds", [3e6, 1e9])
def test_a_very_long_limit_is_one(seconds: float) -> None:
    with Sandbox(limits=Limits(wall_seconds=seconds)) as sandbox:
        assert sandbox.exec("echo hi", timeout=float("inf")).stdout == "hi\n"
        assert sandbox.exec("echo hi", background=True).result().stdout == "hi\n"
        assert sandbox.python.run("1 + 1").value == 2


@pytest.mark.parametrize("wrong", [{"wall_seconds": float("inf")}, {"memory_bytes": 1 << 80}, {"steps": float("inf")}])
def test_a_limit_beyond_all_machines_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="smaller number"):
        Limits(**wrong)


def test_a_run_is_checked(sandbox: Sandbox) -> None:
    assert sandbox.python.run("6 * 7").check().value == 42
    with pytest.raises(RunFailed, match="ZeroDivisionError") as failed:
        sandbox.python.run("1 / 0").check()
    assert failed.value.result.error is not None


@pytest.mark.parametrize(("wrong", "hint"), [("mount", "mounts="), ("timeout", r"exec\(timeout="), ("zzz", "zzz$")])
def test_an_unknown_option_is_explained(wrong: str, hint: str) -> None:
    with pytest.raises(TypeError, match=hint):
        Sandbox(**{wrong: 1})  # type: ignore[arg-type]
