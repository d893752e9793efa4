"""Standalone images: a base and what lies over it written as one qcow2 file into a block store, and read from there."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from msgspec import Struct

from belljar.vm.attach_host import hold_store
from belljar.vm.blocks import Base, Disk
from belljar.vm.blockstore import BlockContext, BlockRange, BlockStore, BlockStoreError, Chunk
from belljar.vm.nbd_host import FileBase, StoreCalls
from belljar.vm.qcow2 import Layout, Qcow2Error, Reader, used_clusters

_CLUSTER = 65_536


class Flat(Struct, frozen=True):
    """An image in a store."""

    digest: str
    file_size: int
    disk_size: int
    context: BlockContext


class ImageBytes:
    """A disk whose image is in a store. Close it."""

    def __init__(self, calls: StoreCalls, file_size: int) -> None:
        self._calls = calls
        self._file_size = file_size
        try:
            self._reader = Reader(self.bytes_at)
        except Qcow2Error as error:
            raise BlockStoreError(f"the image in the store can't be read: {error}") from error
        self.size = self._reader.size

    def bytes_at(self, offset: int, length: int) -> bytes:
        size = self._calls.block_size
        first, last = offset // size, -(-(offset + length) // size)
        found = self._calls.read(BlockRange(first, last))
        if len(found) != last - first:
            raise BlockStoreError("the store does not have all of the image any more")
        whole = b"".join(found[index] for index in range(first, last))
        return whole[offset - first * size : offset - first * size + length]

    def read(self, offset: int, length: int) -> bytes:
        return self._reader.read(offset, length)

    def close(self) -> None:
        self._calls.close()


def flatten(base: Base, name: str, overlay: BlockStore | None, dest: BlockStore, cluster_size: int) -> Flat:
    """Write the image of a base under an overlay's blocks. BlockStoreError, ValueError."""
    if overlay is None:
        return _write(Disk(base), name, dest, cluster_size)
    release = hold_store(overlay)
    calls = StoreCalls(overlay, BlockContext(name, base.size))
    try:
        return _write(Disk(base, calls), name, dest, cluster_size)
    finally:
        calls.close()
        release()


def _write(disk: Disk, name: str, dest: BlockStore, cluster_size: int) -> Flat:
    layout = Layout(disk.size, list(used_clusters(disk.size, cluster_size, disk.read)), cluster_size)
    context = BlockContext(f"qcow2 of {name}", layout.file_size)
    release = hold_store(dest)
    calls = StoreCalls(dest, context)
    digest = hashlib.sha256()
    try:
        calls.indices()
        for chunk in _blocks(_pieces(layout, disk, digest), calls.block_size):
            calls.write([chunk])
        calls.flush()
    finally:
        calls.close()
        release()
    return Flat(f"sha256:{digest.hexdigest()}", layout.file_size, disk.size, context)


def _pieces(layout: Layout, disk: Disk, digest: hashlib._Hash) -> Iterator[bytes]:
    for part in (layout.metadata(), layout.data(disk.read)):
        for piece in part:
            digest.update(piece)
            yield piece


def _blocks(pieces: Iterator[bytes], size: int) -> Iterator[Chunk]:
    waiting = bytearray()
    index = 0
    for piece in pieces:
        waiting += piece
        while len(waiting) >= size:
            yield index, bytes(waiting[:size])
            del waiting[:size]
            index += 1
    if waiting:
        yield index, bytes(waiting).ljust(size, b"\0")


def open_flat(flat: Flat, store: BlockStore) -> ImageBytes:
    """BlockStoreError."""
    calls = StoreCalls(store, flat.context)
    calls.indices()
    return ImageBytes(calls, flat.file_size)


def stream_flat(flat: Flat, store: BlockStore) -> Iterator[bytes]:
    """The bytes of an image's file. BlockStoreError."""
    image = open_flat(flat, store)
    try:
        for offset in range(0, flat.file_size, _CLUSTER):
            yield image.bytes_at(offset, min(_CLUSTER, flat.file_size - offset))
    finally:
        image.close()


def stream_disk(base: FileBase) -> Iterator[bytes]:
    """The bytes of a base's image file, which is made on the way."""
    try:
        layout = Layout(base.size, list(used_clusters(base.size, _CLUSTER, base.read)), _CLUSTER)
        yield from layout.metadata()
        yield from layout.data(base.read)
    finally:
        base.close()
