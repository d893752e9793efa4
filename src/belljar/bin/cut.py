"""cut - remove sections from each line of files

Usage: cut OPTION... [FILE]...

Print selected parts of lines from each FILE to standard output. With no FILE, or when FILE is -, read standard input.
LIST is made of ranges separated by commas: N, N-, N-M or -M, counted from 1.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from operator import itemgetter

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.bin._kit import UsageError, flag, line_batches, many, utility, value
from belljar.bin._kit.quoting import quote_if_odd
from belljar.kernel.process import Process

_END = 1 << 62
_FEW = 100
"""Fields that are picked one by one; more are cut out as slices."""


@dataclass(frozen=True, slots=True)
class Options:
    bytes: tuple[str, ...] = many("-b", "--bytes", "select only these bytes", metavar="LIST")
    characters: tuple[str, ...] = many("-c", "--characters", "select only these characters", metavar="LIST")
    delimiter: str | None = value("-d", "--delimiter", "use DELIM instead of TAB for field delimiter", metavar="DELIM")
    fields: tuple[str, ...] = many("-f", "--fields", "select only these fields", metavar="LIST")
    no_split: bool = flag("-n", "(ignored)")
    complement: bool = flag("--complement", "complement the set of selected bytes, characters or fields")
    only_delimited: bool = flag("-s", "--only-delimited", "do not print lines not containing delimiters")
    output: str | None = value("--output-delimiter", "use STRING as the output delimiter", metavar="STRING")
    zero: bool = flag("-z", "--zero-terminated", "line delimiter is NUL, not newline")


Range = tuple[int, int]
"""Zero-based, half open."""


@utility("cut", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    given = [(name, lists) for name in ("bytes", "characters", "fields") if (lists := getattr(options, name))]
    if not given:
        raise UsageError("you must specify a list of bytes, characters, or fields")
    if len(given) > 1 or len(given[0][1]) > 1:
        raise UsageError("only one list may be specified")
    mode, (text,) = given[0]
    if mode != "fields":
        if options.delimiter is not None:
            raise UsageError("an input delimiter may be specified only when operating on fields")
        if options.only_delimited:
            raise UsageError("suppressing non-delimited lines makes sense\n\tonly when operating on fields")
    delimiter = fsencode(options.delimiter if options.delimiter is not None else "\t") or b"\0"
    if len(delimiter) > 1:
        raise UsageError("the delimiter must be a single character")
    ranges = parse_list(text, mode)
    if options.complement:
        ranges = complement(ranges)
    newline = b"\0" if options.zero else b"\n"
    whole = mode == "fields" and delimiter == newline
    output = None if options.output is None else fsencode(options.output) or b"\0"
    if mode == "fields":
        select = field_selector(
            ranges, delimiter, delimiter if output is None else output, options.only_delimited, whole=whole
        )
    else:
        select = byte_selector(merge(ranges) if output is None else ranges, output or b"")
    needed = ranges[0][0] if options.only_delimited and ranges else None
    return cut_files(process, operands or ["-"], select, newline, whole=whole, needed=needed)


Selector = Callable[[list[bytes]], Iterable[bytes]]


def cut_files(
    process: Process, names: list[str], select: Selector, newline: bytes, *, whole: bool, needed: int | None
) -> int:
    """`whole`: the fields are the lines, and each file is one record; `needed`: the first field, if -s was given."""
    status = 0
    for name in names:
        try:
            for batch in _whole(process, name, newline, needed) if whole else line_batches(process, name, newline):
                process.budget.charge(len(batch) // 16 + 1)
                if chosen := list(select(batch)):
                    process.stdout.write(newline.join(chosen) + newline)
        except SysError as error:
            process.warn(f"{quote_if_odd(name)}: {error.reason}")
            status = 1
    return status


def _whole(process: Process, name: str, newline: bytes, needed: int | None) -> Iterator[list[bytes]]:
    """All of a file as one record. `needed`: it must have a delimiter (-s), and a lone field must be this one."""
    data = process.read_file(name)
    body = data.removesuffix(newline)
    if needed is not None and newline not in body and (needed > 0 or newline not in data):
        return
    if data:
        yield [body]


def parse_list(text: str, mode: str) -> list[Range]:
    ranges: list[Range] = []
    for item in text.replace(" ", ",").replace("\t", ",").split(","):
        low, dash, high = item.partition("-")
        bad = (low and not low.isdecimal()) or (high and not high.isdecimal())
        if bad or (item and not low.isascii()):
            if mode == "fields":
                raise UsageError(f"invalid field value \u2018{item.lstrip('-0123456789') or item}\u2019")
            raise UsageError(
                "invalid byte or character range"
                if "-" in high
                else f"invalid byte/character position \u2018{item}\u2019"
            )
        for digits in (low, high):
            if len(digits) > 18:
                what = "field number" if mode == "fields" else "byte/character offset"
                raise UsageError(f"{what} \u2018{digits}\u2019 is too large")
        if not item or (low and int(low) == 0) or (dash and high and int(high) == 0 and not low):
            raise UsageError(
                "fields are numbered from 1" if mode == "fields" else "byte/character positions are numbered from 1"
            )
        if item == "-":
            raise UsageError("invalid range with no endpoint: -")
        start = int(low) if low else 1
        end = int(high) if high else (_END if dash else start)
        if end < start:
            raise UsageError("invalid decreasing range")
        ranges.append((start - 1, end))
    ranges.sort()
    united: list[Range] = []
    for start, end in ranges:
        if united and start < united[-1][1]:
            united[-1] = (united[-1][0], max(end, united[-1][1]))
        else:
            united.append((start, end))
    return united


def merge(ranges: list[Range]) -> list[Range]:
    """Adjoining ranges as one: they only matter apart when a delimiter goes between them."""
    merged: list[Range] = []
    for start, end in ranges:
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(end, merged[-1][1]))
        else:
            merged.append((start, end))
    return merged


def complement(ranges: list[Range]) -> list[Range]:
    gaps: list[Range] = []
    position = 0
    for start, end in merge(ranges):
        if start > position:
            gaps.append((position, start))
        position = end
    if position < _END:
        gaps.append((position, _END))
    return gaps


def byte_selector(ranges: list[Range], output: bytes) -> Selector:
    if len(ranges) == 1:
        start, end = ranges[0]
        return lambda lines: (line[start:end] for line in lines)
    return lambda lines: (output.join(p for s, e in ranges if (p := line[s:e])) for line in lines)


def field_selector(
    ranges: list[Range], delimiter: bytes, output: bytes, only_delimited: bool, *, whole: bool = False
) -> Selector:
    last = ranges[-1][1] if ranges else 0
    limit = -1 if last == _END else last
    if last == _END and output == delimiter:
        # What is left of a line is kept in one piece, like one more field.
        limit = ranges[-1][0]
        last = limit + 1
        ranges = [*ranges[:-1], (limit, last)]
    indexes = [index for start, end in ranges for index in range(start, min(end, start + _FEW))]
    pick = itemgetter(*indexes) if 0 < last < _FEW else None

    def select(lines: list[bytes]) -> Iterable[bytes]:
        if only_delimited and not whole:
            lines = [line for line in lines if delimiter in line]
        if pick is not None:
            with suppress(IndexError):  # some line has fewer fields
                if len(indexes) == 1:
                    return [pick(line.split(delimiter, limit)) for line in lines]
                return [output.join(pick(line.split(delimiter, limit))) for line in lines]
        return map(select_some, lines)

    def select_some(line: bytes) -> bytes:
        if delimiter not in line:
            return line
        fields = line.split(delimiter, limit)
        if len(fields) > last:
            fields.pop()
        return output.join([field for start, end in ranges for field in fields[start:end]])

    return select
