"""The bytes of an in-memory file: one buffer while dense, pages once it has holes worth saving."""

from __future__ import annotations

from typing import Final

PAGE: Final = 1 << 16
HOLE: Final = 1 << 20
"""A gap of zeros at least this long makes a file sparse; shorter ones are simply filled."""


class Sparse:
    """Pages by number; an absent page is zeros."""

    __slots__ = ("pages", "size")

    def __init__(self, data: bytes | bytearray) -> None:
        self.pages: dict[int, bytes | bytearray] = {}
        self.size = 0
        if data:
            self.write(0, bytes(data))

    def cost(self, offset: int, length: int) -> int:
        """Bytes of new pages that a write would need."""
        first, last = offset // PAGE, (offset + length - 1) // PAGE
        return PAGE * sum(number not in self.pages for number in range(first, last + 1))

    @property
    def held(self) -> int:
        return len(self.pages) * PAGE

    def read(self, offset: int, size: int) -> bytes:
        end = min(offset + size, self.size)
        if offset >= end:
            return b""
        parts: list[bytes] = []
        while offset < end:
            number, start = divmod(offset, PAGE)
            stop = min(PAGE, start + end - offset)
            page = self.pages.get(number)
            parts.append(bytes(stop - start) if page is None else bytes(page[start:stop]))
            offset += stop - start
        return b"".join(parts)

    def write(self, offset: int, data: bytes) -> None:
        position, length = 0, len(data)
        while position < length:
            number, start = divmod(offset + position, PAGE)
            count = min(PAGE - start, length - position)
            page = self._writable(number)
            page[start : start + count] = data[position : position + count]
            position += count
        self.size = max(self.size, offset + length)

    def truncate(self, size: int) -> None:
        if size < self.size:
            number, start = divmod(size, PAGE)
            for page in [p for p in self.pages if p > number or (p == number and start == 0)]:
                del self.pages[page]
            if number in self.pages:
                self._writable(number)[start:] = bytes(PAGE - start)
        self.size = size

    def _writable(self, number: int) -> bytearray:
        page = self.pages.get(number)
        if not isinstance(page, bytearray):
            page = self.pages[number] = bytearray(PAGE if page is None else page)
        return page

    def freeze(self) -> None:
        """Make every page immutable; the next write to one makes a copy of it."""
        self.pages = {number: bytes(page) for number, page in self.pages.items()}

    def seek_data(self, offset: int, *, hole: bool) -> int:
        number = offset // PAGE
        if hole:
            while number in self.pages:
                number += 1
            return min(max(offset, number * PAGE), self.size)
        later = [page for page in self.pages if page >= number]
        if not later:
            return -1
        return max(offset, min(later) * PAGE)


Contents = bytes | bytearray | Sparse


def length(contents: Contents) -> int:
    return contents.size if isinstance(contents, Sparse) else len(contents)


def held(contents: Contents) -> int:
    """Approximate bytes of memory used: the figure that quotas count."""
    return contents.held if isinstance(contents, Sparse) else len(contents)
