"""Budgets: each limit ends every process of its exec and nobody else's."""

import gc
import re
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from importlib import import_module
from types import FunctionType

import pytest

from belljar.abi.errors import BudgetExceeded
from belljar.abi.limits import Limits
from belljar.abi.signals import Signal
from belljar.kernel.cpu_guard_host import CpuGuard
from belljar.kernel.kernel import Kernel
from belljar.kernel.machine_host import EpollPoller, host_machine
from belljar.kernel.process import Body, Process
from belljar.kernel.status import ExitStatus
from tests.kernel.rig import new_kernel, run, sleeping, start

KILLED = ExitStatus(0, Signal.KILL)

for room in ("bin", "regex", "shell", "worker"):
    import_module(f"belljar.{room}")  # each says itself whether the guard may interrupt what it does


def busy(process: Process) -> int:
    while True:
        process.budget.charge()


def forks_forever(process: Process) -> int:
    while True:
        process.fork(sleeping(100))


def calls_itself(process: Process) -> int:
    process.enter()
    return calls_itself(process)


def recurses_in_python(process: Process) -> int:
    return recurses_in_python(process)


def expands(process: Process) -> int:
    process.budget.charge_size(1 << 20)
    return 0


def reads_a_huge_file(process: Process) -> int:
    process.read_file("/dev/zero")
    return 0


@pytest.mark.parametrize(
    ("limits", "body"),
    [
        (Limits(steps=100_000), busy),
        (Limits(wall_seconds=5), sleeping(100)),
        (Limits(processes=20), forks_forever),
        (Limits(depth=50), calls_itself),
        (Limits(depth=1_000_000), recurses_in_python),
        (Limits(expansion_bytes=1000), expands),
        (Limits(expansion_bytes=1 << 20), reads_a_huge_file),
    ],
    ids=["steps", "wall_seconds", "processes", "depth", "depth-python", "expansion_bytes", "expansion_bytes-read"],
)
def test_a_spent_limit_ends_the_whole_exec_and_no_other(
    limits: Limits, body: Body, request: pytest.FixtureRequest
) -> None:
    gc.collect()  # what earlier tests left is not to be finalised where the stack ends
    kernel = new_kernel()
    bystander = start(kernel, sleeping(200, 7))
    children: list[Process] = []

    def main(process: Process) -> int:
        children.append(process.fork(sleeping(100)))
        children.append(process.fork(body))
        process.sleep(1000)
        return 0

    process = start(kernel, main, limits=limits)
    kernel.hub.run(lambda: process.status is not None and all(child.status is not None for child in children))
    assert process.status == KILLED
    assert [child.status for child in children] == [KILLED, KILLED]
    assert process.budget.spent is not None
    assert process.budget.spent.limit == request.node.callspec.id.partition("-")[0]
    assert kernel.members(process.budget) == []
    kernel.hub.run(lambda: bystander.status is not None)
    assert bystander.status == ExitStatus(7)


def test_a_program_cannot_swallow_it() -> None:
    def stubborn(process: Process) -> int:
        while True:
            try:
                process.budget.charge()
            except Exception:  # noqa: BLE001, S112
                continue

    assert run(new_kernel(), stubborn, limits=Limits(steps=10_000)) == KILLED


def test_wall_time_also_ends_what_an_exec_left_behind() -> None:
    kernel = new_kernel()
    left: list[Process] = []

    def main(process: Process) -> int:
        left.append(process.fork(sleeping(1000)))
        return 0

    assert run(kernel, main, limits=Limits(wall_seconds=10)) == ExitStatus(0)
    kernel.hub.run(lambda: left[0].status is not None)
    assert left[0].status == KILLED
    assert kernel.hub.clock.monotonic() == 10


def test_an_exec_that_ended_leaves_no_timer() -> None:
    kernel = new_kernel()
    assert run(kernel, lambda _process: 0) == ExitStatus(0)
    kernel.hub.run()
    assert kernel.hub.clock.monotonic() == 0


def test_many_short_waits_do_not_pile_up() -> None:
    kernel = new_kernel()

    def main(_process: Process) -> int:
        for _ in range(5000):
            kernel.hub.call_later(1000, lambda: None).cancel()
        assert len(kernel.hub._timers) < 2500
        return 0

    assert run(kernel, main) == ExitStatus(0)


def test_output_is_counted() -> None:
    def main(process: Process) -> int:
        process.budget.charge_output(600)
        process.budget.charge_output(600)
        return 0

    kernel = new_kernel()
    process = start(kernel, main, limits=Limits(output_bytes=1000))
    kernel.hub.run(lambda: process.status is not None)
    assert process.status == KILLED
    assert isinstance(process.budget.spent, BudgetExceeded)
    assert str(process.budget.spent) == "limit reached: output_bytes (1000)"


