"""A store in memory over others, which are only read: for trees whose contents are in several."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from belljar.store.memory_host import MemoryStore
from belljar.store.objects import Digest
from belljar.store.store import Store


class JoinedStore(MemoryStore):
    """Has what any of them has; what is written is in memory."""

    def __init__(self, *below: Store) -> None:
        super().__init__()
        self._below = below

    def read(self, digests: Sequence[Digest]) -> Mapping[Digest, bytes]:
        found = dict(super().read(digests))
        for store in self._below:
            if rest := [digest for digest in digests if digest not in found]:
                found.update(store.read(rest))
        return found

    def missing(self, digests: Collection[Digest]) -> set[Digest]:
        rest = super().missing(digests)
        for store in self._below:
            rest = store.missing(rest)
        return rest
