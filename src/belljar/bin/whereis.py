"""whereis - locate the binary files of a command

Usage: whereis [-b|-m|-s] NAME...
"""

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError, flag, utility
from belljar.bin.which import matches
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    binaries: bool = flag("-b", "search only for binaries")
    manuals: bool = flag("-m", "search only for manuals")
    sources: bool = flag("-s", "search only for sources")


@utility("whereis", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
        raise UsageError("not enough arguments")
    for name in operands:
        found = [] if options.manuals or options.sources else list(dict.fromkeys(matches(process, name)))
        process.print(" ".join([f"{name}:", *found]))
    return 0
