"""`spawn`: programs that their owner talks to while they run."""

from __future__ import annotations

import subprocess
from typing import Any

import pytest

from belljar import FileError, Limits, Sandbox, SandboxClosed

ECHO = "while read -r line; do echo got $line; done; echo end"


def test_a_conversation(sb: Sandbox) -> None:
    process = sb.spawn(ECHO)
    for n in range(50):
        process.stdin.write(f"{n}\n")
        assert process.stdout.next_chunk(120) == b"got %d\n" % n
    process.stdin.close()
    assert process.stdout.read() == b"end\n"
    assert process.wait() == 0


def test_chunks(sb: Sandbox) -> None:
    process = sb.spawn("echo one; read x; echo two")
    chunks = []
    for chunk in process.stdout:
        chunks.append(chunk)
        process.stdin.write("\n")
    assert chunks == [b"one\n", b"two\n"]


def test_streams_are_kept_apart(sb: Sandbox) -> None:
    process = sb.spawn("echo out; echo err >&2")
    assert (process.stdout.read(), process.stderr.read(), process.wait()) == (b"out\n", b"err\n", 0)


def test_streams_may_be_merged(sb: Sandbox) -> None:
    process = sb.spawn("echo 1; echo 2 >&2; echo 3", merge_stderr=True)
    assert (process.stdout.read(), process.stderr.read()) == (b"1\n2\n3\n", b"")


def test_lines(sb: Sandbox) -> None:
    process = sb.spawn(r"printf 'one\ntwo\n\nlast'")
    assert list(process.stdout.lines()) == ["one", "two", "", "last"]


def test_text(sb: Sandbox) -> None:
    process = sb.spawn(r"printf 'żółć\nlast'; printf 'err\n' >&2", text=True)
    assert list(process.stdout) == ["żółć\n", "last"]
    assert process.stderr.read() == "err\n"


def test_text_that_is_cut_within_a_character(sb: Sandbox) -> None:
    process = sb.spawn(r"printf '\303'; sleep 0.2; printf '\251\n'", text=True)
    assert process.stdout.read() == "é\n"


def test_reading_after_the_end(sb: Sandbox) -> None:
    process = sb.spawn("echo x")
    assert process.wait() == 0
    assert process.stdout.read() == b"x\n"
    assert process.stdout.read() == b""
    assert process.stdout.next_chunk() == b""


def test_a_read_may_be_bounded(sb: Sandbox) -> None:
    process = sb.spawn("sleep 60")
    assert process.stdout.next_chunk(timeout=0.1) == b""
    assert not process.exited
    process.kill("KILL")
    assert process.wait() == 137


def test_a_wait_may_be_bounded(sb: Sandbox) -> None:
    process = sb.spawn("read x; exit $x")
    assert process.wait(timeout=0.1) is None
    process.stdin.write("7\n")
    assert process.wait(timeout=120) == 7
    assert process.wait() == 7
    assert process.exited


def test_its_pid_is_the_one_inside(sb: Sandbox) -> None:
    process = sb.spawn("echo $$; sleep 60")
    assert process.stdout.next_chunk(120) == b"%d\n" % process.pid
    assert sb.exec(f"kill -0 {process.pid}").exit_code == 0
    assert sb.exec(f"kill -TERM {process.pid}").exit_code == 0
    assert process.wait(120) == 143


SIGNALS: dict[str, tuple[Any, int]] = {
    "TERM": ("TERM", 143),
    "KILL": ("KILL", 137),
    "INT": ("INT", 130),
    "SIGHUP": ("SIGHUP", 129),
    "a number": (10, 138),
}


@pytest.mark.parametrize(("signal", "code"), SIGNALS.values(), ids=SIGNALS)
def test_signals(sb: Sandbox, signal: Any, code: int) -> None:
    process = sb.spawn(["sh", "-c", "echo up; exec sleep 60"])
    assert process.stdout.next_chunk(120) == b"up\n"
    process.kill(signal)
    assert process.wait(120) == code


