"""The plain command interface."""

from __future__ import annotations

import pytest

from belljar import FileError, SandboxClosed
from belljar.integrations.commands import CommandResult, CommandSandbox, use_sandbox


async def test_everything() -> None:
    sandbox = await CommandSandbox.create(files={"/tmp/a": "1"})
    result = await sandbox.execute_command("cat /tmp/a; echo no >&2; exit 2")
    assert result == CommandResult("1", "no\n", 2)
    written = await sandbox.write_files([("/tmp/b", "2"), ("/proc/nope", "x"), ("/tmp/c", b"\xff")])
    assert [one.ok for one in written] == [True, False, True]
    assert await sandbox.read_file("/tmp/b") == "2"
    with pytest.raises(FileError):
        await sandbox.read_file("/nope")
    await sandbox.dispose()
    with pytest.raises(SandboxClosed):
        await sandbox.execute_command("true")


async def test_a_sandbox_is_disposed_of_whatever_happens() -> None:
    made: list[CommandSandbox] = []

    async def fail(sandbox: CommandSandbox) -> None:
        made.append(sandbox)
        raise RuntimeError("agent's bug")

    with pytest.raises(RuntimeError):
        await use_sandbox(fail)
    with pytest.raises(SandboxClosed):
        await made[0].execute_command("true")
    assert (await use_sandbox(lambda sandbox: sandbox.execute_command("pwd"), cwd="/tmp")).stdout == "/tmp\n"
