"""pidof - find the process IDs of a running program

Usage: pidof [-sq] [-o PID,...] PROGRAM...
"""

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import flag, many, utility, value
from belljar.bin._processes import processes
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    single: bool = flag("-s", "--single-shot", "return one PID only")
    quiet: bool = flag("-q", "quiet mode, only set the exit code")
    scripts: bool = flag("-x", "also find shells running the named scripts")
    omit: tuple[str, ...] = many("-o", "--omit-pid", "omit processes with these PIDs", metavar="PID,...")
    separator: str = value("-S", "--separator", "use SEP as separator put between PIDs", metavar="SEP", default=" ")


@utility("pidof", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    omitted = {item.strip() for text in options.omit for item in text.split(",")}
    omitted = {str(process.parent.pid) if item == "%PPID" and process.parent else item for item in omitted}
    found: list[str] = []
    rows = [row for row in processes(process) if str(row.pid) not in omitted and row.pid != process.pid]
    for wanted in operands:
        base = wanted.rpartition("/")[2]
        for row in sorted(rows, key=lambda row: -row.pid):
            program = row.argv[0].lstrip("-") if row.argv else row.comm
            script = row.argv[1].rpartition("/")[2] if options.scripts and len(row.argv) > 1 else ""
            if base in (row.comm, script) or wanted == program or program.rpartition("/")[2] == base:
                found.append(str(row.pid))
    if options.single:
        found = found[:1]
    if found and not options.quiet:
        process.print(options.separator.join(found))
    return 0 if found else 1
