"""Terminals with processes on them: opening, job control, hangups, raw reads, flow control."""

from collections.abc import Callable
from errno import EAGAIN, EINTR, EINVAL, EIO, ENOENT, ENOTTY, ENXIO, EPERM

import pytest

from belljar.abi import termios as t
from belljar.abi.dataclass import replace
from belljar.abi.flags import O_NOCTTY, O_NONBLOCK, O_RDWR, POLLHUP, POLLIN, POLLOUT, S_IFCHR, S_IFMT, WUNTRACED
from belljar.abi.signals import Signal
from belljar.abi.termios import Termios, WinSize
from belljar.kernel.process import IGNORE, Body, Process
from belljar.kernel.status import ExitStatus
from belljar.kernel.tty import OUTPUT_MAX
from tests.kernel.rig import errno_of, new_kernel, result, sleeping, start

RAW = replace(Termios(), iflag=0, oflag=0, lflag=0)


def raw(least: int, tenths: int) -> Termios:
    cc = list(t.DEFAULT_CC)
    cc[t.VMIN], cc[t.VTIME] = least, tenths
    return replace(RAW, cc=tuple(cc))


class Seat:
    """A person at a new terminal, whose session leader is the process under test, with it as 0, 1 and 2."""

    def __init__(self) -> None:
        self.kernel = new_kernel()
        fs = self.kernel.init.fs
        self.master = fs.open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK).retain()
        self.number = self.master.handle.ioctl("pty_number")

    def seated(self, body: Body) -> Body:
        def main(process: Process) -> int:
            for _ in range(3):
                process.open(f"/dev/pts/{self.number}", O_RDWR)
            return body(process)

        return main

    def start(self, body: Body) -> Process:
        process = start(self.kernel, self.seated(body))
        self.run_until_idle()
        return process

    def type_at(self, when: float, keys: bytes) -> None:
        def type_now() -> None:
            self.master.write(keys)

        self.kernel.hub.call_at(when, type_now)

    def run_until_idle(self) -> None:
        self.kernel.hub.run(lambda: self.kernel.hub.idle)

    def type(self, keys: bytes) -> None:
        assert self.master.write(keys) == len(keys)
        self.run_until_idle()

    def screen(self) -> bytes:
        parts = []
        try:
            while True:
                parts.append(self.master.read(1 << 20))
                self.run_until_idle()
        except Exception as error:
            if getattr(error, "errno", None) not in (EAGAIN, EIO):
                raise
        return b"".join(parts)


def cat(process: Process) -> int:
    while data := process.read(0):
        process.write(1, b"<" + data.replace(b"\n", b"$") + b">")
    return 5


# Opening.


def test_a_new_terminal_appears_and_goes_with_its_master() -> None:
    def main(process: Process) -> None:
        fs = process.fs
        assert [entry.name for entry in fs.readdir("/dev/pts")] == ["ptmx"]
        first, second = process.open("/dev/ptmx", O_RDWR), process.open("/dev/ptmx", O_RDWR)
        assert [process.ioctl(fd, "pty_number") for fd in (first, second)] == [0, 1]
        stat = fs.stat("/dev/pts/1")
        assert (stat.mode, stat.uid, stat.gid, stat.rdev) == (S_IFCHR | 0o620, 1000, 5, 136 << 8 | 1)
        process.close(first)
        assert errno_of(fs.stat, "/dev/pts/0") == ENOENT
        third = process.open("/dev/pts/ptmx", O_RDWR)
        assert process.ioctl(third, "pty_number") == 0
        slave = process.open("/dev/pts/1", O_RDWR | O_NOCTTY)
        assert process.isatty(slave)
        assert process.isatty(second)
        assert not process.isatty(process.open("/dev/null"))
        assert fs.readlink(f"/proc/self/fd/{slave}") == "/dev/pts/1"
        assert process.fstat(slave).mode & S_IFMT == S_IFCHR

    result(new_kernel(), main, uid=1000)