def test_sigterm_is_the_usual_one(sb: Sandbox) -> None:
    process = sb.spawn("trap 'echo cleaned up; exit 3' TERM; echo up; while :; do sleep 0.05; done")
    assert process.stdout.next_chunk(120) == b"up\n"
    process.kill()
    assert process.stdout.read() == b"cleaned up\n"
    assert process.wait() == 3


def test_signals_go_to_the_process_group(sb: Sandbox) -> None:
    process = sb.spawn("sleep 60 & echo $!; wait")
    child = int(process.stdout.next_chunk(120))
    process.kill("TERM")
    assert process.wait(120) == 143
    assert sb.exec(f"while kill -0 {child} 2>/dev/null; do sleep 0.05; done", timeout=50).ok  # before it ends by itself


def test_it_may_be_stopped_and_continued(sb: Sandbox) -> None:
    process = sb.spawn("read x; echo got $x")
    process.kill("STOP")
    process.stdin.write("it\n")
    assert process.stdout.next_chunk(0.3) == b""
    process.kill("CONT")
    assert process.stdout.read() == b"got it\n"
    assert process.wait() == 0


def test_a_signal_to_one_that_has_ended(sb: Sandbox) -> None:
    process = sb.spawn("true")
    assert process.wait() == 0
    process.kill("KILL")
    assert process.wait() == 0


def test_what_is_no_signal(sb: Sandbox) -> None:
    process = sb.spawn("sleep 60")
    with pytest.raises(ValueError, match="NOSUCH"):
        process.kill("NOSUCH")
    process.kill("KILL")


STDIN: dict[str, tuple[Any, bytes]] = {
    "bytes": (b"\0\xff", b"\0\xff"),
    "str": ("text", b"text"),
    "empty": (b"", b""),
    "DEVNULL": (subprocess.DEVNULL, b""),
}


@pytest.mark.parametrize(("stdin", "read"), STDIN.values(), ids=STDIN)
def test_all_of_the_input_at_once(sb: Sandbox, stdin: Any, read: bytes) -> None:
    process = sb.spawn(["cat"], stdin=stdin)
    assert (process.stdout.read(), process.wait()) == (read, 0)


LOOK = "if [ -p /dev/stdin ]; then echo pipe; elif [ -c /dev/stdin ]; then echo device; else echo other; fi"
KINDS: dict[str, tuple[Any, bytes]] = {
    "PIPE": (subprocess.PIPE, b"pipe\n"),
    "DEVNULL": (subprocess.DEVNULL, b"device\n"),
    "given": ("x", b"pipe\n"),
    "open": (None, b"other\n"),
}


@pytest.mark.parametrize(("stdin", "kind"), KINDS.values(), ids=KINDS)
def test_kinds_of_standard_input(sb: Sandbox, stdin: Any, kind: bytes) -> None:
    assert sb.spawn(LOOK, stdin=stdin).stdout.read() == kind


def test_input_through_a_pipe(sb: Sandbox) -> None:
    process = sb.spawn(["cat"], stdin=subprocess.PIPE)
    process.stdin.write("a")
    process.stdin.send(b"b")
    process.stdin.close()
    process.stdin.close()
    assert process.stdout.read() == b"ab"


def test_writing_after_the_end_of_the_input(sb: Sandbox) -> None:
    process = sb.spawn(["cat"])
    process.stdin.close()
    with pytest.raises(ValueError, match="stdin is closed"):
        process.stdin.write("x")
    with pytest.raises(ValueError, match="stdin is closed"):
        process.stdin.send("x")


def test_input_to_one_that_has_ended(sb: Sandbox) -> None:
    process = sb.spawn("exit 0")
    assert process.wait() == 0
    process.stdin.write("x" * 100_000)
    process.stdin.send("y")
    process.stdin.close()


def test_input_that_is_not_read(sb: Sandbox) -> None:
    process = sb.spawn("head -c 2")
    process.stdin.write(b"abc" * 1_000_000)
    process.stdin.close()
    assert (process.stdout.read(), process.wait()) == (b"ab", 0)


