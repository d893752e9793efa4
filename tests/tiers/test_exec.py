"""`exec`: commands that run to their end."""

from __future__ import annotations

import threading
import time
from pathlib import PurePosixPath
from typing import Any

import pytest

from belljar import ExecError, ExecResult, FileError, Limits, Sandbox
from tests.tiers.conftest import Make, Tier

CODES = {
    "true": ("true", 0),
    "false": ("false", 1),
    "exit": ("exit 3", 3),
    "exit wraps": ("exit 257", 1),
    "the last command's": ("false; true", 0),
    "a pipe's last": ("false | true", 0),
    "errexit": ("set -e; false; true", 1),
    "a subshell's": ("(exit 7)", 7),
    "not found": ("no-such-command-here", 127),
    "not executable": ("/etc/passwd", 126),
    "a directory": ("/etc", 126),
    "a syntax error": ("if then", 2),
    "an unterminated quote": ("echo 'x", 2),
    "an empty command": ("", 0),
    "a comment": ("# nothing", 0),
    "SIGTERM": ("kill -TERM $$", 143),
    "SIGKILL": ("kill -KILL $$", 137),
    "SIGHUP": ("kill -HUP $$", 129),
    "SIGUSR1": ("kill -USR1 $$", 138),
    "SIGINT": ("kill -INT $$", 130),
    "SIGPIPE of the shell": ("kill -PIPE $$", 141),
    "a child's signal": ("sh -c 'kill -TERM $$'", 143),
    "a trap's": ("trap 'exit 9' TERM; kill -TERM $$; sleep 60", 9),
    "exec replaces the shell": ("exec sh -c 'exit 5'", 5),
}


@pytest.mark.parametrize(("command", "code"), CODES.values(), ids=CODES)
def test_exit_codes(sb: Sandbox, command: str, code: int) -> None:
    result = sb.exec(command)
    assert (result.exit_code, result.limit, result.timed_out) == (code, None, False)
    assert result.ok == (code == 0)


ARGV: dict[str, tuple[list[str], int, str]] = {
    "no shell": (["printf", "%s|", "$HOME", "*", "a b", ";"], 0, "$HOME|*|a b|;|"),
    "an empty argument": (["printf", "[%s]", ""], 0, "[]"),
    "a line break": (["printf", "%s", "a\nb"], 0, "a\nb"),
    "UTF-8": (["printf", "%s", "żółć 🔔"], 0, "żółć 🔔"),
    "a long one": (["printf", "%s", "x" * 100_000], 0, "x" * 100_000),
    "a path": (["/bin/sh", "-c", "echo $0 $1", "zero", "one"], 0, "zero one\n"),
    "not found": (["no-such-command-here"], 127, ""),
    "a missing path": (["/no/such/file"], 127, ""),
    "not executable": (["/etc/passwd"], 126, ""),
    "a directory": (["/etc"], 126, ""),
    "the exit code": (["sh", "-c", "exit 4"], 4, ""),
    "a signal": (["sh", "-c", "kill -KILL $$"], 137, ""),
}


@pytest.mark.parametrize(("argv", "code", "said"), ARGV.values(), ids=ARGV)
def test_a_list_is_argv(sb: Sandbox, argv: list[str], code: int, said: str) -> None:
    result = sb.exec(argv)
    assert (result.exit_code, result.stdout) == (code, said)
    assert bool(result.stderr) == (code in (126, 127))


def test_a_program_that_is_not_there_is_named(sb: Sandbox) -> None:
    assert "no-such-command-here" in sb.exec(["no-such-command-here"]).stderr


def test_a_str_runs_in_bash(sb: Sandbox) -> None:
    assert sb.exec("a=(x y); echo ${a[1]} ${BASH_VERSION:+bash}").stdout == "y bash\n"


def test_a_script_is_run_by_its_first_line(sb: Sandbox) -> None:
    sb.files.write("script", "#!/bin/sh\necho script $1\n", mode=0o755)
    assert sb.exec(["./script", "runs"]).stdout == "script runs\n"


def test_streams_are_kept_apart(sb: Sandbox) -> None:
    result = sb.exec("echo out; echo err >&2")
    assert (result.stdout, result.stderr) == ("out\n", "err\n")
    assert (result.stdout_bytes, result.stderr_bytes) == (b"out\n", b"err\n")


