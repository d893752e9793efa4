"""Processes: fork, exit, every form of wait, orphans, groups, sessions, descriptors, poll."""

from errno import EBADF, ECHILD, EINTR, EINVAL, EMFILE, EPERM, ESRCH

import pytest

from belljar.abi.flags import O_CREAT, O_RDONLY, O_WRONLY, POLLHUP, POLLIN, POLLOUT, WCONTINUED, WNOHANG, WUNTRACED
from belljar.abi.limits import Limits
from belljar.abi.signals import Signal
from belljar.kernel.process import IGNORE, Process
from belljar.kernel.status import ExitStatus, WaitResult
from tests.kernel.rig import errno_of, new_kernel, result, run, sleeping

sleeper = sleeping(100)


# Exit and wait.


@pytest.mark.parametrize(("code", "seen"), [(0, 0), (3, 3), (255, 255), (256, 0), (-1, 255)])
def test_an_exit_code_is_a_byte(code: int, seen: int) -> None:
    assert run(new_kernel(), lambda _process: code) == ExitStatus(seen)
    assert run(new_kernel(), lambda process: process.exit(code)) == ExitStatus(seen)


def test_wait_gives_any_child_in_the_order_they_ended() -> None:
    def main(process: Process) -> list[tuple[int, int]]:
        def child(seconds: int) -> Process:
            def body(me: Process) -> int:
                me.sleep(seconds)
                return seconds

            return process.fork(body)

        pids = [child(seconds).pid for seconds in (3, 1, 2)]
        ended = []
        for _ in pids:
            news = process.wait()
            assert news is not None
            ended.append((pids.index(news.pid), news.status.code))
        assert errno_of(process.wait) == ECHILD
        return ended

    assert result(new_kernel(), main) == [(1, 1), (2, 2), (0, 3)]


def test_wait_for_one_child_leaves_the_others_news() -> None:
    def main(process: Process) -> None:
        first = process.fork(lambda _child: 1)
        second = process.fork(sleeper)
        third = process.fork(lambda _child: 3)
        news = process.wait(third.pid)
        assert news == WaitResult(third.pid, ExitStatus(3))
        assert process.wait(second.pid, WNOHANG) is None
        assert process.wait(first.pid) == WaitResult(first.pid, ExitStatus(1))
        assert errno_of(process.wait, first.pid) == ECHILD
        process.kill(second.pid, Signal.KILL)
        assert process.wait() == WaitResult(second.pid, ExitStatus(0, Signal.KILL))

    result(new_kernel(), main)


def test_wait_by_group() -> None:
    def main(process: Process) -> None:
        same = process.fork(lambda _child: 1)
        own = process.fork(lambda _child: 2, pgid=0)
        joined = process.fork(lambda _child: 3, pgid=own.pid)
        assert process.wait(0) == WaitResult(same.pid, ExitStatus(1))
        assert errno_of(process.wait, 0) == ECHILD
        assert process.wait(-own.pid) == WaitResult(own.pid, ExitStatus(2))
        assert process.wait(-own.pid) == WaitResult(joined.pid, ExitStatus(3))
        assert errno_of(process.wait, -own.pid) == ECHILD
        assert errno_of(process.wait, -9999) == ECHILD

    result(new_kernel(), main)


def test_stops_and_continues_are_told_only_when_asked_for() -> None:
    def main(process: Process) -> None:
        child = process.fork(sleeper)
        process.kill(child.pid, Signal.STOP)
        assert process.wait(-1, WNOHANG) is None
        stop = process.wait(-1, WUNTRACED)
        assert stop == WaitResult(child.pid, ExitStatus(0, Signal.STOP), stopped=True)
        assert process.wait(-1, WNOHANG | WUNTRACED) is None
        process.kill(child.pid, Signal.CONT)
        assert process.wait(-1, WNOHANG | WUNTRACED) is None
        again = process.wait(-1, WCONTINUED)
        assert again == WaitResult(child.pid, ExitStatus(0, Signal.CONT), continued=True)
        process.kill(child.pid, Signal.TERM)
        assert process.wait() == WaitResult(child.pid, ExitStatus(0, Signal.TERM))

    result(new_kernel(), main)