def test_long_input_arrives_in_order(sb: Sandbox) -> None:
    process = sb.spawn("sha256sum")
    data = b"".join(b"%019d\n" % n for n in range(1_000_000))
    for start in range(0, len(data), 1 << 20):
        process.stdin.write(data[start : start + (1 << 20)])
    process.stdin.close()
    import hashlib

    assert process.stdout.read().split()[0].decode() == hashlib.sha256(data).hexdigest()


def test_long_input_and_output_at_once(sb: Sandbox) -> None:
    process = sb.spawn(["cat"])
    data = b"".join(b"%09d\n" % n for n in range(500_000))
    process.stdin.write(data)
    process.stdin.close()
    assert process.stdout.read() == data
    assert process.wait() == 0


def test_input_in_many_small_pieces(sb: Sandbox) -> None:
    process = sb.spawn("sort -n | tail -n 1")
    for n in range(3000):
        process.stdin.write(f"{n}\n")
    process.stdin.close()
    assert process.stdout.read() == b"2999\n"


def test_output_that_nobody_reads_holds_it_up(sb: Sandbox) -> None:
    process = sb.spawn("head -c 20000000 /dev/zero; echo ended > ended")
    sb.exec("sleep 0.4")
    assert not sb.files.exists("ended")
    assert not process.exited
    assert sum(map(len, process.stdout)) == 20_000_000
    assert process.wait() == 0
    assert sb.files.exists("ended")


def test_a_stream_that_nobody_reads_does_not_hold_up_the_other(sb: Sandbox) -> None:
    process = sb.spawn("head -c 100000 /dev/zero >&2; echo out")
    assert process.stdout.read() == b"out\n"
    assert len(process.stderr.read()) == 100_000


def test_others_go_on_while_one_waits_for_its_reader(sb: Sandbox) -> None:
    process = sb.spawn("yes")
    assert sb.exec("seq 100000 | tail -n 1").stdout == "100000\n"
    process.kill("KILL")
    assert process.wait() == 137


def test_a_timeout(sb: Sandbox) -> None:
    process = sb.spawn("sleep 60", timeout=0.3)
    result = process.result()
    assert (result.exit_code, result.timed_out, result.limit) == (124, True, "wall_seconds")
    assert process.limit == "wall_seconds"


def test_limits(sb: Sandbox) -> None:
    process = sb.spawn("yes", limits=Limits(output_bytes=10_000))
    assert len(process.stdout.read()) <= 10_000
    assert process.wait() == 137
    assert (process.limit, process.truncated) == ("output_bytes", True)


def test_a_result_has_what_was_not_read(sb: Sandbox) -> None:
    process = sb.spawn("echo one; read x; echo two; echo err >&2; exit 3")
    assert process.stdout.next_chunk(120) == b"one\n"
    process.stdin.write("\n")
    result = process.result()
    assert (result.stdout, result.stderr, result.exit_code) == ("two\n", "err\n", 3)


def test_cwd_and_env(sb: Sandbox) -> None:
    sb.files.mkdir("d")
    process = sb.spawn("echo $A; pwd", cwd="d", env={"A": "1"})
    assert process.stdout.read() == b"1\n/workspace/d\n"


def test_a_program_that_is_not_there(sb: Sandbox) -> None:
    process = sb.spawn(["no-such-command-here"])
    assert process.wait() == 127
    assert b"no-such-command-here" in process.stderr.read()


def test_a_cwd_that_is_not_there(sb: Sandbox) -> None:
    with pytest.raises(FileError) as raised:
        sb.spawn("true", cwd="/no/such")
    assert raised.value.errno == 2


def test_many_at_once(sb: Sandbox) -> None:
    processes = [sb.spawn(f"read x; echo {n} $x") for n in range(20)]
    for process in processes:
        process.stdin.write("go\n")
    assert [process.stdout.read() for process in processes] == [b"%d go\n" % n for n in range(20)]
    assert {process.wait() for process in processes} == {0}


def test_closing_ends_them(sb: Sandbox) -> None:
    process = sb.spawn("sleep 60")
    sb.close()
    with pytest.raises(SandboxClosed):
        process.wait()
