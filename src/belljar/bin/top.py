"""top - display processes

Usage: top [-b] [-n COUNT] [-d SECONDS] [-p PID,...]
"""

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.bin._kit.clock import format_time, zone_of
from belljar.bin._kit.users import Accounts
from belljar.bin._processes import processes
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    batch: bool = flag("-b", "--batch", "batch mode")
    count: str | None = value("-n", "--iterations", "maximum number of iterations", metavar="NUMBER")
    delay: str = value("-d", "--delay", "seconds between updates", metavar="SECS", default="3")
    pids: str | None = value("-p", "--pid", "monitor only these processes", metavar="PIDLIST")


@utility("top", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    try:
        rounds, delay = (int(options.count) if options.count else 1 << 30), float(options.delay)
    except ValueError:
        raise UsageError("bad number", hint=False) from None
    wanted = set(options.pids.split(",")) if options.pids else None
    for turn in range(rounds):
        if turn:
            process.sleep(delay)
        if not options.batch:
            process.print("\x1b[H\x1b[2J", end="")
        frame(process, wanted)
        process.stdout.flush()
    return 0


def frame(process: Process, wanted: set[str] | None) -> None:
    rows = [row for row in processes(process) if wanted is None or str(row.pid) in wanted]
    running = sum(row.state == "R" for row in rows)
    kernel = process.kernel
    uptime = kernel.hub.clock.monotonic() - kernel.boot_monotonic
    memory = kernel.machine.memory_bytes / (1 << 20)
    accounts = Accounts(process)
    clock = format_time("%H:%M:%S", kernel.now(), zone_of(process.env))
    process.print(f"top - {clock} up {int(uptime) // 60} min,  1 user,  load average: 0.00, 0.00, 0.00")
    process.print(
        f"Tasks: {len(rows):3d} total, {running:3d} running, {len(rows) - running:3d} sleeping,   0 stopped,   0 zombie"
    )
    process.print("%Cpu(s):  0.0 us,  0.0 sy,  0.0 ni,100.0 id,  0.0 wa,  0.0 hi,  0.0 si,  0.0 st")
    process.print(f"MiB Mem : {memory:8.1f} total, {memory:8.1f} free,      0.0 used,      0.0 buff/cache")
    process.print("MiB Swap:      0.0 total,      0.0 free,      0.0 used.  " + f"{memory:8.1f} avail Mem\n")
    process.print("    PID USER      PR  NI    VIRT    RES    SHR S  %CPU  %MEM     TIME+ COMMAND")
    for row in sorted(rows, key=lambda r: (-r.cpu, r.pid)):
        user = accounts.user_name(row.uid) or str(row.uid)
        share = row.cpu / max(uptime - row.started, 0.01) * 100
        minutes, seconds = divmod(row.cpu, 60)
        process.print(
            f"{row.pid:7d} {user:<8.8} {20 + row.nice:3d} {row.nice:3d} {row.size // 1024:7d} "
            f"{row.resident * 4:6d}      0 "
            f"{row.state} {min(share, 100):5.1f}   0.0 {int(minutes):3d}:{seconds:05.2f} {row.comm}"
        )
