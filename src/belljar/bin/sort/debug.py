"""sort --debug: each line of the output with the part of it underlined that each key compares."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from belljar.abi.paths import fsdecode
from belljar.bin.sort.keys import BLANK, FLOAT, MONTHS, KeySpec, span
from belljar.libc.width import display_width

_RAW_NUMBER = re.compile(rb"-?\d*(?:\.\d*)?")


def underlined(
    lines: Iterable[bytes], specs: Sequence[KeySpec], separator: bytes | None, *, last_resort: bool
) -> Iterator[bytes]:
    """The lines with a line of underscores for each key; the whole line is underlined for the last resort."""
    spans = [(spec, span(spec, separator)) for spec in specs]
    for line in lines:
        yield line.replace(b"\t", b">")
        for spec, find in spans:
            yield _mark(line, *_tightened(line, spec, *find(line)))
        if last_resort:
            yield _mark(line, 0, len(line))


def _tightened(line: bytes, spec: KeySpec, begin: int, end: int) -> tuple[int, int]:
    """Only what a number or a month takes of its key."""
    orders = set(spec.orders)
    if not orders & set("ghMn") and not (spec.skip_start and spec.start == (1, 1)):
        return begin, end
    data = line[begin : max(begin, end)]
    data = data.lstrip(BLANK)
    begin = max(begin, end) - len(data)
    if end < begin:
        return begin, end
    if "M" in orders:
        return begin, begin + (3 if data[:3].upper() in MONTHS else 0)
    if "g" in orders:
        found = FLOAT.match(data)
        return begin, begin + (found.end() if found else 0)
    if orders & set("hn"):
        number = _RAW_NUMBER.match(data)
        size = number.end() if number is not None and re.search(rb"\d", number[0]) else 0
        if size and "h" in orders and data[size : size + 1] in (b"K", b"k", *(bytes([c]) for c in b"MGTPEZY")):
            size += 1
        return begin, begin + size
    return begin, end


def _mark(line: bytes, begin: int, end: int) -> bytes:
    width = _columns(line[begin : max(begin, end)])
    return b" " * _columns(line[:begin]) + (b"_" * width if width else b"^ no match for key")


def _columns(data: bytes) -> int:
    return display_width(fsdecode(data.replace(b"\t", b">")))
