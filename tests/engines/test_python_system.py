"""Modules and functions of a Unix that WebAssembly's C library has not: resource, fcntl, termios, pty, signal, os."""

from __future__ import annotations

import pytest

from belljar import Sandbox


def said(box: Sandbox, code: str) -> str:
    """The output of a program that must succeed."""
    result = box.exec(["python3", "-c", code], timeout=60)
    assert (result.exit_code, result.stderr) == (0, ""), result.stderr
    return result.stdout


def failed(box: Sandbox, code: str) -> str:
    """The last line of a traceback."""
    result = box.exec(["python3", "-c", code], timeout=60)
    assert result.exit_code == 1, result
    return result.stderr.rstrip().splitlines()[-1]


def test_limits(box: Sandbox) -> None:
    code = """
import resource as r, subprocess
soft, hard = r.getrlimit(r.RLIMIT_NOFILE)
print(soft == hard > 100, r.getrlimit(r.RLIMIT_CORE), r.getrlimit(r.RLIMIT_AS) == (r.RLIM_INFINITY,) * 2)
r.setrlimit(r.RLIMIT_NOFILE, (40, hard))
print(r.getrlimit(r.RLIMIT_NOFILE)[0], subprocess.check_output("ulimit -n", shell=True, text=True).strip())
files = []
try:
    while True:
        files.append(open("/dev/null"))
except OSError as error:
    print(str(error).split()[1], 30 < len(files) < 40)
r.setrlimit(r.RLIMIT_NOFILE, (hard, hard))
files.append(open("/dev/null"))
for wrong in ((r.RLIMIT_NOFILE, (hard, hard + 1)), (r.RLIMIT_NOFILE, (hard, 10)), (99, (1, 1)), (r.RLIMIT_CPU, 5)):
    try:
        r.setrlimit(*wrong)
    except ValueError as error:
        print(error)
"""
    assert said(box, code).splitlines() == [
        "True (0, 0) True",
        "40 40",
        "24] True",
        "not allowed to raise maximum limit",
        "current limit exceeds maximum limit",
        "invalid resource specified",
        "expected a tuple of 2 integers",
    ]


def test_a_limit_of_file_size(box: Sandbox) -> None:
    code = """
import resource as r, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
r.setrlimit(r.RLIMIT_FSIZE, (100, 100))
print(r.getrlimit(r.RLIMIT_FSIZE))
with open("/tmp/f", "wb", buffering=0) as file:
    print(file.write(b"x" * 150))
    try:
        file.write(b"x")
    except OSError as error:
        print(error)
"""
    assert said(box, code) == "(100, 100)\n100\n[Errno 27] File too large\n"


def test_time_used(box: Sandbox) -> None:
    code = """
import resource as r
before = r.getrusage(r.RUSAGE_SELF).ru_utime
sum(range(300000))
print(r.getrusage(r.RUSAGE_SELF).ru_utime > before, len(r.getrusage(r.RUSAGE_CHILDREN)))
"""
    assert said(box, code) == "True 16\n"


def test_flags_of_descriptors(box: Sandbox) -> None:
    code = """
import fcntl, os
reader, writer = os.pipe()
flags = fcntl.fcntl(reader, fcntl.F_GETFL)
fcntl.fcntl(reader, fcntl.F_SETFL, flags | os.O_NONBLOCK)
print(bool(fcntl.fcntl(reader, fcntl.F_GETFL) & os.O_NONBLOCK), os.get_blocking(reader))
try:
    os.read(reader, 1)
except BlockingIOError as error:
    print(error)
fcntl.fcntl(reader, fcntl.F_SETFL, flags)
print(os.get_blocking(reader), fcntl.fcntl(writer, fcntl.F_GETFL) & 3 == os.O_WRONLY & 3)
print(fcntl.fcntl(reader, fcntl.F_GETFD), fcntl.fcntl(reader, fcntl.F_SETFD, 0), os.get_inheritable(reader))
copy = fcntl.fcntl(reader, fcntl.F_DUPFD, 50)
print(copy, fcntl.fcntl(reader, fcntl.F_DUPFD_CLOEXEC, 50))
os.write(writer, b"abc")
print(os.read(copy, 9))
for wrong in ((999, fcntl.F_GETFL), (-1, fcntl.F_GETFL), (reader, 4444)):
    try:
        fcntl.fcntl(*wrong)
    except (OSError, ValueError) as error:
        print(error)
"""
    assert said(box, code).splitlines() == [
        "True False",
        "[Errno 11] Resource temporarily unavailable",
        "True True",
        "1 0 True",
        "50 51",
        "b'abc'",
        "[Errno 9] Bad file descriptor",
        "file descriptor cannot be a negative integer (-1)",
        "[Errno 22] Invalid argument",
    ]


