"""The `belljar` command, as a person types it."""

from __future__ import annotations

import gc
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from belljar.cli import __main__ as cli
from tests.cli.conftest import Belljar


def test_run(belljar: Belljar) -> None:
    done = belljar("run", "echo hi; cat; echo err >&2; exit 3", stdin="in\n")
    assert (done.stdout, done.stderr, done.returncode) == ("hi\nin\n", "err\n", 3)


def test_run_script_with_arguments(belljar: Belljar, tmp_path: Path) -> None:
    script = tmp_path / "s.sh"
    script.write_text("echo $0 $1 $#\n")
    assert belljar("run", str(script), "a", "b").stdout == "/tmp/s.sh a 2\n"


def test_run_has_what_utilities_need_of_installed_packages(belljar: Belljar) -> None:
    done = belljar("run", "git init -q r && pip --version && echo x | zstd | zstd -d && sqlite3 :memory: 'select 6*7'")
    assert (done.stdout.splitlines()[1:], done.stderr) == (["x", "42"], "")


def test_arguments_of_a_word_are_the_commands(belljar: Belljar) -> None:
    assert belljar("run", "echo", "a  b", "c").stdout == "a  b c\n"
    assert belljar("run", "--", "ls", "-d", "/tmp").stdout == "/tmp\n"
    assert belljar("run", "echo $2", "a", "b").stdout == "b\n"
    assert belljar("run", "nosuch", "a").stderr == "bash: line 1: nosuch: command not found\n"
    told = belljar("run", "ls", "-la")
    assert (told.returncode, "comes after --" in told.stderr) == (2, True)


def test_layers_can_be_required(belljar: Belljar) -> None:
    assert belljar("run", "--require", "no_new_privs", "echo held").stdout == "held\n"
    told = belljar("run", "--require", "no_such", "echo held")
    assert (told.returncode, "no layer called no_such" in told.stderr) == (125, True)


def test_run_json(belljar: Belljar) -> None:
    result = json.loads(belljar("run", "--json", "--env", "X=1", "echo $X").stdout)
    assert (result["stdout"], result["exit_code"], result["limit"]) == ("1\n", 0, None)


def test_timeout(belljar: Belljar) -> None:
    done = belljar("run", "--timeout", "0.2", "sleep 10")
    assert (done.returncode, done.stderr) == (
        124,
        "belljar: timed out after 0.2 s (limit wall_seconds) and was stopped\n",
    )


@pytest.mark.parametrize("words", [["run", "--nonsense"], ["run", "--no-daemon", "true"], ["run", "--help"]])
def test_the_collector_works_when_a_command_is_over(words: list[str]) -> None:
    with suppress(SystemExit):
        cli.main(words)
    assert gc.isenabled()


