"""expand - convert tabs to spaces

Usage: expand [OPTION]... [FILE]...

Convert tabs in each FILE to spaces, writing to standard output. With no FILE, or when FILE is -, read standard input.
LIST is tab positions separated by commas; the last may have / before it (stops at multiples of it beyond the list)
or + (stops that far apart beyond the list).
"""

import re
from collections.abc import Callable

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import flag, many, utility
from belljar.bin._kit.quoting import quote_if_odd
from belljar.bin._kit.text import line_batches
from belljar.bin._tabs import TabStops, digits_as_tabs, parse_tabs
from belljar.kernel.process import Process

_BLANKS = re.compile(rb"[ \t\x08]*\t")
_PIECES = re.compile(rb"[\t\x08]|[^\t\x08]+")


@dataclass(frozen=True, slots=True)
class Options:
    initial: bool = flag("-i", "--initial", "do not convert tabs after non blanks")
    tabs: tuple[str, ...] = many(
        "-t", "--tabs", "have tabs N characters apart, or use a LIST of positions", metavar="LIST"
    )


@utility("expand", Options, rewrite=digits_as_tabs)
def main(process: Process, options: Options, operands: list[str]) -> int:
    tabs = parse_tabs(process, options.tabs)
    convert = converter(tabs, options.initial)
    status = 0
    for name in operands or ["-"]:
        try:
            lines = line_batches(process, name)
            for batch in lines:
                process.budget.charge(len(batch) // 8 + 1)
                text = b"\n".join(batch)
                if b"\t" in text:
                    process.budget.charge_size(len(text) + text.count(b"\t") * tabs.widest)
                    text = b"\n".join([convert(line) if b"\t" in line else line for line in batch])
                process.stdout.write(text + b"\n" if lines.complete else text)
        except SysError as error:
            process.warn(f"{quote_if_odd(name)}: {error.reason}")
            status = 1
    return status


def converter(tabs: TabStops, initial: bool) -> Callable[[bytes], bytes]:
    size = tabs.uniform

    def whole(line: bytes) -> bytes:
        if size and b"\b" not in line and b"\r" not in line:
            return line.expandtabs(size)
        return stepwise(line)

    def stepwise(line: bytes) -> bytes:
        out: list[bytes] = []
        column = 0
        for piece in _PIECES.findall(line):
            if piece == b"\t":
                stop = tabs.next(column)
                width = 1 if stop is None else stop - column
                out.append(b" " * width)
                column += width
            elif piece == b"\b":
                out.append(piece)
                column = max(0, column - 1)
            else:
                out.append(piece)
                column += len(piece)
        return b"".join(out)

    def leading(line: bytes) -> bytes:
        match = _BLANKS.match(line)
        return whole(match[0]) + line[match.end() :] if match else line

    return leading if initial else whole