def test_a_session_leader_that_opens_a_free_terminal_gets_it() -> None:
    def main(process: Process) -> None:
        assert errno_of(process.open, "/dev/tty") == ENXIO
        process.open("/dev/ptmx", O_RDWR | O_NOCTTY)
        process.open("/dev/pts/0", O_RDWR | O_NOCTTY)
        assert errno_of(process.tty_file) == ENOTTY
        slave = process.open("/dev/pts/0", O_RDWR)
        assert process.session.tty is not None
        tty = process.open("/dev/tty", O_RDWR)
        process.write(tty, b"x")
        assert process.ioctl(slave, "pgrp") == process.pid
        assert process.ioctl(slave, "session") == process.pid
        assert process.read_file("/proc/self/stat").split()[6:8] == [b"34816", str(process.pid).encode()]

        def other(child: Process) -> int:
            child.setsid()
            child.open("/dev/pts/0", O_RDWR)
            assert child.session.tty is None  # it is taken
            assert errno_of(child.ioctl, slave, "pgrp") == ENOTTY
            assert errno_of(child.ioctl, slave, "set_controlling") == EPERM
            return 0

        assert process.wait_for(process.fork(other)) == ExitStatus(0)

    result(new_kernel(), main)


def test_the_controlling_terminal_can_be_set_and_given_up() -> None:
    def main(process: Process) -> None:
        process.open("/dev/ptmx", O_RDWR)
        slave = process.open("/dev/pts/0", O_RDWR | O_NOCTTY)
        process.ioctl(slave, "set_controlling")
        assert process.ioctl(slave, "session") == process.pid
        process.catch(Signal.HUP, IGNORE)
        process.ioctl(slave, "release_controlling")
        assert process.session.tty is None
        assert errno_of(process.ioctl, slave, "release_controlling") == ENOTTY

    result(new_kernel(), main)


# A conversation.


def test_lines_are_edited_echoed_and_read() -> None:
    seat = Seat()
    process = seat.start(cat)
    seat.type(b"hellp\x7fo")
    assert seat.screen() == b"hellp\b \bo"
    seat.type(b"\r")
    assert seat.screen() == b"\r\n<hello$>"
    seat.type(b"part\x04")
    assert seat.screen() == b"part<part>"
    seat.type(b"\x04")
    assert process.status == ExitStatus(5)
    assert errno_of(seat.master.read, 10) == EIO


def test_interrupt_quit_and_suspend_reach_the_foreground_group_only() -> None:
    for key, number in ((b"\x03", Signal.INT), (b"\x1c", Signal.QUIT)):
        seat = Seat()
        children: list[Process] = []

        def shell(process: Process, children: list[Process] = children) -> int:
            for signal in (Signal.INT, Signal.QUIT, Signal.TSTP, Signal.TTOU):
                process.catch(signal, IGNORE)

            def job(me: Process) -> int:
                for signal in (Signal.INT, Signal.QUIT, Signal.TSTP, Signal.TTOU):
                    me.catch(signal, None)
                me.sleep(100)
                return 0

            front = process.fork(job, pgid=0)
            children.extend((front, process.fork(job, pgid=front.pid), process.fork(job, pgid=0)))
            process.ioctl(0, "set_pgrp", front.pid)
            process.wait_for(front)
            process.sleep(1000)
            return 0

        shell_process = seat.start(shell)
        seat.type(key)
        expected = ExitStatus(0, number)
        assert [child.status for child in children] == [expected, expected, None]
        assert shell_process.status is None
        assert seat.screen() == (b"^C" if number == Signal.INT else b"^\\")