def test_usage_errors(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(cli, "begin", lambda _arguments: None)
    for args, message in {
        ("run",): "COMMAND|SCRIPT",
        ("run", "--env", "bad", "true"): "--env 'bad': expected NAME=VALUE",
        ("run", "--memory", "2X", "true"): "--memory '2X': expected a size",
        ("run", "--timeout", "0", "true"): "--timeout 0: must be more than 0",
        ("run", "--cwd", "x", "true"): "--cwd 'x': must be an absolute path",
        ("run", "--mount", "x", "true"): "--mount 'x': expected SOURCE:PATH",
        ("run", "--mount", "/no/such:/x", "true"): "/no/such: no such directory or archive on this machine",
        ("run", "--mount", "/tmp:rel:rw", "true"): "with an absolute PATH",
        ("run", "--file", "/no/such", "true"): "/no/such: No such file or directory",
        ("run", "--allow-host", "bad host!", "true"): "--allow-host: ",
        ("run", "--audit", "/no/such/file", "true"): "--audit '/no/such/file': No such file or directory",
        ("run", "--user", "Bad User", "true"): "user 'Bad User' is no user name",
        ("shell",): "needs a terminal",
    }.items():
        with pytest.raises(SystemExit) as ended:
            cli.main(args)
        assert (ended.value.code, message in capsys.readouterr().err) == (2, True), args


def test_doctor(belljar: Belljar) -> None:
    report = json.loads(belljar("doctor", "--json").stdout)
    assert report["works"]
    assert report["layers"]["seccomp"]
    assert set(report["engines"]) == {"python", "js", "quickjs"}
    assert report["javascript"].startswith(("v8", "quickjs"))
    assert all(engine["ready"] or engine["advice"] for engine in report["engines"].values())
    shown = belljar("doctor").stdout
    for heading in ("Tiers", "Walls around a sandbox", "Engines", "Packages"):
        assert f"\n{heading}\n" in shown


def test_commands(belljar: Belljar) -> None:
    listed = {line.split()[0] for line in belljar("commands").stdout.splitlines()}
    assert {"cat", "sort", "bash"} <= listed


def test_sandbox_options(belljar: Belljar, tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "a").write_text("one\n")
    (tmp_path / "in.txt").write_text("given\n")
    done = belljar(
        "run",
        *("--mount", "repo:/ro", "--mount", "repo:/rw:rw", "--mount", "repo:/over:overlay"),
        *("--file", "in.txt", "--file", "in.txt:/tmp/x", "--cwd", "/tmp/here", "--user", "alice", "--hostname", "jar"),
        "id -un; hostname; pwd; cat in.txt /tmp/x; echo two > /ro/a; echo two > /over/a; cat /over/a /ro/a; "
        "echo new > /rw/b",
    )
    assert done.stdout == "alice\njar\n/tmp/here\ngiven\ngiven\ntwo\none\n"
    assert done.stderr == "bash: line 1: /ro/a: Read-only file system\n"
    assert (tmp_path / "repo" / "a").read_text() == "one\n"
    assert (tmp_path / "repo" / "b").read_text() == "new\n"


def test_changes_of_an_overlay_as_a_diff(belljar: Belljar, tmp_path: Path) -> None:
    (tmp_path / "repo").mkdir()
    (tmp_path / "repo" / "a").write_text("one\n")
    overlay = ("--mount", "repo:/ro", "--mount", "repo:/over:overlay")
    done = belljar("run", *overlay, "--diff", "out.diff", "echo two >> /over/a; exit 3")
    assert done.returncode == 3
    header = "diff --git a/a b/a\n--- a/a\n+++ b/a\n"
    assert (tmp_path / "out.diff").read_text() == header + "@@ -1 +1,2 @@\n one\n+two\n"
    assert (tmp_path / "repo" / "a").read_text() == "one\n"
    refused = belljar("run", "--mount", "repo:/ro", "--diff", "out.diff", "true")
    assert refused.returncode == 2
    assert "--diff: there is no --mount" in refused.stderr


def test_the_network_is_closed_and_recorded(belljar: Belljar, tmp_path: Path) -> None:
    command = ("curl -sS --max-time 5 http://nowhere.example/ || echo refused",)
    assert belljar("run", *command).stdout == "refused\n"
    belljar("run", "--audit", "net.jsonl", *command)
    events = [json.loads(line) for line in (tmp_path / "net.jsonl").read_text().splitlines()]
    assert "nowhere.example" in json.dumps(events)


def test_scripts_choose_their_interpreter(belljar: Belljar, tmp_path: Path) -> None:
    (tmp_path / "plain.sh").write_text("echo bash $BASH_VERSION\n")
    (tmp_path / "awk").write_text('#!/usr/bin/awk -f\nBEGIN { print "awk", ARGV[1] }\n')
    (tmp_path / "ls").write_text("echo not me\n")
    assert belljar("run", "plain.sh").stdout.startswith("bash 5.2")
    assert belljar("run", "./awk", "x").stdout == "awk x\n"
    assert belljar("run", "ls").stdout == ""


def test_input_is_passed_as_it_comes(home: dict[str, str]) -> None:
    """No waiting for its end: the writer here never closes, and writes more than fits."""
    command = [sys.executable, "-m", "belljar.cli", "run", "head -c 3000000 | wc -c; read -r line; echo got $line"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=home) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"x" * 3_000_000 + b"one\ntwo\n")
        process.stdin.flush()
        assert process.stdout.read() == b"3000000\ngot one\n"
        assert process.wait(240) == 0


def test_input_that_nobody_reads(home: dict[str, str]) -> None:
    endless = subprocess.Popen(["yes"], stdout=subprocess.PIPE)
    command = [sys.executable, "-m", "belljar.cli", "run", "--json", "sleep 0.3; echo done"]
    done = subprocess.run(command, stdin=endless.stdout, capture_output=True, env=home, check=True, timeout=240)
    endless.kill()
    endless.communicate()
    assert json.loads(done.stdout)["stdout"] == "done\n"


