"""What stops a guest Python program: signals, the exec's limits, the death of its process; and what it can't reach."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from belljar import Limits, Sandbox
from belljar.engines.owner.template_host import template
from tests.escape.oracles import is_alive


def engines() -> list[int]:
    """The processes forked from the template, spares included."""
    owner = template("python").process
    assert owner is not None
    children = Path(f"/proc/{owner.pid}/task/{owner.pid}/children").read_text().split()
    return [int(pid) for pid in children if is_alive(int(pid))]


def cpu_of(pid: int) -> int:
    """Ticks of processor time; 0 for a spare that was just let go."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return int(fields[11]) + int(fields[12])


def busiest() -> int:
    """The engine process that computes: no other goes on using time."""
    deadline = time.monotonic() + 60
    first: dict[int, int] = {}
    while time.monotonic() < deadline:
        for pid in engines():
            if cpu_of(pid) - first.setdefault(pid, cpu_of(pid)) > 30:
                return pid
        time.sleep(0.05)
    raise AssertionError("no engine process computes")


@pytest.mark.parametrize(
    "loop", ["while True: pass", "x = 3 ** (10 ** 9)", "import re; re.match('(a+)+$', 'a' * 40 + 'b')"]
)
def test_a_loop_ends_with_the_time(box: Sandbox, loop: str) -> None:
    result = box.exec(["python3", "-c", loop], timeout=2)
    assert (result.exit_code, result.timed_out, result.limit) == (124, True, "wall_seconds")
    assert box.exec(["python3", "-c", "print(1)"]).stdout == "1\n"


def test_a_loop_ends_with_the_processor_time(box: Sandbox) -> None:
    result = box.exec(["python3", "-c", "while True: pass"], limits=Limits(cpu_seconds=1), timeout=60)
    assert (result.exit_code, result.limit) == (137, "cpu_seconds")
    # What several programs of one exec use is added up.
    burn = "sum(i * i for i in range(4_000_000))"
    several = box.exec(f"for i in 1 2 3 4 5 6; do python3 -c '{burn}'; echo $i; done", limits=Limits(cpu_seconds=1))
    assert several.limit == "cpu_seconds"
    assert len(several.stdout.split()) < 6


def test_memory(box: Sandbox) -> None:
    small = Limits(memory_bytes=256 << 20)
    caught = "try:\n  x = bytearray(1 << 30)\nexcept MemoryError:\n  print('caught')"
    assert box.exec(["python3", "-c", caught], limits=small).stdout == "caught\n"
    bomb = box.exec(["python3", "-c", "a = []\nwhile True: a.append(bytearray(1 << 20))"], limits=small)
    assert bomb.exit_code == 1
    assert bomb.stderr.endswith("MemoryError\n")
    assert box.exec(["python3", "-c", "x = 'x' * 10 ** 10"]).exit_code == 1


def test_recursion(box: Sandbox) -> None:
    plain = box.exec(["python3", "-c", "def f(n): return f(n + 1)\nf(0)"])
    assert plain.stderr.splitlines()[-1].startswith("RecursionError: ")
    deep = "import sys; sys.setrecursionlimit(10 ** 9)\ndef f(n): return f(n + 1)\nf(0)"
    assert box.exec(["python3", "-c", deep], limits=Limits(memory_bytes=512 << 20), timeout=60).exit_code in (1, 134)
    nested = "import sys, json\nsys.setrecursionlimit(10 ** 6)\nx = []\nfor i in range(100000): x = [x]\njson.dumps(x)"
    assert box.exec(["python3", "-c", nested], timeout=60).exit_code in (1, 134)
    assert box.exec(["python3", "-c", "print(1)"]).stdout == "1\n"


def test_too_many_processes(box: Sandbox) -> None:
    bomb = "import subprocess\nall = []\nwhile True: all.append(subprocess.Popen(['sleep', '100']))"
    result = box.exec(["python3", "-c", bomb], limits=Limits(processes=20), timeout=60)
    assert result.limit == "processes"


@pytest.mark.parametrize(
    "code",
    [
        "while True: pass",
        "import time; time.sleep(100)",
        "import os; os.read(0, 1)",
        "import os; os.system('sleep 100')",
    ],
)
def test_an_interrupt_is_an_exception(box: Sandbox, code: str) -> None:
    program = f"try:\n  print('ready', flush=True)\n  {code}\nexcept KeyboardInterrupt:\n  print('caught')"
    terminal = box.pty(["python3", "-c", program])
    seen = b""
    while b"ready" not in seen:
        seen += terminal.read(30)
    time.sleep(0.3)
    terminal.write(b"\x03")
    assert terminal.wait(30) == 0
    while data := terminal.read(5):
        seen += data
    assert b"caught" in seen


