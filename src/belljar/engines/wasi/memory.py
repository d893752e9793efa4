"""A guest's linear memory, as host functions see it: every access is checked against its current size."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final

_U32: Final = struct.Struct("<I")
_U64: Final = struct.Struct("<Q")
IOVECTORS_MAX: Final = 1024


class Fault(Exception):
    """An address outside the guest's memory."""


class Memory:
    """`view` covers the whole reservation; only `size()` bytes of it exist, and that number only grows."""

    __slots__ = ("_size", "_view", "size")

    def __init__(self, view: memoryview, size: Callable[[], int]) -> None:
        self._view = view
        self.size = size
        self._size = size()

    def check(self, address: int, length: int) -> None:
        if address + length > self._size:
            self._size = self.size()
            if address + length > self._size:
                raise Fault

    def whole(self) -> memoryview:
        """Return a view of the memory's current size."""
        return self._view[: self.size()]

    def read(self, address: int, length: int) -> bytes:
        self.check(address, length)
        return bytes(self._view[address : address + length])

    def write(self, address: int, data: bytes | memoryview) -> None:
        self.check(address, len(data))
        self._view[address : address + len(data)] = data

    def write_u32(self, address: int, value: int) -> None:
        self.check(address, 4)
        _U32.pack_into(self._view, address, value)

    def write_u64(self, address: int, value: int) -> None:
        self.check(address, 8)
        _U64.pack_into(self._view, address, value & 0xFFFFFFFFFFFFFFFF)

    def vectors(self, address: int, count: int) -> list[tuple[int, int]]:
        """The (address, length) pairs of an iovec array, all of them inside the memory."""
        if count > IOVECTORS_MAX:
            raise Fault
        self.check(address, 8 * count)
        found = [
            (int(start), int(length)) for start, length in struct.iter_unpack("<II", self.read(address, 8 * count))
        ]
        for start, length in found:
            self.check(start, length)
        return found

    def gather(self, vectors: list[tuple[int, int]], limit: int) -> Iterator[bytes]:
        """Yield the vectors' bytes in pieces, at most `limit` bytes in all."""
        for start, length in vectors:
            take = min(length, limit)
            if take:
                yield self.read(start, take)
            limit -= take

    def scatter(self, vectors: list[tuple[int, int]], data: bytes) -> None:
        """Fill the vectors with data, which is not longer than they are together."""
        position = 0
        for start, length in vectors:
            if position >= len(data):
                return
            piece = data[position : position + length]
            self.write(start, piece)
            position += len(piece)
