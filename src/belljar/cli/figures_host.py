"""Measures what a sandbox costs beside `subprocess.run(["bash", "-c", ...])`, in the same run.

Each round measures ours and bash's by turns, so that a busy machine slows both; the lower quartile of
the rounds counts for both: what others on the machine do falls mostly on the slower half. A ratio is ours to bash's
time for `echo hi`.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from belljar import Limits, Sandbox
from belljar.cli.shared_host import address, identity
from belljar.cli.start_host import may_share
from belljar.owner.launch_host import archive_path
from belljar.worker.archive_host import Archive

MB = 1_000_000
_READY_SECONDS = 30.0


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


class NoBash(RuntimeError):
    """There is no bash to compare with."""


@cache
def bash() -> str:
    found = shutil.which("bash")
    if found is None:
        raise NoBash("bench compares with the real bash, and there is none on the PATH")
    return found


def run_bash(script: str, data: bytes = b"") -> None:
    subprocess.run([bash(), "-c", script], input=data, capture_output=True, check=True)  # noqa: S603 - ours


def bash_echo() -> None:
    run_bash("echo hi")


def create_echo_close() -> None:
    with Sandbox() as sandbox:
        assert sandbox.exec("echo hi").stdout == "hi\n"


def against_bash(name: str, act: Callable[[], object], rounds: int, limit: float) -> Figure:
    """Measure `act` and bash by turns."""
    for _ in range(3):
        act()
    pairs = [(seconds(act), seconds(bash_echo)) for _ in range(rounds)]
    ours, real = (typical(column) for column in zip(*pairs, strict=True))
    return Figure(name, ours * 1e3, "ms", real * 1e3, ours / real, f"<= {limit}x", ours / real <= limit)


def in_a_row(name: str, act: Callable[[], object], rounds: int, limit: float) -> Figure:
    """Measure rows of each, as programs run commands, so that neither finds the caches as the other left them."""
    ours: list[float] = []
    real: list[float] = []
    for _ in range(rounds):
        ours += [seconds(act) for _ in range(20)]
        real += [seconds(bash_echo) for _ in range(5)]
    ratio = typical(ours) / typical(real)
    return Figure(name, typical(ours) * 1e3, "ms", typical(real) * 1e3, ratio, f"<= {limit}x", ratio <= limit)


def branch_echo(origin: Sandbox) -> None:
    with origin.fork() as branch:
        assert branch.exec("echo hi").stdout == "hi\n"


def burst(count: int, rounds: int) -> Figure:
    """Measure creating many at once, until each is sealed and says so; per sandbox."""
    pairs: list[tuple[float, float]] = []
    for _ in range(rounds):
        made: list[Sandbox] = []
        ours = seconds(lambda made=made: made.extend(Sandbox() for _ in range(count)))  # type: ignore[misc]
        ours += seconds(lambda made=made: [s.info for s in made])  # type: ignore[misc]
        for sandbox in made:
            sandbox.close()
        pairs.append((ours / count, typical([seconds(bash_echo) for _ in range(20)])))
    ours, real = (typical(column) for column in zip(*pairs, strict=True))
    return Figure(
        f"burst of {count} creates, each", ours * 1e3, "ms", real * 1e3, ours / real, "<= 4x", ours / real <= 4
    )


def own_bytes(pid: int) -> int:
    with open(f"/proc/{pid}/smaps_rollup") as lines:
        private = [line for line in lines if line.startswith(("Private_Clean:", "Private_Dirty:"))]
    return sum(int(line.split()[1]) << 10 for line in private)


def idle_memory(count: int) -> Figure:
    """USS of a sandbox that ran one command and waits for the next."""
    made = [Sandbox() for _ in range(count)]
    for sandbox in made:
        sandbox.exec("echo hi")
    used = statistics.median(own_bytes(sandbox._link.pid) for sandbox in made) / MB
    for sandbox in made:
        sandbox.close()
    return Figure("memory per idle sandbox (USS)", used, "MB", None, None, "<= 4 MB", used <= 4)


def file_rate(sandbox: Sandbox, rounds: int) -> Figure:
    """Measure writing and reading back 1 MB; real files for comparison."""
    data = os.urandom(MB)

    def ours() -> None:
        sandbox.files.write("f", data)
        assert len(sandbox.files.read_bytes("f")) == MB

    ours()
    with tempfile.NamedTemporaryFile() as file:
        script = f"cat > {file.name}; cat {file.name}"
        pairs = [(seconds(ours), seconds(lambda: run_bash(script, data))) for _ in range(rounds)]
    rate, real = (2 / typical(column) for column in zip(*pairs, strict=True))
    return Figure("file write + read of 1 MB", rate, "MB/s", real, rate / real, ">= 300 MB/s", rate >= 300)


def stream_rate(sandbox: Sandbox, rounds: int) -> Figure:
    command = "head -c 50000000 /dev/zero"

    def ours() -> None:
        got = 0

        def count(data: bytes) -> None:
            nonlocal got
            got += len(data)

        sandbox.exec(command, on_stdout=count)
        assert got == 50 * MB

    pairs = [(seconds(ours), seconds(lambda: run_bash(command))) for _ in range(rounds)]
    rate, real = (50 / typical(column) for column in zip(*pairs, strict=True))
    return Figure("streaming stdout", rate, "MB/s", real, rate / real, ">= 150 MB/s", rate >= 150)


def run_command(name: str, options: list[str], ready: Callable[[], bool], limit_ms: float, rounds: int) -> Figure:
    """`belljar run` as a person types it; the first run leaves behind what the others start from."""
    command = [sys.executable, "-m", "belljar.cli", "run", *options, "echo hi"]

    def ours() -> None:
        subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True)  # noqa: S603 - ours

    ours()
    until = time.monotonic() + _READY_SECONDS
    while not ready() and time.monotonic() < until:
        time.sleep(0.1)
    pairs = [(seconds(ours), seconds(bash_echo)) for _ in range(rounds)]
    ours_ms, real_ms = (typical(column) * 1e3 for column in zip(*pairs, strict=True))
    return Figure(name, ours_ms, "ms", real_ms, ours_ms / real_ms, f"< {limit_ms:g} ms", ours_ms < limit_ms)


def warm_run(rounds: int) -> Figure:
    """Measure a run from the zygote that one user's runs share."""
    path = address(identity())
    return run_command("belljar run 'echo hi', warm", [], lambda: path is None or os.path.exists(path), 100, rounds)