def test_a_stop_nobody_asked_about_is_forgotten_at_the_end() -> None:
    def main(process: Process) -> None:
        child = process.fork(sleeper)
        process.kill(child.pid, Signal.STOP)
        process.kill(child.pid, Signal.KILL)
        process.sleep(1)
        assert process.wait(-1, WUNTRACED | WCONTINUED) == WaitResult(child.pid, ExitStatus(0, Signal.KILL))
        assert errno_of(process.wait, -1, WUNTRACED) == ECHILD

    result(new_kernel(), main)


def test_a_caught_signal_interrupts_a_wait() -> None:
    def main(process: Process) -> None:
        caught: list[int] = []
        process.catch(Signal.USR1, caught.append)

        def poke(child: Process) -> int:
            child.sleep(1)
            child.kill(process.pid, Signal.USR1)
            child.sleep(1)
            return 5

        child = process.fork(poke)
        assert errno_of(process.wait) == EINTR
        assert caught == [Signal.USR1]
        assert process.wait_for(child).code == 5

    result(new_kernel(), main)


def test_a_child_that_ended_is_news_even_if_its_sigchld_is_caught() -> None:
    def main(process: Process) -> None:
        caught: list[int] = []
        process.catch(Signal.CHLD, caught.append)
        child = process.fork(lambda _child: 4)
        assert process.wait() == WaitResult(child.pid, ExitStatus(4))
        assert caught == [Signal.CHLD]

    result(new_kernel(), main)


def test_with_sigchld_ignored_children_leave_no_zombies_and_wait_ends_with_echild() -> None:
    def main(process: Process) -> None:
        process.catch(Signal.CHLD, IGNORE)
        for seconds in (1, 2):
            process.fork(sleeping(seconds))
        assert errno_of(process.wait) == ECHILD
        assert process.kernel.hub.clock.monotonic() == 2
        assert process.children == []
        assert process.wait_for(process.fork(sleeping(1, 6))).code == 6

    result(new_kernel(), main)


def test_a_zombie_keeps_its_number_until_it_is_waited_for() -> None:
    def main(process: Process) -> None:
        child = process.fork(lambda _child: 0)
        process.sleep(1)
        process.kill(child.pid, 0)
        process.wait()
        assert errno_of(process.kill, child.pid, 0) == ESRCH

    result(new_kernel(), main)


# Orphans.


def test_orphans_go_to_init_which_forgets_them() -> None:
    kernel = new_kernel()
    grandchildren: list[Process] = []

    def middle(child: Process) -> int:
        grandchildren.append(child.fork(sleeping(5)))
        grandchildren.append(child.fork(lambda _zombie: 0))
        child.sleep(1)
        return 0

    def main(process: Process) -> None:
        process.wait_for(process.fork(middle))
        living, zombie = grandchildren
        assert living.parent is kernel.init
        assert living in kernel.init.children
        assert zombie.pid not in process.space.table
        process.sleep(10)
        assert living.status == ExitStatus(0)
        assert living not in kernel.init.children
        assert living.pid not in process.space.table

    result(kernel, main)
    assert list(kernel.init.space.table) == [1]


def test_an_orphaned_stopped_group_is_hung_up_and_continued() -> None:
    kernel = new_kernel()
    stopped: list[Process] = []

    def leader(me: Process) -> int:
        me.setpgid(0, 0)
        stopped.append(me.fork(sleeper, pgid=0))
        me.kill(stopped[0].pid, Signal.STOP)
        return 0

    def main(process: Process) -> None:
        process.wait_for(process.fork(leader))
        process.sleep(1)
        assert stopped[0].status == ExitStatus(0, Signal.HUP)

    result(kernel, main)


# Fork.


def test_a_fork_has_its_own_everything_but_open_files() -> None:
    def main(process: Process) -> None:
        process.write_file("/tmp/f", b"0123456789")
        fd = process.open("/tmp/f")
        process.env = {"A": "1"}
        process.fs.chdir("/tmp")

        def body(child: Process) -> int:
            assert child.read(fd, 4) == b"0123"  # the offset is shared
            child.close(fd)
            child.env = {**child.env, "A": "2"}
            child.fs.chdir("/")
            child.fs.umask = 0o077
            child.fs.mkdir("/tmp/d")
            child.fs.bind("/bin", "/tmp/d")
            return 0

        assert process.wait_for(process.fork(body)).code == 0
        assert process.read(fd) == b"456789"
        assert process.env["A"] == "1"
        assert process.fs.getcwd() == "/tmp"
        assert process.fs.umask == 0o022
        assert process.fs.readdir("/tmp/d") == []

    result(new_kernel(), main)