def test_suspend_and_bring_back() -> None:
    seat = Seat()
    log: list[str] = []

    def shell(process: Process) -> int:
        process.catch(Signal.TTOU, IGNORE)
        process.catch(Signal.TSTP, IGNORE)

        def job(child: Process) -> int:
            child.catch(Signal.TSTP, None)
            return cat(child)

        child = process.fork(job, pgid=0)
        process.ioctl(0, "set_pgrp", child.pid)
        news = process.wait(-1, WUNTRACED)
        assert news is not None
        log.append(f"stopped by {news.status.signal}")
        process.ioctl(0, "set_pgrp", process.pid)
        log.append(process.read(0).decode())
        process.ioctl(0, "set_pgrp", child.pid)
        process.kill(-child.pid, Signal.CONT)
        status = process.wait_for(child)
        log.append(f"ended {status.code}")
        return 0

    process = seat.start(shell)
    seat.type(b"one\r")
    assert seat.screen() == b"one\r\n<one$>"
    seat.type(b"\x1a")
    seat.type(b"fg\r")
    seat.type(b"two\r")
    seat.type(b"\x04")
    assert log == ["stopped by 20", "fg\n", "ended 5"]
    assert process.status == ExitStatus(0)
    assert seat.screen() == b"^Zfg\r\ntwo\r\n<two$>"


def background(action: Callable[[Process], object], *, prepare: Callable[[Process], object] | None = None) -> Body:
    """A shell that runs one background job and waits for any news of it."""

    def shell(process: Process) -> int:
        def job(child: Process) -> int:
            if prepare is not None:
                prepare(child)
            action(child)
            return 0

        child = process.fork(job, pgid=0)
        news = process.wait(child.pid, WUNTRACED)
        assert news is not None
        return news.status.signal if news.stopped else 100 + news.status.shell

    return shell


def test_the_background_may_not_read_and_with_tostop_not_write() -> None:
    def ending(body: Body, *, tostop: bool = False) -> int:
        seat = Seat()
        settings = Termios()
        if tostop:
            settings = replace(settings, lflag=settings.lflag | t.TOSTOP)
        seat.master.handle.ioctl("set_termios", settings)
        process = seat.start(body)
        assert process.status is not None
        return process.status.code

    def read(child: Process) -> object:
        return child.read(0)

    def write(child: Process) -> object:
        return child.write(1, b"x")

    assert ending(background(read)) == Signal.TTIN
    assert ending(background(write)) == 100
    assert ending(background(write), tostop=True) == Signal.TTOU
    assert ending(background(write, prepare=lambda p: p.catch(Signal.TTOU, IGNORE)), tostop=True) == 100

    def read_errno(child: Process) -> object:
        child.exit(errno_of(child.read, 0))

    ignored = background(read_errno, prepare=lambda p: p.catch(Signal.TTIN, IGNORE))
    assert ending(ignored) == 100 + EIO
    caught = background(read_errno, prepare=lambda p: p.catch(Signal.TTIN, lambda _number: None))
    assert ending(caught) == 100 + EINTR
    assert ending(background(lambda p: p.ioctl(0, "set_termios", RAW))) == Signal.TTOU


def test_a_reader_moved_to_the_background_is_stopped_when_something_comes() -> None:
    seat = Seat()

    def shell(process: Process) -> int:
        process.catch(Signal.TTOU, IGNORE)
        child = process.fork(cat, pgid=0)
        process.ioctl(0, "set_pgrp", child.pid)
        process.sleep(1)
        process.ioctl(0, "set_pgrp", process.pid)
        process.sleep(1)
        news = process.wait(child.pid, WUNTRACED)
        assert news is not None
        return news.status.signal

    process = start(seat.kernel, seat.seated(shell))
    seat.kernel.hub.run(lambda: seat.kernel.hub.clock.monotonic() >= 2)
    seat.type(b"x\r")
    assert process.status == ExitStatus(Signal.TTIN)


def test_only_groups_of_the_session_can_come_to_the_foreground() -> None:
    seat = Seat()

    def shell(process: Process) -> int:
        assert errno_of(process.ioctl, 0, "set_pgrp", -1) == EINVAL
        assert errno_of(process.ioctl, 0, "set_pgrp", 1) == EPERM
        assert errno_of(process.ioctl, 0, "set_pgrp", 4242) == EPERM
        assert errno_of(process.ioctl, 0, "set_termios", "raw") == EINVAL
        assert errno_of(process.ioctl, 0, "nonsense") == ENOTTY
        return 0

    assert seat.start(shell).status == ExitStatus(0)


# The window.


