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
    count = process.kernel.machine.cores
    if not options.all:
        count = _positive(process.env.get("OMP_NUM_THREADS", "").partition(",")[0]) or count
        count = min(count, _positive(process.env.get("OMP_THREAD_LIMIT", "")) or count)
    process.print(str(max(1, count - int(options.ignore[:9]))))
    return 0


def _positive(text: str) -> int:
    """The number in a variable of OpenMP's; 0 if it is none."""
    text = text.strip()
    return int(text[:9]) if text.isascii() and text.isdecimal() else 0