def test_a_child_inherits_dispositions_and_mask_and_no_pending_signals() -> None:
    def main(process: Process) -> None:
        process.catch(Signal.USR1, IGNORE)
        process.block(frozenset({Signal.USR2, Signal.KILL}))
        process.raise_signal(Signal.USR2)

        def body(child: Process) -> int:
            assert child.handlers[Signal.USR1] is IGNORE
            assert child.blocked == {Signal.USR2}
            assert child.pending == []
            return 0

        assert process.wait_for(process.fork(body)).code == 0
        assert process.pending == [Signal.USR2]

    result(new_kernel(), main)


# Groups and sessions.


def test_setpgid_rules() -> None:
    def main(process: Process) -> None:
        child = process.fork(sleeper)
        grandchild_of_other = process.fork(sleeper)
        process.setpgid(child.pid, 0)
        assert child.pgid == child.pid
        process.setpgid(grandchild_of_other.pid, child.pid)
        assert grandchild_of_other.pgid == child.pid
        assert errno_of(process.setpgid, child.pid, -1) == EINVAL
        assert errno_of(process.setpgid, child.pid, 4242) == EPERM
        assert errno_of(process.setpgid, 4242, 0) == ESRCH
        assert errno_of(process.setpgid, 1, 0) == ESRCH
        assert errno_of(process.setpgid, 0, 0) == EPERM  # a session leader

    result(new_kernel(), main)


def test_setsid_makes_a_leader_of_a_new_session() -> None:
    def main(process: Process) -> None:
        assert errno_of(process.setsid) == EPERM

        def body(child: Process) -> int:
            child.setsid()
            assert child.session.leader == child.pgid == child.pid
            assert errno_of(child.setsid) == EPERM
            return 0

        assert process.wait_for(process.fork(body)).code == 0

    result(new_kernel(), main)


# Descriptors.


def test_descriptors_are_the_lowest_free_and_end_at_the_limit() -> None:
    def main(process: Process) -> int:
        assert [process.open("/dev/null") for _ in range(3)] == [0, 1, 2]
        process.close(1)
        assert process.dup(0) == 1
        assert process.dup(0, 10) == 10
        assert errno_of(process.close, 7) == EBADF
        assert errno_of(process.dup2, 0, 16) == EBADF
        assert errno_of(process.dup, 0, 16) == EINVAL
        while len(process.fds.fds()) < 16:
            process.dup(0)
        assert errno_of(process.dup, 0) == EMFILE
        process.close(5)
        assert errno_of(process.pipe) == EMFILE
        assert process.fds.fds() == [n for n in range(16) if n != 5]
        return 0

    assert run(new_kernel(), main, limits=Limits(open_files=16)) == ExitStatus(0)


def test_a_file_that_found_no_descriptor_is_closed_again() -> None:
    kernel = new_kernel()

    def main(process: Process) -> int:
        process.write_file("/tmp/f", b"x" * 1000)
        for _ in range(3):
            process.open("/dev/null")
        assert errno_of(process.open, "/tmp/f") == EMFILE
        before = kernel.quota.bytes_used
        process.fs.unlink("/tmp/f")
        assert kernel.quota.bytes_used == before - 1000
        return 0

    assert run(kernel, main, limits=Limits(open_files=3)) == ExitStatus(0)


def test_the_end_of_a_process_closes_its_files() -> None:
    def main(process: Process) -> None:
        reader, writer = process.pipe()
        process.fork(sleeping(1))
        process.close(writer)
        assert process.read(reader) == b""
        assert process.kernel.hub.clock.monotonic() == 1

    result(new_kernel(), main)


# Poll.


