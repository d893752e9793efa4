"""Bundles: one snapshot as one file, to be carried to another store.

A line that names the format, then objects: four bytes for the length, the digest, and the object as `compression.py`
keeps it. The first is the record of the snapshot; each other one is needed by one before it, and there once. At the
end a length of 0 and the digest of all that was before.

A bundle is hostile until all of it was checked: nothing is written to a store before that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from typing import IO, Final

from belljar.abi.errors import SnapshotError
from belljar.abi.limits import GIB, MIB
from belljar.store.compression import compress, decompress
from belljar.store.errors import StoreError
from belljar.store.objects import DIGEST_BYTES, OBJECT_MAX, PIECE, PIECE_BYTES, Digest, digest_of
from belljar.store.snapshot import LABEL, SnapshotRecord, decode_snapshot, read_snapshot, save_snapshot
from belljar.store.store import Objects
from belljar.store.tree import Entry, Kind, decode_directory

_MAGIC: Final = b"belljar snapshot "
_FIRST_LINE: Final = _MAGIC + b"1\n"
_LENGTH: Final = 4
_AT_ONCE: Final = 16
BYTES_MAX: Final = 256 * GIB
RATIO_MAX: Final = 1000
_SMALL: Final = 64 * MIB
"""A bundle that unpacks to no more than this may be compressed as well as it can."""
FILES_MAX: Final = 10_000_000
DEPTH_MAX: Final = 2000

_DIRECTORY: Final = -1
_ANY_PIECE: Final = -2


def write_bundle(objects: Objects, digest: Digest, write: Callable[[bytes], object]) -> None:
    """Write a snapshot with all that it needs. StoreError, SnapshotError."""
    whole = hashlib.sha256()

    def put(data: bytes) -> None:
        whole.update(data)
        write(data)

    def put_object(digest: Digest, data: bytes) -> None:
        (kept,) = compress([data])
        put(len(kept).to_bytes(_LENGTH, "big") + digest + kept)

    put(_FIRST_LINE)
    record = read_snapshot(objects, digest)
    put_object(digest, objects.read([digest])[0])
    needed = _needed(record)
    waiting = list(needed)
    while waiting:
        some, waiting = waiting[-_AT_ONCE:], waiting[:-_AT_ONCE]
        for link, data in zip(some, objects.read(some), strict=True):
            put_object(link, data)
            if needed[link] == _DIRECTORY:
                parts = _parts(decode_directory(data))
                waiting += [part for part in parts if part not in needed]
                needed |= parts
    put(bytes(_LENGTH))
    write(whole.digest())


def check_bundle(file: IO[bytes], bytes_max: int = BYTES_MAX) -> dict[Digest, int]:
    """Read a bundle from its beginning to its end and check all of it. Its objects. SnapshotError."""
    needed: dict[Digest, int] = {}
    seen: dict[Digest, int] = {}
    below: dict[Digest, tuple[int, list[Digest]]] = {}
    size = packed = files = 0
    roots: list[Digest] = []
    for digest, data, length in _objects(file):
        size += len(data)
        packed += length
        if size > bytes_max:
            raise SnapshotError(f"the bundle unpacks to more than {bytes_max} bytes")
        if size > _SMALL and size > packed * RATIO_MAX:
            raise SnapshotError(f"the bundle unpacks to more than {RATIO_MAX} times its size: this is a bomb")
        if not seen:
            record = decode_snapshot(data)
            needed, roots = _needed(record), record.roots
            seen[digest] = 0
            continue
        expected = needed.get(digest)
        if expected is None or digest in seen:
            raise SnapshotError(f"object {digest.hex()} of the bundle is needed by nothing, or there twice")
        seen[digest] = expected
        if expected != _DIRECTORY:
            if data[:1] != PIECE or expected not in (_ANY_PIECE, len(data) - 1):
                raise SnapshotError(f"object {digest.hex()} of the bundle is not the piece of a file that it should be")
            continue
        try:
            entries = decode_directory(data)
        except StoreError as error:
            raise SnapshotError(f"the bundle: {error}") from None
        files += len(entries)
        if files > FILES_MAX:
            raise SnapshotError(f"the bundle has more than {FILES_MAX} files")
        inner = [entry.parts[0] for entry in entries if entry.kind in (Kind.DIRECTORY, Kind.MERGED)]
        below[digest] = len(entries), inner
        for part, what in _parts(entries).items():
            if needed.setdefault(part, what) != what:
                raise SnapshotError(f"object {part.hex()} can't be all that the bundle says it is")
    if not seen:
        raise SnapshotError("the bundle is empty")
    if missing := needed.keys() - seen.keys():
        raise SnapshotError(f"the bundle lacks {len(missing)} objects, such as {min(missing).hex()}")
    _check_shape(roots, below)
    return seen


def read_bundle(file: IO[bytes], objects: Objects, bytes_max: int = BYTES_MAX) -> Digest:
    """Check a bundle and keep its snapshot. Nothing is written to the store if there is anything wrong. SnapshotError.

    A label that the store has already stays with the snapshot that has it.
    """
    checked = check_bundle(file, bytes_max)
    file.seek(0)
    digest = next(iter(checked))
    first: list[bytes] = []

    def contents() -> Iterator[bytes]:
        for found, data, _ in _objects(file):
            if checked.pop(found, None) is None:
                raise SnapshotError("the bundle was changed while it was read")
            if found == digest:
                first.append(data)
            else:
                yield data

    objects.write(contents())
    if checked:
        raise SnapshotError("the bundle was changed while it was read")
    record = decode_snapshot(first[0])
    is_taken = objects.backend.get(LABEL + record.label) is not None
    return save_snapshot(objects, record, label="" if is_taken else record.label)


def _objects(file: IO[bytes]) -> Iterator[tuple[Digest, bytes, int]]:
    """Each object with its digest, which is checked, and its length in the bundle. SnapshotError."""
    whole = hashlib.sha256()

    def take(count: int) -> bytes:
        data = file.read(count)
        if len(data) != count:
            raise SnapshotError("the bundle ends too early: it is not all there")
        whole.update(data)
        return data

    first = file.readline(len(_MAGIC) + 10)
    if first != _FIRST_LINE:
        if first.startswith(_MAGIC):
            raise SnapshotError(f"this is a bundle of another version of belljar: {first[:60]!r}")
        raise SnapshotError("this is no snapshot that was exported")
    whole.update(first)
    while length := int.from_bytes(take(_LENGTH), "big"):
        if length > OBJECT_MAX + 1:
            raise SnapshotError("an object of the bundle is too large")
        digest = take(DIGEST_BYTES)
        try:
            data = decompress(take(length))
        except StoreError as error:
            raise SnapshotError(str(error)) from None
        if len(data) > OBJECT_MAX or digest_of(data) != digest:
            raise SnapshotError(f"object {digest.hex()} of the bundle is damaged")
        yield digest, data, length
    end = whole.digest()
    if take(DIGEST_BYTES) != end or file.read(1):
        raise SnapshotError("the end of the bundle is damaged")


def _needed(record: SnapshotRecord) -> dict[Digest, int]:
    needed = dict.fromkeys(record.roots, _DIRECTORY)
    for each in record.variables:
        for part in each.pieces:
            if needed.setdefault(part, _ANY_PIECE) != _ANY_PIECE:
                raise SnapshotError("the variables of the bundle are a directory")
    return needed


def _parts(entries: list[Entry]) -> dict[Digest, int]:
    """The objects that a directory needs, each with its length or `_DIRECTORY`."""
    found: dict[Digest, int] = {}
    for entry in entries:
        for number, part in enumerate(entry.parts):
            is_file = entry.kind is Kind.FILE
            what = min(PIECE_BYTES, entry.size - number * PIECE_BYTES) if is_file else _DIRECTORY
            if part and found.setdefault(part, what) != what:
                raise SnapshotError(f"object {part.hex()} can't be all that a directory says it is")
    return found


def _check_shape(roots: list[Digest], below: dict[Digest, tuple[int, list[Digest]]]) -> None:
    """Check the number of files and the depth of directories, each counted as often as it appears. SnapshotError."""
    counts: dict[Digest, tuple[int, int]] = {}
    todo = list(roots)
    while todo:  # from the leaves up; no directory can be in itself, since it can't have its own digest in it
        entries, inner = below[todo[-1]]
        if unknown := [each for each in inner if each not in counts]:
            todo += unknown
            continue
        files = entries + sum(counts[each][0] for each in inner)
        depth = 1 + max((counts[each][1] for each in inner), default=0)
        if files > FILES_MAX or depth > DEPTH_MAX:
            raise SnapshotError(f"the bundle has more than {FILES_MAX} files, or is more than {DEPTH_MAX} levels deep")
        counts[todo.pop()] = files, depth
