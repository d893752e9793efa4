"""shuf - generate random permutations

Usage: shuf [OPTION]... [FILE]
       shuf -e [OPTION]... [ARG]...
       shuf -i LO-HI [OPTION]...

Write a random permutation of the input lines to standard output. With no FILE, or when FILE is -, read standard input.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from heapq import nsmallest
from struct import unpack

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.bin._kit import UsageError, flag, many, utility, value
from belljar.bin._kit.quoting import quote, quote_if_odd
from belljar.bin._kit.text import line_batches
from belljar.kernel.process import Process

_LARGEST = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Options:
    echo: bool = flag("-e", "--echo", "treat each ARG as an input line")
    range: tuple[str, ...] = many(
        "-i", "--input-range", "treat each number LO through HI as an input line", metavar="LO-HI"
    )
    count: tuple[str, ...] = many("-n", "--head-count", "output at most COUNT lines", metavar="COUNT")
    output: tuple[str, ...] = many("-o", "--output", "write result to FILE instead of standard output", metavar="FILE")
    source: str | None = value("--random-source", "get random bytes from FILE", metavar="FILE")
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
    newline = b"\0" if options.zero else b"\n"
    lines: list[bytes] | range
    if options.range:
        lines = _range(process, options.range[0])
    elif options.echo:
        lines = [fsencode(arg) for arg in operands]
    else:
        lines = _read(process, operands[0] if operands else "-", newline)
    draw = _dice(process, options.source)
    if options.repeat:
        if limit == 0 or (limit is not None and not lines):
            if limit and not lines:
                raise UsageError("no lines to repeat", hint=False)
            return 0
        if not lines:
            raise UsageError("no lines to repeat", hint=False)
        chosen: Iterator[int] = _repeated(process, draw, len(lines), limit)
    else:
        chosen = _permuted(process, draw, len(lines), len(lines) if limit is None else min(limit, len(lines)))
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
    match = re.fullmatch(r"(\d+)-(\d+)", text, re.ASCII)
    if match is None or int(match[1][:30]) > _LARGEST or int(match[2][:30]) > _LARGEST:
        raise UsageError(f"invalid input range: {quote(text, process.env)}", hint=False)
    low, high = int(match[1]), int(match[2])
    # LO-HI may be empty, as 1-0 is, but no emptier.
    if high < low - 1 or high - low + 1 >= 1 << 63:
        raise UsageError(f"invalid input range: {quote(text, process.env)}", hint=False)
    return range(low, high + 1)


def _read(process: Process, name: str, newline: bytes) -> list[bytes]:
    lines: list[bytes] = []
    size = 0
    try:
        for batch in line_batches(process, name, newline):
            size += sum(map(len, batch)) + 64 * len(batch)
            process.budget.charge_size(size)
            process.budget.charge(len(batch) // 16 + 1)
            lines += batch
    except SysError as error:
        raise UsageError(f"{quote_if_odd(name)}: {error.reason}", hint=False) from error
    return lines


Draw = Callable[[int], tuple[int, ...]]
"""So many random 64-bit numbers."""


def _dice(process: Process, source: str | None) -> Draw:
    if source is None:
        entropy = process.kernel.machine.entropy
        return lambda count: unpack(f"<{count}Q", entropy.random_bytes(8 * count))
    chunks = process.chunks(source)
    held = bytearray()

    def draw(count: int) -> tuple[int, ...]:
        while len(held) < 8 * count:
            chunk = next(chunks, None)
            if chunk is None:
                raise UsageError(f"{quote_if_odd(source)}: end of file", hint=False)
            held.extend(chunk)
        data = bytes(held[: 8 * count])
        del held[: 8 * count]
        return unpack(f"<{count}Q", data)

    return draw


def _repeated(process: Process, draw: Draw, size: int, limit: int | None) -> Iterator[int]:
    done = 0
    while limit is None or done < limit:
        process.budget.charge(16)
        count = 256 if limit is None else min(256, limit - done)
        done += count
        # A 64-bit number times the size, shifted back, is even enough to the last bit that matters.
        yield from ((number * size) >> 64 for number in draw(count))


def _permuted(process: Process, draw: Draw, size: int, count: int) -> Iterator[int]:
    """`count` of the numbers below `size`: by random keys, or by drawing until there are enough different ones."""
    process.budget.charge_size(64 * count)
    if size > 4 * count:
        seen: set[int] = set()
        while len(seen) < count:
            process.budget.charge()
            (number,) = draw(1)
            index = (number * size) >> 64
            if index not in seen:
                seen.add(index)
                yield index
        return
    process.budget.charge(size // 4 + 1)
    process.budget.charge_size(64 * size)
    keys: list[int] = []
    while len(keys) < size:
        keys += draw(min(4096, size - len(keys)))
    if count < size // 16:
        yield from nsmallest(count, range(size), key=keys.__getitem__)
    else:
        yield from sorted(range(size), key=keys.__getitem__)[:count]
