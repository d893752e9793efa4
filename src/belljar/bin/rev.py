"""rev - reverse lines characterwise

Usage: rev [FILE]...

Copy the files to standard output, reversing the order of characters in every line.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode, fsencode
from belljar.bin._kit import flag, line_batches, utility
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    zero: bool = flag("-0", "--zero", "use NUL as line separator")


@utility("rev", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    newline = b"\0" if options.zero else b"\n"
    status = 0
    for name in operands or ["-"]:
        try:
            lines = line_batches(process, name, newline)
            for batch in lines:
                text = newline.join(map(reverse, batch))
                process.stdout.write(text + newline if lines.complete else text)
        except SysError as error:
            process.warn(f"cannot open {name}: {error.reason}")
            status = 1
    return status


def reverse(line: bytes) -> bytes:
    return line[::-1] if line.isascii() else fsencode(fsdecode(line)[::-1])