def test_a_reader_that_has_seen_enough(home: dict[str, str]) -> None:
    command = [sys.executable, "-m", "belljar.cli", "run", "yes"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=home
    ) as p:
        assert p.stdout is not None
        assert p.stderr is not None
        assert p.stdout.readline() == b"y\n"
        p.stdout.close()
        assert (p.stderr.read(), p.wait(240)) == (b"", 141)


def test_little_is_loaded() -> None:
    """A run waits for every module that is imported on the way to its sandbox."""
    code = "import sys, belljar.cli.run_host, belljar.api.sandbox; print(*sys.modules)"
    loaded = set(subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True).stdout.split())
    heavy = {"asyncio", "ssl", "tarfile", "zipfile", "pathlib", "logging", "sqlite3", "ctypes", "greenlet", "re2"}
    heavy |= {"belljar.net.policy", "belljar.kernel.process", "belljar.shell.nodes", "belljar.api.async_sandbox"}
    assert "belljar.api.sandbox" in loaded
    assert not loaded & heavy


def test_next_to_nothing_is_loaded_before_the_worker_is_started() -> None:
    """It gets ready while the rest is loaded; what comes before is waited for twice."""
    source = str(Path(cli.__file__).parents[2])
    code = f"import sys; sys.path.append({source!r}); import belljar.cli.start_host; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, timeout=240)
    loaded = set(done.stdout.split())
    assert "belljar.cli.start_host" in loaded, done.stderr
    assert not loaded & {"typing", "re", "enum", "subprocess", "socket", "contextlib", "threading", "argparse"}


@pytest.mark.skipif(sys.platform == "win32", reason="there a program's streams are not numbers")
@pytest.mark.parametrize(("closed", "output"), [("<&-", "hi\n"), (">&-", ""), ("<&- >&- 2>&-", "")])
def test_closed_streams_are_empty_ones(home: dict[str, str], closed: str, output: str) -> None:
    """What is opened next would have their numbers: a guest could read what its owner is told."""
    command = [sys.executable, "-m", "belljar.cli", "run", "echo hi; cat"]
    done = subprocess.run(
        ["sh", "-c", f'"$@" {closed}', "sh", *command], env=home, stdout=subprocess.PIPE, text=True, timeout=240
    )
    assert (done.stdout, done.returncode) == (output, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full is Linux's")
def test_output_that_can_not_be_written(home: dict[str, str]) -> None:
    command = [sys.executable, "-m", "belljar.cli", "run", "echo hi"]
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            command, env=home, stdin=subprocess.DEVNULL, stdout=full, stderr=subprocess.PIPE, timeout=240
        )
    assert (done.stderr, done.returncode) == (b"belljar: can't write the output: No space left on device\n", 1)


@pytest.mark.slow
def test_bench(belljar: Belljar) -> None:
    figures = json.loads(belljar("bench", "--rounds", "1", "--json").stdout)
    assert {"name", "ours", "unit", "bash", "ratio", "target", "met"} == set(figures[0])
    assert all(figure["ours"] > 0 for figure in figures)
    names = [figure["name"] for figure in figures]
    assert names[-1] == "belljar run 'echo hi', cold"
    assert ("memory per idle sandbox (USS)" in names) is (os.geteuid() == 0)


