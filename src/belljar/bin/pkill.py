"""pkill - signal processes based on name and other attributes

Usage: pkill [-SIGNAL] [OPTION]... PATTERN
"""

import re

from belljar.abi.errors import SysError
from belljar.abi.signals import parse_signal
from belljar.bin._kit import UsageError
from belljar.bin._kit.options import parse
from belljar.bin._kit.program import utility, version
from belljar.bin._pgrep import Options, select
from belljar.kernel.process import Process


@utility("pkill", usage_status=2)
def main(process: Process, args: list[str]) -> int:
    name = "TERM"
    for index, arg in enumerate(args):
        if re.fullmatch(r"-([A-Z][A-Z0-9+]+|\d+)", arg) and parse_signal(arg[1:]) is not None:
            name = arg[1:]
            args = args[:index] + args[index + 1 :]
            break
    parsed = parse(Options, args)
    if parsed.asked:
        process.print(main.help().rstrip() if parsed.asked == "help" else version("pkill"))
        return 0
    options = Options(**parsed.values)
    number = parse_signal(options.signal or name)
    if number is None:
        raise UsageError(f"unknown signal name {options.signal or name}", hint=False)
    rows = select(process, options, parsed.operands)
    killed = 0
    for row in rows:
        try:
            process.kill(row.pid, number)
        except SysError as error:
            process.warn(f"killing pid {row.pid} failed: {error.reason}")
            continue
        killed += 1
        if options.echo:
            process.print(f"{row.comm} killed (pid {row.pid})")
    if options.count:
        process.print(str(killed))
    return 0 if killed else 1