def test_bytes_arrive_as_they_are(sb: Sandbox) -> None:
    result = sb.exec(r"printf 'a\000\377\n'; printf '\200' >&2")
    assert (result.stdout_bytes, result.stderr_bytes) == (b"a\0\xff\n", b"\x80")
    assert (result.stdout, result.stderr) == ("a\0\ufffd\n", "\ufffd")


def test_an_argument_need_not_be_utf8(sb: Sandbox) -> None:
    assert sb.exec(["printf", "%s", "\udcff\udc80"]).stdout_bytes == b"\xff\x80"


def test_merged_streams_keep_their_order(sb: Sandbox) -> None:
    result = sb.exec("for n in 1 2 3; do echo out $n; echo err $n >&2; done", merge_stderr=True)
    assert result.stdout == "".join(f"out {n}\nerr {n}\n" for n in (1, 2, 3))
    assert result.stderr == ""


def test_each_has_a_shell_of_its_own(sb: Sandbox) -> None:
    sb.exec("cd /tmp; x=1; export x; echo kept > /workspace/file; umask 077; alias ll=ls")
    assert sb.exec("pwd; echo [$x]; cat file; umask").stdout == "/workspace\n[]\nkept\n0022\n"


def test_cwd(sb: Sandbox) -> None:
    assert sb.exec("pwd", cwd="/tmp").stdout == "/tmp\n"
    assert sb.exec(["pwd"], cwd="/usr").stdout == "/usr\n"


def test_a_relative_cwd_is_below_the_sandboxs(sb: Sandbox) -> None:
    sb.files.mkdir("a/b", parents=True)
    assert sb.exec("pwd", cwd="a/b").stdout == "/workspace/a/b\n"
    assert sb.exec("pwd", cwd=PurePosixPath("a")).stdout == "/workspace/a\n"


CWDS = {"missing": ("/no/such", 2), "a file": ("/etc/passwd", 20)}


@pytest.mark.parametrize(("cwd", "errno"), CWDS.values(), ids=CWDS)
def test_a_cwd_that_is_none(sb: Sandbox, cwd: str, errno: int) -> None:
    with pytest.raises(FileError) as raised:
        sb.exec("pwd", cwd=cwd)
    assert raised.value.errno == errno
    assert cwd in str(raised.value)


def test_env_is_added(make: Make) -> None:
    sb = make(env={"A": "sandbox", "B": "kept"})
    assert sb.exec("echo $A $B $C", env={"A": "exec", "C": "new"}).stdout == "exec kept new\n"
    assert sb.exec("echo $A $B [$C]").stdout == "sandbox kept []\n"


ENVS = {
    "empty": "",
    "with spaces": "a  b",
    "with quotes": 'it\'s "quoted" $HOME',
    "with a line break": "a\nb",
    "UTF-8": "żółć",
    "long": "x" * 50_000,
}


@pytest.mark.parametrize("value", ENVS.values(), ids=ENVS)
def test_env_values(sb: Sandbox, value: str) -> None:
    assert sb.exec('printf "%s" "$V"', env={"V": value}).stdout == value


def test_the_usual_environment(sb: Sandbox) -> None:
    said = sb.exec("echo $HOME $USER $PWD $SHELL; echo $PATH").stdout.splitlines()
    assert said[0] == "/home/agent agent /workspace /bin/bash"
    assert {"/usr/local/bin", "/usr/bin", "/bin"} <= set(said[1].split(":"))


