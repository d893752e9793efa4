"""top - display processes

Usage: top [-b] [-n COUNT] [-d SECONDS] [-p PID,...]

On a terminal `q` ends it, and any other key updates at once.
"""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext

from belljar.abi.dataclass import dataclass, replace
from belljar.abi.flags import POLLIN
from belljar.abi.termios import ECHO, ICANON, Termios
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.bin._kit.users import Accounts
from belljar.bin._processes import memory, processes
from belljar.bin.uptime import headline
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
    with keys(process) if not options.batch and process.isatty(0) else nullcontext():
        for turn in range(rounds):
            if turn and not pause(process, delay, typed=not options.batch and process.isatty(0)):
                break
            if not options.batch:
                process.print("\x1b[H\x1b[2J", end="")
            frame(process, wanted)
            process.stdout.flush()
    return 0


@contextmanager
def keys(process: Process) -> Iterator[None]:
    """Have keys come one by one, and not be shown."""
    settings = process.ioctl(0, "termios")
    assert isinstance(settings, Termios)
    process.ioctl(0, "set_termios", replace(settings, lflag=settings.lflag & ~(ICANON | ECHO)))
    try:
        yield
    finally:
        process.ioctl(0, "set_termios", settings)


def pause(process: Process, delay: float, *, typed: bool) -> bool:
    """Wait until the next update is due, or wanted by a key; whether there is to be one."""
    if not typed:
        process.sleep(delay)
    elif process.poll({0: POLLIN}, delay):
        return process.read(0, 1) not in (b"q", b"Q", b"")
    return True


def frame(process: Process, wanted: set[str] | None) -> None:
    rows = [row for row in processes(process) if wanted is None or str(row.pid) in wanted]
    states = [row.state for row in rows]
    running, stopped, zombies = (states.count(state) for state in "RTZ")
    sleeping = len(rows) - running - stopped - zombies
    uptime = process.kernel.hub.clock.monotonic() - process.kernel.boot_monotonic
    accounts = Accounts(process)
    process.print(f"top - {headline(process)}")
    process.print(
        f"Tasks: {len(rows):3d} total, {running:3d} running, {sleeping:3d} sleeping,"
        f" {stopped:3d} stopped, {zombies:3d} zombie"
    )
    process.print(processors(process))
    sizes = memory(process)
    total, free, available = (sizes[name] / (1 << 20) for name in ("MemTotal", "MemFree", "MemAvailable"))
    cached = (sizes["Buffers"] + sizes["Cached"]) / (1 << 20)
    used = max(0, total - free - cached)
    process.print(f"MiB Mem : {total:8.1f} total, {free:8.1f} free, {used:8.1f} used, {cached:8.1f} buff/cache")
    process.print(f"MiB Swap: {0:8.1f} total, {0:8.1f} free, {0:8.1f} used. {available:8.1f} avail Mem\n")
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


def processors(process: Process) -> str:
    """Return how their time was spent since the start."""
    user, nice, system, idle, *_ = map(int, process.read_file("/proc/stat").split(b"\n", 1)[0].split()[1:])
    total = user + nice + system + idle
    shares = [100 * part / total if total else 0 for part in (user, system, nice)]
    rest = max(0, 100 - sum(shares))
    return (
        f"%Cpu(s): {shares[0]:4.1f} us, {shares[1]:4.1f} sy, {shares[2]:4.1f} ni,{rest:5.1f} id,"
        "  0.0 wa,  0.0 hi,  0.0 si,  0.0 st"
    )
