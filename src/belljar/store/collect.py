"""Garbage collection and checking: both walk from the refs over everything that is needed.

A collection is safe beside writers. What is not needed is first only condemned: it can still be read, but who is about
to write it is told that it is missing, and so writes it again. It is removed by a collection that finds it condemned
for longer than anybody takes from asking what is missing to setting a ref.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from belljar.abi.dataclass import dataclass
from belljar.store.errors import ObjectMissing, StoreError
from belljar.store.objects import PIECE, Digest
from belljar.store.store import GRACE_SECONDS, Objects, Store, Swept
from belljar.store.tree import links_of, named_links

_READ_AT_ONCE: Final = 256


@dataclass(frozen=True, slots=True)
class Damage:
    """An object that is missing or damaged, and what it hurts."""

    ref: str
    """The ref that needs it; "": none does."""
    path: str
    """The path below the ref's root."""
    digest: Digest
    what: Literal["missing", "damaged"]


def collect(backend: Store, now: float, grace: float = GRACE_SECONDS) -> Swept:
    """Condemn and remove what no ref needs. Raises ObjectMissing or ObjectDamaged, and removes nothing, if the store
    does not have what a ref needs: what that needs in turn is not known.
    """
    objects = Objects(backend)
    needed = set(backend.list().values())
    waiting = list(needed)
    while waiting:
        some, waiting = waiting[:_READ_AT_ONCE], waiting[_READ_AT_ONCE:]
        for data in objects.read(some):
            new = links_of(data) - needed
            needed |= new
            waiting += new
    return backend.sweep(needed, now, grace)


def check(backend: Store) -> Iterator[Damage]:
    """Read every object; give what is missing or damaged, for each ref that it hurts."""
    objects = Objects(backend)
    seen: set[Digest] = set()
    for ref, root in sorted(backend.list().items()):
        reached = {root}
        waiting = [(root, "/")]
        while waiting:
            digest, path = waiting.pop()
            try:
                (data,) = objects.read([digest])
                links = named_links(data) if data[:1] != PIECE else {}
            except StoreError as error:
                yield Damage(ref, path, digest, _what(error))
                continue
            for link, name in links.items():
                if link not in reached:
                    reached.add(link)
                    waiting.append((link, f"{path.rstrip('/')}/{name}" if name else path))
        seen |= reached
    for digest in backend.digests():
        if digest not in seen:
            try:
                objects.read([digest])
            except StoreError as error:
                yield Damage("", "", digest, _what(error))


def _what(error: StoreError) -> Literal["missing", "damaged"]:
    return "missing" if isinstance(error, ObjectMissing) else "damaged"
