"""Signals: default actions, ignoring, catching, masks, stops, who may signal whom."""

from errno import EINVAL, EPERM, ESRCH

import pytest

from belljar.abi.errors import SysError
from belljar.abi.flags import WUNTRACED
from belljar.abi.signals import Signal
from belljar.kernel.process import IGNORE, Process
from belljar.kernel.status import ExitStatus
from belljar.kernel.vfs.credentials import Credentials
from tests.kernel.rig import doing, errno_of, new_kernel, result, run, sleeping, start

FATAL = [*sorted(set(range(1, 32)) - {17, 18, 19, 20, 21, 22, 23, 28}), 34, 64]


sleeper = sleeping(100)


@pytest.mark.parametrize("number", FATAL)
def test_most_signals_end_a_process(number: int) -> None:
    def main(process: Process) -> None:
        child = process.fork(sleeper)
        process.sleep(1)
        process.kill(child.pid, number)
        assert process.wait_for(child) == ExitStatus(0, number)
        assert process.kernel.hub.clock.monotonic() == 1

    result(new_kernel(), main)


@pytest.mark.parametrize("number", [Signal.CHLD, Signal.URG, Signal.WINCH, Signal.CONT])
def test_some_are_ignored_by_default(number: int) -> None:
    assert run(new_kernel(), doing(lambda process: process.raise_signal(number))) == ExitStatus(0)


def test_a_fatal_signal_to_oneself_takes_effect_at_once() -> None:
    after: list[str] = []

    def main(process: Process) -> int:
        process.raise_signal(Signal.TERM)
        after.append("still here")
        return 0

    assert run(new_kernel(), main) == ExitStatus(0, Signal.TERM)
    assert after == []


def test_a_process_killed_before_it_ran_never_runs() -> None:
    ran: list[bool] = []

    def main(process: Process) -> None:
        child = process.fork(doing(lambda _child: ran.append(True)))
        process.kill(child.pid, Signal.KILL)
        assert process.wait_for(child) == ExitStatus(0, Signal.KILL)

    result(new_kernel(), main)
    assert ran == []


def test_an_ignored_signal_does_nothing_and_a_caught_one_is_noted() -> None:
    def main(process: Process) -> None:
        caught: list[int] = []
        assert process.catch(Signal.TERM, IGNORE) is None
        process.raise_signal(Signal.TERM)
        assert process.catch(Signal.TERM, caught.append) is IGNORE
        process.raise_signal(Signal.TERM)
        assert caught == [Signal.TERM]
        process.catch(Signal.TERM, None)
        assert Signal.TERM not in process.handlers

    result(new_kernel(), main)


def test_kill_and_stop_cannot_be_caught_or_blocked() -> None:
    def main(process: Process) -> None:
        for number in (Signal.KILL, Signal.STOP):
            assert errno_of(process.catch, number, IGNORE) == EINVAL
        process.block(frozenset(range(1, 65)))
        assert Signal.KILL not in process.blocked
        assert Signal.STOP not in process.blocked

    result(new_kernel(), main)


def test_a_blocked_signal_waits_once_and_comes_when_unblocked_lowest_first() -> None:
    def main(process: Process) -> None:
        caught: list[int] = []
        for number in (Signal.USR1, Signal.USR2, Signal.HUP):
            process.catch(number, caught.append)
        process.block(frozenset({Signal.USR1, Signal.USR2, Signal.HUP}))
        for number in (Signal.USR2, Signal.USR1, Signal.USR1, Signal.HUP):
            process.raise_signal(number)
        assert caught == []
        process.block(frozenset({Signal.USR2}))
        assert caught == [Signal.HUP, Signal.USR1]
        process.block(frozenset())
        assert caught == [Signal.HUP, Signal.USR1, Signal.USR2]

    result(new_kernel(), main)


def test_a_blocked_fatal_signal_takes_effect_when_unblocked() -> None:
    def main(process: Process) -> int:
        process.block(frozenset({Signal.TERM}))
        process.raise_signal(Signal.TERM)
        process.block(frozenset())
        return 0

    assert run(new_kernel(), main) == ExitStatus(0, Signal.TERM)


# Stop and continue.


def test_stop_holds_a_sleeping_process_and_continue_lets_it_go_on() -> None:
    def main(process: Process) -> None:
        child = process.fork(sleeping(5))
        process.sleep(1)
        process.kill(child.pid, Signal.STOP)
        process.sleep(10)
        assert child.status is None
        process.kill(child.pid, Signal.CONT)
        assert process.wait_for(child) == ExitStatus(0)
        assert process.kernel.hub.clock.monotonic() == 11  # its sleep ended while it was stopped

    result(new_kernel(), main)


def test_stop_holds_a_busy_process() -> None:
    turns = [0]

    def busy(child: Process) -> int:
        while True:
            child.budget.charge(100)
            turns[0] += 1

    def main(process: Process) -> None:
        child = process.fork(busy)
        process.kernel.hub.pause()
        process.kernel.hub.pause()
        assert turns[0] > 0
        process.kill(child.pid, Signal.STOP)
        before = turns[0]
        for _ in range(10):
            process.kernel.hub.pause()
        assert turns[0] == before
        process.kill(child.pid, Signal.CONT)
        process.kernel.hub.pause()
        process.kernel.hub.pause()
        assert turns[0] > before
        process.kill(child.pid, Signal.TERM)
        assert process.wait_for(child) == ExitStatus(0, Signal.TERM)

    result(new_kernel(), main)