def test_a_new_size_is_told_to_the_foreground() -> None:
    seat = Seat()
    sizes: list[object] = []

    def program(process: Process) -> int:
        process.catch(Signal.WINCH, lambda _number: sizes.append(process.ioctl(0, "winsize")))
        assert errno_of(process.sleep, 100) == EINTR
        assert errno_of(process.ioctl, 0, "set_winsize", WinSize(-1, 0)) == EINVAL
        assert errno_of(process.ioctl, 0, "set_winsize", (24, 80)) == EINVAL
        return 0

    process = seat.start(program)
    seat.master.handle.ioctl("set_winsize", WinSize(0, 0))
    seat.run_until_idle()
    assert sizes == []
    seat.master.handle.ioctl("set_winsize", WinSize(24, 80))
    seat.run_until_idle()
    assert sizes == [WinSize(24, 80)]
    assert process.status == ExitStatus(0)


# Hanging up.


def test_closing_the_master_hangs_up() -> None:
    seat = Seat()
    process = seat.start(cat)
    seat.master.release()
    seat.run_until_idle()
    assert process.status == ExitStatus(0, Signal.HUP)


def test_after_a_hangup_there_is_nothing_to_read_and_no_way_to_write() -> None:
    seat = Seat()

    def program(process: Process) -> int:
        process.catch(Signal.HUP, IGNORE)
        assert process.read(0) == b""
        assert errno_of(process.write, 1, b"x") == EIO
        assert not process.isatty(0)
        assert process.poll({0: POLLIN}) == {0: POLLIN | POLLHUP}
        assert errno_of(process.open, "/dev/tty") == ENXIO
        return 0

    process = seat.start(program)
    seat.master.release()
    seat.run_until_idle()
    assert process.status == ExitStatus(0)


def test_the_end_of_the_leader_hangs_up_its_foreground() -> None:
    seat = Seat()
    children: list[Process] = []

    def shell(process: Process) -> int:
        process.catch(Signal.TTOU, IGNORE)
        children.append(process.fork(sleeping(100), pgid=0))
        process.ioctl(0, "set_pgrp", children[0].pid)
        return 0

    process = seat.start(shell)
    assert process.status == ExitStatus(0)
    assert children[0].status == ExitStatus(0, Signal.HUP)


# Raw.


def reader(settings: Termios, times: int, log: list[tuple[float, bytes]]) -> Body:
    def program(process: Process) -> int:
        process.ioctl(0, "set_termios", settings)
        for _ in range(times):
            data = process.read(0, 100)
            log.append((process.kernel.hub.clock.monotonic(), data))
        return 0

    return program


@pytest.mark.parametrize(
    ("settings", "typed", "expected"),
    [
        (raw(1, 0), [(1, b"ab"), (2, b"c")], [(1, b"ab"), (2, b"c")]),
        (raw(3, 0), [(1, b"ab"), (2, b"cd")], [(2, b"abcd")]),
        (raw(0, 0), [], [(0, b"")]),
        (raw(0, 5), [], [(0.5, b"")]),
        (raw(0, 20), [(1, b"x")], [(1, b"x")]),
        (raw(5, 10), [(3, b"a"), (3.5, b"b")], [(4.5, b"ab")]),
        (raw(2, 10), [(3, b"a"), (3.5, b"b")], [(3.5, b"ab")]),
    ],
)
def test_vmin_and_vtime(
    settings: Termios, typed: list[tuple[float, bytes]], expected: list[tuple[float, bytes]]
) -> None:
    seat = Seat()
    log: list[tuple[float, bytes]] = []
    for when, keys in typed:
        seat.type_at(when, keys)
    process = start(seat.kernel, seat.seated(reader(settings, len(expected), log)))
    seat.kernel.hub.run(lambda: process.status is not None)
    assert log == expected


