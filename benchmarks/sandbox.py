"""What a sandbox costs beside `subprocess.run(["bash", "-c", ...])`, in the same run: `python benchmarks/sandbox.py`.

Each round measures ours and bash's turn by turn, so that a busy machine slows both; the lower quartile of
the rounds counts for both: what others on the machine do falls mostly on the slower half.
`--json` prints the figures for machines. A ratio is ours to bash's time for `echo hi`.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from belljar import Limits, Sandbox

MB = 1_000_000


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the table. A ratio or an amount should be at most its target, a rate at least."""

    name: str
    ours: float
    unit: str
    bash: float | None
    ratio: float | None
    target: str
    met: bool


def seconds(act: Callable[[], object]) -> float:
    began = time.perf_counter()
    act()
    return time.perf_counter() - began


def typical(times: Sequence[float]) -> float:
    return sorted(times)[len(times) // 4]


def bash_echo() -> None:
    subprocess.run(["bash", "-c", "echo hi"], capture_output=True, check=True)


def create_echo_close() -> None:
    with Sandbox() as sandbox:
        assert sandbox.exec("echo hi").stdout == "hi\n"


def against_bash(name: str, act: Callable[[], object], rounds: int, limit: float) -> Figure:
    """Turn by turn with bash; `act` does the thing once."""
    for _ in range(3):
        act()
    pairs = [(seconds(act), seconds(bash_echo)) for _ in range(rounds)]
    ours, bash = (typical(column) for column in zip(*pairs, strict=True))
    return Figure(name, ours * 1e3, "ms", bash * 1e3, ours / bash, f"<= {limit}x", ours / bash <= limit)


def burst(count: int, rounds: int) -> Figure:
    """Creating many at once, each with its first answer; per sandbox."""
    pairs: list[tuple[float, float]] = []
    for _ in range(rounds):
        made: list[Sandbox] = []
        ours = seconds(lambda made=made: made.extend(Sandbox() for _ in range(count)))  # type: ignore[misc]
        ours += seconds(lambda made=made: [s.exec("echo hi") for s in made])  # type: ignore[misc]
        for sandbox in made:
            sandbox.close()
        pairs.append((ours / count, typical([seconds(bash_echo) for _ in range(20)])))
    ours, bash = (typical(column) for column in zip(*pairs, strict=True))
    return Figure(
        f"burst of {count} creates, each", ours * 1e3, "ms", bash * 1e3, ours / bash, "<= 2x", ours / bash <= 2
    )


def own_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(("Private_Clean:", "Private_Dirty:")))


def idle_memory(count: int) -> Figure:
    """USS of a sandbox that ran one command and waits for the next."""
    made = [Sandbox() for _ in range(count)]
    for sandbox in made:
        sandbox.exec("echo hi")
    used = statistics.median(own_bytes(sandbox._link.pid) for sandbox in made) / MB
    for sandbox in made:
        sandbox.close()
    return Figure("memory per idle sandbox (USS)", used, "MB", None, None, "<= 2.5 MB", used <= 2.5)


def file_rate(sandbox: Sandbox, rounds: int) -> Figure:
    """1 MB written and read back; real files for comparison."""
    data = os.urandom(MB)
    path = Path("/tmp") / f"belljar-bench-{os.getpid()}"

    def ours() -> None:
        sandbox.files.write("f", data)
        assert len(sandbox.files.read_bytes("f")) == MB

    def real() -> None:
        subprocess.run(["bash", "-c", f"cat > {path}; cat {path}"], input=data, capture_output=True, check=True)

    ours()
    pairs = [(seconds(ours), seconds(real)) for _ in range(rounds)]
    path.unlink()
    rate, bash = (2 / typical(column) for column in zip(*pairs, strict=True))
    return Figure("file write + read of 1 MB", rate, "MB/s", bash, rate / bash, ">= 300 MB/s", rate >= 300)


def stream_rate(sandbox: Sandbox, rounds: int) -> Figure:
    command = "head -c 50000000 /dev/zero"

    def ours() -> None:
        got = 0

        def count(data: bytes) -> None:
            nonlocal got
            got += len(data)

        sandbox.exec(command, on_stdout=count)
        assert got == 50 * MB

    def real() -> None:
        subprocess.run(["bash", "-c", command], capture_output=True, check=True)

    pairs = [(seconds(ours), seconds(real)) for _ in range(rounds)]
    rate, bash = (50 / typical(column) for column in zip(*pairs, strict=True))
    return Figure("streaming stdout", rate, "MB/s", bash, rate / bash, ">= 150 MB/s", rate >= 150)


def measure(rounds: int) -> list[Figure]:
    with Sandbox():
        time.sleep(0.2)  # the zygote is up and has its spares
    figures = [
        against_bash("create + echo hi + close, warm", create_echo_close, rounds, 0.7),
        burst(200, max(1, rounds // 20)),
    ]
    with Sandbox(limits=Limits(output_bytes=1 << 40)) as sandbox:
        figures.append(
            against_bash("exec('echo hi') in a live sandbox", lambda: sandbox.exec("echo hi"), rounds * 2, 0.08)
        )
        figures.append(idle_memory(10))
        figures.append(file_rate(sandbox, rounds))
        figures.append(stream_rate(sandbox, max(3, rounds // 10)))
    return figures


def table(figures: list[Figure]) -> str:
    rows = [("", "belljar", "bash", "ratio", "target", "")]
    for f in figures:
        bash = "" if f.bash is None else f"{f.bash:.2f} {f.unit}"
        ratio = "" if f.ratio is None else f"{f.ratio:.3f}x"
        rows.append((f.name, f"{f.ours:.2f} {f.unit}", bash, ratio, f.target, "met" if f.met else "missed"))
    widths = [max(len(row[i]) for row in rows) for i in range(6)]
    return "\n".join(
        "  ".join(
            cell.ljust(w) if i in (0, 5) else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-n", "--rounds", type=int, default=60)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    arguments = parser.parse_args()
    figures = measure(arguments.rounds)
    if arguments.json:
        json.dump([asdict(figure) for figure in figures], sys.stdout, indent=1)
        print()
    else:
        print(table(figures))


if __name__ == "__main__":
    main()
