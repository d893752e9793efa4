"""Fibers: parking, waking, killing, freezing, order, and life across os.fork()."""

import os
from collections.abc import Callable

import pytest

from belljar.kernel.fiber import Fiber, FiberKilled, Hub, State, WaitQueue
from belljar.kernel.machine import StoppedClock, VirtualTime, virtual_machine
from belljar.kernel.machine_host import EpollPoller, host_machine
from belljar.kernel.process import Process
from tests.kernel.rig import new_kernel, run


def new_hub() -> Hub:
    machine = virtual_machine()
    return Hub(machine.clock, machine.poller)


def test_fibers_run_in_the_order_they_were_spawned() -> None:
    hub, log = new_hub(), list[int]()
    for number in range(5):
        hub.spawn(lambda number=number: log.append(number))  # type: ignore[misc]
    hub.run()
    assert log == [0, 1, 2, 3, 4]


def test_run_returns_whether_the_condition_came_true() -> None:
    hub = new_hub()
    hub.spawn(lambda: hub.park())
    assert not hub.run(lambda: False)
    assert hub.run(lambda: True)


def test_park_outside_a_fiber_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="outside a fiber"):
        new_hub().park()


def test_unpark_before_park_is_lost_and_a_second_unpark_wakes_once() -> None:
    hub, log = new_hub(), list[str]()

    def sleeper() -> None:
        log.append("a")
        hub.park()
        log.append("b")
        hub.park()
        log.append("c")

    fiber = hub.spawn(sleeper)
    hub.unpark(fiber)  # ready, not parked: nothing to wake
    hub.run()
    assert log == ["a"]
    hub.unpark(fiber)
    hub.unpark(fiber)
    hub.run()
    assert log == ["a", "b"]


def test_a_spurious_wake_does_not_end_a_sleep() -> None:
    hub, woke = new_hub(), list[float]()

    def sleeper() -> None:
        hub.sleep(10)
        woke.append(hub.clock.monotonic())

    fiber = hub.spawn(sleeper)
    for moment in (1, 2, 3):
        hub.call_at(moment, lambda: hub.unpark(fiber))
    hub.run()
    assert woke == [10]


def test_timers_fire_in_time_order_then_in_the_order_made() -> None:
    hub, log = new_hub(), list[str]()
    for when, name in ((3, "c"), (1, "a"), (3, "d"), (2, "b")):
        hub.call_at(when, lambda name=name: log.append(name))  # type: ignore[misc]
    hub.call_at(2, lambda: log.append("never")).cancel()
    hub.run()
    assert log == ["a", "b", "c", "d"]


def test_a_cancelled_timer_does_not_keep_the_hub_waiting() -> None:
    hub = new_hub()
    hub.call_at(1000, lambda: None).cancel()
    hub.run()
    assert hub.clock.monotonic() == 0


def test_pause_lets_timers_have_their_turn() -> None:
    hub = new_hub()
    fired: list[bool] = []
    hub.call_at(0, lambda: fired.append(True))

    def busy() -> None:
        while not fired:
            hub.pause()

    hub.spawn(busy)
    hub.run()
    assert fired


# Killing.


def unwinding(hub: Hub, wait: Callable[[], None], log: list[str]) -> Fiber:
    def body() -> None:
        try:
            wait()
        except FiberKilled:
            log.append("killed")
            raise
        finally:
            log.append("unwound")

    return hub.spawn(body)


def test_kill_reaches_a_fiber_wherever_it_waits() -> None:
    hub = new_hub()
    queue = WaitQueue(hub)
    for wait in (hub.park, lambda: hub.sleep(100), queue.wait, hub.park):
        log: list[str] = []
        fiber = unwinding(hub, wait, log)
        hub.call_later(1, lambda fiber=fiber: hub.kill(fiber))  # type: ignore[misc]
        hub.run(lambda fiber=fiber: fiber.state is State.DONE)  # type: ignore[misc]
        assert log == ["killed", "unwound"]
        assert not queue