def test_nothing_of_the_owners_environment_is_there(sb: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_OWNER", "1")
    assert "SECRET_OF_THE_OWNER" not in sb.exec("env").stdout


STDIN: dict[str, tuple[Any, bytes]] = {
    "str": ("żółć\n", "żółć\n".encode()),
    "bytes": (b"\0\xff", b"\0\xff"),
    "bytearray": (bytearray(b"ab"), b"ab"),
    "memoryview": (memoryview(b"abc")[1:], b"bc"),
    "empty": ("", b""),
    "none": (None, b""),
}


@pytest.mark.parametrize(("stdin", "read"), STDIN.values(), ids=STDIN)
def test_stdin(sb: Sandbox, stdin: Any, read: bytes) -> None:
    assert sb.exec(["cat"], stdin=stdin).stdout_bytes == read


def test_input_is_another_name_for_stdin(sb: Sandbox) -> None:
    assert sb.exec("cat", input="x").stdout == "x"
    with pytest.raises(TypeError, match="give one of them"):
        sb.exec("cat", input="x", stdin="y")


def test_long_stdin(sb: Sandbox) -> None:
    data = b"".join(b"%09d\n" % n for n in range(800_000))
    assert sb.exec("wc -c; ", stdin=data).stdout.strip() == str(len(data))
    assert sb.exec("tail -n 1", stdin=data).stdout == "000799999\n"


def test_stdin_that_is_not_read(sb: Sandbox) -> None:
    assert sb.exec("head -c 3", stdin=b"abcdef" * 1_000_000).stdout == "abc"
    assert sb.exec("true", stdin=b"x" * 20_000_000).exit_code == 0


def test_stdin_is_shared_by_the_commands_of_a_script(sb: Sandbox) -> None:
    assert sb.exec("read a; read b; echo $b $a; cat", stdin="1\n2\n3\n").stdout == "2 1\n3\n"


def test_a_timeout_ends_it(sb: Sandbox) -> None:
    for seconds in ("0.3", "3", "30"):  # until it had the time to begin
        result = sb.exec("echo before; sleep 60; echo after", timeout=float(seconds))
        assert (result.exit_code, result.timed_out, result.limit) == (124, True, "wall_seconds")
        assert not result.ok
        assert result.stderr == f"belljar: timed out after {seconds} s (limit wall_seconds) and was stopped\n"
        if result.stdout:
            break
    assert result.stdout == "before\n"
    assert sb.exec("echo usable").stdout == "usable\n"


def test_a_timeout_ends_everything_it_started(sb: Sandbox) -> None:
    beat = "while :; do echo >> {}; sleep 0.05; done"
    script = f"({beat.format('one')}) & sh -c 'trap \"\" TERM; {beat.format('two')}' & sleep 600"
    for seconds in (0.3, 3, 30):  # until they had the time to begin
        assert sb.exec(script, timeout=seconds).timed_out
        if sb.exec("[ -s one ] && [ -s two ]").ok:
            break
    ends, size = time.monotonic() + 60, ""
    while size != (now := sb.exec("sleep 1; cat one two | wc -c").stdout):
        assert time.monotonic() < ends, "one of them goes on"
        size = now
    assert int(size) > 1


def test_a_timeout_counts_a_command_that_computes(sb: Sandbox) -> None:
    assert sb.exec("while :; do :; done", timeout=0.3).exit_code == 124


def test_a_timeout_that_is_not_reached(sb: Sandbox) -> None:
    result = sb.exec("echo quick", timeout=60)
    assert (result.stdout, result.timed_out, result.exit_code) == ("quick\n", False, 0)


def test_check_raises(sb: Sandbox) -> None:
    assert sb.exec("echo fine", check=True).stdout == "fine\n"
    with pytest.raises(ExecError, match="exit code 3: went wrong") as raised:
        sb.exec("echo went wrong >&2; exit 3", check=True)
    assert raised.value.result.exit_code == 3


def test_results_check_themselves(sb: Sandbox) -> None:
    result = sb.exec("true")
    assert result.check() is result
    with pytest.raises(ExecError, match="limit: wall_seconds"):
        sb.exec("sleep 60", timeout=0.2).check()


def test_a_result_knows_its_duration(sb: Sandbox) -> None:
    assert sb.exec("sleep 0.2").duration_ms >= 200


def test_output_is_heard_as_it_comes(sb: Sandbox) -> None:
    """The second is said once the first was heard."""
    heard: list[bytes] = []
    first = threading.Event()

    def hear(data: bytes) -> None:
        heard.append(data)
        first.set()

    def go_on() -> None:
        first.wait(60)
        sb.files.write("go", "")

    thread = threading.Thread(target=go_on)
    thread.start()
    result = sb.exec("echo one; until [ -e go ]; do sleep 0.05; done; echo two", on_stdout=hear, timeout=50)
    first.set()
    thread.join()
    assert not result.timed_out
    assert b"".join(heard) == result.stdout_bytes == b"one\ntwo\n"


def test_both_streams_are_heard(sb: Sandbox) -> None:
    heard: dict[str, bytes] = {"out": b"", "err": b""}

    def hear(name: str, data: bytes) -> None:
        heard[name] += data

    command = "for n in 1 2 3; do echo $n; echo -$n >&2; done"
    sb.exec(command, on_stdout=lambda d: hear("out", d), on_stderr=lambda d: hear("err", d))
    assert heard == {"out": b"1\n2\n3\n", "err": b"-1\n-2\n-3\n"}


def test_much_output_is_heard_in_order(sb: Sandbox) -> None:
    heard: list[bytes] = []
    result = sb.exec("seq 400000", on_stdout=heard.append)
    expected = b"".join(b"%d\n" % n for n in range(1, 400_001))
    assert b"".join(heard) == expected
    assert result.stdout_bytes == expected


def test_a_listener_that_raises_ends_the_command(sb: Sandbox) -> None:
    def refuse(data: bytes) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        sb.exec("while :; do echo x; sleep 0.1; done", on_stdout=refuse)
    assert sb.exec("echo usable").stdout == "usable\n"


def test_a_listener_that_is_no_function(sb: Sandbox) -> None:
    with pytest.raises(TypeError, match="on_stdout must be a function"):
        sb.exec("true", on_stdout="x")  # type: ignore[call-overload]


def test_background_gives_a_process(sb: Sandbox) -> None:
    process = sb.exec("until [ -e go ]; do sleep 0.05; done; echo done; exit 3", background=True)
    assert not process.exited
    sb.files.write("go", "")
    result = process.result()
    assert (result.stdout, result.exit_code) == ("done\n", 3)


def test_output_in_the_background_waits_for_nobody(sb: Sandbox) -> None:
    process = sb.exec("head -c 12000000 /dev/zero; echo ended > ended", background=True)
    assert process.wait() == 0
    assert sb.files.read("ended") == "ended\n"
    assert len(process.result().stdout_bytes) == 12_000_000


def test_stdin_of_the_background_is_empty(sb: Sandbox) -> None:
    assert sb.exec("cat; echo end", background=True).result().stdout == "end\n"
    assert sb.exec("cat", background=True, stdin="given").result().stdout == "given"


def test_a_timeout_in_the_background(sb: Sandbox) -> None:
    result = sb.exec("sleep 60", background=True, timeout=0.2).result()
    assert (result.exit_code, result.timed_out) == (124, True)


BACKGROUND = {"check": {"check": True}, "on_stdout": {"on_stdout": print}}


@pytest.mark.parametrize("options", BACKGROUND.values(), ids=BACKGROUND)
def test_what_makes_no_sense_in_the_background(sb: Sandbox, options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match="in the background"):
        sb.exec("true", background=True, **options)


def test_commands_run_side_by_side(sb: Sandbox) -> None:
    """Each waits for the others: they end only if all run at once."""
    count = 5
    sb.files.mkdir("here")
    results: list[ExecResult] = []

    def one(n: int) -> None:
        script = f"touch here/{n}; until [ $(ls here | wc -l) = {count} ]; do sleep 0.05; done; echo {n}"
        results.append(sb.exec(script, timeout=60))

    threads = [threading.Thread(target=one, args=(n,)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(r.stdout for r in results) == [f"{n}\n" for n in range(count)]


def test_each_command_is_its_own_process_tree(sb: Sandbox) -> None:
    other = sb.exec("sleep 60; echo lived", background=True)
    assert sb.exec("sleep 60", timeout=0.2).timed_out
    assert not other.exited
    other.kill("KILL")
    assert other.wait() == 137


def test_processes_that_are_left_go_on(sb: Sandbox) -> None:
    result = sb.exec("(while [ ! -e stop ]; do sleep 0.05; done; echo stopped > stopped) >/dev/null 2>&1 & echo $!")
    pid = int(result.stdout)
    assert sb.exec(f"kill -0 {pid}").exit_code == 0
    sb.files.write("stop", "")
    assert sb.exec("until [ -e stopped ]; do sleep 0.05; done", timeout=120).exit_code == 0


def test_exec_does_not_wait_for_what_is_left(sb: Sandbox) -> None:
    result = sb.exec("sleep 100 & echo started", timeout=60)
    assert (result.stdout, result.exit_code, result.timed_out) == ("started\n", 0, False)


def test_big_output(sb: Sandbox) -> None:
    result = sb.exec("head -c 30000000 /dev/zero | tr '\\0' x; echo end >&2")
    assert len(result.stdout_bytes) == 30_000_000
    assert (result.truncated, result.stderr) == (False, "end\n")
    assert result.stdout_bytes.count(b"x") == 30_000_000


def test_both_streams_may_be_long(sb: Sandbox) -> None:
    result = sb.exec("seq 200000 & seq 200000 >&2; wait")
    assert result.stdout_bytes == result.stderr_bytes == b"".join(b"%d\n" % n for n in range(1, 200_001))


def test_truncated_output(sb: Sandbox) -> None:
    result = sb.exec("yes", limits=Limits(output_bytes=10_000))
    assert (result.limit, result.truncated, result.exit_code) == ("output_bytes", True, 137)
    assert result.stdout.startswith("y\ny\n")
    assert len(result.stdout_bytes) <= 10_000
    assert "limit output_bytes" in result.stderr


def test_output_of_exactly_the_limit(sb: Sandbox) -> None:
    result = sb.exec("printf 1234567890", limits=Limits(output_bytes=10))
    assert (result.stdout, result.limit, result.truncated) == ("1234567890", None, False)


COMMANDS: dict[str, tuple[Any, type[Exception], str]] = {
    "none": (None, TypeError, "a command is a str"),
    "bytes": (b"true", TypeError, "a command is a str"),
    "an empty list": ([], TypeError, "non-empty list"),
    "a list of other things": (["echo", 1], TypeError, "list of str"),
    "a NUL": ("echo \0", ValueError, "NUL"),
    "a NUL in argv": (["echo", "\0"], ValueError, "NUL"),
    "too long": ("x" * (9 << 20), ValueError, "too long"),
}


@pytest.mark.parametrize(("command", "error", "text"), COMMANDS.values(), ids=COMMANDS)
def test_what_is_no_command(sb: Sandbox, command: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        sb.exec(command)
    assert sb.exec("echo usable").stdout == "usable\n"


OPTIONS: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "cwd": ({"cwd": 1}, TypeError, "cwd is a str"),
    "env": ({"env": ["A=1"]}, TypeError, "env must be a dict"),
    "an env value": ({"env": {"A": 1}}, TypeError, "str to str"),
    "an env name": ({"env": {"A=B": "1"}}, ValueError, "A=B"),
    "a NUL in env": ({"env": {"A": "\0"}}, ValueError, "NUL"),
    "stdin": ({"stdin": 5.0}, TypeError, "stdin must be str or bytes"),
    "timeout": ({"timeout": "1"}, TypeError, "number of seconds"),
    "no timeout": ({"timeout": 0}, ValueError, "positive"),
    "a negative timeout": ({"timeout": -1}, ValueError, "positive"),
    "limits": ({"limits": {"cpu_seconds": 1}}, TypeError, r"Limits\(\.\.\.\)"),
    "more than the sandbox's": ({"limits": Limits(wall_seconds=10_000)}, ValueError, "more than the sandbox's own"),
    "an unknown option": ({"tiemout": 1}, TypeError, "tiemout"),
}


@pytest.mark.parametrize(("options", "error", "text"), OPTIONS.values(), ids=OPTIONS)
def test_options_that_make_no_sense(sb: Sandbox, options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        sb.exec("true", **options)


def test_the_terminal_is_not_there(sb: Sandbox) -> None:
    assert sb.exec("test -t 0 || test -t 1 || test -t 2").exit_code == 1


def test_kinds_of_standard_input(sb: Sandbox, tier: Tier) -> None:
    look = "if [ -p /dev/stdin ]; then echo pipe; elif [ -c /dev/stdin ]; then echo device; else echo other; fi"
    assert sb.exec(look).stdout == "device\n"
    assert sb.exec(look, stdin="x").stdout == "pipe\n"


def test_descriptors_are_the_three(sb: Sandbox) -> None:
    assert sb.exec("for n in 3 4 5 6 7 8 9; do [ -e /proc/self/fd/$n ] && echo $n; done; true").stdout == ""


def test_signals_have_their_defaults(sb: Sandbox) -> None:
    """A pipe's writer ends when nobody reads: SIGPIPE is not ignored."""
    assert sb.exec("yes | head -n 1; echo ${PIPESTATUS[0]}").stdout == "y\n141\n"
