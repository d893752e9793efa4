"""The protocol of stores, and what holds for every one of them: contents are checked, whoever keeps them."""

from __future__ import annotations

import abc
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from belljar.abi.dataclass import dataclass
from belljar.store.errors import ObjectDamaged, ObjectMissing, StoreError
from belljar.store.objects import OBJECT_MAX, Digest, digest_of

if TYPE_CHECKING:
    from os import PathLike

BATCH_BYTES: Final = 64 << 20
GRACE_SECONDS: Final = 3600.0
"""How long what nothing needs stays readable, for those who began to use it before it was condemned."""


REF_MAX: Final = 120
"""Bytes of the name of a ref."""


def check_name(name: str) -> str:
    """Check the name of a ref. StoreError."""
    if not name or not name.isprintable() or len(name.encode()) > REF_MAX:
        raise StoreError(f"{name[:REF_MAX]!r} can't name a ref: it takes 1 to {REF_MAX} bytes of printable text")
    return name


@dataclass(frozen=True, slots=True)
class Swept:
    """Result of a collection: objects condemned, to be removed by a later one, and objects and bytes removed."""

    condemned: int
    removed: int
    removed_bytes: int


class Store(abc.ABC):
    """Keeps objects and refs. Derive from it for a store of your own; `tests/store/contract.py` shows what must hold.

    Every method raises StoreError, and only that, when the store can't do it; nothing is then half done.
    """

    @staticmethod
    def sqlite(path: str | PathLike[str]) -> Store:
        """One SQLite file on this machine, for any number of processes."""
        from belljar.store.sqlite_host import SqliteStore

        return SqliteStore(path)

    @staticmethod
    def fsspec(url: str) -> Store:
        """A directory, a bucket, or any other place that fsspec knows by its URL. A path is a directory."""
        from belljar.store.files_host import files_at
        from belljar.store.packs_host import PackStore

        return PackStore(files_at(url), url)

    @staticmethod
    def memory() -> Store:
        """Ends with this process."""
        from belljar.store.memory_host import MemoryStore

        return MemoryStore()

    @abc.abstractmethod
    def read(self, digests: Sequence[Digest]) -> Mapping[Digest, bytes]:
        """The objects that there are, of those asked for."""

    @abc.abstractmethod
    def missing(self, digests: Collection[Digest]) -> set[Digest]:
        """Find the objects that must be written before a ref may need them: absent or condemned ones."""

    @abc.abstractmethod
    def write(self, objects: Mapping[Digest, bytes]) -> None:
        """Keep objects, all or none. They are durable when it returns; a condemned one is so no more."""

    @abc.abstractmethod
    def get(self, name: str) -> Digest | None:
        """The object that a ref names; None if there is no such ref."""

    @abc.abstractmethod
    def list(self, prefix: str = "") -> dict[str, Digest]:
        """Every ref whose name begins so."""

    @abc.abstractmethod
    def set(self, name: str, digest: Digest, expected: Digest | None) -> None:
        """Make a ref name an object if it now names `expected` (None: it does not exist); else raise RefConflict.

        Durable when it returns.
        """

    @abc.abstractmethod
    def delete(self, name: str, expected: Digest) -> None:
        """Delete a ref if it names `expected`; else raise RefConflict. Durable when it returns."""

    @abc.abstractmethod
    def sweep(self, needed: Collection[Digest], now: float, grace: float) -> Swept:
        """Condemn what is not needed; remove what was condemned more than `grace` seconds before `now`.

        What is needed is condemned no more. See `collect.py`.
        """

    @abc.abstractmethod
    def digests(self) -> Iterator[Digest]:
        """Every object, condemned ones too."""

    def close(self) -> None:
        """Let go of files and connections. Idempotent."""
        return


class Objects:
    """The objects of a store: digests are computed and checked here, whatever the backend does."""

    def __init__(self, backend: Store) -> None:
        self.backend = backend

    def write(self, objects: Iterable[bytes]) -> list[Digest]:
        """Keep objects, those that are not there yet; they are durable when it returns. Their digests, in order."""
        order: list[Digest] = []
        batch: dict[Digest, bytes] = {}
        size = 0
        for data in objects:
            if len(data) > OBJECT_MAX:
                raise StoreError(f"an object of {len(data)} bytes is too large: the most is {OBJECT_MAX}")
            digest = digest_of(data)
            order.append(digest)
            batch[digest] = data
            size += len(data)
            if size >= BATCH_BYTES:
                self._write(batch)
                batch, size = {}, 0
        self._write(batch)
        return order

    def _write(self, batch: Mapping[Digest, bytes]) -> None:
        absent = self.backend.missing(batch.keys()) if batch else set()
        if absent:
            self.backend.write({digest: data for digest, data in batch.items() if digest in absent})

    def read(self, digests: Sequence[Digest]) -> list[bytes]:
        """The objects, in order. Raises ObjectMissing, ObjectDamaged, or another StoreError."""
        found = self.backend.read(list(dict.fromkeys(digests)))
        checked: dict[Digest, bytes] = {}
        for digest in digests:
            if digest not in checked:
                if digest not in found:
                    raise ObjectMissing(digest)
                if digest_of(found[digest]) != digest:
                    raise ObjectDamaged(digest)
                checked[digest] = found[digest]
        return [checked[digest] for digest in digests]

    def read_valid(self, digests: Sequence[Digest]) -> dict[Digest, bytes]:
        """The objects that are there as they were written, of these."""
        found = self.backend.read(list(dict.fromkeys(digests)))
        return {digest: data for digest, data in found.items() if digest_of(data) == digest}
