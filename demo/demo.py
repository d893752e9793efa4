"""The main job, end to end: an agent's commands in a sandbox, and what it can't do. Run with `make demo`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from belljar import Limits, Mount, Sandbox

BOLD, DIM, CYAN, GREEN, END = (
    ("\x1b[1m", "\x1b[2m", "\x1b[36m", "\x1b[32m", "\x1b[0m") if sys.stdout.isatty() else [""] * 5
)


class Preparation:
    """`belljar prepare` in the background: it compiles the guest's Python and JavaScript, once per machine."""

    def __init__(self) -> None:
        self._log = tempfile.TemporaryFile("w+")  # noqa: SIM115 - as long as the process that writes it
        self._began = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "belljar.cli", "prepare"],
            stdin=subprocess.DEVNULL,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
        )

    def wait_for(self, engine: str) -> None:
        """Wait until an engine is ready, with a line that says so."""
        ready = f"{engine}: ready"
        shown = sys.stdout.isatty()
        if not self._says(ready):
            print(f"  {DIM}{engine} is compiled for this machine, once; begun in the background at the start{END}")
        while not self._says(ready):
            if self._process.poll() is not None and not self._says(ready):
                raise SystemExit(f"demo: {engine} could not be prepared:\n{self._text()}")
            if shown:
                print(f"\r  {DIM}{time.monotonic() - self._began:.0f} s{END}", end="", flush=True)
            time.sleep(0.2)
        if shown:
            print("\r", end="")

    def running(self) -> bool:
        return self._process.poll() is None

    def stop(self) -> None:
        if self.running():
            os.killpg(self._process.pid, signal.SIGTERM)
            self._process.wait()

    def _text(self) -> str:
        self._log.seek(0)
        return self._log.read()

    def _says(self, line: str) -> bool:
        return line in self._text()


def title(text: str) -> None:
    print(f"\n{BOLD}{text}{END}")


def show(sandbox: Sandbox, command: str, **options: float | Limits) -> None:
    """Type a command, show what the sandbox says."""
    print(f"  {CYAN}${END} {command}")
    result = sandbox.exec(command, **options)  # type: ignore[arg-type]
    for line in (result.stdout + result.stderr).splitlines()[:12]:
        print(f"    {line}")
    notes = [f"{result.duration_ms:.1f} ms"]
    if result.exit_code:
        notes.append(f"exit {result.exit_code}")
    if result.limit:
        notes.append(f"stopped by limit: {result.limit}")
    print(f"    {DIM}{', '.join(notes)}{END}")


def lookup(city: str, days: int = 1) -> list[str]:
    """The weather, from the host's own program."""
    return [f"{city}: day {day}, sunny" for day in range(1, days + 1)]


def main() -> None:
    behind = Preparation()
    try:
        with tempfile.TemporaryDirectory() as directory:
            work(Path(directory), behind)
        title("8. What it costs here, beside bash")
        speed()
    except BaseException:
        behind.stop()
        raise
    if behind.running():
        print(f"\n  {DIM}`belljar prepare` goes on in the background for the engines that were not shown.{END}")
    print("\n  Next: `.venv/bin/belljar shell` is a terminal in a fresh sandbox; docs/index.md has everything else.")


