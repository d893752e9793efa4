"""The files of /proc about the whole sandbox: memory, processors, uptime, load."""

from __future__ import annotations

from math import exp
from typing import TYPE_CHECKING, Final

from belljar.abi.records import NANO
from belljar.kernel.fs.proc_text import HERTZ, state

if TYPE_CHECKING:
    from belljar.kernel.kernel import Kernel
    from belljar.kernel.pids import PidSpace

_FILESYSTEMS: Final = (
    "tmpfs",
    "proc",
    "devtmpfs",
    "overlay",
    "archive",
    "hostdir",
    "remote",
    "srv",
    "fsspec",
    "pipefs",
)


def elapsed(kernel: Kernel) -> float:
    return kernel.machine.clock.monotonic() - kernel.boot_monotonic


def meminfo(kernel: Kernel) -> bytes:
    """/proc/meminfo: the total is the sandbox's limit, files use some of it, the rest is free."""
    total = kernel.memory_bytes // 1024
    files = min(kernel.quota.bytes_used // 1024, total)
    free = total - files
    figures = {
        "MemTotal": total, "MemFree": free, "MemAvailable": free, "Buffers": 0, "Cached": files, "SwapCached": 0,
        "Active": files, "Inactive": 0, "Active(anon)": files, "Inactive(anon)": 0, "Active(file)": 0,
        "Inactive(file)": 0, "Unevictable": 0, "Mlocked": 0, "SwapTotal": 0, "SwapFree": 0, "Dirty": 0,
        "Writeback": 0, "AnonPages": 0, "Mapped": 0, "Shmem": files, "KReclaimable": 0, "Slab": 0,
        "SReclaimable": 0, "SUnreclaim": 0, "KernelStack": 0, "PageTables": 0, "CommitLimit": total,
        "Committed_AS": files, "VmallocTotal": 0, "VmallocUsed": 0,
    }  # fmt: skip
    return "".join(f"{name + ':':<15}{value:>9} kB\n" for name, value in figures.items()).encode()


def cpuinfo(kernel: Kernel) -> bytes:
    cores = kernel.machine.cores
    lines = []
    for core in range(cores):
        fields = (
            ("processor", core), ("vendor_id", "belljar"), ("cpu family", 6), ("model", 0),
            ("model name", "belljar virtual processor"), ("stepping", 0), ("cpu MHz", "1000.000"),
            ("cache size", "0 KB"), ("physical id", 0), ("siblings", cores), ("core id", core),
            ("cpu cores", cores), ("fpu", "yes"), ("flags", "fpu"), ("bogomips", "2000.00"),
        )  # fmt: skip
        for name, value in fields:
            tabs = "\t" * (2 if len(name) < 8 else 1)
            lines.append(f"{name}{tabs}: {value}")
        lines.append("")
    return ("\n".join(lines) + "\n").encode()


def uptime(kernel: Kernel) -> bytes:
    seconds = elapsed(kernel)
    idle = max(0.0, seconds * kernel.machine.cores - kernel.cpu)
    return f"{seconds:.2f} {idle:.2f}\n".encode()


def stat(kernel: Kernel, space: PidSpace) -> bytes:
    cores = kernel.machine.cores
    ticks = elapsed(kernel) * HERTZ
    # Everything runs on one processor of the host; which one is hidden: always the first.
    busy = [int(kernel.cpu * HERTZ) if core == 0 else 0 for core in range(cores)]
    idle = [max(0, int(ticks) - used) for used in busy]
    lines = [f"cpu  {sum(busy)} 0 0 {sum(idle)} 0 0 0 0 0 0"]
    lines += [f"cpu{core} {busy[core]} 0 0 {idle[core]} 0 0 0 0 0 0" for core in range(cores)]
    running = sum(state(process) == "R" for process in space.table.values())
    lines += [
        "intr 0",
        "ctxt 0",
        f"btime {kernel.boot_ns // NANO}",
        f"processes {space.last_pid}",
        f"procs_running {running}",
        "procs_blocked 0",
        "softirq 0 0 0 0 0 0 0 0 0 0 0",
    ]
    return ("\n".join(lines) + "\n").encode()


def filesystems() -> bytes:
    return "".join(f"nodev\t{name}\n" for name in _FILESYSTEMS).encode()


class LoadAverage:
    """The three load averages, updated on each read."""

    def __init__(self) -> None:
        self._values = [0.0, 0.0, 0.0]
        self._when = 0.0

    def render(self, kernel: Kernel, space: PidSpace) -> bytes:
        now = elapsed(kernel)
        passed, self._when = now - self._when, now
        running = sum(state(process) == "R" for process in space.table.values())
        for index, minutes in enumerate((1, 5, 15)):
            decay = exp(-passed / (60 * minutes))
            # The reader itself runs only because it looks.
            self._values[index] = self._values[index] * decay + max(0, running - 1) * (1 - decay)
        averages = " ".join(f"{value:.2f}" for value in self._values)
        return f"{averages} {running}/{len(space.table)} {space.last_pid}\n".encode()
