"""A disk of blocks: clean ones from a base image, changed ones in a store, and those not stored yet in a buffer.

Sans-IO: the base and the store are asked through functions, which may raise OSError or BlockStoreError; a reader of the
disk gets that as an I/O error. Nothing is lost or made up: a block whose store does not answer as it must is not read
from the base instead, and one that was not stored stays in the buffer.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from typing import Final, Protocol

from belljar.abi.errno import ENOSPC
from belljar.vm.blockstore import BLOCK_SIZE, BlockRange, BlockStoreError, Chunk

CACHE_BYTES: Final = 8 << 20
DIRTY_BYTES: Final = 64 << 20
"""What is buffered unless told."""
_RUN_MAX: Final = 1 << 20
"""Bytes asked for at once."""


class Base(Protocol):
    """An image that nobody changes."""

    size: int

    def read(self, offset: int, length: int) -> bytes:
        """Exactly so many bytes. OSError."""


class Calls(Protocol):
    """A store, with checked answers. Each may raise BlockStoreError."""

    block_size: int

    def indices(self) -> set[int]: ...
    def read(self, wanted: BlockRange) -> dict[int, bytes]: ...
    def write(self, chunks: list[Chunk]) -> None: ...
    def flush(self) -> None: ...


class Disk:
    """Not for several threads at a time. Without a store, changes are kept in the buffer, which is then a quota."""

    def __init__(self, base: Base, store: Calls | None = None, dirty_bytes: int = DIRTY_BYTES) -> None:
        self.size = base.size
        self.block_size = BLOCK_SIZE if store is None else store.block_size
        self._base = base
        self._store = store
        self._room = max(dirty_bytes, self.block_size)
        self._stored = set[int]() if store is None else store.indices()
        self._dirty: dict[int, bytearray] = {}
        self._clean: OrderedDict[int, bytes] = OrderedDict()

    @property
    def dirty_bytes(self) -> int:
        return len(self._dirty) * self.block_size

    @property
    def changed(self) -> list[int]:
        """Indices of blocks that are not the base's."""
        return sorted(self._stored | self._dirty.keys())

    def read(self, offset: int, length: int) -> bytes:
        if not self._dirty and not self._stored:
            return self._base.read(offset, length)
        return b"".join(self._pieces(offset, length))

    def _pieces(self, offset: int, length: int) -> Iterator[bytes | memoryview]:
        end = offset + length
        while offset < end:
            index, start = divmod(offset, self.block_size)
            if index not in self._dirty and index not in self._stored:
                stop = self._next_changed(index, end)
                yield self._base.read(offset, stop - offset)
                offset = stop
                continue
            count = min(end - offset, self.block_size - start)
            yield memoryview(self._block(index, end))[start : start + count]
            offset += count

    def _next_changed(self, index: int, end: int) -> int:
        """Where the first changed block after one begins, or the end."""
        while index * self.block_size < end and index not in self._dirty and index not in self._stored:
            index += 1
        return min(end, index * self.block_size)

    def _block(self, index: int, end: int = 0) -> bytes | bytearray:
        """A whole block, as it is now; of the store, those after it up to `end` are asked for as well."""
        if index in self._dirty:
            return self._dirty[index]
        if index not in self._stored:
            offset = index * self.block_size
            count = min(self.block_size, self.size - offset)
            return self._base.read(offset, count) + bytes(self.block_size - count)
        if index not in self._clean:
            self._fetch(index, end)
        self._clean.move_to_end(index)
        return self._clean[index]

    def _fetch(self, index: int, end: int) -> None:
        assert self._store is not None
        stop = index + 1
        while stop in self._stored and stop * self.block_size < end and (stop - index) * self.block_size < _RUN_MAX:
            stop += 1
        found = self._store.read(BlockRange(index, stop))
        missing = [each for each in range(index, stop) if each not in found]
        if missing:
            raise BlockStoreError(f"read() did not give block {missing[0]}, which list() had or write() was given")
        while self._clean and (len(self._clean) + len(found)) * self.block_size > CACHE_BYTES:
            self._clean.popitem(last=False)
        self._clean.update(found)

    def write(self, offset: int, data: memoryview) -> None:
        """OSError with ENOSPC beyond the quota; BlockStoreError if what must be stored first can't be."""
        while data:
            index, start = divmod(offset, self.block_size)
            count = min(len(data), self.block_size - start)
            block = self._dirty.get(index)
            if block is None:
                self._make_room()
                whole = count == self.block_size
                block = bytearray(data[:count]) if whole else bytearray(self._block(index))
                self._dirty[index] = block
                self._clean.pop(index, None)
            block[start : start + count] = data[:count]
            offset += count
            data = data[count:]

    def _make_room(self) -> None:
        if self.dirty_bytes + self.block_size <= self._room:
            return
        if self._store is None:
            raise OSError(ENOSPC, "the root filesystem's max_dirty_bytes are used up")
        self._store_dirty()

    def _store_dirty(self) -> None:
        """Store all that is buffered; what could not be stored stays."""
        assert self._store is not None
        waiting = sorted(self._dirty)
        step = max(1, _RUN_MAX * 4 // self.block_size)
        for at in range(0, len(waiting), step):
            indices = waiting[at : at + step]
            self._store.write([(index, bytes(self._dirty[index])) for index in indices])
            for index in indices:
                self._stored.add(index)
                del self._dirty[index]

    def flush(self) -> None:
        """Come back when all that was written is durable, as far as the store knows."""
        if self._store is not None:
            self._store_dirty()
            self._store.flush()

    def changes(self) -> Iterator[Chunk]:
        """All changed blocks, whole, in order."""
        for index in self.changed:
            yield index, bytes(self._block(index))

    def adopt(self, chunks: Iterable[Chunk]) -> None:
        """Begin with changes, whatever the quota."""
        for index, data in chunks:
            self._dirty[index] = bytearray(data)
