"""more - display the contents of a file in a terminal

Usage: more [OPTION]... [FILE]...

On a terminal, a screen at a time: space for the next, enter for the next line, q to quit. Elsewhere the files are
copied, with their names before them if there are several.
"""

from __future__ import annotations

import re

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.bin._pager import Pager, copy
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    silent: bool = flag("-d", "--silent", "display help instead of ringing bell")
    logical: bool = flag("-f", "--logical", "count logical rather than screen lines")
    no_pause: bool = flag("-l", "--no-pause", "suppress pause after form feed")
    print_over: bool = flag("-c", "-p", "--print-over", "--clean-print", "do not scroll, display text")
    exit_at_end: bool = flag("-e", "--exit-on-eof", "exit on end-of-file")
    squeeze: bool = flag("-s", "--squeeze", "squeeze multiple blank lines into one")
    plain: bool = flag("-u", "--plain", "suppress underlining and bold")
    lines: str | None = value("-n", "--lines", "the number of lines per screenful", metavar="NUMBER")


def _without_positions(args: list[str]) -> list[str]:
    """-NUMBER, +NUMBER and +/PATTERN say where to start and how tall the screen is."""
    return [arg for arg in args if not re.match(r"-\d+\Z|\+\d+\Z|\+/", arg)]


@utility("more", Options, rewrite=_without_positions)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands and process.isatty(0):
        raise UsageError("bad usage")
    status = 0
    for name in operands or ["-"]:
        try:
            if name != "-" and process.fs.stat(name).is_dir:
                process.print(f"\n*** {name}: directory ***\n")
                continue
            chunks = process.chunks(name)
            if process.isatty(1):
                Pager(process, "--More--").show(chunks, quit_if_one_screen=True, stops_at_end=True)
                continue
            if operands:
                process.print(f"::::::::::::::\n{name}\n::::::::::::::")
            copy(process, chunks)
        except SysError as error:
            process.stdout.flush()
            process.warn(f"cannot open {name}: {error.reason}")
    return status
