"""kill -9 of every kind of process at random moments, while calls are under way.

A call that can't be answered raises a SandboxError or has the exit status of a killed program, and soon. Nothing is
left behind, and the next call works. Owners, and more of workers and zygotes: tests/worker/test_faults.py.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial

import pytest

from belljar import Sandbox, SandboxError
from belljar.api.js import JsPrefix
from belljar.engines.owner.template_host import template
from tests.escape.oracles import check_open_files, open_files, wait_gone
from tests.reliability.amount import amount
from tests.worker import test_faults
from tests.worker.test_faults import children_of, kill_later

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="workers are Linux's"), pytest.mark.slow]

SECONDS = 30.0
"""Far below what a call that is stuck would take (60 s and more), on a machine with others at work."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    pytest.importorskip("wasmtime")
    with Sandbox() as box:
        box.exec("python3 -c ''; node -e ''").check()
        yield box


def python(sandbox: Sandbox) -> bool:
    return sandbox.exec("python3 -c 'print(6 * 7)'").stdout == "42\n"


def node(sandbox: Sandbox) -> bool:
    return sandbox.exec("node -e 'console.log(6 * 7)'").stdout == "42\n"


def prefix(sandbox: Sandbox) -> bool:
    with sandbox.js.precompile("const six = 6;") as made:
        return made.run("export default six * 7").exports == {"default": 42}


def run_six(made: JsPrefix, _sandbox: Sandbox) -> bool:
    return made.run("export default six").exports == {"default": 6}


def attempt(call: Callable[[Sandbox], bool], sandbox: Sandbox) -> bool:
    """Whether a call worked. Fails if it raises anything but a SandboxError, or takes long."""
    began = time.monotonic()
    try:
        return call(sandbox)
    except SandboxError:
        return False
    finally:
        assert time.monotonic() - began < SECONDS


def template_of(kind: str) -> int:
    process = template(kind).process
    assert process is not None
    return process.pid


@pytest.mark.parametrize(("kind", "call"), [("python", python), ("node", node), ("js", prefix)])
def test_templates(sandbox: Sandbox, kind: str, call: Callable[[Sandbox], bool]) -> None:
    """Those who ask while there is none wait for the next one."""
    assert call(sandbox)
    before, threads = open_files(), threading.active_count()
    for seed in range(amount(2, 200)):
        pid = template_of(kind)
        children = children_of(pid)
        timer = kill_later(pid, random.Random(seed).uniform(0, 0.1))
        while timer.is_alive():
            attempt(call, sandbox)
        timer.join()
        assert not wait_gone([pid, *children])
        assert call(sandbox), "the next call works"
        assert template_of(kind) != pid
    check_open_files(before, more=4)  # spares that are on their way, and the run that a prefix makes ahead
    check_threads(threads)


@pytest.mark.parametrize("program", ["python3 -c 'while True: pass'", "node -e 'for (;;);'"])
def test_engine_processes(sandbox: Sandbox, program: str) -> None:
    """The command ends as one that was killed; the sandbox goes on."""
    sandbox.exec(f"timeout 0.1 {program}")
    before, threads = open_files(), threading.active_count()
    for seed in range(amount(4, 200)):
        known = set(sandbox._link.pids())
        process = sandbox.spawn(program)
        deadline = time.monotonic() + SECONDS
        while not (new := set(sandbox._link.pids()) - known):
            assert time.monotonic() < deadline
            time.sleep(0.002)
        kill_later(new.pop(), random.Random(seed).uniform(0, 0.1)).join()
        assert process.wait() != 0
        assert time.monotonic() < deadline
        assert python(sandbox)
    check_open_files(before, more=4)
    check_threads(threads)


def test_prefixes(sandbox: Sandbox) -> None:
    """Runs fail with a SandboxError from then on; another prefix works."""
    assert prefix(sandbox)
    before, threads = open_files(), threading.active_count()
    for seed in range(amount(4, 200)):
        with sandbox.js.precompile("const six = 6;") as made:
            pid = made._core._process._process.pid
            timer = kill_later(pid, random.Random(seed).uniform(0, 0.1))
            run = partial(run_six, made)
            while timer.is_alive() or attempt(run, sandbox):
                attempt(run, sandbox)
            with pytest.raises(SandboxError):
                made.run("six")
        assert not wait_gone([pid])
        assert prefix(sandbox)
    check_open_files(before, more=4)
    check_threads(threads)


def check_threads(before: int) -> None:
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before, [thread.name for thread in threading.enumerate()]


def test_workers() -> None:
    test_faults.test_workers_killed_under_load(amount(range(4), range(200)))


def test_zygotes() -> None:
    test_faults.test_zygotes_killed_under_load(amount(range(3), range(200)))