def cold_run(rounds: int) -> Figure:
    """Measure a run without a zygote: two interpreters started, a sandbox sealed, a command run."""
    recorded = archive_path()
    options = ["--no-daemon"]
    return run_command("belljar run 'echo hi', cold", options, lambda: Archive.open(recorded) is not None, 200, rounds)


def measure(rounds: int) -> Iterator[Figure]:
    """Yield the figures as they are ready. NoBash."""
    with Sandbox():
        time.sleep(0.2)  # the zygote is up and has its spares
    yield against_bash("create + echo hi + close, warm", create_echo_close, rounds, 1)
    yield burst(200, max(1, rounds // 20))
    with Sandbox() as origin:
        origin.exec("mkdir d; for i in {1..1000}; do echo $i > d/f$i; done")
        yield against_bash("fork() with 1,000 files + echo hi", lambda: branch_echo(origin), rounds, 3)
    with Sandbox(limits=Limits(output_bytes=1 << 40)) as sandbox:
        yield against_bash("exec('echo hi'), one by one", lambda: sandbox.exec("echo hi"), rounds, 0.25)
        yield in_a_row("exec('echo hi'), in rows", lambda: sandbox.exec("echo hi"), rounds, 0.12)
        if os.geteuid() == 0:  # a sealed process's memory is nobody else's to look at
            yield idle_memory(10)
        yield file_rate(sandbox, rounds)
        yield stream_rate(sandbox, max(3, rounds // 10))
    if may_share():
        yield warm_run(max(3, rounds // 6))
    yield cold_run(max(3, rounds // 6))