def test_a_process_that_stops_itself_goes_on_from_there() -> None:
    log: list[str] = []

    def body(child: Process) -> int:
        log.append("before")
        child.raise_signal(Signal.STOP)
        log.append("after")
        return 0

    def main(process: Process) -> None:
        child = process.fork(body)
        news = process.wait(-1, WUNTRACED)
        assert news is not None
        assert news.stopped
        assert log == ["before"]
        process.kill(child.pid, Signal.CONT)
        process.wait_for(child)
        assert log == ["before", "after"]

    result(new_kernel(), main)


def test_kill_ends_a_stopped_process_and_other_signals_wait_for_continue() -> None:
    def main(process: Process) -> None:
        first, second = process.fork(sleeper), process.fork(sleeper)
        for child in (first, second):
            process.kill(child.pid, Signal.STOP)
        process.kill(first.pid, Signal.KILL)
        assert process.wait_for(first) == ExitStatus(0, Signal.KILL)
        process.kill(second.pid, Signal.TERM)
        process.sleep(1)
        assert second.status is None
        process.kill(second.pid, Signal.CONT)
        assert process.wait_for(second) == ExitStatus(0, Signal.TERM)

    result(new_kernel(), main)


def test_continue_takes_waiting_stops_away_and_a_stop_a_waiting_continue() -> None:
    def main(process: Process) -> None:
        process.block(frozenset({Signal.TSTP, Signal.CONT}))
        process.deliver(Signal.TSTP)
        assert process.pending == [Signal.TSTP]
        process.deliver(Signal.CONT)
        assert process.pending == [Signal.CONT]
        process.deliver(Signal.TSTP)
        assert process.pending == [Signal.TSTP]

    result(new_kernel(), main)


def test_terminal_stops_leave_an_orphaned_group_alone() -> None:
    def main(process: Process) -> int:
        process.raise_signal(Signal.TSTP)  # our parent, init, is of another session
        return 7

    assert run(new_kernel(), main) == ExitStatus(7)

    def job_control(process: Process) -> None:
        child = process.fork(doing(lambda child: child.raise_signal(Signal.TSTP)), pgid=0)
        news = process.wait(child.pid, WUNTRACED)
        assert news is not None
        assert news.stopped

    result(new_kernel(), job_control)


# Whom a signal reaches.


def test_groups_and_everybody() -> None:
    def main(process: Process) -> None:
        group = process.fork(sleeper, pgid=0)
        members = [group, process.fork(sleeper, pgid=group.pid)]
        others = [process.fork(sleeper, pgid=0) for _ in range(2)]
        process.kill(-group.pid, Signal.TERM)
        for child in members:
            assert process.wait_for(child) == ExitStatus(0, Signal.TERM)
        assert errno_of(process.kill, -group.pid, Signal.TERM) == ESRCH
        process.kill(-1, Signal.INT)
        for child in others:
            assert process.wait_for(child) == ExitStatus(0, Signal.INT)

    result(new_kernel(), main)


def test_signal_0_only_asks() -> None:
    def main(process: Process) -> None:
        process.kill(process.pid, 0)
        assert errno_of(process.kill, 4242, 0) == ESRCH
        assert errno_of(process.kill, process.pid, 65) == EINVAL
        assert errno_of(process.kill, process.pid, -1) == EINVAL

    result(new_kernel(), main)


def test_a_user_may_signal_only_their_own_but_continue_their_session() -> None:
    def main(process: Process) -> None:
        other = process.fork(sleeper)
        foreign = start(process.kernel, sleeper, uid=2000)

        def user(child: Process) -> int:
            child.fs.credentials = Credentials(1000, 1000)
            assert errno_of(child.kill, other.pid, Signal.TERM) == EPERM
            assert errno_of(child.kill, 1, Signal.TERM) == EPERM
            assert errno_of(child.kill, foreign.pid, Signal.CONT) == EPERM
            child.kill(other.pid, Signal.CONT)
            return 0

        assert process.wait_for(process.fork(user)) == ExitStatus(0)
        process.kill(other.pid, Signal.KILL)
        process.kill(foreign.pid, Signal.KILL)

    result(new_kernel(), main)


def test_init_survives_everything() -> None:
    kernel = new_kernel()

    def main(process: Process) -> None:
        for number in range(1, 65):
            process.kill(1, number)
        assert kernel.init.status is None
        assert not kernel.init.stopped

    result(kernel, main)
    assert run(kernel, lambda _process: 0) == ExitStatus(0)


def test_kill_reaches_a_process_wherever_it_waits() -> None:
    def main(process: Process) -> None:
        process.fs.mknod("/tmp/fifo", 0o010666)
        reader, writer = process.pipe()

        def fill(child: Process) -> int:
            while True:
                child.write(writer, b"x" * 65536)

        def wait(child: Process) -> int:
            child.fork(sleeper)
            child.wait()
            return 0

        waits = [
            sleeper,
            wait,
            fill,
            lambda child: child.open("/tmp/fifo"),
            lambda child: child.poll({reader: 8}) and 0,
        ]
        for body in waits:
            child = process.fork(body)
            process.sleep(1)
            process.kill(child.pid, Signal.TERM)
            assert process.wait_for(child) == ExitStatus(0, Signal.TERM)

    result(new_kernel(), main)


# SIGPIPE.


def test_writing_to_nobody_ends_the_writer() -> None:
    def main(process: Process) -> int:
        reader, writer = process.pipe()
        process.close(reader)
        process.write(writer, b"x")
        return 0

    assert run(new_kernel(), main) == ExitStatus(0, Signal.PIPE)


def test_with_sigpipe_ignored_it_is_an_error() -> None:
    def main(process: Process) -> int:
        process.catch(Signal.PIPE, IGNORE)
        reader, writer = process.pipe()
        process.close(reader)
        with pytest.raises(SysError, match="Broken pipe"):
            process.write(writer, b"x")
        return 0

    assert run(new_kernel(), main) == ExitStatus(0)
