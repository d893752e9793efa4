"""nice - run a program with modified scheduling priority

Usage: nice [OPTION] [COMMAND [ARG]...]

Run COMMAND with an adjusted niceness. With no COMMAND, print the current niceness.
"""

import re

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError, value
from belljar.bin._kit.options import parse
from belljar.bin._kit.program import utility, version
from belljar.bin._kit.quoting import quote
from belljar.bin.env import become
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    adjustment: str = value(
        "-n", "--adjustment", "add integer N to the niceness (default 10)", metavar="N", default="10"
    )


@utility("nice", usage_status=125)
def main(process: Process, args: list[str]) -> int:
    if args and (match := re.fullmatch(r"-([-+]?\d+)", args[0])):
        args = ["-n", match[1], *args[1:]]
    parsed = parse(Options, args, "first-operand-ends")
    if parsed.asked:
        process.print(main.help().rstrip() if parsed.asked == "help" else version("nice"))
        return 0
    options = Options(**parsed.values)
    if not re.fullmatch(r"[-+]?\d+", options.adjustment):
        raise UsageError(f"invalid adjustment {quote(options.adjustment, process.env)}", hint=False)
    if not parsed.operands:
        if "adjustment" in parsed.values:
            raise UsageError("a command must be given with an adjustment")
        process.print(str(process.nice))
        return 0
    adjustment = int(options.adjustment[:18])
    if adjustment < 0 and process.fs.credentials.uid != 0:
        process.warn("cannot set niceness: Permission denied")
    else:
        process.nice = max(-20, min(19, process.nice + adjustment))
    return become(process, parsed.operands, process.env)
