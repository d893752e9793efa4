"""arch - print machine architecture

Usage: arch [OPTION]...
"""

from belljar.abi import system
from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError, utility
from belljar.bin._kit.quoting import quote
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    pass


@utility("arch", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if operands:
        raise UsageError(f"extra operand {quote(operands[0], process.env)}")
    process.print(system.MACHINE)
    return 0