def test_signals(box: Sandbox) -> None:
    sleep = "python3 -c 'import time; time.sleep(100)' & sleep 0.5; kill -{} $!; wait $!; echo $?"
    assert box.exec(sleep.format("TERM"), timeout=30).stdout == "143\n"
    assert box.exec(sleep.format("KILL"), timeout=30).stdout == "137\n"
    handler = (
        "import signal, time\ngot = []\nsignal.signal(signal.SIGUSR1, lambda *_: (print('usr1'), got.append(1)))\n"
    )
    code = handler + "print('set', flush=True)\nwhile not got: time.sleep(0.1)\nprint('end')"
    wait = "until grep -q set out 2>/dev/null; do sleep 0.05; done"
    script = f'python3 -c "$CODE" > out & {wait}; kill -USR1 $!; wait $!; cat out'
    assert box.exec(script, env={"CODE": code}, timeout=60).stdout == "set\nusr1\nend\n"


def test_an_uncaught_interrupt(box: Sandbox) -> None:
    terminal = box.pty(["python3", "-c", "print(1, flush=True)\nwhile True: pass"])
    seen = b""
    while b"1" not in seen:
        seen += terminal.read(30)
    terminal.write(b"\x03")
    assert terminal.wait(30) == 130
    while data := terminal.read(5):
        seen += data
    assert b"KeyboardInterrupt" in seen


def test_a_killed_engine_process(box: Sandbox) -> None:
    """Whoever kills it, what it was told is written is written, and the sandbox goes on."""
    code = (
        "f = open('/workspace/log', 'w', 1)\nn = 0\nwhile True:\n  n += 1\n  f.write(f'{n}\\n')\n  x = sum(range(2000))"
    )
    running = box.spawn(["bash", "-c", 'python3 -c "$CODE"; echo status $?'], env={"CODE": code})
    os.kill(busiest(), signal.SIGKILL)
    assert running.wait(30) == 0
    assert running.stdout.read() == b"status 137\n"
    lines = box.files.read("/workspace/log").splitlines()
    assert lines == [str(n) for n in range(1, len(lines) + 1)]
    assert lines
    assert box.exec(["python3", "-c", "print(1)"]).stdout == "1\n"


def test_an_engine_process_has_nothing(box: Sandbox) -> None:
    """The outer wall: its descriptors are its connection and where it is asked for copies; every layer is on."""
    running = box.spawn(["python3", "-c", "while True: pass"])
    pid = busiest()
    status = dict(
        line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":\t" in line
    )
    assert status["Seccomp"].strip() == "2"
    assert status["NoNewPrivs"].strip() == "1"
    descriptors, environment = Path(f"/proc/{pid}/fd"), Path(f"/proc/{pid}/environ")
    if os.geteuid() == 0:
        assert [os.readlink(fd).partition(":")[0] for fd in descriptors.iterdir()] == ["socket", "socket"]
        assert environment.read_bytes() == b""
    else:  # it can't be dumped, so its own user can't look
        for path in (descriptors / "0", environment):
            with pytest.raises(PermissionError):
                path.read_bytes()
    running.kill("KILL")
    running.wait(30)


def test_nothing_of_the_host_is_seen(box: Sandbox) -> None:
    code = """
import os
for path in ('/proc/self/maps', '/../../../../etc/hostname', '/proc/1/environ'):
    try:
        print(path, open(path).read().strip()[:40])
    except OSError as error:
        print(path, type(error).__name__)
for _ in range(100):
    os.chdir('..')
print(os.getcwd(), sorted(os.listdir('/'))[:3])
fd = os.open('/etc', os.O_RDONLY)
try:
    print(os.open('../../../../etc/passwd', os.O_RDONLY, dir_fd=fd) > 0)
except OSError as error:
    print(type(error).__name__)
"""
    result = box.exec(["python3", "-c", code])
    assert result.exit_code == 0, result.stderr
    assert result.stdout == (
        "/proc/self/maps \n/../../../../etc/hostname belljar\n/proc/1/environ PermissionError\n"
        "/ ['bin', 'dev', 'etc']\nPermissionError\n"
    )
