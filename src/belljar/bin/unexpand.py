"""unexpand - convert spaces to tabs

Usage: unexpand [OPTION]... [FILE]...

Convert blanks in each FILE to tabs, writing to standard output. With no FILE, or when FILE is -, read standard input.
Only blanks at the start of a line are converted, unless -a or -t is given.
"""

import re
from functools import partial

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import flag, many, utility
from belljar.bin._kit.quoting import quote_if_odd
from belljar.bin._kit.text import line_batches
from belljar.bin._tabs import TabStops, digits_as_tabs, parse_tabs
from belljar.kernel.process import Process

_PIECES = re.compile(rb"[ \t]+|\x08|[^ \t\x08]+")


@dataclass(frozen=True, slots=True)
class Options:
    all: bool = flag("-a", "--all", "convert all blanks, instead of just initial blanks")
    first_only: bool = flag("--first-only", "convert only leading sequences of blanks (overrides -a)")
    tabs: tuple[str, ...] = many(
        "-t", "--tabs", "have tabs N characters apart, or use a LIST of positions (enables -a)", metavar="LIST"
    )
    old_tabs: tuple[str, ...] = many("--old-tabs", "the same as -LIST, which doesn't enable -a", metavar="LIST")


@utility("unexpand", Options, rewrite=partial(digits_as_tabs, option="--old-tabs"))
def main(process: Process, options: Options, operands: list[str]) -> int:
    tabs = parse_tabs(process, options.tabs + options.old_tabs)
    everywhere = (options.all or bool(options.tabs)) and not options.first_only
    status = 0
    for name in operands or ["-"]:
        try:
            lines = line_batches(process, name)
            for batch in lines:
                process.budget.charge(len(batch) // 8 + 1)
                text = b"\n".join([convert(line, tabs, everywhere) for line in batch])
                process.stdout.write(text + b"\n" if lines.complete else text)
        except SysError as error:
            process.warn(f"{quote_if_odd(name)}: {error.reason}")
            status = 1
    return status


def convert(line: bytes, tabs: TabStops, everywhere: bool) -> bytes:
    if not everywhere and line[:1] not in (b" ", b"\t"):
        return line
    # A space alone stays one, so most lines are done here.
    if b"  " not in line and line[:1] != b" " and b"\t" not in line:
        return line
    out: list[bytes] = []
    column = 0
    done = False
    for piece in _PIECES.findall(line):
        if done:
            out.append(piece)
        elif piece[:1] in (b" ", b"\t"):
            text, column, done = blanks(piece, column, tabs)
            out.append(text)
        elif piece == b"\b":
            out.append(piece)
            column = max(0, column - 1)
        else:
            out.append(piece)
            column += len(piece)
            done = not everywhere
    return b"".join(out)


def blanks(run: bytes, column: int, tabs: TabStops) -> tuple[bytes, int, bool]:
    """The run as tabs and spaces, the column behind it, and whether it went past the last stop.

    A single space that ends just at a stop stays a space, unless it begins the line or more blanks follow it.
    """
    out: list[bytes] = []
    pending = 0
    after_blank = column == 0
    single = False
    for index, byte in enumerate(run):
        stop = tabs.next(column)
        if stop is None:
            out.append((b"\t" + b" " * (pending - 1) if pending > 1 and single else b" " * pending) + run[index:])
            return b"".join(out), column + len(run) - index, True
        if byte == 9:
            column = stop
        else:
            column += 1
            if not (after_blank and column == stop):
                single = single or column == stop
                pending += 1
                after_blank = True
                continue
        out.append(b"\t\t" if single and pending else b"\t")
        pending, single, after_blank = 0, False, True
    out.append(b"\t" + b" " * (pending - 1) if pending > 1 and single else b" " * pending)
    return b"".join(out), column, False
