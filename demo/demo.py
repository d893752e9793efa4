"""The main job, end to end: an agent's commands in a sandbox, and what it can't do. Run with `make demo`."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from belljar import Limits, Mount, Sandbox

BOLD, DIM, CYAN, GREEN, END = (
    ("\x1b[1m", "\x1b[2m", "\x1b[36m", "\x1b[32m", "\x1b[0m") if sys.stdout.isatty() else [""] * 5
)


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
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        project = Path(directory) / "project"
        project.mkdir()
        (project / "sales.csv").write_text("city,amount\nOslo,120\nRome,80\nOslo,40\nRome,15\nKyoto,200\n")
        mounts = {"/project": Mount.overlay(Mount.host(str(project)))}
        with Sandbox(mounts=mounts, cwd="/project", tools={"weather": lookup}) as sandbox:
            title("1. A sandbox with a copy-on-write view of a project")
            print(f"  made in {(time.perf_counter() - began) * 1e3:.0f} ms, the first one starts the zygote")
            print(f"  walls that hold: {GREEN}{', '.join(sandbox.info.isolation)}{END}")

            title("2. The agent works: real bash, real pipelines")
            show(sandbox, "tail -n +2 sales.csv | sort -t, -k1,1 -k2,2nr | head -3")
            show(
                sandbox,
                "declare -A sum; while IFS=, read -r city n; do ((sum[$city] += n)); done < <(tail -n +2 sales.csv);"
                ' for c in "${!sum[@]}"; do printf \'%-6s %4d\\n\' "$c" "${sum[$c]}"; done | sort',
            )
            show(sandbox, "weather Oslo --days 2 | tr -d '[]\"'")
            show(sandbox, "rm sales.csv; echo gone > note; cat /project/*")
            print(f"  and on the host: {GREEN}{', '.join(p.name for p in project.iterdir())}{END} is untouched")

            title("3. What it can't do")
            show(sandbox, "cat /etc/shadow; cat ../../../../../../home/*/.ssh/id_rsa")
            show(sandbox, "while :; do :; done", timeout=0.5)
            show(sandbox, ":(){ :|:& };:", limits=Limits(processes=64))
            show(sandbox, "yes | head -c 100000000 | wc -c", limits=Limits(output_bytes=1 << 20))
            show(sandbox, "echo still here")

    title("4. And it is fast")
    speed()
    print("\n  Next: `.venv/bin/belljar serve` serves sandboxes over HTTP, with a console for your browser.")


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
    print("\n  `belljar serve` gives the same sandboxes to other machines, with keys and quotas: docs/server.md")


if __name__ == "__main__":
    main()
