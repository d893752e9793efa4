"""Engine processes that go along with a command because it will ask for them; what is not used is given back."""

from __future__ import annotations

import asyncio
import sys
import threading
import time
from collections.abc import Callable
from functools import partial

import pytest

from belljar import AsyncSandbox, Limits, Sandbox, SandboxError
from belljar.api.engines_host import EngineBroker
from tests.escape.oracles import check_open_files, open_files

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are Linux's")

RUN = ["python3", "-c", "print(1)"]


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def grants(broker: EngineBroker) -> int:
    return broker._grants


def granted(sandbox: Sandbox, command: str | list[str] = RUN) -> int:
    """How many processes went along with a command that ran as it should, once a spare could."""
    broker = sandbox._link._engines
    before = grants(broker)
    time.sleep(0.05)  # in which a spare is made, mostly
    sandbox.exec(command).check()
    until(lambda: not broker.busy)
    return grants(broker) - before


def learn(sandbox: Sandbox) -> None:
    """Have programs ask until their owner foresees that they do."""
    until(lambda: granted(sandbox))


@pytest.mark.usefixtures("shared")
def test_a_program_is_foreseen() -> None:
    before = open_files()
    with Sandbox() as sandbox:
        assert granted(sandbox, "echo python") == 0
        learn(sandbox)
        for command in (RUN, "python3 -c 'print(2)'", "echo 'print(3)' | python3", "true; python3 -V"):
            until(partial(granted, sandbox, command))
        assert granted(sandbox, "echo hello") == 0
    check_open_files(before, more=4)  # the template's, if this is where it started


@pytest.mark.usefixtures("shared")
def test_what_is_not_used_is_given_back() -> None:
    with Sandbox() as sandbox:
        broker = sandbox._link._engines
        learn(sandbox)
        until(lambda: granted(sandbox, "echo python"))
        assert not broker.busy
        for _ in range(3):
            assert granted(sandbox, "echo python") == 0
        assert sandbox.exec("python3 -c 'print(5)'").stdout == "5\n"
        learn(sandbox)
        with pytest.raises(SandboxError):
            until(lambda: sandbox.exec(RUN, cwd="/none"))
        until(lambda: not broker.busy)
        assert sandbox.exec(RUN).stdout == "1\n"


@pytest.mark.usefixtures("shared")
def test_other_limits_than_foreseen() -> None:
    with Sandbox() as sandbox:
        learn(sandbox)
        for _ in range(2):
            result = sandbox.exec(RUN, limits=Limits(memory_bytes=256 << 20))
            assert (result.stdout, result.exit_code) == ("1\n", 0)
            assert sandbox.exec(RUN).stdout == "1\n"
        until(lambda: not sandbox._link._engines.busy)


@pytest.mark.usefixtures("shared")
def test_a_branch_has_nothing_of_what_its_origin_was_granted() -> None:
    with Sandbox() as sandbox:
        learn(sandbox)
        results: list[str] = []
        command = "touch /tmp/began; until [ -e /tmp/go ]; do sleep 0.01; done; python3 -c 'print(1)' | tee /tmp/said"
        thread = threading.Thread(target=lambda: results.append(sandbox.exec(command).stdout))
        thread.start()
        until(lambda: sandbox.files.exists("/tmp/began"))
        with sandbox.fork() as branch:
            sandbox.files.write("/tmp/go", "")
            thread.join(30)
            assert results == ["1\n"]
            assert not branch.files.exists("/tmp/said")
            branch.files.write("/tmp/go", "")
            until(lambda: branch.files.exists("/tmp/said") and branch.files.read("/tmp/said") == "1\n")
            assert branch.exec(RUN).stdout == "1\n"
        until(lambda: not sandbox._link._engines.busy)
        assert sandbox.exec(RUN).stdout == "1\n"


@pytest.mark.usefixtures("shared")
def test_many_at_a_time() -> None:
    with Sandbox() as sandbox:
        learn(sandbox)
        outputs: list[str] = []

        def run(number: int) -> None:
            for turn in range(5):
                code = "python" if (number + turn) % 3 == 0 else f"python3 -c 'print({number})'"
                outputs.append(sandbox.exec(f"echo {code}; {code if code != 'python' else 'echo'}").stdout)

        threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert len(outputs) == 20
        assert sum(output.splitlines()[1].isdigit() for output in outputs if output.splitlines()[1]) == 13
        until(lambda: not sandbox._link._engines.busy)


@pytest.mark.usefixtures("shared")
def test_the_asynchronous_front_foresees_too() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            broker = sandbox._link._engines
            deadline = time.monotonic() + 30
            while not grants(broker):
                assert time.monotonic() < deadline
                assert (await sandbox.exec(RUN)).stdout == "1\n"
                await asyncio.sleep(0.05)
            assert (await sandbox.exec("echo python")).stdout == "python\n"
            while broker.busy:
                assert time.monotonic() < deadline
                await asyncio.sleep(0.01)

    asyncio.run(main())
