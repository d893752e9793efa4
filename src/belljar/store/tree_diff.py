"""Differences between two trees: directories that are the same object are not looked into."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from msgspec.structs import replace

from belljar.abi.errors import SnapshotError
from belljar.store.objects import Digest
from belljar.store.store import Objects
from belljar.store.tree import Entry, Kind, decode_directory

_AT_ONCE: Final = 128
_MAX: Final = 2_000_000
"""Differences of two trees, and directories that are looked into: a tree that says the same things again and again may
have any number of them."""

Difference = tuple[bytes, Entry | None, Entry | None]
"""A path below the root of the tree, and what is there before and after."""


def diff_trees(one: Objects, before: Digest | None, two: Objects, after: Digest | None) -> list[Difference]:
    """Everything that differs, by path. None: an empty tree. SnapshotError (too many), StoreError."""
    found: list[Difference] = []
    looked_at = 0
    todo: list[tuple[bytes, Digest | None, Digest | None]] = [(b"", before, after)]
    while todo:
        some, todo = todo[-_AT_ONCE:], todo[:-_AT_ONCE]
        listings = zip(_read(one, [a for _, a, _ in some]), _read(two, [b for _, _, b in some]), strict=True)
        for (path, _, _), (old, new) in zip(some, listings, strict=True):
            for difference in _compare(path, old, new):
                at, a, b = difference
                if a is None or b is None or _visible(a) != _visible(b):
                    found.append(difference)
                below = [entry.parts[0] if entry is not None and _is_directory(entry) else None for entry in (a, b)]
                if below[0] != below[1]:
                    todo.append((at, below[0], below[1]))
        looked_at += len(some)
        if len(found) + looked_at > _MAX:
            raise SnapshotError(f"the two differ in more than {_MAX} files and directories")
    return sorted(found, key=lambda difference: difference[0].split(b"/"))


def _compare(path: bytes, old: dict[bytes, Entry], new: dict[bytes, Entry]) -> Iterator[Difference]:
    for name in old.keys() | new.keys():
        before, after = old.get(name), new.get(name)
        if before != after:
            yield path + b"/" + name, before, after


def _visible(entry: Entry) -> Entry:
    """An entry without what is no difference: numbers of hard links, and the time and object of a directory."""
    if _is_directory(entry):
        return replace(entry, mtime_ns=0, parts=[])
    return replace(entry, link_group=0)


def _is_directory(entry: Entry) -> bool:
    return entry.kind in (Kind.DIRECTORY, Kind.MERGED)


def _read(objects: Objects, digests: Sequence[Digest | None]) -> list[dict[bytes, Entry]]:
    wanted = list({digest for digest in digests if digest is not None})
    listings = {
        digest: {entry.name: entry for entry in decode_directory(data)}
        for digest, data in zip(wanted, objects.read(wanted), strict=True)
    }
    return [{} if digest is None else listings[digest] for digest in digests]
