"""Lines in bulk: whole chunks are split at once, so that no Python code runs per byte and little per line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from belljar.abi.errors import SysError
from belljar.kernel.budget import Budget
from belljar.kernel.process import Process


class LineBatches:
    """Lists of lines without their terminators, in order; `complete` tells after the last whether it ended in one.

    A line without end is charged for as it grows.
    """

    def __init__(self, chunks: Iterable[bytes], delimiter: bytes, budget: Budget) -> None:
        self._chunks = chunks
        self._delimiter = delimiter
        self._budget = budget
        self.complete = True

    def __iter__(self) -> Iterator[list[bytes]]:
        delimiter = self._delimiter
        rest: list[bytes] = []
        held = 0
        for chunk in self._chunks:
            head, found, tail = chunk.rpartition(delimiter)
            if not found:
                rest.append(chunk)
                held += len(chunk)
                self._budget.charge_size(held)
                continue
            if rest:
                rest.append(head)
                head = b"".join(rest)
            rest = [tail] if tail else []
            held = len(tail)
            yield head.split(delimiter)
        if rest:
            self.complete = False
            yield [b"".join(rest)]

    def lines(self) -> Iterator[bytes]:
        for batch in self:
            yield from batch


def line_batches(process: Process, name: str, delimiter: bytes = b"\n") -> LineBatches:
    """The lines of a file; `-` is standard input."""
    return LineBatches(_named(process.chunks(name), name), delimiter, process.budget)


def _named(chunks: Iterator[bytes], name: str) -> Iterator[bytes]:
    """The same chunks; an error while they are read names the file."""
    try:
        yield from chunks
    except SysError as error:
        raise SysError(error.errno, error.path or name) from None
