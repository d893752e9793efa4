"""tty - print the file name of the terminal connected to standard input

Usage: tty [OPTION]...
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError, flag, utility
from belljar.bin._kit.quoting import quote
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    silent: bool = flag("-s", "--silent", "--quiet", "print nothing, only return an exit status")


@utility("tty", Options, usage_status=2)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if operands:
        raise UsageError(f"extra operand {quote(operands[0], process.env)}")
    try:
        name = str(process.ioctl(0, "tty_name"))
    except SysError:
        name = ""
    if not options.silent:
        process.print(name or "not a tty")
    return 0 if name else 1
