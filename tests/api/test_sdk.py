"""Conveniences that people who build agents expect of the API."""

from __future__ import annotations

import asyncio
import pickle
from collections.abc import Iterator

import pytest

from belljar import AsyncSandbox, ExecError, Limits, Sandbox


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
    process = sandbox.spawn("echo out; echo err >&2; sleep 9", timeout=0.5, merge_stderr=True)
    assert list(process.stdout.lines())[:2] == ["out", "err"]
    assert process.wait() == 137
    assert process.limit == "wall_seconds"


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
            process = await sandbox.spawn("seq 3; sleep 9", timeout=0.5)
            assert [line async for line in process.stdout.lines()] == ["1", "2", "3"]
            await sandbox.files.write("/tmp/f", "a")
            assert await sandbox.files.edit("/tmp/f", "a", "b") == 1

    asyncio.run(main())
