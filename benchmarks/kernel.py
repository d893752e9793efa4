"""How fast the virtual kernel is, beside the same through real Linux calls in the same run.

Usage: python benchmarks/kernel.py [--json] [--quick]

Each figure is the best of several rounds; the ratio is ours to Linux's (of throughput, more is better). The real files
are in /dev/shm, which is memory as ours is.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import shutil
import sys
import tempfile
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import asdict, dataclass

from belljar.abi.flags import O_CREAT, O_RDONLY, O_WRONLY
from belljar.abi.limits import Limits
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.fs.quota import Quota
from belljar.kernel.kernel import Kernel
from belljar.kernel.machine_host import host_machine
from belljar.kernel.process import Process

DEEP = "a/b/c/d/e/f/g/h"
ROUNDS = 5


@dataclass(frozen=True)
class Result:
    """One measurement; times are seconds per operation."""

    name: str
    ours: float
    real: float | None
    unit: str
    target: str
    met: bool | None

    @property
    def ratio(self) -> float | None:
        return self.ours / self.real if self.real else None


def new_kernel() -> Kernel:
    machine = host_machine()
    limits = Limits(processes=10_000, steps=10**12, cpu_seconds=10_000, wall_seconds=10_000)
    quota = Quota(limits.file_bytes, limits.files)
    kernel = Kernel(machine, MemoryServer(machine.clock.time_ns, quota), limits=limits, quota=quota)
    kernel.init.fs.mkdir("/tmp")
    return kernel


def inside(body: Callable[[Process], float]) -> float:
    """What a function measures when a process runs it."""
    kernel = new_kernel()
    found: list[float] = []

    def main(process: Process) -> int:
        found.append(body(process))
        return 0

    process = kernel.start(main, ["bench"])
    kernel.hub.run(lambda: process.status is not None)
    return found[0]


def best(call: Callable[[int], None], count: int) -> float:
    """Seconds per operation, in the quickest round."""
    rounds = []
    for _ in range(ROUNDS):
        gc.collect()
        start = time.perf_counter()
        call(count)
        rounds.append((time.perf_counter() - start) / count)
    return min(rounds)


# The operations, ours and Linux's.


def open_ours(path: str, count: int) -> float:
    def body(process: Process) -> float:
        process.fs.mkdir("/tmp/d")
        directory = "/tmp/d"
        for part in path.split("/")[:-1]:
            directory += "/" + part
            process.fs.mkdir(directory)
        full = f"/tmp/d/{path}"
        process.write_file(full, b"small\n")

        def call(times: int) -> None:
            for _ in range(times):
                fd = process.open(full)
                process.read(fd, 4096)
                process.close(fd)

        return best(call, count)

    return inside(body)


def open_real(top: str, path: str, count: int) -> float:
    full = f"{top}/{path}"
    os.makedirs(os.path.dirname(full), exist_ok=True)
    with open(full, "wb") as file:
        file.write(b"small\n")

    def call(times: int) -> None:
        for _ in range(times):
            fd = os.open(full, os.O_RDONLY)
            os.read(fd, 4096)
            os.close(fd)

    return best(call, count)


def walk_ours(count: int) -> float:
    def body(process: Process) -> float:
        directory = "/tmp"
        for part in DEEP.split("/"):
            directory += "/" + part
            process.fs.mkdir(directory)
        stat = process.fs.stat

        def call(times: int) -> None:
            for _ in range(times):
                stat(directory)

        return best(call, count)

    return inside(body)


def walk_real(top: str, count: int) -> float:
    full = f"{top}/walk/{DEEP}"
    os.makedirs(full)

    def call(times: int) -> None:
        for _ in range(times):
            os.stat(full)

    return best(call, count)


def directory_ours(entries: int) -> dict[str, float]:
    times: dict[str, float] = {}

    def body(process: Process) -> float:
        process.fs.mkdir("/tmp/many")
        start = time.perf_counter()
        for number in range(entries):
            process.close(process.open(f"/tmp/many/{number}", O_WRONLY | O_CREAT))
        times["create"] = time.perf_counter() - start
        start = time.perf_counter()
        listed = process.fs.readdir("/tmp/many")
        times["list"] = time.perf_counter() - start
        start = time.perf_counter()
        for entry in listed:
            process.fs.stat(f"/tmp/many/{entry.name}")
        times["stat"] = time.perf_counter() - start
        assert len(listed) == entries
        return 0.0

    inside(body)
    return times


def directory_real(top: str, entries: int) -> dict[str, float]:
    times: dict[str, float] = {}
    many = f"{top}/many"
    os.mkdir(many)
    start = time.perf_counter()
    for number in range(entries):
        os.close(os.open(f"{many}/{number}", os.O_WRONLY | os.O_CREAT))
    times["create"] = time.perf_counter() - start
    start = time.perf_counter()
    listed = list(os.scandir(many))
    times["list"] = time.perf_counter() - start
    start = time.perf_counter()
    for entry in listed:
        os.stat(f"{many}/{entry.name}")
    times["stat"] = time.perf_counter() - start
    return times


def pipe_ours(megabytes: int) -> float:
    chunk = bytes(1 << 16)

    def body(process: Process) -> float:
        def call(times: int) -> None:
            reader, writer = process.pipe()

            def produce(child: Process) -> int:
                child.close(reader)
                for _ in range(times * 16):
                    child.write(writer, chunk)
                return 0

            process.fork(produce)
            process.close(writer)
            total = 0
            while data := process.read(reader, 1 << 16):
                total += len(data)
            process.close(reader)
            process.wait()
            assert total == times << 20

        return best(call, megabytes)

    return inside(body)


def pipe_real(megabytes: int) -> float:
    chunk = bytes(1 << 16)

    def call(times: int) -> None:
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.close(reader)
            for _ in range(times * 16):
                data = chunk
                while data:
                    data = data[os.write(writer, data) :]
            os._exit(0)
        os.close(writer)
        total = 0
        while data := os.read(reader, 1 << 16):
            total += len(data)
        os.close(reader)
        os.waitpid(pid, 0)
        assert total == times << 20

    return best(call, megabytes)


def fork_ours(count: int) -> float:
    def body(process: Process) -> float:
        process.write_file("/tmp/f", b"")
        for _ in range(200):
            process.open("/tmp/f", O_RDONLY)
        for number in range(50):
            process.fs.mkdir(f"/tmp/m{number}")
            process.fs.bind("/tmp", f"/tmp/m{number}")

        def call(times: int) -> None:
            for _ in range(times):
                process.fork(lambda _child: 0)
                process.wait()

        return best(call, count)

    return inside(body)


def fork_real(top: str, count: int) -> float:
    fds = [os.open(top, os.O_RDONLY) for _ in range(200)]

    def call(times: int) -> None:
        for _ in range(times):
            pid = os.fork()
            if pid == 0:
                os._exit(0)
            os.waitpid(pid, 0)

    try:
        return best(call, count)
    finally:
        for fd in fds:
            os.close(fd)


def bytes_per_file(count: int) -> float:
    """Memory of a file in the memory server beyond its contents."""
    kernel = new_kernel()
    content = b"0123456789"
    process = kernel.init
    process.fs.mkdir("/tmp/files")
    names = [f"/tmp/files/file-{number:06}" for number in range(count)]
    gc.collect()
    tracemalloc.start()
    for name in names:
        file = process.fs.open(name, O_WRONLY | O_CREAT).retain()
        file.write(b"%s" % content)
        file.release()
    gc.collect()
    used = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    return used / count - len(content)


def measure(quick: bool) -> list[Result]:
    scale = 1 if quick else 4
    top = tempfile.mkdtemp(dir="/dev/shm" if os.path.isdir("/dev/shm") else None)
    try:
        results = [
            timed("open+read+close, 1 component", open_ours("f", 2500 * scale), open_real(top, "f", 2500 * scale)),
            timed(
                "walk 8+open+read+close",
                open_ours(DEEP, 2500 * scale),
                open_real(top, DEEP, 2500 * scale),
                most=12,
            ),
            timed("walk 8 components (stat)", walk_ours(5000 * scale), walk_real(top, 5000 * scale)),
        ]
        entries = 25_000 * scale
        ours, real = directory_ours(entries), directory_real(top, entries)
        results += [timed(f"{entries // 1000}k directory: {part}", ours[part], real[part]) for part in ours]
        ours_mb, real_mb = 1 / pipe_ours(64 * scale), 1 / pipe_real(64 * scale)
        results.append(Result("pipe, 64 KiB chunks", ours_mb, real_mb, "MB/s", ">= 300 MB/s", ours_mb >= 300))
        results.append(timed("fork+wait, 200 fds, 50 mounts", fork_ours(250 * scale), fork_real(top, 25 * scale)))
        held = bytes_per_file(5000 * scale)
        results.append(Result("memory per small file", held, None, "bytes", "<= 600 bytes", held <= 600))
        return results
    finally:
        shutil.rmtree(top)


def timed(name: str, ours: float, real: float, most: float | None = None) -> Result:
    return Result(
        name, ours, real, "s", "" if most is None else f"<= {most:g}x", None if most is None else ours <= most * real
    )


def show(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit != "s":
        return f"{value:,.0f} {unit}"
    for factor, suffix in ((1, "s"), (1e3, "ms"), (1e6, "us")):
        if value * factor >= 1:
            return f"{value * factor:.2f} {suffix}"
    return f"{value * 1e9:.0f} ns"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--quick", action="store_true", help="a quarter of the work")
    options = parser.parse_args()
    results = measure(options.quick)
    if options.json:
        print(json.dumps([{**asdict(result), "ratio": result.ratio} for result in results], indent=2))
    else:
        print(f"{'':32} {'belljar':>12} {'Linux':>12} {'ratio':>8}  target")
        for r in results:
            ratio = "-" if r.ratio is None else f"{r.ratio:.2f}x" if r.ratio >= 0.1 else f"{r.ratio:.2g}x"
            verdict = "" if r.met is None else ("  met" if r.met else "  MISSED")
            print(f"{r.name:32} {show(r.ours, r.unit):>12} {show(r.real, r.unit):>12} {ratio:>8}  {r.target}{verdict}")
    return 1 if any(result.met is False for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
