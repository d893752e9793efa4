"""A store in memory: ends with its process. For tests, and where nothing needs to survive."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping, Sequence

from belljar.store.errors import RefConflict
from belljar.store.objects import Digest
from belljar.store.store import Store, Swept, check_name


class MemoryStore(Store):
    """Objects and refs in dicts."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._objects: dict[Digest, bytes] = {}
        self._condemned: dict[Digest, float] = {}
        self._refs: dict[str, Digest] = {}

    def __repr__(self) -> str:
        return "Store.memory()"

    def read(self, digests: Sequence[Digest]) -> Mapping[Digest, bytes]:
        with self._lock:
            return {digest: self._objects[digest] for digest in digests if digest in self._objects}

    def missing(self, digests: Collection[Digest]) -> set[Digest]:
        with self._lock:
            return {digest for digest in digests if digest not in self._objects or digest in self._condemned}

    def write(self, objects: Mapping[Digest, bytes]) -> None:
        with self._lock:
            self._objects.update(objects)
            for digest in objects:
                self._condemned.pop(digest, None)

    def get(self, name: str) -> Digest | None:
        return self._refs.get(check_name(name))

    def list(self, prefix: str = "") -> dict[str, Digest]:
        with self._lock:
            return {name: digest for name, digest in self._refs.items() if name.startswith(prefix)}

    def set(self, name: str, digest: Digest, expected: Digest | None) -> None:
        with self._lock:
            if self._refs.get(check_name(name)) != expected:
                raise RefConflict(name)
            self._refs[name] = digest

    def delete(self, name: str, expected: Digest) -> None:
        with self._lock:
            if self._refs.get(check_name(name)) != expected:
                raise RefConflict(name)
            del self._refs[name]

    def sweep(self, needed: Collection[Digest], now: float, grace: float) -> Swept:
        condemned = removed = size = 0
        with self._lock:
            for digest in list(self._objects):
                since = self._condemned.get(digest)
                if digest in needed:
                    self._condemned.pop(digest, None)
                elif since is None:
                    self._condemned[digest] = now
                    condemned += 1
                elif since + grace <= now:
                    size += len(self._objects.pop(digest))
                    del self._condemned[digest]
                    removed += 1
        return Swept(condemned, removed, size)

    def digests(self) -> Iterator[Digest]:
        yield from list(self._objects)
