"""journalctl - show what services have written

Usage: journalctl -u UNIT... [-n LINES] [-f]
       journalctl

Without a unit it shows what init itself has to say of services. There is no journal: /var/log/NAME.log is what the
service NAME wrote, and its lines have no times but those that it wrote itself.
"""

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import flag, many, utility, value
from belljar.bin._services import lines_of, print_log
from belljar.kernel.process import Process
from belljar.kernel.services.log import read_log


@dataclass(frozen=True, slots=True)
class Options:
    units: tuple[str, ...] = many("-u", "--unit", "show what this service wrote", metavar="UNIT")
    lines: str | None = value("-n", "--lines", "the last so many lines", metavar="LINES")
    follow: bool = flag("-f", "--follow", "go on with what comes")
    end: bool = flag("-e", "--pager-end", "(there is no pager)")
    pager: bool = flag("--no-pager", "(there is none)")
    explain: bool = flag("-x", "--catalog", "(nothing to add)")
    boot: bool = flag("-b", "--boot", "(there is one boot)")
    output: str | None = value("-o", "--output", "(lines are shown as they were written)", metavar="FORMAT")


@utility("journalctl", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    lines = lines_of(options.lines)
    if not options.units:
        process.stdout.write(read_log(process.space.table[1].fs, "/var/log/init.log", lines))
        return 0
    names = [name.removesuffix(".service") for name in options.units]
    return max(print_log(process, name, lines, follow=options.follow) for name in names)