def work(directory: Path, behind: Preparation) -> None:
    project = directory / "project"
    project.mkdir()
    (project / "sales.csv").write_text("city,amount\nOslo,120\nRome,80\nOslo,40\nRome,15\nKyoto,200\n")
    mounts = {"/project": Mount.overlay(Mount.host(str(project)))}
    began = time.perf_counter()
    with Sandbox(mounts=mounts, cwd="/project", tools={"weather": lookup}) as sandbox:
        title("1. A sandbox with a copy-on-write view of a project")
        print(
            f"  made in {(time.perf_counter() - began) * 1e3:.0f} ms; the first also starts the process they fork from"
        )
        print(f"  walls that hold: {GREEN}{', '.join(sandbox.info.isolation)}{END}")

        title("2. The agent works: bash, pipelines, and a function of yours as a command")
        show(sandbox, "tail -n +2 sales.csv | sort -t, -k1,1 -k2,2nr | head -3")
        show(
            sandbox,
            "declare -A sum; while IFS=, read -r city n; do ((sum[$city] += n)); done < <(tail -n +2 sales.csv);"
            ' for c in "${!sum[@]}"; do printf \'%-6s %4d\\n\' "$c" "${sum[$c]}"; done | sort',
        )
        show(sandbox, "weather Oslo --days 2 | tr -d '[]\"'")

        title("3. What it can't do")
        show(sandbox, "cat /etc/shadow; cat ../../../../../../home/*/.ssh/id_rsa")
        show(sandbox, "curl -sS https://example.com")
        show(sandbox, "while :; do :; done", timeout=0.5)
        show(sandbox, ":(){ :|:& };:", limits=Limits(processes=64))
        show(sandbox, "yes | head -c 100000000 > /dev/stdout", limits=Limits(output_bytes=30))
        show(sandbox, "echo still here")

        title("4. What it changed, as a diff; your files are untouched until you apply it")
        show(sandbox, "sed -i s/Oslo/Bergen/ sales.csv; echo done > note")
        print(indent(sandbox.changes("/project").diff()))
        print(f"  and on the host: {GREEN}{', '.join(p.name for p in project.iterdir())}{END}, as it was")

        title("5. Python with numpy and pandas")
        behind.wait_for("python")
        show(sandbox, "python3 -c 'import numpy as np; a = np.arange(6).reshape(2, 3); print(a @ a.T)'")
        show(sandbox, 'python3 -c \'import pandas as pd; print(pd.read_csv("sales.csv").groupby("city").sum())\'')

        title("6. JavaScript")
        behind.wait_for("js")
        show(sandbox, "node -e 'console.log(process.version, [3, 1, 2].sort().map((n) => n ** 2))'")

        title("7. Branches of everything, live: files, processes, variables")
        sandbox.python.run("total = 440")
        timed(sandbox, lambda: sandbox.fork(3))


def timed(sandbox: Sandbox, fork: Callable[[], list[Sandbox]]) -> None:
    began = time.perf_counter()
    branches = fork()
    print(f"  sandbox.fork(3) took {(time.perf_counter() - began) * 1e3:.0f} ms")
    for number, branch in enumerate(branches):
        branch.exec(f"echo attempt {number} > note")
        value = branch.python.run(f"total * {number}").value
        print(f"    branch {number}: total * {number} = {value}, note: {branch.files.read('note').strip()}")
        branch.close()
    print(f"    origin:   note: {sandbox.files.read('note').strip()}")


def indent(text: str) -> str:
    return "".join(f"    {line}\n" for line in text.splitlines()).rstrip("\n")


def speed() -> None:
    rounds = 30
    started = time.perf_counter()
    for _ in range(rounds):
        subprocess.run(["bash", "-c", "echo hi"], capture_output=True, check=True)  # noqa: S607
    real = (time.perf_counter() - started) / rounds * 1e3
    started = time.perf_counter()
    for _ in range(rounds):
        with Sandbox() as sandbox:
            sandbox.exec("echo hi").check()
    fresh = (time.perf_counter() - started) / rounds * 1e3
    with Sandbox() as sandbox:
        sandbox.exec("true")
        started = time.perf_counter()
        for _ in range(rounds):
            sandbox.exec("echo hi").check()
        live = (time.perf_counter() - started) / rounds * 1e3
    print(f"  subprocess.run(['bash', '-c', 'echo hi'])   {real:6.2f} ms   no isolation at all")
    print(f"  a new sandbox, echo hi, close               {fresh:6.2f} ms   {fresh / real:.2f}x")
    print(f"  echo hi in a live sandbox                   {live:6.2f} ms   {live / real:.2f}x")


if __name__ == "__main__":
    main()
