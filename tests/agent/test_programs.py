"""Programs by the agent: streams in order, however slow their readers; signals; limits; all that they start."""

from __future__ import annotations

import hashlib
import os
import re
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from belljar import FileError, Limits, Sandbox
from tests.agent.running import sandbox


def eventually(ready: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not ready():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def test_output_errors_and_status(box: Sandbox) -> None:
    result = box.exec("echo out; echo err >&2; exit 7")
    assert (result.stdout, result.stderr, result.exit_code) == ("out\n", "err\n", 7)
    assert box.exec("kill -9 $$").exit_code == 137
    merged = box.exec("echo a; echo b >&2; echo c", merge_stderr=True)
    assert (merged.stdout, merged.stderr) == ("a\nb\nc\n", "")


@pytest.mark.parametrize(
    ("argv", "said", "code"),
    [
        (["nosuch"], "belljar: nosuch: command not found\n", 127),
        (["./nosuch"], "belljar: ./nosuch: No such file or directory\n", 127),
        (["/etc/passwd"], "belljar: /etc/passwd: Permission denied\n", 126),
        (["/etc/passwd/x"], "belljar: /etc/passwd/x: Not a directory\n", 127),
    ],
)
def test_what_can_not_be_executed(box: Sandbox, argv: list[str], said: str, code: int) -> None:
    result = box.exec(argv)
    assert (result.stderr, result.exit_code) == (said, code)


def test_a_script_without_a_first_line_is_the_shells(box: Sandbox) -> None:
    box.files.write("script", 'echo "$0" "$@"', mode=0o755)
    assert box.exec(["./script", "a", "b c"]).stdout == "./script a b c\n"


def test_a_directory_that_is_not_there(box: Sandbox) -> None:
    with pytest.raises(FileError, match="/nowhere: No such file or directory"):
        box.exec("true", cwd="/nowhere")
    with pytest.raises(FileError, match="/nowhere: No such file or directory"):
        box.spawn("true", cwd="/nowhere")


def test_environment_and_directory(box: Sandbox, tmp_path: Path) -> None:
    result = box.exec("pwd; echo $USER $HOME $X $Y", env={"X": "1", "Y": "é\udcff"})
    assert result.stdout_bytes == f"{tmp_path}\nagent /home/agent 1 é".encode() + b"\xff\n"
    assert box.exec("ls -l /proc/self/fd | grep -c ' -> '").stdout == "4\n", "0 to 2, and the directory"


def test_long_input_arrives_in_order(box: Sandbox) -> None:
    data = os.urandom(1 << 20) * 20
    assert box.exec("sha256sum", stdin=data).stdout.split()[0] == digest(data)
    process = box.spawn("sleep 0.2; sha256sum", stdin=-1)
    for start in range(0, len(data), 3_000_001):
        process.stdin.write(data[start : start + 3_000_001])
    process.stdin.close()
    assert process.stdout.read().split()[0].decode() == digest(data)


def test_input_that_nobody_reads(box: Sandbox) -> None:
    assert box.exec("exec <&-; echo ok", stdin=bytes(20 << 20)).stdout == "ok\n"
    process = box.spawn("exec <&-; echo closed; until [ -e sent ]; do sleep 0.05; done", stdin=-1)
    assert process.stdout.next_chunk(60) == b"closed\n"
    process.stdin.send(bytes(1 << 20))
    box.files.write("sent", "")
    assert process.wait() == 0


def test_a_slow_reader_holds_the_program_up_and_nothing_is_lost(box: Sandbox) -> None:
    process = box.spawn("seq 1 2000000; echo end >&2", limits=Limits(output_bytes=64 << 20))
    time.sleep(0.3)
    assert not process.exited, "it is held up at the window"
    expected = b"".join(b"%d\n" % n for n in range(1, 2_000_001))
    assert process.stdout.read() == expected
    assert process.stderr.read() == b"end\n"
    assert process.wait() == 0


def test_others_go_on_while_one_is_held_up(box: Sandbox) -> None:
    held = [box.spawn("yes") for _ in range(4)]
    assert box.exec("echo quick").stdout == "quick\n"
    assert box.files.exists("/")
    for process in held:
        process.kill("KILL")
        assert process.wait() == 137


def test_long_output_by_exec(box: Sandbox) -> None:
    result = box.exec("head -c 30000000 /dev/zero; head -c 100000 /dev/zero >&2")
    assert (len(result.stdout_bytes), len(result.stderr_bytes)) == (30_000_000, 100_000)


def test_two_hundred_at_once(box: Sandbox) -> None:
    processes = [box.spawn(f"read x; echo {n} $x", stdin=-1) for n in range(200)]
    for n, process in enumerate(processes):
        process.stdin.write(f"{n * n}\n")
    for n, process in enumerate(processes):
        assert process.stdout.read() == b"%d %d\n" % (n, n * n)
        assert process.wait() == 0


def test_execs_from_many_threads(box: Sandbox) -> None:
    seen: list[str] = []

    def run(n: int) -> None:
        seen.extend(box.exec(f"echo {n}-{m}").stdout for m in range(10))

    threads = [threading.Thread(target=run, args=(n,)) for n in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == sorted(f"{n}-{m}\n" for n in range(10) for m in range(10))


DAEMONS = {
    "a job": "sleep 1000 & echo $!",
    "a session": "setsid sleep 1000 & echo $!",
    "a double fork": "(setsid bash -c 'echo $$; exec sleep 1000 </dev/null >/dev/null 2>&1 &' &)",
    "deeper": "(setsid bash -c '(setsid bash -c \"exec 9>&1; sleep 1000 >/dev/null 9>&- & echo \\$!\" &) &' &)",
    "an empty environment": "(env -i setsid sleep 1000 >/dev/null 2>&1 & echo $!)",
}


@pytest.mark.parametrize("how", DAEMONS)
def test_kill_of_all_ends_daemons(box: Sandbox, how: str) -> None:
    process = box.spawn(DAEMONS[how] + "; sleep 1000")
    pids = [int(word) for word in process.stdout.next_chunk(60).split()]
    assert pids
    box.exec("true")
    process.command.kill_all()
    assert process.wait() == 137
    eventually(lambda: not any(map(is_alive, pids)))


@pytest.mark.battery(sample=1)
@pytest.mark.parametrize("how", DAEMONS)
def test_a_limit_ends_daemons_after_their_program(box: Sandbox, how: str) -> None:
    told = f"{{ {DAEMONS[how]}; }} > pids; until [ -s pids ]; do sleep 0.02; done; cat pids"
    result = box.exec(told, limits=Limits(wall_seconds=4))
    assert (result.exit_code, result.limit) == (0, None)
    pids = [int(word) for word in result.stdout.split()]
    assert any(map(is_alive, pids)) or how == "a double fork"
    eventually(lambda: not any(map(is_alive, pids)))


def test_what_is_left_goes_on_and_its_output_stops_nothing(box: Sandbox) -> None:
    began = time.monotonic()
    result = box.exec("(while :; do echo spam || exit; sleep 0.01; done) & echo $!")
    assert time.monotonic() - began < 30
    pid = int(result.stdout.split()[0])
    time.sleep(0.5)
    assert is_alive(pid), "its output is read and dropped"
    assert box.stats()["processes"] >= 1
    assert box.exec("echo next").stdout == "next\n"


def test_output_of_what_ends_soon_after_its_program(box: Sandbox) -> None:
    for _ in range(10):
        assert box.exec("echo hi > >(cat)").stdout == "hi\n"


def test_signals_reach_the_group(box: Sandbox) -> None:
    process = box.spawn("trap 'echo got; exit 5' TERM; sleep 1000 & echo ready; wait")
    assert process.stdout.next_chunk(60) == b"ready\n"
    process.kill("TERM")
    assert process.stdout.read() == b"got\n"
    assert process.wait() == 5


def test_a_signal_right_after_the_start(box: Sandbox) -> None:
    for _ in range(20):
        process = box.spawn(["sleep", "1000"])
        process.kill("KILL")
        assert process.wait() == 137


LIMITS = Limits(cpu_seconds=20, output_bytes=1 << 20, processes=20)
SLEEP = "sleep 99"
LINES = {
    SLEEP: "belljar: timed out after 0.7 s (limit wall_seconds) and was stopped\n",
    "yes": "belljar: wrote more than 1 MiB of output (limit output_bytes) and was stopped\n",
    "for i in {1..40}; do sleep 99 & done; wait": "belljar: needed more than 20 processes (limit processes)"
    " and was stopped\n",
}


@pytest.mark.parametrize("command", LINES)
def test_a_limit_ends_everything_and_says_so(box: Sandbox, command: str) -> None:
    timeout = 0.7 if command == SLEEP else 60
    result = box.exec(command, timeout=timeout, limits=LIMITS)
    assert result.stderr.endswith(LINES[command])
    assert f"(limit {result.limit})" in LINES[command]
    assert not result.ok
    merged = box.exec(command, timeout=timeout, limits=LIMITS, merge_stderr=True)
    assert merged.stdout.endswith(LINES[command])


def test_processor_time_counts_what_was_started_and_has_ended(box: Sandbox) -> None:
    for command in ("while :; do :; done", "setsid -w bash -c 'while :; do :; done'", "while :; do /bin/true; done"):
        result = box.exec(command, limits=Limits(cpu_seconds=0.2, wall_seconds=30))
        assert result.limit == "cpu_seconds", command
        assert result.stderr == "belljar: used up 0.2 s of processor time (limit cpu_seconds) and was stopped\n"


def test_open_files(box: Sandbox) -> None:
    assert box.exec("ulimit -n", limits=Limits(open_files=99)).stdout == "99\n"


def test_control_channel(program: Path) -> None:
    from belljar.abi.wire import CONTROL_IN, CONTROL_OUT, Exited, Input, Output, Start, Started
    from tests.agent.running import talk

    code = "for i in 1 2 3; do read -u 3 x; head -c 200000 /dev/zero; echo err >&2; echo $x$i >&4; done"
    with talk(program) as agent:
        agent.hear()
        agent.say(Start(1, [b"bash", b"-c", code.encode()], {}, None, b"", False, True, {}, control=True))
        agent.say(Input(1, b"a\n", CONTROL_IN))
        sizes, lines, errors = 0, [], 0
        while not isinstance(message := agent.hear(), Exited):
            if isinstance(message, Started):
                continue
            assert isinstance(message, Output)
            if message.stream == CONTROL_OUT:
                lines.append((message.data, sizes, errors))
                agent.say(Input(1, b"bc"[len(lines) - 1 :][:1] + b"\n", CONTROL_IN))
            elif message.stream == 2:
                errors += message.data.count(b"err")
            else:
                sizes += len(message.data)
    assert lines == [(b"a1\n", 200_000, 1), (b"b2\n", 400_000, 2), (b"c3\n", 600_000, 3)]


def read_until(terminal: object, pattern: bytes) -> bytes:
    shown = b""
    deadline = time.monotonic() + 60
    while not re.search(pattern, shown):
        assert time.monotonic() < deadline, shown
        shown += terminal.read(1)  # type: ignore[attr-defined]
    return shown


def test_a_terminal_with_job_control(box: Sandbox) -> None:
    terminal = box.pty("bash --norc -i", env={"TERM": "dumb"}, rows=33, cols=77)
    terminal.write("stty size; tty\n")
    read_until(terminal, rb"33 77\r\n/dev/")
    terminal.write("bash -c 'echo be''gun; exec sleep 1000'\n")
    read_until(terminal, rb"begun")
    terminal.write("\x1a")
    read_until(terminal, rb"Stopped")
    terminal.write("bg; jobs; kill %1; wait; echo over\n")
    read_until(terminal, rb"\nover")
    terminal.write("bash -c 'echo re''ady; exec cat'\n")
    read_until(terminal, rb"ready")
    terminal.write("\x03")
    read_until(terminal, rb"\^C\s+\S+[#$] ")  # the prompt of root or of anybody else
    terminal.resize(11, 22)
    terminal.write("stty size; exit 3\n")
    read_until(terminal, rb"11 22")
    assert terminal.wait() == 3


def test_what_holds_a_terminal_ends_with_it(box: Sandbox) -> None:
    terminal = box.pty("sleep 1000 & echo $!; sleep 0.2")
    pid = int(read_until(terminal, rb"\d+\r\n").split()[-1])
    assert terminal.wait() == 0
    eventually(lambda: not is_alive(pid))


def test_programs_get_signals_that_their_owner_ignores(program: Path, tmp_path: Path) -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as under nohup
    try:
        with sandbox(program, cwd=str(tmp_path)) as box:
            assert box.exec("bash -c 'kill -HUP $$'; echo $?").stdout == f"{128 + signal.SIGHUP}\n"
    finally:
        signal.signal(signal.SIGHUP, before)


def test_the_end_of_the_conversation_ends_everything(program: Path, tmp_path: Path) -> None:
    with sandbox(program, cwd=str(tmp_path)) as box:
        pid = int(box.exec("setsid sleep 1000 </dev/null >/dev/null 2>&1 & echo $!").stdout)
        process = box.spawn("trap '' TERM HUP; sleep 1000 & wait")
        assert is_alive(pid)
        assert is_alive(process.pid)
    eventually(lambda: not is_alive(pid) and not is_alive(process.pid))
