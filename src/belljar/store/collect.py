"""Garbage collection and checking: both walk from the refs over everything that is needed.

A collection is safe beside writers. What is not needed is first only condemned: it can still be read, but who is about
to write it is told that it is missing, and so writes it again. It is removed by a collection that finds it condemned
for longer than anybody takes from asking what is missing to setting a ref.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal

from belljar.abi.dataclass import dataclass
from belljar.store.errors import ObjectDamaged, ObjectMissing, StoreError
from belljar.store.objects import Digest
from belljar.store.store import GRACE_SECONDS, Objects, Store, Swept
from belljar.store.tree import named_links, split_links

_READ_AT_ONCE: Final = 64

_What = Literal["missing", "damaged"]


@dataclass(frozen=True, slots=True)
class Damage:
    """An object that is missing or damaged, and what it hurts."""

    ref: str
    """The ref that needs it; "": none does."""
    path: str
    """The path below the ref's root."""
    digest: Digest
    what: _What


def collect(backend: Store, now: float, grace: float = GRACE_SECONDS) -> Swept:
    """Condemn and remove what no ref needs. Raises ObjectMissing or ObjectDamaged, and removes nothing, if the store
    does not have what a ref needs. `now` is a time before the call; pieces of files are not read.
    """
    objects = Objects(backend)
    needed = set(backend.list().values())
    waiting = list(needed)
    while waiting:
        for data in objects.read(_take(waiting)):
            pieces, others = split_links(data)
            waiting += others - needed
            needed |= pieces | others
    if absent := needed.difference(backend.digests()):
        raise ObjectMissing(min(absent))
    return backend.sweep(needed, now, grace)


def check(backend: Store) -> Iterator[Damage]:
    """Read every object, once; give what is missing or damaged, for each ref that it hurts."""
    objects = Objects(backend)
    refs = backend.list()
    reached = set(refs.values())
    links: dict[Digest, Mapping[Digest, str]] = {}
    damaged: dict[Digest, _What] = {}
    waiting = list(reached)
    while waiting:
        for digest, found in _examine(objects, _take(waiting)):
            if isinstance(found, str):
                damaged[digest] = found
            elif found:
                links[digest] = found
                waiting += found.keys() - reached
                reached |= found.keys()
    for ref, root in sorted(refs.items()) if damaged else ():
        for digest, path in _walk(root, links):
            if digest in damaged:
                yield Damage(ref, path, digest, damaged[digest])
    rest = [digest for digest in backend.digests() if digest not in reached]
    while rest:
        for digest, found in _examine(objects, _take(rest)):
            if isinstance(found, str):
                yield Damage("", "", digest, found)


def _take(waiting: list[Digest]) -> list[Digest]:
    some = waiting[-_READ_AT_ONCE:]
    del waiting[-_READ_AT_ONCE:]
    return some


def _examine(objects: Objects, digests: Sequence[Digest]) -> Iterable[tuple[Digest, Mapping[Digest, str] | _What]]:
    """For each object its links with their names, or what is wrong with it."""
    try:
        return list(zip(digests, map(named_links, objects.read(digests)), strict=True))
    except StoreError:
        return [(digest, _examine_one(objects, digest)) for digest in digests]


def _examine_one(objects: Objects, digest: Digest) -> Mapping[Digest, str] | _What:
    try:
        (data,) = objects.read([digest])
    except ObjectMissing:
        return "missing"
    except ObjectDamaged:
        return "damaged"
    try:
        return named_links(data)
    except StoreError:
        return "damaged"


def _walk(root: Digest, links: Mapping[Digest, Mapping[Digest, str]]) -> Iterator[tuple[Digest, str]]:
    """Every object below a root, with a path to it."""
    reached = {root}
    waiting = [(root, "/")]
    while waiting:
        digest, path = waiting.pop()
        yield digest, path
        for link, name in links.get(digest, {}).items():
            if link not in reached:
                reached.add(link)
                waiting.append((link, f"{path.rstrip('/')}/{name}" if name else path))
