"""uptime - tell how long the system has been running

Usage: uptime [-p|-s]
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsdecode
from belljar.abi.records import NANO
from belljar.bin._kit import flag, utility
from belljar.bin._kit.clock import format_time, zone_of
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    pretty: bool = flag("-p", "--pretty", "show uptime in pretty format")
    since: bool = flag("-s", "--since", "system up since")


@utility("uptime", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    now, zone = process.kernel.now(), zone_of(process.env)
    seconds = float(process.read_file("/proc/uptime").split()[0])
    if options.since:
        process.print(format_time("%Y-%m-%d %H:%M:%S", now - int(seconds * NANO), zone))
        return 0
    if options.pretty:
        days, hours, minutes = split(seconds)
        parts = [
            f"{n} {word}{'s' if n != 1 else ''}"
            for n, word in ((days, "day"), (hours, "hour"), (minutes, "minute"))
            if n
        ]
        process.print("up " + (", ".join(parts) or "0 minutes"))
        return 0
    process.print(f" {headline(process)}")
    return 0


def split(seconds: float) -> tuple[int, int, int]:
    """Days, hours and minutes."""
    minutes = int(seconds) // 60
    return minutes // 1440, minutes // 60 % 24, minutes % 60


def headline(process: Process) -> str:
    """The time, the age of the system and its load: what `top` begins with too."""
    days, hours, minutes = split(float(process.read_file("/proc/uptime").split()[0]))
    age = f"{days} day{'s' if days != 1 else ''}, " if days else ""
    age += f"{hours:2d}:{minutes:02d}" if hours else f"{minutes} min"
    load = fsdecode(process.read_file("/proc/loadavg")).split()[:3]
    time = format_time("%H:%M:%S", process.kernel.now(), zone_of(process.env))
    return f"{time} up {age},  1 user,  load average: {', '.join(load)}"
