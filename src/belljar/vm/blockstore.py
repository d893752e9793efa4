"""`BlockStore`: where the changed blocks of a root filesystem are kept. Yours to implement; three come along."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from os import PathLike

BLOCK_SIZE: Final = 65_536
BLOCK_LEAST, BLOCK_MOST = 512, 16 << 20

Chunk: TypeAlias = tuple[int, bytes]
"""A block: its index, and its bytes."""


class BlockStoreError(Exception):
    """A block store can't be used: it is in use, belongs to another base, or breaks its contract. Says which."""


class BlockRange(Struct, frozen=True):
    """Blocks from `start` up to, and without, `stop`."""

    start: int
    stop: int


class BlockContext(Struct, frozen=True):
    """What blocks lie over."""

    base: str
    """Identifies the base image exactly: the digest of its bytes."""
    size: int
    """Bytes of the disk."""


class BlockStore:
    """Keeps blocks. Methods may be `async`; they are called one at a time, by a thread of belljar's.

    What it gives must be what it was last given, of each block. Bytes handed to `write` are yours: they are never
    changed afterwards. Attach a store to one machine at a time; a second one is refused.
    """

    block_size: int = BLOCK_SIZE
    """Bytes of a block: a power of two from 512 to 16 MiB. It must not change."""

    def list(self, context: BlockContext) -> Sequence[int] | Awaitable[Sequence[int]]:
        """The indices of all blocks it has. Refuse a base that these do not lie over, by any exception."""
        raise NotImplementedError

    def read(self, range: BlockRange, context: BlockContext) -> Sequence[Chunk] | Awaitable[Sequence[Chunk]]:
        """The blocks that it has with `range.start <= index < range.stop`."""
        raise NotImplementedError

    def write(self, chunks: Sequence[Chunk], context: BlockContext) -> Awaitable[None] | None:
        """Take blocks, in place of those it has."""
        raise NotImplementedError

    def flush(self, context: BlockContext) -> Awaitable[None] | None:
        """Come back when all that was written is durable."""

    def lease(self) -> Callable[[], None]:
        """Make it this process's until the result is called. BlockStoreError if it is another's."""
        return _nothing

    @staticmethod
    def directory(path: str | PathLike[str], block_size: int = BLOCK_SIZE) -> BlockStore:
        """Blocks as files of a directory."""
        from belljar.vm.stores_host import DirectoryStore

        return DirectoryStore(path, block_size)

    @staticmethod
    def sqlite(path: str | PathLike[str], block_size: int = BLOCK_SIZE) -> BlockStore:
        """Blocks as rows of a SQLite database."""
        from belljar.vm.stores_host import SqliteStore

        return SqliteStore(path, block_size)

    @staticmethod
    def fsspec(url: str, block_size: int = 1 << 20, **options: object) -> BlockStore:
        """Blocks as objects below a URL (s3://..., gs://..., memory://...), by fsspec."""
        from belljar.vm.stores_host import FsspecStore

        return FsspecStore(url, block_size, **options)


def _nothing() -> None:
    return


def check_block_size(store: BlockStore) -> int:
    """BlockStoreError for one that can't be used."""
    size: object = store.block_size
    if (
        isinstance(size, bool)
        or not isinstance(size, int)
        or size & (size - 1)
        or not BLOCK_LEAST <= size <= BLOCK_MOST
    ):
        raise BlockStoreError(f"block_size={size!r}: a power of two from {BLOCK_LEAST} to {BLOCK_MOST} is needed")
    return size


def check_chunks(found: object, wanted: BlockRange, block_size: int) -> dict[int, bytes]:
    """What `read` gave, by index. BlockStoreError if it makes no sense."""
    if not isinstance(found, Sequence) or isinstance(found, str | bytes):
        raise BlockStoreError(f"read() gave {type(found).__name__}, not a list of (index, bytes)")
    blocks: dict[int, bytes] = {}
    for chunk in found:
        if not isinstance(chunk, tuple | list) or len(chunk) != 2:
            raise BlockStoreError("read() gave something that is not (index, bytes)")
        index, data = chunk
        if not isinstance(index, int) or not wanted.start <= index < wanted.stop or index in blocks:
            raise BlockStoreError(f"read() gave block {index!r}, which it was not asked for, or twice")
        if not isinstance(data, bytes | bytearray | memoryview) or len(data) != block_size:
            size = len(data) if isinstance(data, bytes | bytearray | memoryview) else 0
            raise BlockStoreError(f"read() gave {size} bytes of block {index}, which has {block_size}")
        blocks[index] = bytes(data)
    return blocks


def check_indices(found: object, count: int) -> set[int]:
    """What `list` gave. BlockStoreError if it makes no sense."""
    if not isinstance(found, Sequence | set | frozenset) or isinstance(found, str | bytes):
        raise BlockStoreError(f"list() gave {type(found).__name__}, not a list of indices")
    indices = set(found)
    if any(isinstance(index, bool) or not isinstance(index, int) or not 0 <= index < count for index in indices):
        raise BlockStoreError("list() gave an index that is not on the disk")
    return indices
