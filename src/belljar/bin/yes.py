"""yes - output a string repeatedly until killed

Usage: yes [STRING]...

Repeatedly output a line with all specified STRING(s), or 'y'.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsencode
from belljar.bin._kit import utility
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    pass


@utility("yes", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    line = fsencode(" ".join(operands) or "y") + b"\n"
    block = line * max(1, 8192 // len(line))
    while True:
        process.budget.charge(10)
        process.write_all(1, block)
