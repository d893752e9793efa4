"""lscpu - display information about the processors

Usage: lscpu [-J]
"""

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import flag, utility
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    json: bool = flag("-J", "--json", "use JSON output format")
    parse: bool = flag("-p", "--parse", "print out a parsable format")


@utility("lscpu", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    cores = process.kernel.machine.cores
    if options.parse:
        process.print(
            "# The following is the parsable format, which can be fed to other\n# programs.\n# CPU,Core,Socket,Node"
        )
        for number in range(cores):
            process.print(f"{number},{number},0,0")
        return 0
    rows = [
        ("Architecture", "x86_64"),
        ("CPU op-mode(s)", "64-bit"),
        ("Byte Order", "Little Endian"),
        ("CPU(s)", str(cores)),
        ("On-line CPU(s) list", "0" if cores == 1 else f"0-{cores - 1}"),
        ("Vendor ID", "belljar"),
        ("Model name", "virtual"),
        ("Thread(s) per core", "1"),
        ("Core(s) per socket", str(cores)),
        ("Socket(s)", "1"),
    ]
    if options.json:
        lines = ",\n".join(
            f'      {{\n         "field": "{name}:",\n         "data": "{text}"\n      }}' for name, text in rows
        )
        process.print(f'{{\n   "lscpu": [\n{lines}\n   ]\n}}')
        return 0
    for name, text in rows:
        process.print(f"{name + ':':<25}{text}")
    return 0
