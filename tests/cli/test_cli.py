"""The `belljar` command, as a person types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path


def belljar(*args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "belljar.cli", *args],
        input=stdin,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_run() -> None:
    done = belljar("run", "echo hi; cat; echo err >&2; exit 3", stdin="in\n")
    assert (done.stdout, done.stderr, done.returncode) == ("hi\nin\n", "err\n", 3)


def test_run_script_with_arguments(tmp_path: Path) -> None:
    script = tmp_path / "s.sh"
    script.write_text("echo $0 $1 $#\n")
    assert belljar("run", str(script), "a", "b").stdout == "/tmp/script a 2\n"


def test_run_json() -> None:
    result = json.loads(belljar("run", "--json", "--env", "X=1", "echo $X").stdout)
    assert (result["stdout"], result["exit_code"], result["limit"]) == ("1\n", 0, None)


def test_timeout() -> None:
    done = belljar("run", "--timeout", "0.2", "sleep 10")
    assert (done.returncode, done.stderr) == (124, "belljar: stopped: limit reached: wall_seconds\n")


def test_usage_errors() -> None:
    assert "NAME=VALUE" in belljar("run", "--env", "bad", "true").stderr
    assert belljar("run", "--tier", "microvm", "true").returncode == 125
    assert "needs a terminal" in belljar("shell").stderr


def test_doctor() -> None:
    report = json.loads(belljar("doctor", "--json").stdout)
    assert report["works"]
    assert report["layers"]["seccomp"]
    assert "Walls around a sandbox" in belljar("doctor").stdout


def test_commands() -> None:
    listed = {line.split()[0] for line in belljar("commands").stdout.splitlines()}
    assert {"cat", "sort", "bash"} <= listed
