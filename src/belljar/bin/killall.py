"""killall - kill processes by name

Usage: killall [-SIGNAL] NAME...
"""

import re

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.signals import parse_signal
from belljar.bin._kit import UsageError, flag, value
from belljar.bin._kit.options import parse
from belljar.bin._kit.program import utility, version
from belljar.bin._processes import processes
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    signal: str = value("-s", "--signal", "send this signal instead of SIGTERM", metavar="SIGNAL", default="TERM")
    quiet: bool = flag("-q", "--quiet", "don't print complaints")
    exact: bool = flag("-e", "--exact", "require exact match for very long names")
    wait: bool = flag("-w", "--wait", "wait for processes to die")


@utility("killall")
def main(process: Process, args: list[str]) -> int:
    args = [
        "-s" + a[1:] if re.fullmatch(r"-([A-Z][A-Z0-9+]+|\d+)", a) and parse_signal(a[1:]) is not None else a
        for a in args
    ]
    parsed = parse(Options, args)
    if parsed.asked:
        process.print(main.help().rstrip() if parsed.asked == "help" else version("killall"))
        return 0
    options = Options(**parsed.values)
    number = parse_signal(options.signal)
    if number is None:
        raise UsageError(f"{options.signal}: unknown signal", hint=False)
    status = 0
    for name in parsed.operands:
        targets = [row for row in processes(process) if row.comm == name and row.pid != process.pid]
        for row in targets:
            try:
                process.kill(row.pid, number)
            except SysError as error:
                process.warn(f"{name}({row.pid}): {error.reason}")
                status = 1
        if not targets:
            if not options.quiet:
                process.error(f"{name}: no process found\n")
            status = 1
    return status
