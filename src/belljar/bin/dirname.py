"""dirname - strip the last component from file names

Usage: dirname [OPTION] NAME...

Output each NAME with its last non-slash component and trailing slashes removed; if NAME contains no /'s, output '.'
(meaning the current directory).
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import dirname
from belljar.bin._kit import UsageError, flag, utility
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    zero: bool = flag("-z", "--zero", "end each output line with NUL, not newline")


@utility("dirname", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    for name in operands:
        process.print(dirname(name), end="\0" if options.zero else "\n")
    return 0
