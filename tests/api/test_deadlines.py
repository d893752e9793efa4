"""A deadline bounds everything: sending, too. Whoever waits learns the same reason."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time

import pytest

from belljar import AsyncSandbox, Limits, RunLimits, Sandbox, SandboxClosed, SandboxError, js
from belljar.api.request import GRACE
from belljar.engines.owner.template_host import EngineProcess

LARGE = bytes(20 << 20)
SLOW = 60
"""Seconds that a busy machine may add. What no deadline bounds takes ten minutes, or has no end."""
WALL = 5
"""Seconds that a command may take, and we from its start until its worker is stopped: else its limit ends it first."""


@pytest.mark.battery
def test_a_stopped_worker_that_takes_no_input() -> None:
    with Sandbox() as sandbox:
        sandbox.exec("true")
        os.kill(sandbox._link.pid, signal.SIGSTOP)
        began = time.monotonic()
        with pytest.raises(SandboxClosed, match=r"did not take|stopped answering") as caught:
            sandbox.exec("cat", stdin=LARGE, timeout=1)
        assert 1 <= time.monotonic() - began < 1 + GRACE + SLOW
        assert "crashed" not in str(caught.value)
        with pytest.raises(SandboxClosed, match=r"did not take|stopped answering"):
            sandbox.exec("true")


@pytest.mark.battery
def test_the_same_awaited() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            await sandbox.exec("true")
            os.kill(sandbox._link.worker.pid, signal.SIGSTOP)
            began = time.monotonic()
            with pytest.raises(SandboxClosed, match=r"did not take|stopped answering"):
                await sandbox.exec("cat", stdin=LARGE, timeout=1)
            assert 1 <= time.monotonic() - began < 1 + GRACE + SLOW

    asyncio.run(main())


@pytest.mark.battery
def test_everyone_who_waits_learns_the_same_reason() -> None:
    said: list[str] = []

    def wait(sandbox: Sandbox, number: int) -> None:
        try:
            sandbox.exec("true" if number % 2 else "cat", stdin=LARGE if number == 2 else None)
        except SandboxError as error:
            said.append(str(error))

    with Sandbox() as sandbox:
        process = sandbox.spawn("sleep 100")
        os.kill(sandbox._link.pid, signal.SIGSTOP)
        threads = [threading.Thread(target=wait, args=(sandbox, number)) for number in range(6)]
        for thread in threads:
            thread.start()
        time.sleep(0.3)
        with pytest.raises(SandboxClosed) as caught:
            sandbox.exec("true", timeout=0.3)
        for thread in threads:
            thread.join(120)
        with pytest.raises(SandboxClosed) as later:
            process.wait()
    assert set(said) | {str(caught.value), str(later.value)} == {str(caught.value)}
    assert len(said) == 6
    assert "crashed" not in str(caught.value)


def test_a_patient_caller_is_not_ended_by_a_short_wait() -> None:
    """A wait that may be in vain is over at its time, whatever the worker does with what it was sent before."""
    with Sandbox(limits=Limits(wall_seconds=120)) as sandbox:
        process = sandbox.spawn("sleep 100")
        os.kill(sandbox._link.pid, signal.SIGSTOP)
        began = time.monotonic()
        assert process.wait(0.2) is None
        assert process.stdout.next_chunk(0.2) == b""
        assert time.monotonic() - began < SLOW
        os.kill(sandbox._link.pid, signal.SIGCONT)
        assert sandbox.exec("echo on").stdout == "on\n"


@pytest.mark.battery(sample=1)
@pytest.mark.parametrize("act", ["read", "write", "send", "next"])
def test_no_stream_waits_for_a_stopped_worker_for_ever(act: str) -> None:
    with Sandbox(limits=Limits(wall_seconds=WALL)) as sandbox:
        process = sandbox.spawn("cat")
        os.kill(sandbox._link.pid, signal.SIGSTOP)
        began = time.monotonic()
        with pytest.raises(SandboxClosed):  # noqa: PT012 - a write may be taken by the connection
            if act == "read":
                process.stdout.read()
            elif act == "next":
                process.stdout.next_chunk()
            elif act == "send":
                process.stdin.send(LARGE)
            else:
                process.stdin.write(LARGE)
                process.wait()
        assert time.monotonic() - began < WALL + GRACE + SLOW


@pytest.mark.battery
@pytest.mark.parametrize("stop", ["before", "after"])
def test_a_stopped_worker_is_ended_by_the_timeout_of_a_started_command(stop: str) -> None:
    with Sandbox() as sandbox:
        sandbox.exec("true")
        began = time.monotonic()
        if stop == "before":
            os.kill(sandbox._link.pid, signal.SIGSTOP)
            with pytest.raises(SandboxClosed, match="stopped answering"):
                sandbox.spawn("cat", timeout=1)
        else:
            process = sandbox.spawn("cat", limits=Limits(wall_seconds=WALL))
            os.kill(sandbox._link.pid, signal.SIGSTOP)
            with pytest.raises(SandboxClosed, match=r"did not take|stopped answering"):
                process.stdin.send(LARGE)
        assert time.monotonic() - began < WALL + GRACE + SLOW


@pytest.mark.battery
def test_the_same_for_a_started_command_awaited() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            await sandbox.exec("true")
            began = time.monotonic()
            process = await sandbox.spawn("cat", timeout=WALL)
            os.kill(sandbox._link.worker.pid, signal.SIGSTOP)
            with pytest.raises(SandboxClosed, match=r"did not take|stopped answering"):
                await process.stdin.send(LARGE)
            assert time.monotonic() - began < WALL + GRACE + SLOW

    asyncio.run(main())


def test_large_files_to_a_slow_worker_arrive_whole() -> None:
    with Sandbox() as sandbox:
        pid = sandbox._link.pid
        done = threading.Event()

        def stutter() -> None:
            while not done.is_set():
                os.kill(pid, signal.SIGSTOP)
                time.sleep(0.02)
                os.kill(pid, signal.SIGCONT)
                time.sleep(0.02)

        thread = threading.Thread(target=stutter)
        thread.start()
        try:
            data = os.urandom(5 << 20)
            sandbox.files.write("f", data)
            assert sandbox.files.read_bytes("f") == data
        finally:
            done.set()
            thread.join()


def test_a_stopped_javascript_process() -> None:
    with js() as alone:
        alone.run("1")
        session = alone.core._session
        assert session is not None
        assert isinstance(session.process, EngineProcess)
        os.kill(session.process.pid, signal.SIGSTOP)
        began = time.monotonic()
        result = alone.run("x.length", globals={"x": "y" * (20 << 20)}, limits=RunLimits(wall_ms=500))
        assert time.monotonic() - began < 1 + GRACE + SLOW
        assert result.error is not None
        assert result.error.code == "WALL_LIMIT"
        assert alone.run("1 + 1").value == 2