WRONG: dict[tuple[str, ...], str] = {
    (): "COMMAND",
    ("nope",): "'nope'",
    ("--bogus",): "no such option: --bogus",
    ("run", "--bogus", "true"): "no such option: --bogus",
    ("run", "true", "--bogus"): "comes after --",
    ("run", "--timeout", "x", "true"): "'x' is no number of seconds",
    ("run", "--timeout", "-1", "true"): "--timeout -1",
    ("run", "--timeout", "nan", "true"): "--timeout nan",
    ("run", "--timeout", "inf", "true"): "--timeout inf",
    ("run", "--timeout", "1e30", "true"): "--timeout 1e+30",
    ("run", "--memory", "x", "true"): "--memory 'x'",
    ("run", "--memory", "999999999999G", "true"): "--memory 999999999999G",
    ("run", "--mount", "d:/", "true"): "can't mount at '/'",
    ("run", "--mount", "d:/x:rwx", "true"): "--mount 'd:/x:rwx'",
    ("run", "--mount", "file:/x:rw", "true"): "file is a file",
    ("run", "--mount", "d:/x", "--mount", "d:/x", "true"): "twice",
    ("run", "--mount", "file:/x", "true"): "can't mount the archive",
    ("run", "--file", "d", "true"): "Is a directory",
    ("run", "--file", "file:/", "true"): "/: Is a directory",
    ("run", "--env", "=x", "true"): "--env '=x'",
    ("run", "--user", "nobody", "true"): "nobody",
    ("run", "--hostname", "a b", "true"): "host name",
    ("run", "--tier", "nope", "true"): "no tier 'nope'",
    ("run", "--require", "nope", "true"): "nope",
    ("run", "--allow-host", "", "true"): "--allow-host",
    ("run", "--audit", "d", "true"): "--audit 'd': Is a directory",
    ("run", "--node-modules", "d", "true"): "npm install",
    ("run", "nothere.py"): "nothere.py: no such file on this machine",
    ("run", "./nothere.sh"): "./nothere.sh: no such file on this machine",
    ("shell", "extra"): "too many arguments: extra",
    ("shell", "--timeout", "3"): "no such option: --timeout",
    ("doctor", "extra"): "too many arguments: extra",
    ("commands", "--bogus"): "no such option: --bogus",
    ("prepare", "extra"): "'extra'",
    ("prepare", "native", "extra"): "too many arguments: extra",
    ("bench", "-n", "x"): "'x'",
    ("bench", "-n", "0"): "-n",
    ("mcp", "--config", "nothere.toml"): "nothere.toml",
    ("mcp", "--config", "file"): "--config file",
    ("mcp", "--http", "nope"): "HOST:PORT",
    ("mcp", "--most", "0"): "--most",
    ("wasm",): "ACTION",
    ("wasm", "build"): "DIR",
    ("wasm", "build", "nothere"): "nothere: no such directory",
    ("wasm", "build", "d"): "nothing to build",
}


@pytest.mark.parametrize("words", WRONG, ids=" ".join)
def test_a_mistake_costs_one_line(
    words: tuple[str, ...],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "d").mkdir()
    (tmp_path / "file").write_text("[x")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli, "begin", lambda _arguments: None)
    try:
        status: object = cli.main(words)
    except SystemExit as end:
        status = end.code
    told = capfd.readouterr().err
    assert status in (1, 2, 125), told
    assert WRONG[words] in told
    assert told.startswith("belljar")
    assert told.count("\n") == 1


def test_every_subcommand_is_described(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ("run", "shell", "doctor", "prepare", "bench", "commands", "mcp", "wasm", "wasm build"):
        with pytest.raises(SystemExit):
            cli.main([*words.split(), "--help"])
        usage, _, rest = capsys.readouterr().out.partition("\n\n")
        assert usage.startswith(f"usage: belljar {words} ")
        assert not rest.startswith(("options:", "positional arguments:")), words


def test_commands_are_grouped_by_purpose(belljar: Belljar) -> None:
    listed = belljar("commands").stdout
    titles = [line for line in listed.splitlines() if not line.startswith(" ")]
    assert titles[0] == "Languages and packages:"
    assert len(titles) > 8
    names = [line.split()[0] for line in listed.splitlines() if line.startswith(" ")]
    assert len(names) == len(set(names)) > 200
    assert listed.index("\nNetwork:\n") < listed.index("\n  curl ") < listed.index("\nProcesses and jobs:\n")


@pytest.mark.skipif(sys.platform != "linux", reason="looks for the child in /proc")
def test_preparation_ends_by_an_interrupt(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "belljar.cli", "prepare"]
    environment = {**os.environ, "BELLJAR_CACHE": str(tmp_path)}
    preparing = subprocess.Popen(
        words, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True, text=True
    )
    children = Path(f"/proc/{preparing.pid}/task/{preparing.pid}/children")
    while preparing.poll() is None and not children.read_text().split():
        time.sleep(0.01)
    os.killpg(preparing.pid, signal.SIGINT)
    said, _ = preparing.communicate(timeout=240)
    assert preparing.returncode == 130
    assert said in ("", "modules: ready\n")  # what was ready before the interrupt came
