"""sponge - soak up standard input and write to a file

Usage: sponge [-a] [FILE]

Read all of standard input before FILE is opened, so that a pipeline may read from and write to the same file. Without a
FILE, write to standard output.
"""

from belljar.abi.dataclass import dataclass
from belljar.abi.flags import O_APPEND, O_CREAT, O_TRUNC, O_WRONLY
from belljar.bin._kit import UsageError, flag, utility
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    append: bool = flag("-a", "append to FILE instead of overwriting it")


@utility("sponge", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if len(operands) > 1:
        raise UsageError(f"extra operand '{operands[1]}'")
    data = process.read_file("-")
    if not operands:
        process.stdout.write(data)
        return 0
    fd = process.open(operands[0], O_WRONLY | O_CREAT | (O_APPEND if options.append else O_TRUNC), 0o666)
    process.write_all(fd, data)
    process.close(fd)
    return 0
