"""shuf - generate random permutations

Usage: shuf [OPTION]... [FILE]
       shuf -e [OPTION]... [ARG]...
       shuf -i LO-HI [OPTION]...

Write a random permutation of the input lines to standard output. With no FILE, or when FILE is -, read standard input.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import EISDIR
from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.bin._kit import UsageError, flag, many, utility
from belljar.bin._kit.numbers import bounded
from belljar.bin._kit.quoting import quote, quote_if_odd
from belljar.bin._kit.text import line_batches
from belljar.kernel.process import Process

_LARGEST = (1 << 64) - 1
_HELD = 8 << 20
"""Bytes; of larger inputs and pipes `-n` keeps a sample."""


@dataclass(frozen=True, slots=True)
class Options:
    echo: bool = flag("-e", "--echo", "treat each ARG as an input line")
    range: tuple[str, ...] = many(
        "-i", "--input-range", "treat each number LO through HI as an input line", metavar="LO-HI"
    )
    count: tuple[str, ...] = many("-n", "--head-count", "output at most COUNT lines", metavar="COUNT")
    output: tuple[str, ...] = many("-o", "--output", "write result to FILE instead of standard output", metavar="FILE")
    sources: tuple[str, ...] = many("--random-source", "get random bytes from FILE", metavar="FILE")
    repeat: bool = flag("-r", "--repeat", "output lines can be repeated")
    zero: bool = flag("-z", "--zero-terminated", "line delimiter is NUL, not newline")


@utility("shuf", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    limit = _count(process, options.count)
    if len(options.range) > 1:
        raise UsageError("multiple -i options specified", hint=False)
    if len(options.output) > 1:
        raise UsageError("multiple output files specified", hint=False)
    if options.echo and options.range:
        raise UsageError("cannot combine -e and -i options")
    extra = operands[:1] if options.range else [] if options.echo else operands[1:2]
    if extra:
        raise UsageError(f"extra operand {quote(extra[0], process.env)}")
    if len(set(options.sources)) > 1:
        raise UsageError("multiple random sources specified", hint=False)
    dice = Dice(process, options.sources[0] if options.sources else None)
    newline = b"\0" if options.zero else b"\n"
    lines: list[bytes] | range
    if options.range:
        lines = _range(process, options.range[0])
    elif options.echo:
        lines = [fsencode(arg) for arg in operands]
    else:
        name = operands[0] if operands else "-"
        sampled = limit is not None and not options.repeat and not _is_small(process, name)
        lines = _read(process, name, newline, dice if sampled else None, limit or 0)
    if options.repeat:
        if limit == 0:
            return 0
        if not lines:
            raise UsageError("no lines to repeat", hint=False)
        chosen: Iterator[int] = _repeated(process, dice, len(lines), limit)
    else:
        chosen = _permuted(process, dice, len(lines), len(lines) if limit is None else min(limit, len(lines)))
    if isinstance(lines, range):
        numbers = lines
        pieces = (b"%d" % numbers[i] + newline for i in chosen)
    else:
        texts = lines
        pieces = (texts[i] + newline for i in chosen)
    if options.output:
        process.write_file(options.output[0], b"".join(pieces))
        return 0
    for piece in pieces:
        process.stdout.write(piece)
    return 0


def _count(process: Process, texts: tuple[str, ...]) -> int | None:
    limits: list[int] = []
    for text in texts:
        if not re.fullmatch(r"\d+", text, re.ASCII):
            raise UsageError(f"invalid line count: {quote(text, process.env)}", hint=False)
        limits.append(int(text[:30]))
    return min(limits, default=None)


def _range(process: Process, text: str) -> range:
    first, dash, last = text.partition("-")
    if not dash:
        raise UsageError(f"invalid input range: {quote(text, process.env)}", hint=False)
    low = bounded(process, first, "input range", 0, _LARGEST)
    high = bounded(process, last, "input range", 0, _LARGEST)
    # LO-HI may be empty, as 1-0 is, but no emptier.
    if high < low - 1 or high - low + 1 >= 1 << 63:
        raise UsageError(f"invalid input range: {quote(text, process.env)}", hint=False)
    return range(low, high + 1)


def _is_small(process: Process, name: str) -> bool:
    """Whether all of the input may be held: a file of at most 8 MiB."""
    try:
        stat = process.fstat(0) if name == "-" else process.fs.stat(name)
    except SysError:
        return True
    return stat.is_regular and stat.size <= _HELD


def _read(process: Process, name: str, newline: bytes, dice: Dice | None, limit: int) -> list[bytes]:
    """All lines; with dice only `limit` of them, a reservoir in which each later line may take the place of another."""
    lines: list[bytes] = []
    size = count = 0
    place = -1
    try:
        for batch in line_batches(process, name, newline):
            process.budget.charge(len(batch) // 16 + 1)
            if dice is None or count + len(batch) <= limit:
                lines += batch
                count += len(batch)
                size += sum(map(len, batch)) + 64 * len(batch)
                process.budget.charge_size(size)
                continue
            process.budget.charge(len(batch))
            for line in batch:
                if count < limit:
                    lines.append(line)
                else:
                    if place < 0:
                        place = dice.below(count + 1)
                    if place < limit:
                        lines[place] = line
                    place = dice.below(count + 2)
                count += 1
    except SysError as error:
        what = "read error" if error.errno == EISDIR else quote_if_odd(name)
        raise UsageError(f"{what}: {error.reason}", hint=False) from error
    if dice is not None and count == limit > 0:
        dice.below(count + 1)  # GNU draws before it sees that there is no line more
    return lines


class Dice:
    """Random numbers made of bytes as GNU makes them, so that the same source gives the same choice."""

    def __init__(self, process: Process, source: str | None) -> None:
        self._number = self._most = 0
        self._held = b""
        self._source = source
        if source is None:
            entropy = process.kernel.machine.entropy
            self._chunks = iter(lambda: entropy.random_bytes(4096), b"")
        else:
            self._chunks = process.chunks(source)

    def below(self, choices: int) -> int:
        """A number from 0 to choices - 1, all equally likely; what is left of the bytes is used for the next."""
        largest = choices - 1
        number, most = self._number, self._most
        while True:
            while most < largest:
                number, most = number << 8 | self._byte(), most << 8 | 255
            if most == largest:
                self._number = self._most = 0
                return number
            excess = most - largest
            unusable = excess % choices
            last = most - unusable
            if number <= last:
                self._number, self._most = number // choices, excess // choices
                return number % choices
            number, most = number - last - 1, unusable - 1

    def _byte(self) -> int:
        if not self._held:
            chunk = next(self._chunks, b"")
            if not chunk:
                raise UsageError(f"{quote_if_odd(self._source or '')}: end of file", hint=False)
            self._held = chunk[::-1]
        byte, self._held = self._held[-1], self._held[:-1]
        return byte


def _repeated(process: Process, dice: Dice, size: int, limit: int | None) -> Iterator[int]:
    done = 0
    while limit is None or done < limit:
        process.budget.charge()
        done += 1
        yield dice.below(size)


def _permuted(process: Process, dice: Dice, size: int, count: int) -> Iterator[int]:
    """`count` of the numbers below `size`, by exchanging each place with one behind it."""
    process.budget.charge_size(64 * count)
    moved: dict[int, int] = {}
    for place in range(count):
        if place % 16 == 0:
            process.budget.charge(16)
        other = place + dice.below(size - place)
        yield moved.get(other, other)
        moved[other] = moved.pop(place, place) if other != place else place
