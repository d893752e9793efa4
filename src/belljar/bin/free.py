"""free - display amount of free and used memory

Usage: free [-b|-k|-m|-g|-h] [-t] [-w]
"""

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import choice, flag, utility
from belljar.bin._processes import memory
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    unit: int = choice(
        {
            "-b": 1,
            "--bytes": 1,
            "-k": 1024,
            "--kibi": 1024,
            "-m": 1 << 20,
            "--mebi": 1 << 20,
            "-g": 1 << 30,
            "--gibi": 1 << 30,
        },
        "show output in bytes, kibibytes, mebibytes, gibibytes",
        1024,
    )
    human: bool = flag("-h", "--human", "show human-readable output")
    total: bool = flag("-t", "--total", "show total for RAM + swap")
    wide: bool = flag("-w", "--wide", "wide output")


@utility("free", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    values = memory(process)

    def show(size: int) -> str:
        return human(size) if options.human else str(size // options.unit)

    total, free_, shared = values.get("MemTotal", 0), values.get("MemFree", 0), values.get("Shmem", 0)
    buffers, cached = values.get("Buffers", 0), values.get("Cached", 0)
    used = max(0, total - free_ - buffers - cached)
    caches = [("buffers", buffers), ("cache", cached)] if options.wide else [("buff/cache", buffers + cached)]
    head = ["total", "used", "free", "shared", *(name for name, _ in caches), "available"]
    row = [total, used, free_, shared, *(size for _, size in caches), values.get("MemAvailable", free_)]
    swap = [
        values.get("SwapTotal", 0),
        values.get("SwapTotal", 0) - values.get("SwapFree", 0),
        values.get("SwapFree", 0),
    ]
    process.print(" " * 8 + "".join(f"{name:>12}" for name in head))
    process.print("Mem:    " + "".join(f"{show(size):>12}" for size in row))
    process.print("Swap:   " + "".join(f"{show(size):>12}" for size in swap))
    if options.total:
        process.print("Total:  " + "".join(f"{show(a + b):>12}" for a, b in zip(row[:3], swap, strict=True)))
    return 0


def human(size: int) -> str:
    amount, units = float(size), ["B", "Ki", "Mi", "Gi", "Ti"]
    while amount >= 1000 and len(units) > 1:
        amount /= 1024
        units.pop(0)
    if units[0] == "B":
        return f"{size}B"
    return f"{amount:.1f}{units[0]}" if amount < 10 else f"{amount:.0f}{units[0]}"