def test_poll_tells_what_is_ready() -> None:
    def main(process: Process) -> None:
        reader, writer = process.pipe()
        wanted = {reader: POLLIN, writer: POLLOUT}
        assert process.poll(wanted) == {writer: POLLOUT}
        process.write(writer, b"x")
        assert process.poll(wanted) == {reader: POLLIN, writer: POLLOUT}
        process.read(reader)
        assert process.poll({reader: POLLIN}, 0) == {}
        assert process.poll({reader: POLLIN}, 2.5) == {}
        assert process.kernel.hub.clock.monotonic() == 2.5
        process.close(writer)
        assert process.poll({reader: POLLIN}) == {reader: POLLHUP}
        assert errno_of(process.poll, {99: POLLIN}) == EBADF

    result(new_kernel(), main)


def test_poll_wakes_for_whichever_comes_first() -> None:
    def main(process: Process) -> None:
        pipes = [process.pipe() for _ in range(3)]

        def body(child: Process) -> int:
            child.sleep(1)
            child.write(pipes[1][1], b"x")
            child.sleep(100)
            return 0

        process.fork(body)
        assert process.poll({reader: POLLIN for reader, _ in pipes}, 50) == {pipes[1][0]: POLLIN}
        assert process.kernel.hub.clock.monotonic() == 1

    result(new_kernel(), main)


def test_a_caught_signal_interrupts_poll_and_sleep() -> None:
    def main(process: Process) -> None:
        process.catch(Signal.USR1, lambda _number: None)
        reader, _writer = process.pipe()

        def body(child: Process) -> int:
            for _ in range(2):
                child.sleep(1)
                child.kill(process.pid, Signal.USR1)
            return 0

        process.fork(body)
        assert errno_of(process.poll, {reader: POLLIN}) == EINTR
        assert errno_of(process.sleep, 50) == EINTR
        assert process.kernel.hub.clock.monotonic() == 2

    result(new_kernel(), main)


# Ends that are nobody's wish.


def test_a_system_error_let_through_ends_the_process_with_1() -> None:
    assert run(new_kernel(), lambda process: process.open("/no")) == ExitStatus(1)


def test_a_bug_of_ours_aborts_one_process_and_shows_only_its_id() -> None:
    kernel = new_kernel()
    reports: list[BaseException] = []

    def report(_process: Process, error: BaseException) -> str:
        reports.append(error)
        return "b-17"

    kernel.report_bug = report

    def main(process: Process) -> None:
        process.dup2(process.open("/tmp/err", O_WRONLY | O_CREAT), 2)

        def broken(_child: Process) -> int:
            raise KeyError("secret")

        assert process.wait_for(process.fork(broken)) == ExitStatus(0, Signal.ABRT)
        assert process.read_file("/tmp/err") == b"test: internal error b-17\n"

    result(kernel, main)
    assert isinstance(reports[0], KeyError)


def test_an_error_of_a_further_fiber_ends_the_process() -> None:
    kernel = new_kernel()
    kernel.report_bug = lambda _process, _error: "id"

    def main(process: Process) -> int:
        process.add_fiber(lambda: [][1])
        process.sleep(10)
        return 0

    assert run(kernel, main) == ExitStatus(0, Signal.ABRT)

    def exits(process: Process) -> int:
        process.add_fiber(lambda: process.exit(9))
        process.sleep(10)
        return 0

    assert run(kernel, exits) == ExitStatus(9)


def test_output_is_flushed_at_the_end_but_not_after_a_fatal_signal() -> None:
    kernel = new_kernel()

    def program(how: str) -> bytes:
        def body(child: Process) -> int:
            child.dup2(child.open("/tmp/out", O_WRONLY | O_CREAT), 1)
            child.print(how)
            if how == "exit":
                child.exit(0)
            if how == "signal":
                child.raise_signal(Signal.TERM)
            return 0

        run(kernel, body)
        data = kernel.init.read_file("/tmp/out")
        kernel.init.fs.unlink("/tmp/out")
        return data

    assert program("return") == b"return\n"
    assert program("exit") == b"exit\n"
    assert program("signal") == b""


def test_reading_what_is_open_for_writing_only_is_ebadf() -> None:
    def main(process: Process) -> None:
        fd = process.open("/dev/null", O_WRONLY)
        assert errno_of(process.read, fd) == EBADF
        fd = process.open("/dev/null", O_RDONLY)
        assert errno_of(process.write, fd, b"x") == EBADF

    result(new_kernel(), main)
