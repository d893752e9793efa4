"""A limit tells the model: one line on standard error names it and its value."""

from __future__ import annotations

import asyncio

import pytest

from belljar import AsyncSandbox, Limits, Sandbox

LIMITS = Limits(output_bytes=1 << 20, processes=20, expansion_bytes=1 << 20)
CASES = {
    "sleep 9": "belljar: timed out after 0.5 s (limit wall_seconds) and was stopped\n",
    "yes": "belljar: wrote more than 1 MiB of output (limit output_bytes) and was stopped\n",
    "x=a; while :; do x=$x$x; done": "belljar: needed more than 1 MiB (limit expansion_bytes) and was stopped\n",
    ":(){ :|:& }; :; wait; sleep 1": "belljar: needed more than 20 processes (limit processes) and was stopped\n",
}


@pytest.mark.slow
@pytest.mark.parametrize(("command", "line"), CASES.items())
def test_exec(command: str, line: str) -> None:
    with Sandbox(limits=LIMITS) as sandbox:
        timeout = 0.5 if "0.5 s" in line else 60  # the other limits are to be the first
        result = sandbox.exec(command, timeout=timeout)
        assert result.stderr.endswith(line)
        assert result.limit is not None
        assert f"(limit {result.limit})" in line
        assert not result.ok
        merged = sandbox.exec(command, timeout=timeout, merge_stderr=True)
        assert merged.stdout.endswith(line)
        assert merged.stderr == ""


@pytest.mark.slow
def test_processor_time_and_spawn() -> None:
    line = b"belljar: used up 1 s of processor time (limit cpu_seconds) and was stopped\n"
    with Sandbox(limits=Limits(cpu_seconds=1)) as sandbox:
        process = sandbox.spawn("while :; do :; done")
        assert process.stderr.read() == line
        assert process.wait() == 137
        terminal = sandbox.pty("while :; do :; done")
        shown = b"".join(iter(lambda: terminal.read(120), b""))
        assert shown.endswith(line)


def test_what_ends_by_itself_has_no_such_line() -> None:
    with Sandbox() as sandbox:
        assert sandbox.exec("echo hi").ok
        failed = sandbox.exec("exit 3")
        assert (failed.ok, failed.stderr) == (False, "")
        killed = sandbox.exec("kill -9 $$")
        assert (killed.ok, killed.stderr, killed.exit_code) == (False, "", 137)


@pytest.mark.slow
def test_async() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            result = await sandbox.exec("sleep 9", timeout=0.2)
            assert result.stderr == "belljar: timed out after 0.2 s (limit wall_seconds) and was stopped\n"

    asyncio.run(main())