def test_an_exec_may_ask_for_less_than_its_sandbox_never_more() -> None:
    kernel = new_kernel(limits=Limits(steps=10_000))
    assert start(kernel, sleeping(1), limits=Limits(steps=5)).budget.limits.steps == 5
    assert start(kernel, sleeping(1), limits=Limits(steps=1_000_000)).budget.limits.steps == 10_000


def test_busy_processes_take_turns() -> None:
    kernel = new_kernel()
    turns: list[int] = []

    def worker(number: int) -> Body:
        def body(process: Process) -> int:
            for _ in range(10):
                turns.append(number)
                process.budget.charge(5000)
            return 0

        return body

    first, second = start(kernel, worker(1)), start(kernel, worker(2))
    kernel.hub.run(lambda: first.status is not None and second.status is not None)
    assert turns == [1, 2] * 10


# The CPU guard, on real time.


@pytest.fixture(name="real_kernel")
def _real_kernel():  # type: ignore[no-untyped-def]
    machine = host_machine()
    kernel = new_kernel(machine)
    guard = CpuGuard(kernel.hub, 0.01)
    guard.start()
    yield kernel
    guard.stop()
    assert isinstance(machine.poller, EpollPoller)
    machine.poller.close()


def as_utility(function: object) -> Body:
    """The function as if a utility's module had defined it: the guard never interrupts the kernel itself."""
    assert isinstance(function, FunctionType)
    return FunctionType(function.__code__, {**function.__globals__, "__name__": "belljar.bin.fake"})


def spins(_process: Process) -> int:
    while True:
        pass


def backtracks(_process: Process) -> int:
    re.search(r"(a+)+$", "a" * 40 + "b")
    return 0


@pytest.mark.parametrize("body", [spins, backtracks])
def test_the_guard_interrupts_what_never_charges(real_kernel: Kernel, body: Body) -> None:
    began = time.process_time()
    process = start(real_kernel, as_utility(body), limits=Limits(cpu_seconds=0.1))
    real_kernel.hub.run(lambda: process.status is not None)
    assert process.status == KILLED
    assert process.budget.spent is not None
    assert process.budget.spent.limit == "cpu_seconds"
    assert time.process_time() - began < 2
    assert process.cpu >= 0.1
    assert real_kernel.cpu >= 0.1


def test_the_guard_charges_whoever_runs(real_kernel: Kernel) -> None:
    def charges(process: Process) -> int:
        while True:
            process.budget.charge()

    idle = start(real_kernel, sleeping(60))
    real_kernel.hub.run(lambda: real_kernel.hub.idle)
    before = idle.cpu  # a tick may have come while it went to sleep
    process = start(real_kernel, charges, limits=Limits(cpu_seconds=0.1))
    real_kernel.hub.run(lambda: process.status is not None)
    assert process.status == KILLED
    assert idle.cpu == before
    idle.deliver(Signal.KILL)
    real_kernel.hub.run(lambda: idle.status is not None)


def ticks(guard: CpuGuard) -> None:
    guard._on_tick(signal.SIGPROF, sys._getframe())


@pytest.mark.parametrize(
    ("names", "raises"),
    [
        (["belljar.bin.fake"], True),
        (["belljar.shell.fake", "re"], True),
        (["belljar.shell.fake", "belljar.regex.fake"], True),
        (["belljar.bin.fake", "belljar.kernel.fake"], False),
        (["belljar.bin.fake", "belljar.kernel.fake", "belljar.abi.fake"], False),
        (["belljar.bin.fake", "belljar.worker.fake", "json"], False),
    ],
)
def test_the_guard_spares_whoever_is_not_the_guests_doing(names: list[str], raises: bool) -> None:
    kernel = new_kernel()
    guard = CpuGuard(kernel.hub)

    def body(process: Process) -> int:
        process.budget.spend("expansion_bytes")
        call: Callable[[], None] = partial(ticks, guard)
        for name in reversed(names):
            call = partial(FunctionType(calls.__code__, {"__name__": name}), call)
        call()
        return 3

    assert run(kernel, body) == (KILLED if raises else ExitStatus(3))


def calls(what: Callable[[], None]) -> None:
    what()


def test_a_tick_does_not_keep_an_end_from_being_told() -> None:
    kernel = new_kernel()
    guard = CpuGuard(kernel.hub)
    told: list[Process] = []

    def on_exit(process: Process) -> None:
        as_if_a_utilitys(guard)
        told.append(process)

    as_if_a_utilitys = FunctionType(ticks.__code__, {**ticks.__globals__, "__name__": "belljar.bin.fake"})

    def body(process: Process) -> int:
        process.on_exit = on_exit
        process.budget.exceed("expansion_bytes")
        return 0

    assert run(kernel, body) == KILLED
    assert len(told) == 1
