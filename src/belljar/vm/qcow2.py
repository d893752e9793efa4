"""qcow2 images, as bytes at offsets: written whole, and read back. Version 2, without compression or backing files."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Final

_MAGIC: Final = 0x514649FB
_HEADER: Final = struct.Struct(">IIQIIQIIQQIIQ")
_COPIED: Final = 1 << 63
_OFFSET: Final = 0x00FFFFFFFFFFFE00
CLUSTER_LEAST, CLUSTER_MOST = 512, 2 << 20


class Qcow2Error(ValueError):
    """The image is none that this can read."""


class Layout:
    """Where everything of an image lies: header, refcounts, tables, then the data clusters in the order of the disk."""

    def __init__(self, size: int, clusters: Sequence[int], cluster_size: int) -> None:
        if cluster_size & (cluster_size - 1) or not CLUSTER_LEAST <= cluster_size <= CLUSTER_MOST:
            raise ValueError(f"cluster_size={cluster_size}: a power of two from {CLUSTER_LEAST} to {CLUSTER_MOST}")
        self.size, self.cluster_size = size, cluster_size
        self._data = list(clusters)
        per_table = cluster_size // 8
        self._tables = sorted({cluster // per_table for cluster in clusters})
        total = -(-size // cluster_size)
        self._l1_entries = max(1, -(-total // per_table))
        self._l1_clusters = -(-self._l1_entries * 8 // cluster_size)
        self._blocks = 1
        self._table_clusters = 1
        while True:  # refcounts count themselves
            count = self.count
            blocks = -(-count * 2 // cluster_size)
            tables = -(-blocks * 8 // cluster_size)
            if (blocks, tables) == (self._blocks, self._table_clusters):
                break
            self._blocks, self._table_clusters = blocks, tables

    @property
    def _first_data(self) -> int:
        return 1 + self._table_clusters + self._blocks + self._l1_clusters + len(self._tables)

    @property
    def count(self) -> int:
        """Clusters of the file."""
        return self._first_data + len(self._data)

    @property
    def file_size(self) -> int:
        return self.count * self.cluster_size

    def metadata(self) -> Iterator[bytes]:
        """All before the data."""
        size, per_table = self.cluster_size, self.cluster_size // 8
        refcounts, l1 = 1, 1 + self._table_clusters + self._blocks
        header = _HEADER.pack(
            _MAGIC, 2, 0, 0, size.bit_length() - 1, self.size, 0, self._l1_entries, l1 * size, refcounts * size,
            self._table_clusters, 0, 0,
        )  # fmt: skip
        yield header.ljust(size, b"\0")
        first_block = 1 + self._table_clusters
        table = b"".join(struct.pack(">Q", (first_block + block) * size) for block in range(self._blocks))
        yield table.ljust(self._table_clusters * size, b"\0")
        yield (b"\0\1" * self.count).ljust(self._blocks * size, b"\0")
        first_table = l1 + self._l1_clusters
        entries = dict(zip(self._tables, range(first_table, first_table + len(self._tables)), strict=True))
        yield b"".join(
            struct.pack(">Q", entries[table] * size | _COPIED if table in entries else 0)
            for table in range(self._l1_entries)
        ).ljust(self._l1_clusters * size, b"\0")
        places = {cluster: self._first_data + number for number, cluster in enumerate(self._data)}
        for number in self._tables:
            yield b"".join(
                struct.pack(">Q", places[cluster] * size | _COPIED if cluster in places else 0)
                for cluster in range(number * per_table, (number + 1) * per_table)
            )

    def data(self, read: Callable[[int, int], bytes]) -> Iterator[bytes]:
        """The data clusters; `read` gives bytes of the disk."""
        for cluster in self._data:
            start = cluster * self.cluster_size
            data = read(start, min(self.cluster_size, self.size - start))
            yield data.ljust(self.cluster_size, b"\0")


def used_clusters(size: int, cluster_size: int, read: Callable[[int, int], bytes]) -> Iterator[int]:
    """Clusters of a disk that are not all zero."""
    zero = bytes(cluster_size)
    for start in range(0, size, cluster_size):
        data = read(start, min(cluster_size, size - start))
        if data != zero[: len(data)]:
            yield start // cluster_size


class Reader:
    """A disk whose image was written by this module, or is as plain. `image` gives bytes of the file. Qcow2Error."""

    def __init__(self, image: Callable[[int, int], bytes]) -> None:
        self._image = image
        head = image(0, _HEADER.size)
        if len(head) < _HEADER.size:
            raise Qcow2Error("it is too short")
        magic, version, backing, _, bits, size, crypt, entries, l1, *_ = _HEADER.unpack(head)
        if magic != _MAGIC or version != 2 or backing or crypt or not 9 <= bits <= 21:
            raise Qcow2Error("it is no plain qcow2 image")
        if entries > (64 << 20) // 8 or entries * (1 << (2 * bits - 3)) < size:
            raise Qcow2Error("its tables make no sense")
        self.size = size
        self._bits = bits
        self._l1 = struct.unpack(f">{entries}Q", image(l1, entries * 8))
        self._l2: dict[int, tuple[int, ...]] = {}

    def read(self, offset: int, length: int) -> bytes:
        parts = []
        end = offset + length
        while offset < end:
            within = offset & ((1 << self._bits) - 1)
            count = min(end - offset, (1 << self._bits) - within)
            place = self._place(offset >> self._bits)
            parts.append(bytes(count) if place == 0 else self._image(place + within, count))
            offset += count
        return b"".join(parts)

    def _place(self, cluster: int) -> int:
        number, at = divmod(cluster, 1 << (self._bits - 3))
        if number not in self._l2:
            table = self._l1[number] & _OFFSET
            entries = 1 << (self._bits - 3)
            self._l2[number] = (
                struct.unpack(f">{entries}Q", self._image(table, entries * 8)) if table else (0,) * entries
            )
        found: int = self._l2[number][at] & _OFFSET
        return found
