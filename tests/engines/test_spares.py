"""Engine processes that were made ahead, as the programs of a sandbox use them."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable

import pytest

from belljar import Limits, Sandbox
from tests.escape.oracles import check_open_files, open_files

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are Linux's")

RUN = ["python3", "-c", "print(1)"]


def until(holds: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.usefixtures("shared")
def test_no_process_and_no_descriptor_is_left() -> None:
    before = open_files()
    with Sandbox() as sandbox:
        for command in (RUN, "python3 -c 'print(1)'", "echo 'print(1)' | python3", "true; python3 -c 'print(1)'"):
            assert sandbox.exec(command).stdout == "1\n"
        until(lambda: not sandbox._link.engines.busy)
    check_open_files(before, more=4)  # the template's, if this is where it started


@pytest.mark.usefixtures("shared")
def test_a_spare_with_other_limits_is_not_used() -> None:
    small = Limits(memory_bytes=256 << 20)
    allocate = ["python3", "-c", f"b = bytearray({300 << 20}); print(1)"]
    with Sandbox() as sandbox:
        for _ in range(3):
            assert sandbox.exec(allocate).stdout == "1\n"
            result = sandbox.exec(allocate, limits=small)
            assert (result.stdout, result.exit_code != 0) == ("", True)
        until(lambda: not sandbox._link.engines.busy)


@pytest.mark.usefixtures("shared")
def test_a_branch_opens_processes_of_its_own() -> None:
    with Sandbox() as sandbox:
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
        until(lambda: not sandbox._link.engines.busy)
        assert sandbox.exec(RUN).stdout == "1\n"


@pytest.mark.usefixtures("shared")
def test_many_at_a_time() -> None:
    with Sandbox() as sandbox:
        outputs: list[str] = []

        def run(number: int) -> None:
            command = f"echo {number}; python3 -c 'print({number})'"
            outputs.extend(sandbox.exec(command).stdout for _ in range(5))

        threads = [threading.Thread(target=run, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert sorted(outputs) == sorted(f"{number}\n{number}\n" for number in range(4) for _ in range(5))
        until(lambda: not sandbox._link.engines.busy)
