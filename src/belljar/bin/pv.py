"""pv - monitor the progress of data through a pipe

Usage: pv [OPTION]... [FILE]...

Copy each FILE, or standard input, to standard output. What passed is reported on standard error if that is a terminal,
or with -f.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import flag, utility, value
from belljar.bin._kit.human import human
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    force: bool = flag("-f", "--force", "report even if standard error is not a terminal")
    quiet: bool = flag("-q", "--quiet", "do not report anything")
    lines: bool = flag("-l", "--line-mode", "count lines instead of bytes")
    size: str | None = value("-s", "--size", "(accepted; the total is not shown)", metavar="SIZE")
    name: str = value("-N", "--name", "prefix the report with NAME", metavar="NAME", default="")
    limit: str | None = value("-L", "--rate-limit", "(accepted; data is not held back)", metavar="RATE")
    progress: bool = flag("-p", "--progress", "(accepted)")
    timer: bool = flag("-t", "--timer", "(accepted)")
    eta: bool = flag("-e", "--eta", "(accepted)")
    rate: bool = flag("-r", "--rate", "(accepted)")
    average: bool = flag("-a", "--average-rate", "(accepted)")
    bytes: bool = flag("-b", "--bytes", "(accepted)")
    numeric: bool = flag("-n", "--numeric", "(accepted)")


@utility("pv", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    started = process.kernel.machine.clock.monotonic()
    passed = status = 0
    for name in operands or ["-"]:
        try:
            for chunk in process.chunks(name):
                passed += chunk.count(b"\n") if options.lines else len(chunk)
                process.stdout.write(chunk)
                process.stdout.flush()
        except SysError as error:
            process.warn(f"{name}: {error.reason}")
            status = 2
    if not options.quiet and (options.force or process.isatty(2)):
        seconds = process.kernel.machine.clock.monotonic() - started
        shown = human(passed, 1000 if options.lines else 1024) + (
            "" if options.lines else "iB" if passed >= 1024 else "B"
        )
        prefix = f"{options.name}: " if options.name else ""
        process.error(f"{prefix}{shown} {int(seconds // 3600)}:{int(seconds // 60 % 60):02d}:{int(seconds % 60):02d}\n")
    return status
