"""clear - clear the terminal screen

Usage: clear [-x]
"""

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import flag, utility, value
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    keep: bool = flag("-x", "do not try to clear the scrollback")
    terminal: str | None = value("-T", "use this instead of $TERM", metavar="TERM")


@utility("clear", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    process.print("\x1b[H\x1b[2J" + ("" if options.keep else "\x1b[3J"), end="")
    return 0