def test_a_killed_fiber_cannot_park_again() -> None:
    hub, log = new_hub(), list[str]()

    def stubborn() -> None:
        for _ in range(3):
            try:
                hub.park()
            except FiberKilled:
                log.append("again")
        log.append("done")

    fiber = hub.spawn(stubborn)
    hub.run()
    hub.kill(fiber)
    hub.run()
    assert log == ["again", "again", "again", "done"]
    assert fiber.state is State.DONE


def test_a_fiber_killed_before_it_ran_never_runs() -> None:
    hub, log = new_hub(), list[str]()
    fiber = hub.spawn(lambda: log.append("ran"))
    hub.kill(fiber)
    hub.run()
    assert log == []
    assert fiber.state is State.DONE


def test_kill_after_the_end_does_nothing() -> None:
    hub = new_hub()
    fiber = hub.spawn(lambda: None)
    hub.run()
    hub.kill(fiber)
    hub.run()
    assert fiber.state is State.DONE


def test_interrupt_raises_at_the_park() -> None:
    hub, caught = new_hub(), list[BaseException]()

    def body() -> None:
        try:
            hub.park()
        except TimeoutError as error:
            caught.append(error)

    fiber = hub.spawn(body)
    hub.run()
    hub.interrupt(fiber, error := TimeoutError())
    hub.run()
    assert caught == [error]


def test_what_a_fiber_raises_reaches_the_owner_of_the_hub() -> None:
    hub = new_hub()
    crashes: list[BaseException] = []
    hub.on_crash = lambda _fiber, error: crashes.append(error)
    hub.spawn(lambda: [][0])
    hub.run()
    assert isinstance(crashes[0], IndexError)


# Freezing.


def test_a_frozen_fiber_keeps_its_wake_ups() -> None:
    hub, log = new_hub(), list[str]()

    def body() -> None:
        hub.park()
        log.append("woke")

    fiber = hub.spawn(body)
    hub.run()
    hub.freeze(fiber)
    hub.unpark(fiber)
    hub.run()
    assert log == []
    hub.thaw(fiber)
    hub.run()
    assert log == ["woke"]


def test_a_fiber_frozen_while_ready_stays_put() -> None:
    hub, log = new_hub(), list[str]()
    fiber = hub.spawn(lambda: log.append("ran"))
    hub.freeze(fiber)
    hub.run()
    assert log == []
    hub.thaw(fiber)
    hub.run()
    assert log == ["ran"]


def test_kill_ends_a_frozen_fiber() -> None:
    hub = new_hub()
    for parked_first in (True, False):
        fiber = hub.spawn(hub.park)
        if parked_first:
            hub.run()
        hub.freeze(fiber)
        if not parked_first:
            hub.run()
        hub.kill(fiber)
        hub.run()
        assert fiber.state is State.DONE


# Wait queues.


def test_wake_all_wakes_in_the_order_of_waiting() -> None:
    hub, log = new_hub(), list[int]()
    queue = WaitQueue(hub)

    def body(number: int) -> None:
        queue.wait()
        log.append(number)

    for number in range(4):
        hub.spawn(lambda number=number: body(number))  # type: ignore[misc]
    hub.run()
    assert queue
    queue.wake_all()
    hub.run()
    assert log == [0, 1, 2, 3]
    assert not queue


# The same inputs, the same course.


def test_a_run_repeats_itself() -> None:
    def course(seed: int) -> list[tuple[float, int]]:
        machine = virtual_machine(seed)
        hub, log = Hub(machine.clock, machine.poller), list[tuple[float, int]]()

        def body(number: int) -> None:
            for _ in range(5):
                hub.sleep(machine.entropy.random_bytes(1)[0] % 7)
                log.append((hub.clock.monotonic(), number))

        for number in range(10):
            hub.spawn(lambda number=number: body(number))  # type: ignore[misc]
        hub.run()
        return log

    assert course(1) == course(1)
    assert course(1) != course(2)


