"""`sandbox.fork()` takes the interpreters along: their variables, functions and limits, each copy for itself."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from belljar import AsyncSandbox, RunLimits, Sandbox, SandboxError
from belljar.engines.owner.template_host import EngineProcess
from tests.escape.oracles import wait_gone

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are Linux's")

SET = {"python": "x = {}", "js": "var x = {}"}
RANDOM = {"python": "import random\n[random.random() for _ in range(4)]", "js": "[Math.random(), Math.random()]"}
SPIN = {"python": "while True: pass", "js": "for (;;) {}"}
language = pytest.mark.parametrize("language", ["python", "js"])


def one(sandbox: Sandbox) -> Sandbox:
    branch = sandbox.fork()
    assert isinstance(branch, Sandbox)
    return branch


def of(sandbox: Sandbox, language: str) -> Any:
    return getattr(sandbox, language)


def engine(sandbox: Sandbox, language: str) -> int:
    """The pid of the interpreter's process."""
    if language == "js":
        process = sandbox.js.core._session.process  # type: ignore[union-attr]
        assert isinstance(process, EngineProcess)
        return process.pid
    (pid,) = (process.pid for process in sandbox._link.engines._engines.values() if process is not None)
    return pid


@language
def test_variables_are_there_in_both_and_each_has_its_own(language: str) -> None:
    with Sandbox() as origin:
        of(origin, language).run(SET[language].format(41))
        with one(origin) as branch:
            assert of(branch, language).run("x + 1").value == 42
            of(branch, language).run("x = 7")
            assert of(origin, language).run("x").value == 41
            assert of(branch, language).run("x").value == 7


@language
def test_a_branch_of_a_branch_outlives_both(language: str) -> None:
    with Sandbox() as origin:
        of(origin, language).run(SET[language].format(1))
        first = one(origin)
        of(first, language).run("x += 1")
        second = one(first)
    first.close()
    with second, one(second) as third:
        of(second, language).run("x += 1")
        assert of(second, language).run("x").value == 3
        assert of(third, language).run("x").value == 2


@language
def test_no_two_draw_the_same_numbers(language: str) -> None:
    with Sandbox() as origin:
        of(origin, language).run(RANDOM[language])
        branches = origin.fork(3)
        assert isinstance(branches, list)
        drawn = [of(sandbox, language).run(RANDOM[language]).value for sandbox in (origin, *branches)]
        assert len({number for numbers in drawn for number in numbers}) == sum(map(len, drawn))
        for branch in branches:
            branch.close()


@language
def test_twenty_branches_leave_nothing_behind(language: str) -> None:
    with Sandbox() as origin:
        of(origin, language).run(SET[language].format(100))
        branches = origin.fork(20)
        assert isinstance(branches, list)
        for number, branch in enumerate(branches):
            of(branch, language).run(f"x += {number}")
        assert [of(branch, language).run("x").value for branch in branches] == list(range(100, 120))
        pids = [engine(branch, language) for branch in branches]
        assert len(set(pids)) == 20
        assert engine(origin, language) not in pids
        for branch in branches:
            branch.close()
        assert not wait_gone(pids)
        assert of(origin, language).run("x").value == 100
        pids = [engine(origin, language)]
    assert not wait_gone(pids)


@language
def test_functions_and_limits_hold_in_a_branch(language: str) -> None:
    asked: list[int] = []

    def ask(number: int) -> int:
        asked.append(number)
        return number * 2

    call = "ask(21)" if language == "python" else "await ask(21)"
    with Sandbox() as origin:
        of(origin, language).run(SET[language].format(1), globals={"ask": ask})
        with one(origin) as branch:
            assert of(branch, language).run(call).value == 42
            spent = of(branch, language).run(SPIN[language], limits=RunLimits(cpu_ms=300))
            assert spent.error is not None
            assert spent.error.code == "CPU_LIMIT"
            assert of(origin, language).run(call).value == 42
            assert of(origin, language).run("x").value == 1
        assert asked == [21, 21]


@language
@pytest.mark.parametrize("victim", ["origin", "branch"])
def test_the_death_of_one_does_not_touch_the_other(language: str, victim: str) -> None:
    with Sandbox() as origin:
        of(origin, language).run(SET[language].format(5))
        with one(origin) as branch:
            dead, alive = (origin, branch) if victim == "origin" else (branch, origin)
            pid = engine(dead, language)
            os.kill(pid, signal.SIGKILL)
            assert not wait_gone([pid])
            assert of(alive, language).run("x").value == 5
            assert of(alive, language).run("x * 2").value == 10
            crashed = of(dead, language).run("1")
            assert crashed.ok or crashed.error.code == "CRASHED"
            assert of(dead, language).run("1 + 1").value == 2


@language
def test_of_one_at_work_there_is_no_copy_and_the_branch_says_so(language: str) -> None:
    """The fork is made by a function that the run itself has called: it must not wait for the run."""
    branches: list[Sandbox] = []

    def fork() -> str:
        branches.append(one(origin))
        return "done"

    call = "fork()" if language == "python" else "await fork()"
    with Sandbox() as origin:
        of(origin, language).run(SET[language].format(5))
        assert of(origin, language).run(call, globals={"fork": fork}, limits=RunLimits(wall_ms=60_000)).value == "done"
        (branch,) = branches
        with branch:
            with pytest.raises(SandboxError, match=r"at work when the sandbox was forked.*reset\(\)"):
                of(branch, language).run("x")
            of(branch, language).reset()
            assert of(branch, language).run("1 + 1").value == 2
            assert of(origin, language).run("x").value == 5