def test_locks(box: Sandbox) -> None:
    code = """
import fcntl, subprocess, sys
file = open("/tmp/lock", "w")
fcntl.flock(file, fcntl.LOCK_EX)
print(subprocess.run(["flock", "-n", "/tmp/lock", "true"]).returncode)
other = open("/tmp/lock", "w")
try:
    fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
except BlockingIOError as error:
    print(error)
fcntl.flock(file, fcntl.LOCK_UN)
fcntl.lockf(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
print(subprocess.run(["flock", "-n", "/tmp/lock", "true"]).returncode)
other.close()
print(subprocess.run(["flock", "-n", "/tmp/lock", "true"]).returncode)
try:
    fcntl.lockf(open("/tmp/lock"), fcntl.LOCK_EX)
except OSError as error:
    print(error)
"""
    assert said(box, code).splitlines() == [
        "1",
        "[Errno 11] Resource temporarily unavailable",
        "1",
        "0",
        "[Errno 9] Bad file descriptor",
    ]


def test_waiting_for_a_lock_can_be_interrupted(box: Sandbox) -> None:
    code = """
import fcntl, signal
signal.signal(signal.SIGALRM, lambda *_: 1 / 0)
first, second = open("/tmp/lock", "w"), open("/tmp/lock", "w")
fcntl.flock(first, fcntl.LOCK_EX)
try:
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    fcntl.flock(second, fcntl.LOCK_EX)
except ZeroDivisionError:
    print("interrupted")
"""
    assert said(box, code) == "interrupted\n"


def test_terminals(box: Sandbox) -> None:
    code = """
import errno, fcntl, os, pty, struct, termios, tty
master, slave = pty.openpty()
print(os.isatty(slave), os.ttyname(slave) == os.ptsname(master), os.ttyname(slave).startswith("/dev/pts/"))
attributes = termios.tcgetattr(slave)
print(len(attributes), len(attributes[6]), attributes[6][termios.VINTR], attributes[4] == termios.B38400)
print(bool(attributes[3] & termios.ECHO), bool(attributes[3] & termios.ICANON))
before = tty.setraw(slave)
raw = termios.tcgetattr(slave)
print(before == attributes, raw[3] & (termios.ECHO | termios.ICANON | termios.ISIG), raw[6][termios.VMIN])
os.write(master, b"a\\x03")
print(os.read(slave, 9))
termios.tcsetattr(slave, termios.TCSAFLUSH, attributes)
print(termios.tcgetattr(slave) == attributes)
os.write(master, b"typed\\n")
print(os.read(slave, 99), os.read(master, 99))
fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
print(struct.unpack("HHHH", fcntl.ioctl(slave, termios.TIOCGWINSZ, bytes(8))), os.get_terminal_size(slave))
size = bytearray(8)
print(fcntl.ioctl(slave, termios.TIOCGWINSZ, size), size[0], termios.tcgetwinsize(slave))
reader, writer = os.pipe()
try:
    termios.tcgetattr(reader)
except termios.error as error:
    print(error.args[0] == errno.ENOTTY)
"""
    assert said(box, code).splitlines() == [
        "True True True",
        "7 32 b'\\x03' True",
        "True True",
        "True 0 1",
        "b'a\\x03'",
        "True",
        "b'typed\\n' b'typed\\r\\n'",
        "(30, 100, 0, 0) os.terminal_size(columns=100, lines=30)",
        "0 30 (30, 100)",
        "True",
    ]


