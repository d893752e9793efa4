"""Lines in bulk: whole chunks are split at once, so that no Python code runs per byte and little per line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator


class LineBatches:
    """Lists of lines without their terminators, in order; `complete` tells after the last whether it ended in one."""

    def __init__(self, chunks: Iterable[bytes], delimiter: bytes = b"\n") -> None:
        self._chunks = chunks
        self._delimiter = delimiter
        self.complete = True

    def __iter__(self) -> Iterator[list[bytes]]:
        delimiter = self._delimiter
        rest: list[bytes] = []
        for chunk in self._chunks:
            head, found, tail = chunk.rpartition(delimiter)
            if not found:
                rest.append(chunk)
                continue
            if rest:
                rest.append(head)
                head = b"".join(rest)
            rest = [tail] if tail else []
            yield head.split(delimiter)
        if rest:
            self.complete = False
            yield [b"".join(rest)]

    def lines(self) -> Iterator[bytes]:
        for batch in self:
            yield from batch


def batches(chunks: Iterable[bytes], delimiter: bytes = b"\n") -> LineBatches:
    return LineBatches(chunks, delimiter)