@language
def test_the_asynchronous_front_too(language: str) -> None:
    async def main() -> list[Any]:
        async with AsyncSandbox() as origin:
            await of_async(origin).run(SET[language].format(41))
            branches = await origin.fork(3)
            assert isinstance(branches, list)
            async with branches[0], branches[1], branches[2]:
                await asyncio.gather(*(of_async(branch).run(f"x += {i}") for i, branch in enumerate(branches)))
                values = [(await of_async(sandbox).run("x")).value for sandbox in (origin, *branches)]
                grandchild = await branches[2].fork()
                assert isinstance(grandchild, AsyncSandbox)
        async with grandchild:
            return [*values, (await of_async(grandchild).run("x + 1")).value]

    def of_async(sandbox: AsyncSandbox) -> Any:
        return getattr(sandbox, language)

    assert asyncio.run(main()) == [41, 41, 42, 43, 44]


def test_files_and_variables_are_of_one_moment() -> None:
    with Sandbox() as origin:
        origin.python.run("file = open('log', 'w', buffering=1)\nfile.write('before\\n')\nn = 1")
        with one(origin) as branch:
            branch.python.run("file.write('branch\\n'); n += 1")
            origin.python.run("file.write('origin\\n')")
            assert branch.exec("cat log").stdout == "before\nbranch\n"
            assert origin.exec("cat log").stdout == "before\norigin\n"
            branch.python.run("import subprocess; subprocess.run(['cp', 'log', 'copy'])")
            assert branch.exec("cat copy").stdout == "before\nbranch\n"


def test_both_interpreters_at_once() -> None:
    with Sandbox() as origin:
        origin.python.run("x = 1")
        origin.js.run("var x = 2")
        with one(origin) as branch:
            assert (branch.python.run("x").value, branch.js.run("x").value) == (1, 2)


def test_branches_made_while_others_run() -> None:
    """Several threads fork one sandbox while a fifth uses the interpreter: no run is lost, no branch is half made."""
    with Sandbox() as origin:
        origin.python.run("x = 41")
        seen: list[Any] = []
        stop = threading.Event()

        def use() -> None:
            while not stop.is_set():
                assert origin.python.run("x").value == 41

        def fork() -> None:
            for _ in range(3):
                with one(origin) as branch:
                    try:
                        seen.append(branch.python.run("x + 1").value)
                    except SandboxError as error:
                        seen.append(str(error)[:30])

        threads = [threading.Thread(target=work) for work in (fork, fork, use)]
        for thread in threads:
            thread.start()
        for thread in threads[:-1]:
            thread.join(300)
        stop.set()
        threads[-1].join(300)
        assert len(seen) == 6
        assert set(seen) <= {42, "the interpreter was at work wh"}


WAITING = """
import os
x = os.urandom(4).hex()
open("mine", "w").write(x)
said = open("fifo").read()
open("out", "w").write(x + said)
"""


def test_a_program_that_waits_goes_on_in_both() -> None:
    with Sandbox() as origin:
        origin.files.write("wait.py", WAITING)
        origin.exec("mkfifo fifo")
        process = origin.spawn("python3 wait.py; echo $? > status")
        origin.exec("until [ -s mine ]; do sleep 0.01; done", timeout=120)
        answer = "echo -n {} > fifo & until [ -s status ]; do sleep 0.01; done; cat out status"
        mine = origin.exec("cat mine").stdout
        deadline = time.monotonic() + 120
        while True:
            with one(origin) as branch:
                said = branch.exec(answer.format("there"), timeout=60).stdout
                if said == "137\n":
                    # It was not yet where it waits: then it is ended in the branch.
                    assert time.monotonic() < deadline
                    continue
                assert said == f"{mine}there0\n"
                assert origin.exec("ls out").exit_code != 0
                break
        assert origin.exec(answer.format("here"), timeout=120).stdout == f"{mine}here0\n"
        assert process.wait(120) == 0


def test_a_program_that_computes_is_ended_in_a_branch() -> None:
    with Sandbox() as origin:
        process = origin.spawn('python3 -c \'open("at_work", "w").write("x")\nwhile True: pass\'; echo $? > status')
        origin.exec("until [ -s at_work ]; do sleep 0.01; done", timeout=120)
        time.sleep(0.1)
        with one(origin) as branch:
            assert branch.exec("until [ -s status ]; do sleep 0.01; done; cat status", timeout=120).stdout == "137\n"
            assert not process.exited
        process.kill("KILL")


_OWNER = """
import sys, time
from belljar import Sandbox
origin = Sandbox()
origin.python.run("x = 1")
origin.js.run("var x = 1")
branch = origin.fork()
pids = [p.pid for s in (origin, branch) for p in (*s._link.engines._engines.values(), s.js.core._session.process)]
import threading
spin = "open('/tmp/on', 'w').write('x')\\nwhile True: pass"
threading.Thread(target=lambda: branch.python.run(spin), daemon=True).start()
while branch.exec("cat /tmp/on").stdout != "x":
    time.sleep(0.01)
print(*pids, flush=True)
time.sleep(600)
"""


def test_copies_end_with_their_owner(tmp_path: Path) -> None:
    """However it ends, and whatever they are at."""
    owner = subprocess.Popen([sys.executable, "-c", _OWNER], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    try:
        pids = [int(word) for word in owner.stdout.readline().split()]
        assert len(pids) == 4
    finally:
        owner.kill()
        owner.wait()
        owner.stdout.close()
    assert not wait_gone(pids, 60.0)