def test_virtual_time_waits_in_no_time() -> None:
    time = VirtualTime()
    assert time.wait(3600.0)
    assert time.monotonic() == 3600
    assert not time.wait(None)


# os.fork(): both branches go on from where they were.


def branch(work: Callable[[], bytes]) -> bytes:
    """Run `work` in a forked branch; what it returned."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.write(writer, work())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        data = file.read()
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    return data


def test_parked_fibers_continue_on_both_sides_of_a_fork() -> None:
    poller = host_machine().poller
    assert isinstance(poller, EpollPoller)
    now = 0.0  # moved by hand: on a busy machine a real sleep may be over before the fiber that sleeps has parked
    hub = Hub(StoppedClock(lambda: now), poller)
    queue, log = WaitQueue(hub), list[str]()
    reader, writer = os.pipe()

    def waiter() -> None:
        queue.wait()
        log.append("queue")

    def sleeper() -> None:
        hub.sleep(0.01)
        log.append("timer")

    def listener() -> None:
        fiber = hub.current
        assert fiber is not None
        poller.watch(reader, lambda: hub.unpark(fiber))
        hub.park()
        log.append("socket:" + os.read(reader, 1).decode())

    fibers = [hub.spawn(waiter), hub.spawn(listener), hub.spawn(sleeper)]
    hub.run(lambda: all(fiber.state is State.PARKED for fiber in fibers))

    def finish(letter: str) -> None:
        nonlocal now
        now = 0.01
        os.write(writer, letter.encode())
        queue.wake_all()
        hub.run(lambda: all(fiber.state is State.DONE for fiber in fibers))

    def child() -> bytes:
        poller.renew()
        finish("c")
        return " ".join(sorted(log)).encode()

    try:
        assert branch(child) == b"queue socket:c timer"
        assert log == []
        finish("p")
        assert sorted(log) == ["queue", "socket:p", "timer"]
    finally:
        poller.close()
        os.close(reader)
        os.close(writer)


def test_a_whole_pipeline_continues_on_both_sides_of_a_fork() -> None:
    kernel = new_kernel()
    received: list[bytes] = []
    gate = WaitQueue(kernel.hub)
    is_open: list[bool] = []

    def main(process: Process) -> int:
        reader, writer = process.pipe()

        def produce(child: Process) -> int:
            child.close(reader)
            for number in range(1000):
                child.write(writer, b"%d\n" % number)
                if number == 500:
                    while not is_open:
                        gate.wait()
            return 7

        producer = process.fork(produce)
        process.close(writer)
        while data := process.read(reader):
            received.append(data)
        return process.wait_for(producer).code

    process = kernel.start(main, ["main"])
    kernel.hub.run(lambda: bool(received) and kernel.hub.idle)
    assert process.status is None
    expected = b"".join(b"%d\n" % number for number in range(1000))

    def finish() -> bytes:
        is_open.append(True)
        gate.wake_all()
        kernel.hub.run()
        assert process.status is not None
        assert process.status.code == 7
        return b"".join(received)

    assert branch(finish) == expected
    assert not is_open
    assert finish() == expected


# Lifetime: a process's fibers end with it.


def test_every_fiber_of_a_process_ends_with_it() -> None:
    kernel, log = new_kernel(), list[str]()

    def helper() -> None:
        try:
            kernel.hub.park()
        finally:
            log.append("helper unwound")

    def main(process: Process) -> int:
        process.add_fiber(helper)
        process.add_fiber(helper)
        kernel.hub.pause()
        return 3

    assert run(kernel, main).code == 3
    kernel.hub.run()
    assert log == ["helper unwound"] * 2


def test_a_fiber_that_ends_early_leaves_the_process_running() -> None:
    kernel = new_kernel()

    def main(process: Process) -> int:
        process.add_fiber(lambda: None)
        process.sleep(1)
        assert len(process.fibers) == 1
        return 0

    assert run(kernel, main).code == 0
