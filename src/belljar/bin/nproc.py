"""nproc - print the number of processing units available

Usage: nproc [OPTION]...
"""

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.bin._kit.quoting import quote
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    all: bool = flag("--all", "print the number of installed processors")
    ignore: str = value("--ignore", "if possible, exclude N processing units", metavar="N", default="0")


@utility("nproc", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if operands:
        raise UsageError(f"extra operand {quote(operands[0], process.env)}")
    if not options.ignore.isdecimal():
        raise UsageError(f"invalid number: {quote(options.ignore, process.env)}", hint=False)
    process.print(str(max(1, process.kernel.machine.cores - int(options.ignore[:9]))))
    return 0