def test_a_program_on_a_terminal_of_its_own(box: Sandbox) -> None:
    code = "import pty, os; print(os.waitstatus_to_exitcode(pty.spawn(['sh', '-c', 'tty; test -t 1; exit 7'])))"
    lines = said(box, code).split()
    assert lines[0].startswith("/dev/pts/")
    assert lines[1:] == ["7"]
    assert "subprocess.Popen takes the slave" in failed(box, "import pty; pty.fork()")


def test_alarms(box: Sandbox) -> None:
    code = """
import signal, time
rung = []
signal.signal(signal.SIGALRM, lambda number, frame: rung.append(number))
print(signal.alarm(100), 0 < signal.alarm(1) <= 100)
time.sleep(1.2)
print(rung, signal.alarm(0))
print(signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05), signal.getitimer(signal.ITIMER_REAL)[1])
while len(rung) < 4:
    pass
signal.setitimer(signal.ITIMER_REAL, 0)
print(len(rung) >= 4, signal.getitimer(signal.ITIMER_REAL)[0])
signal.setitimer(signal.ITIMER_REAL, 0.5, 0.5)  # the first may ring before the pause begins
signal.pause()
print("paused")
"""
    assert said(box, code).splitlines() == [
        "0 True",
        "[14] 0",
        "(0.0, 0.0) 0.05",
        "True 0.0",
        "paused",
    ]


def test_an_alarm_that_nobody_caught(box: Sandbox) -> None:
    result = box.exec(["python3", "-c", "import signal\nsignal.alarm(1)\nwhile True: pass"], timeout=60)
    assert result.exit_code == 128 + 14


def test_a_time_limit_by_an_alarm(box: Sandbox) -> None:
    code = """
import signal, subprocess
class TooLong(Exception): pass
def ring(*_): raise TooLong
signal.signal(signal.SIGALRM, ring)
def spin():
    while True: pass
for wait in (input, lambda: subprocess.run(["sleep", "60"]), spin, signal.pause):
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        wait()
    except TooLong:
        print("stopped")
"""
    result = box.exec(f"mkfifo /tmp/q; python3 -c '{code}' <> /tmp/q", timeout=60)
    assert result.stdout == "stopped\n" * 4, result.stderr


def test_the_machine_is_that_of_the_other_programs(box: Sandbox) -> None:
    code = """
import os, platform
print(platform.machine(), platform.release(), platform.system(), os.cpu_count(), len(os.sched_getaffinity(0)))
"""
    expected = box.exec("echo $(uname -m) $(uname -r) $(uname -s) $(nproc --all) $(nproc --all)").stdout
    assert said(box, code) == expected
    assert said(box, "import os; print(*os.uname())") == box.exec("uname -snrvm").stdout


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("import os; os.fork()", "WebAssembly has none here; subprocess runs programs side by side"),
        ("import multiprocessing as m; m.Pool(2)", "WebAssembly has no fork"),
        ("import multiprocessing as m; m.Process(target=print).start()", "WebAssembly has no fork"),
        ("import curses", "curses is not in this Python"),
        ("import threading; threading.Thread(target=print).start()", "WebAssembly has none here"),
    ],
)
def test_what_is_missing_says_what_to_do(box: Sandbox, code: str, words: str) -> None:
    assert words in failed(box, code)
    assert said(box, "import os; print(hasattr(os, 'fork'))") == "False\n"


def test_a_history_without_a_terminal(box: Sandbox) -> None:
    code = """
import readline as r
r.add_history("one"); r.add_history("two"); r.add_history("three")
print(r.get_current_history_length(), r.get_history_item(1), r.get_history_item(9))
r.remove_history_item(0); r.replace_history_item(0, "2")
r.set_history_length(1)
r.write_history_file("/tmp/h"); r.append_history_file(2, "/tmp/h"); r.clear_history()
r.read_history_file("/tmp/h")
print([r.get_history_item(n) for n in range(1, 4)], open("/tmp/h").read().split())
r.parse_and_bind("tab: complete"); r.set_completer(len); print(r.get_completer() is len, input())
import cmd, pdb, code
"""
    result = box.exec(["python3", "-c", code], stdin="typed\n")
    assert result.stdout.splitlines() == [
        "3 one None",
        "['three', '2', 'three'] ['three', '2', 'three']",
        "True typed",
    ], result.stderr