def test_nonblocking_reads() -> None:
    def main(process: Process) -> None:
        master = process.open("/dev/ptmx", O_RDWR | O_NONBLOCK)
        slave = process.open("/dev/pts/0", O_RDWR | O_NONBLOCK)
        assert errno_of(process.read, slave) == EAGAIN
        assert errno_of(process.read, master) == EAGAIN
        process.ioctl(slave, "set_termios", RAW)
        assert errno_of(process.read, slave) == EAGAIN
        process.ioctl(slave, "set_termios", raw(0, 0))
        assert process.read(slave) == b""
        assert process.poll({master: POLLIN | POLLOUT}, 0) == {master: POLLOUT}
        process.write(master, b"k")
        assert process.poll({slave: POLLIN}, 0) == {slave: POLLIN}
        assert process.ioctl(slave, "unread") == 1

    result(new_kernel(), main)


def test_a_caught_signal_interrupts_a_read() -> None:
    seat = Seat()

    def program(process: Process) -> int:
        process.catch(Signal.INT, lambda _number: None)
        assert errno_of(process.read, 0) == EINTR
        return cat(process)

    process = seat.start(program)
    seat.type(b"lost\x03")
    seat.type(b"kept\r\x04")
    assert process.status == ExitStatus(5)
    assert seat.screen() == b"^Ckept\r\n<kept$>"


# Flow.


def test_output_waits_for_the_person_and_for_control_q() -> None:
    seat = Seat()
    written: list[int] = []

    def program(process: Process) -> int:
        written.extend(process.write(1, b"x" * 4096) for _ in range(100))
        return 0

    seat.type(b"\x13")
    process = seat.start(program)
    assert written == []
    seat.type(b"\x11")
    assert OUTPUT_MAX <= sum(written) <= OUTPUT_MAX + 4096
    assert len(seat.screen()) == 100 * 4096
    assert process.status == ExitStatus(0)


def test_typing_waits_for_the_program() -> None:
    seat = Seat()
    seat.start(sleeping(1000))
    seat.master.handle.ioctl("set_termios", RAW)
    assert seat.master.write(b"x" * 100_000) < 10_000
    assert errno_of(seat.master.write, b"x") == EAGAIN
    assert seat.master.handle.poll() & POLLOUT == 0


def test_a_person_who_never_reads_costs_a_bounded_amount() -> None:
    seat = Seat()
    terminal = seat.master.handle.terminal  # type: ignore[attr-defined]
    for _ in range(400):
        seat.master.write(b"\x15" + b"y" * 1000)
    assert len(terminal.output) < 3 * OUTPUT_MAX


def test_keys_that_ask_for_much_get_little() -> None:
    seat = Seat()
    terminal = seat.master.handle.terminal  # type: ignore[attr-defined]
    seat.master.write(b"x" * 4000)
    seat.master.write(b"\x12" * 4000)
    assert len(terminal.output) < 4 * OUTPUT_MAX
    seat.master.handle.ioctl("flush", "both")
    assert seat.master.write(b"\x04" * 100_000) < 10_000
    assert len(terminal.discipline.ready) < 10_000


def test_flushing_throws_away() -> None:
    def main(process: Process) -> None:
        master = process.open("/dev/ptmx", O_RDWR | O_NONBLOCK)
        slave = process.open("/dev/pts/0", O_RDWR | O_NONBLOCK)
        process.write(master, b"line\r")
        process.ioctl(slave, "flush", "both")
        assert errno_of(process.read, slave) == EAGAIN
        assert errno_of(process.read, master) == EAGAIN
        assert errno_of(process.ioctl, slave, "flush", "all") == EINVAL

    result(new_kernel(), main)


def test_a_program_can_play_the_person() -> None:
    """What expect(1) and script(1) do."""

    def main(process: Process) -> bytes:
        master = process.open("/dev/ptmx", O_RDWR | O_NOCTTY)

        def inner(child: Process) -> int:
            child.close(master)
            child.setsid()
            for _ in range(3):
                child.open("/dev/pts/0", O_RDWR)
            return cat(child)

        child = process.fork(inner)
        process.write(master, b"hi\r\x04\x04")
        shown = b""
        while len(shown) < len(b"hi\r\n<hi$>"):
            shown += process.read(master)
        assert process.wait_for(child).code == 5
        return shown

    assert result(new_kernel(), main) == b"hi\r\n<hi$>"
