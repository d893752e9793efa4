"""tac - concatenate and print files in reverse

Usage: tac [OPTION]... [FILE]...

Write each FILE to standard output, last line first. With no FILE, or when FILE is -, read standard input.
"""

import re
from itertools import pairwise

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.bin._kit.quoting import quote_name
from belljar.kernel.process import Process
from belljar.regex import Regex, RegexError
from belljar.regex import compile as compile_regex


@dataclass(frozen=True, slots=True)
class Options:
    before: bool = flag("-b", "--before", "attach the separator before instead of after")
    regex: bool = flag("-r", "--regex", "interpret the separator as a regular expression")
    separator: str = value(
        "-s", "--separator", "use STRING as the separator instead of newline", metavar="STRING", default="\n"
    )


@utility("tac", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not options.separator and options.regex:
        raise UsageError("separator cannot be empty", hint=False)
    status = 0
    for name in operands or ["-"]:
        try:
            if name != "-" and process.fs.stat(name).is_dir:
                process.warn(f"{name}: read error: Invalid argument")
                status = 1
                continue
            data = process.read_file(name)
        except SysError as error:
            process.warn(f"failed to open {quote_name(name)} for reading: {error.reason}")
            status = 1
            continue
        if options.regex or options.before:
            process.stdout.write(b"".join(reversed(records(data, options))))
        else:
            process.stdout.write(reversed_after(data, fsencode(options.separator) or b"\0"))
    return status


def _from_the_end(pattern: Regex, data: bytes) -> list[tuple[int, int]]:
    """Matches as a search from the end finds them: the last place where one starts, then the last before that."""
    starts: list[int] = []
    position = 0
    while (match := pattern.search(data, position)) is not None:
        starts.append(match.start())
        position = match.start() + 1
        if position > len(data):
            break
    cuts: list[tuple[int, int]] = []
    limit = len(data)
    for start in reversed(starts):
        if start < limit and (match := pattern.search(data, start, limit)) is not None and match.start() == start:
            cuts.append((start, match.end()))
            limit = start
    return cuts[::-1]


def reversed_after(data: bytes, separator: bytes) -> bytes:
    """The records, each followed by its separator, the other way round."""
    parts = data.split(separator)
    last = parts.pop()
    return last + separator.join(reversed(parts)) + separator if parts else last


def records(data: bytes, options: Options) -> list[bytes]:
    """The records with their separators attached."""
    if options.regex:
        try:
            pattern = compile_regex(options.separator, syntax="emacs", newline=True)
        except RegexError as error:
            raise UsageError(str(error), hint=False) from None
        cuts = _from_the_end(pattern, data)
    else:
        separator = fsencode(options.separator) or b"\0"
        cuts = [(match.start(), match.end()) for match in re.finditer(re.escape(separator), data)]
    edges = [0, *(start if options.before else end for start, end in cuts), len(data)]
    return [data[a:b] for a, b in pairwise(edges)]
