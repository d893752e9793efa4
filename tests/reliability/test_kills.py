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
from belljar.api.prefix import Prefix
from belljar.engines.owner.template_host import template
from tests.escape.oracles import check_open_files, open_files, wait_gone
from tests.reliability.amount import amount
from tests.worker.test_faults import children_of, delays, kill_later, kill_workers, kill_zygotes

pytestmark = [pytest.mark.skipif(sys.platform != "linux", reason="workers are Linux's"), pytest.mark.slow]

SECONDS = 30.0
"""Far below what a call that is stuck would take (60 s and more), on a machine with others at work."""
SOON = 1.0
"""Seconds. At rest it is some milliseconds."""


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


def run_six(made: Prefix, _sandbox: Sandbox) -> bool:
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


Record = Callable[[str, object], None]


def show(record_property: Record, what: str, seconds: list[float]) -> None:
    """Report how long it took."""
    figures = sorted(each * 1e3 for each in seconds)
    half, most = figures[len(figures) // 2], figures[len(figures) * 95 // 100]
    record_property(what, f"{len(figures)} kills: median {half:.0f} ms, 95% {most:.0f} ms, worst {figures[-1]:.0f} ms")


def template_of(kind: str) -> int:
    process = template(kind).process
    assert process is not None
    return process.pid


@pytest.mark.parametrize(("kind", "call"), [("python", python), ("node", node), ("js", prefix)])
def test_templates(sandbox: Sandbox, kind: str, call: Callable[[Sandbox], bool], record_property: Record) -> None:
    """Those who ask while there is none wait for the next one."""
    process = template(kind).process
    # A copy whose origin has ended is a child of the template, but ends with its owner: other tests may have some.
    others = set(children_of(process.pid)) if process is not None else set()
    assert call(sandbox)
    killed: list[float] = []
    worked: list[float] = []
    before, threads = open_files(), threading.active_count()
    for seed in range(amount(2, 200)):
        pid = template_of(kind)
        children = set(children_of(pid)) - others
        timer = kill_later(pid, random.Random(seed).uniform(0, 0.1), killed)
        while timer.is_alive():
            attempt(call, sandbox)
        timer.join()
        # What the killed one made ahead may be taken a moment longer, and ends with it.
        while not attempt(call, sandbox) or template_of(kind) == pid:
            assert time.monotonic() - killed[-1] < SECONDS
        worked.append(time.monotonic())
        assert not wait_gone([pid, *children])
        assert call(sandbox), "the next call works"
    show(record_property, f"template of {kind}, to a call by the next", delays(killed, worked))
    check_open_files(before, more=4)  # spares that are on their way, and the run that a prefix makes ahead
    check_threads(threads)


@pytest.mark.parametrize("program", ["python3 -c 'while True: pass'", "node -e 'for (;;);'"])
def test_engine_processes(sandbox: Sandbox, program: str, record_property: Record) -> None:
    """The command ends as one that was killed; the sandbox goes on."""
    killed: list[float] = []
    ended: list[float] = []
    sandbox.exec(f"timeout 0.1 {program}")
    before, threads = open_files(), threading.active_count()
    for seed in range(amount(4, 200)):
        known = set(sandbox._link.pids())
        process = sandbox.spawn(program)
        deadline = time.monotonic() + SECONDS
        while not (new := set(sandbox._link.pids()) - known):
            assert time.monotonic() < deadline
            time.sleep(0.002)
        timer = kill_later(new.pop(), random.Random(seed).uniform(0, 0.1), killed)
        assert process.wait() != 0
        ended.append(time.monotonic())
        timer.join()
        assert ended[-1] < deadline
        assert python(sandbox)
    show(record_property, f"process of {program.split()[0]}, to the command's end", check_soon(delays(killed, ended)))
    check_open_files(before, more=4)
    check_threads(threads)


def test_prefixes(sandbox: Sandbox, record_property: Record) -> None:
    """Runs fail with a SandboxError from then on; another prefix works."""
    assert prefix(sandbox)
    killed: list[float] = []
    failed: list[float] = []
    before, threads = open_files(), threading.active_count()
    for seed in range(amount(4, 200)):
        with sandbox.js.precompile("const six = 6;") as made:
            pid = made._core._process._process.pid  # type: ignore[attr-defined]
            timer = kill_later(pid, random.Random(seed).uniform(0, 0.1), killed)
            run = partial(run_six, made)
            while attempt(run, sandbox):
                pass
            failed.append(time.monotonic())
            timer.join()
            with pytest.raises(SandboxError):
                made.run("six")
        assert not wait_gone([pid])
        assert prefix(sandbox)
    show(record_property, "prefix, to the error", check_soon(delays(killed, failed)))
    check_open_files(before, more=4)
    check_threads(threads)


def check_threads(before: int) -> None:
    deadline = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < deadline:
        time.sleep(0.01)
    assert threading.active_count() <= before, [thread.name for thread in threading.enumerate()]


def check_soon(seconds: list[float]) -> list[float]:
    """Half of the calls hear of it soon, whatever else the machine does."""
    assert sorted(seconds)[(len(seconds) - 1) // 2] < SOON
    return seconds


def test_workers(record_property: Record) -> None:
    show(record_property, "worker, to the error", check_soon(kill_workers(amount(range(4), range(200)))))


def test_zygotes(record_property: Record) -> None:
    show(record_property, "zygote, to a sandbox of the next", kill_zygotes(amount(range(3), range(200))))
