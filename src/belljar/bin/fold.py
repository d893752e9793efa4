"""fold - wrap each input line to fit in specified width

Usage: fold [OPTION]... [FILE]...

Wrap input lines in each FILE, writing to standard output. With no FILE, or when FILE is -, read standard input.
"""

import re
from collections.abc import Iterator

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import flag, utility, value
from belljar.bin._kit.numbers import bounded
from belljar.bin._kit.quoting import quote_if_odd
from belljar.bin._kit.text import line_batches
from belljar.kernel.process import Process

_SPECIAL = re.compile(rb"[\x08\r\t]")


@dataclass(frozen=True, slots=True)
class Options:
    bytes: bool = flag("-b", "--bytes", "count bytes rather than columns")
    spaces: bool = flag("-s", "--spaces", "break at spaces")
    width: str = value("-w", "--width", "use WIDTH columns instead of 80", metavar="WIDTH", default="80")


@utility("fold", Options, digits="width")
def main(process: Process, options: Options, operands: list[str]) -> int:
    width = bounded(process, options.width, "number of columns", 1)
    status = 0
    for name in operands or ["-"]:
        try:
            lines = line_batches(process, name)
            for batch in lines:
                process.budget.charge(len(batch) // 8 + sum(map(len, batch)) // (16 * width) + 1)
                text = b"\n".join([_fold(line, width, options) if len(line) > 0 else line for line in batch])
                process.stdout.write(text + b"\n" if lines.complete else text)
        except SysError as error:
            process.warn(f"{quote_if_odd(name)}: {error.reason}")
            status = 1
    return status


def _fold(line: bytes, width: int, options: Options) -> bytes:
    plain = options.bytes or not _SPECIAL.search(line)
    if plain and len(line) <= width:
        return line
    if plain and not options.spaces:
        return b"\n".join([line[at : at + width] for at in range(0, len(line), width)])
    return b"\n".join(_pieces(line, width, options.spaces, plain))


def _pieces(line: bytes, width: int, spaces: bool, plain: bool) -> Iterator[bytes]:
    start = 0
    while True:
        end = min(start + width, len(line)) if plain else _reach(line, start, width)
        if end >= len(line):
            yield line[start:]
            return
        if spaces:
            blank = max(line.rfind(b" ", start, end), line.rfind(b"\t", start, end))
            if blank >= 0:
                end = blank + 1
        yield line[start:end]
        start = end


def _reach(line: bytes, start: int, width: int) -> int:
    """How far a piece may go: tabs go to the next eighth column, backspaces back, carriage returns to the start."""
    column = 0
    for index in range(start, len(line)):
        byte = line[index]
        if byte == 9:
            after = column + 8 - column % 8
        elif byte == 8:
            after = max(0, column - 1)
        elif byte == 13:
            after = 0
        else:
            after = column + 1
        if after > width and index > start:
            return index
        column = after
    return len(line)
