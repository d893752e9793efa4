"""uniq - report or omit repeated lines

Usage: uniq [OPTION]... [INPUT [OUTPUT]]

Filter adjacent matching lines from INPUT (or standard input), writing to OUTPUT (or standard output). With no options,
matching lines are merged to the first occurrence.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import compress, groupby, islice
from operator import ne, sub

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import EISDIR
from belljar.abi.errors import SysError
from belljar.abi.flags import O_CREAT, O_TRUNC, O_WRONLY
from belljar.bin._kit import LineBatches, UsageError, flag, line_batches, value
from belljar.bin._kit.choices import pick
from belljar.bin._kit.options import parse
from belljar.bin._kit.program import utility, version
from belljar.bin._kit.quoting import quote_if_odd
from belljar.kernel.process import Process

_FIELD = re.compile(rb"[ \t]*[^ \t]*")


@dataclass(frozen=True, slots=True)
class Options:
    count: bool = flag("-c", "--count", "prefix lines by the number of occurrences")
    repeated: bool = flag("-d", "--repeated", "only print duplicate lines, one for each group")
    all_flag: bool = flag("-D", "print all duplicate lines")
    all_repeated: str | None = value(
        "--all-repeated", "like -D, but allow separating groups: none, prepend, separate", metavar="METHOD", bare="none"
    )
    skip_fields: str = value("-f", "--skip-fields", "avoid comparing the first N fields", metavar="N", default="0")
    group: str | None = value(
        "--group", "show all items, separating groups: separate, prepend, append, both", metavar="METHOD",
        bare="separate",
    )  # fmt: skip
    ignore_case: bool = flag("-i", "--ignore-case", "ignore differences in case when comparing")
    skip_chars: str = value("-s", "--skip-chars", "avoid comparing the first N characters", metavar="N", default="0")
    unique: bool = flag("-u", "--unique", "only print unique lines")
    zero: bool = flag("-z", "--zero-terminated", "line delimiter is NUL, not newline")
    check_chars: str | None = value("-w", "--check-chars", "compare no more than N characters in lines", metavar="N")


@utility("uniq")
def main(process: Process, args: list[str]) -> int:
    parsed = parse(Options, [_modern(arg) for arg in args])
    if parsed.asked:
        process.print(main.help().rstrip() if parsed.asked == "help" else version("uniq"))
        return 0
    options, operands = Options(**parsed.values), parsed.operands
    if len(operands) > 2:
        raise UsageError(f"extra operand \u2018{operands[2]}\u2019")
    if options.group is not None and (options.count or options.repeated or options.unique or options.all_flag):
        raise UsageError("--group is mutually exclusive with -c/-d/-D/-u")
    if options.count and (options.all_flag or options.all_repeated is not None):
        raise UsageError("printing all duplicated lines and repeat counts is meaningless")
    for text, option, allowed in (
        (options.group, "--group", ("prepend", "append", "separate", "both")),
        (options.all_repeated, "--all-repeated", ("none", "prepend", "separate")),
    ):
        if text is not None and text not in allowed:
            pick(process, option, text, {word: () for word in allowed})
    if len(operands) == 2 and operands[1] != "-":
        fd = process.open(operands[1], O_WRONLY | O_CREAT | O_TRUNC)
        process.dup2(fd, 1)
        process.close(fd)
    newline = b"\0" if options.zero else b"\n"
    name = operands[0] if operands else "-"
    try:
        for block in filtered(process, options, name, newline):
            process.stdout.write(block)
    except SysError as error:
        opened = error.errno != EISDIR
        process.warn(f"{quote_if_odd(error.path or name)}: {error.reason}" if opened else f"error reading '{name}'")
        return 1
    return 0


def _modern(arg: str) -> str:
    """The obsolete `+N` and `-N` forms."""
    if re.fullmatch(r"-\d+", arg):
        return "-f" + arg[1:]
    return "-s" + arg[1:] if re.fullmatch(r"\+\d+", arg) else arg


def _number(text: str, what: str) -> int:
    if not text.isdecimal():
        raise UsageError(f"{text}: invalid number of {what}", hint=False)
    return int(text[:18])


def filtered(process: Process, options: Options, name: str, newline: bytes) -> Iterator[bytes]:
    fields = _number(options.skip_fields, "fields to skip")
    skip = _number(options.skip_chars, "bytes to skip")
    check = None if options.check_chars is None else _number(options.check_chars, "bytes to compare")

    def key(line: bytes) -> bytes:
        position = 0
        for _ in range(fields):
            match = _FIELD.match(line, position)
            assert match is not None
            if match.end() == position:
                break
            position = match.end()
        line = line[position + skip :]
        if check is not None:
            line = line[:check]
        return line.lower() if options.ignore_case else line

    plain = not (fields or skip or check is not None or options.ignore_case)
    batches = line_batches(process, name, newline)
    method = options.all_repeated if options.all_repeated is not None else "none" if options.all_flag else None
    if options.group is not None or method is not None:
        groups = groupby(batches.lines(), None if plain else key)
        lines = _grouped(groups, options.group) if options.group is not None else (
            _all_repeated(groups, method or "none", unique=options.unique)
        )  # fmt: skip
        blocks = iter(lambda: list(islice(lines, 4096)), [])
    else:
        blocks = _merged(batches, None if plain else key, options)
    for block in blocks:
        process.budget.charge(len(block) // 8 + 1)
        if block:
            yield newline.join(block) + newline


def _merged(batches: LineBatches, key: Callable[[bytes], bytes] | None, options: Options) -> Iterator[list[bytes]]:
    def shown(counts: list[int], firsts: list[bytes]) -> list[bytes]:
        runs: Iterable[tuple[int, bytes]] = zip(counts, firsts, strict=True)
        if options.repeated or options.unique:
            runs = [run for run in runs if not (options.repeated if run[0] == 1 else options.unique)]
        return [b"%7d %s" % run for run in runs] if options.count else [first for _, first in runs]

    value, count, first = b"", 0, b""
    for batch in batches:
        values = batch if key is None else list(map(key, batch))
        starts = [0, *compress(range(1, len(batch)), map(ne, values, islice(values, 1, None)))]
        counts = list(map(sub, [*starts[1:], len(batch)], starts))
        firsts = [batch[start] for start in starts]
        if count and value == values[0]:
            counts[0] += count
            firsts[0] = first
        elif count:
            counts.insert(0, count)
            firsts.insert(0, first)
        # The last run may go on in the next batch.
        value, count, first = values[-1], counts.pop(), firsts.pop()
        yield shown(counts, firsts)
    if count:
        yield shown([count], [first])


Groups = Iterator[tuple[bytes, Iterator[bytes]]]


def _all_repeated(groups: Groups, method: str, *, unique: bool) -> Iterator[bytes]:
    started = False
    for _, group in groups:
        first = next(group)
        second = next(group, None)
        if second is None or unique:
            for _ in group:
                pass
            continue
        if method == "prepend" or (method == "separate" and started):
            yield b""
        started = True
        yield first
        yield second
        yield from group


def _grouped(groups: Groups, method: str) -> Iterator[bytes]:
    started = False
    for _, group in groups:
        if method in ("prepend", "both") or (method == "separate" and started):
            yield b""
        started = True
        yield from group
        if method == "append":
            yield b""
    if method == "both" and started:
        yield b""
