"""paste - merge lines of files

Usage: paste [OPTION]... [FILE]...

Write lines consisting of the sequentially corresponding lines from each FILE, separated by TABs, to standard output.
With no FILE, or when FILE is -, read standard input.
"""

import re
from collections.abc import Iterator
from itertools import cycle, islice, zip_longest

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import EISDIR
from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.bin._kit import UsageError, flag, line_batches, utility, value
from belljar.bin._kit.quoting import quote_if_odd
from belljar.kernel.process import Process

_ESCAPES = {b"\\0": b"", b"\\b": b"\b", b"\\f": b"\f", b"\\n": b"\n", b"\\r": b"\r", b"\\t": b"\t", b"\\v": b"\v"}


@dataclass(frozen=True, slots=True)
class Options:
    delimiters: str = value(
        "-d", "--delimiters", "reuse characters from LIST instead of TABs", metavar="LIST", default="\t"
    )
    serial: bool = flag("-s", "--serial", "paste one file at a time instead of in parallel")
    zero: bool = flag("-z", "--zero-terminated", "line delimiter is NUL, not newline")


@utility("paste", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    delimiters = parse_delimiters(options.delimiters)
    newline = b"\0" if options.zero else b"\n"
    names = operands or ["-"]
    if options.serial:
        return serial(process, names, delimiters, newline)
    streams: dict[str, Iterator[bytes]] = {}
    columns: list[Iterator[bytes]] = []
    for name in names:
        if name == "-" and name in streams:
            columns.append(streams[name])
            continue
        try:
            if name != "-":
                process.close(process.open(name))
        except SysError as error:
            process.warn(f"{quote_if_odd(name)}: {error.reason}")
            return 1
        streams[name] = line_batches(process, name, newline).lines()
        columns.append(streams[name])
    parallel(process, columns, delimiters, newline)
    return 0


def parse_delimiters(text: str) -> list[bytes]:
    raw = fsencode(text)
    if re.fullmatch(rb"(?:[^\\]|\\.)*\\", raw, re.S):
        raise UsageError(f"delimiter list ends with an unescaped backslash: {text}", hint=False)
    found = re.findall(rb"\\.|[^\\]", raw, re.S)
    return [_ESCAPES.get(item, item[-1:]) for item in found] or [b""]


def parallel(process: Process, columns: list[Iterator[bytes]], delimiters: list[bytes], newline: bytes) -> None:
    between = list(islice(cycle(delimiters), len(columns) - 1))
    same = between[0] if between and len(set(between)) == 1 else None
    block: list[bytes] = []
    for row in zip_longest(*columns, fillvalue=b""):
        if same is not None:
            block.append(same.join(row))
        else:
            block.append(b"".join(part for pair in zip(row, [*between, b""], strict=True) for part in pair))
        if len(block) >= 4096:
            process.budget.charge(len(block) // 8)
            process.stdout.write(newline.join(block) + newline)
            block = []
    if block:
        process.stdout.write(newline.join(block) + newline)


def serial(process: Process, names: list[str], delimiters: list[bytes], newline: bytes) -> int:
    status = 0
    for name in names:
        try:
            between = cycle(delimiters)
            for index, line in enumerate(line_batches(process, name, newline).lines()):
                process.stdout.write(next(between) + line if index else line)
        except SysError as error:
            process.warn(f"{quote_if_odd(name)}: {error.reason}")
            status = 1
            if error.errno != EISDIR:
                continue
        process.stdout.write(newline)
    return status
