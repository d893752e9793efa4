"""A store of whole files: the objects of one write are one pack with its index, so that a snapshot is a few requests.

    objects/ID.pack       objects, as `compression.py` keeps them, one after the other
    objects/ID.index      where they are. Written after its pack: a pack without an index does not count.
    condemned/ID          when a collection condemned the pack
    refs/NAME/NUMBER      values of a ref, in the order of their numbers; the last one holds

Files are only ever created, each once, or deleted: no renaming, no appending. A ref is changed by creating the file
with the next number, which only one writer can.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from msgspec import DecodeError, Struct, ValidationError, msgpack

from belljar.store.compression import compress, decompress
from belljar.store.errors import RefConflict, StoreError
from belljar.store.files_host import Files
from belljar.store.objects import DIGEST_BYTES, Digest, digest_of
from belljar.store.store import Store, Swept, check_name

_GAP_BYTES: Final = 64 << 10
"""Bytes read for nothing rather than by another request."""
_OLD_VALUES: Final = 2
"""Values of a ref that are kept beside the one that holds."""


class _Place(Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """An object in a pack."""

    digest: Digest
    start: int
    end: int


_Places = list[_Place]
_encode: Final = msgpack.Encoder().encode
_decode_places: Final = msgpack.Decoder(list[_Place]).decode


class PackStore(Store):
    """Objects and refs as files. Indexes are read once and remembered: packs don't change."""

    def __init__(self, files: Files, name: str) -> None:
        self._files = files
        self._name = name
        self._lock = threading.RLock()
        self._packs: dict[str, _Places] = {}
        self._where: dict[Digest, tuple[str, _Place]] = {}

    def read(self, digests: Sequence[Digest]) -> Mapping[Digest, bytes]:
        with self._use():
            if any(digest not in self._where for digest in digests):
                self._refresh()
            found = self._read(digests)
            if len(found) < len(set(digests)):  # a collection may have moved some to another pack meanwhile
                self._refresh()
                found |= self._read([digest for digest in digests if digest not in found])
            return found

    def missing(self, digests: Collection[Digest]) -> set[Digest]:
        with self._use():
            self._refresh()
            condemned = set(self._files.names("condemned"))
            doubtful = {each for each in digests if each not in self._where or self._where[each][0] in condemned}
            if condemned and doubtful:  # another pack may have them, too
                sound = (places for pack, places in self._packs.items() if pack not in condemned)
                doubtful -= {place.digest for places in sound for place in places}
            return doubtful

    def write(self, objects: Mapping[Digest, bytes]) -> None:
        with self._use():
            self._write({digest: compress(data) for digest, data in objects.items()})

    def get(self, name: str) -> Digest | None:
        with self._use():
            return self._newest(_folder(name))[1]

    def list(self, prefix: str = "") -> dict[str, Digest]:
        with self._use():
            found: dict[str, Digest] = {}
            for folder in self._files.names("refs"):
                name = _name(folder)
                if name is not None and name.startswith(prefix):
                    value = self._newest(f"refs/{folder}")[1]
                    if value is not None:
                        found[name] = value
            return found

    def set(self, name: str, digest: Digest, expected: Digest | None) -> None:
        self._set(name, digest, expected)

    def delete(self, name: str, expected: Digest) -> None:
        self._set(name, b"", expected)

    def _set(self, name: str, value: bytes, expected: Digest | None) -> None:
        with self._use():
            folder = _folder(name)
            number, current = self._newest(folder)
            if current != expected:
                raise RefConflict(name)
            mine = number + 1
            try:
                self._files.create(f"{folder}/{mine:020d}", value)
            except FileExistsError:
                raise RefConflict(name) from None
            numbers = self._numbers(folder)
            if max(numbers, default=0) > mine:  # others went on, and have deleted what was in our way
                self._files.remove(f"{folder}/{mine:020d}")
                raise RefConflict(name)
            for old in numbers:
                if old < mine - _OLD_VALUES:
                    self._files.remove(f"{folder}/{old:020d}")

    def sweep(self, needed: Collection[Digest], now: float, grace: float) -> Swept:
        """As `Store.sweep`, by whole packs: one that is half garbage is written anew without it."""
        condemned = removed = size = 0
        with self._use():
            self._refresh()
            since = {pack: self._condemned_since(pack) for pack in self._files.names("condemned")}
            for pack, places in list(self._packs.items()):
                used = [place for place in places if place.digest in needed and self._where[place.digest][0] == pack]
                if used and pack not in since and sum(map(_size, used)) < sum(map(_size, places)) / 2:
                    kept = self._read_kept(pack, used)
                    self._write({place.digest: data for place, data in kept.items()})
                    used = []
                if used:
                    self._files.remove(f"condemned/{pack}")
                elif pack not in since:
                    self._files.create(f"condemned/{pack}", repr(now).encode())
                    condemned += len(places)
                elif since[pack] + grace <= now:
                    self._remove(pack)
                    removed += len(places)
                    size += sum(map(_size, places))
            self._remove_unfinished(since, now, grace)
        return Swept(condemned, removed, size)

    def digests(self) -> Iterator[Digest]:
        with self._use():
            self._refresh()
            yield from list(self._where)

    @contextmanager
    def _use(self) -> Iterator[None]:
        with self._lock:
            try:
                yield
            except OSError as error:
                raise StoreError(f"the store {self._name}: {error}") from error

    # Packs

    def _refresh(self) -> None:
        """Read the indexes that are new, and forget the packs that are gone."""
        names = self._files.names("objects")
        there = {name.removesuffix(".index") for name in names if name.endswith(".index")}
        gone = self._packs.keys() - there
        for pack in gone:
            del self._packs[pack]
        if gone:  # another pack may have the same objects
            self._where = {place.digest: (pack, place) for pack, places in self._packs.items() for place in places}
        for pack in there - self._packs.keys():
            with suppress(FileNotFoundError):
                self._add(pack, _read_index(self._files.read(f"objects/{pack}.index")))

    def _add(self, pack: str, places: _Places) -> None:
        self._packs[pack] = places
        for place in places:
            self._where[place.digest] = pack, place

    def _write(self, kept: Mapping[Digest, bytes]) -> None:
        places: _Places = []
        start = 0
        for digest, data in kept.items():
            places.append(_Place(digest, start, start + len(data)))
            start += len(data)
        index = _encode(places)
        pack = uuid.uuid4().hex
        self._files.create(f"objects/{pack}.pack", b"".join(kept.values()))
        self._files.create(f"objects/{pack}.index", digest_of(index) + index)
        self._add(pack, places)

    def _read(self, digests: Sequence[Digest]) -> dict[Digest, bytes]:
        wanted: dict[str, list[_Place]] = {}
        for digest in digests:
            if digest in self._where:
                pack, place = self._where[digest]
                wanted.setdefault(pack, []).append(place)
        found: dict[Digest, bytes] = {}
        for pack, places in wanted.items():
            try:
                kept = self._read_kept(pack, places)
            except FileNotFoundError:
                continue
            found |= {place.digest: decompress(data) for place, data in kept.items()}
        return found

    def _read_kept(self, pack: str, places: Sequence[_Place]) -> dict[_Place, bytes]:
        """Objects as they are kept, with few requests: those that are near each other are read together."""
        ordered = sorted(places, key=lambda place: place.start)
        runs: list[_Places] = []
        for place in ordered:
            if runs and place.start - runs[-1][-1].end <= _GAP_BYTES:
                runs[-1].append(place)
            else:
                runs.append([place])
        parts = self._files.read_ranges(f"objects/{pack}.pack", [(run[0].start, run[-1].end) for run in runs])
        return {
            place: part[place.start - run[0].start : place.end - run[0].start]
            for run, part in zip(runs, parts, strict=True)
            for place in run
        }

    def _remove(self, pack: str) -> None:
        # The index first: a pack without one does not count.
        for name in (f"objects/{pack}.index", f"objects/{pack}.pack", f"condemned/{pack}"):
            self._files.remove(name)
        self._refresh()

    def _remove_unfinished(self, since: Mapping[str, float], now: float, grace: float) -> None:
        """Remove packs whose writer ended before it wrote the index."""
        names = set(self._files.names("objects"))
        for pack in {name.removesuffix(".pack") for name in names if name.endswith(".pack")}:
            if f"{pack}.index" in names:
                continue
            if pack not in since:
                self._files.create(f"condemned/{pack}", repr(now).encode())
            elif since[pack] + grace <= now:
                self._remove(pack)

    def _condemned_since(self, pack: str) -> float:
        try:
            return float(self._files.read(f"condemned/{pack}"))
        except FileNotFoundError:
            return float("inf")
        except ValueError:
            raise StoreError(f"the store {self._name}: condemned/{pack} is damaged: delete it") from None

    # Refs

    def _numbers(self, folder: str) -> Collection[int]:
        return {int(name) for name in self._files.names(folder) if name.isdecimal()}

    def _newest(self, folder: str) -> tuple[int, Digest | None]:
        """The number of the value that holds, 0 if there was none yet, and the value, None if it was deleted."""
        while True:
            number = max(self._numbers(folder), default=0)
            if not number:
                return 0, None
            try:
                value = self._files.read(f"{folder}/{number:020d}")
            except FileNotFoundError:
                continue  # it was replaced, and deleted, meanwhile
            if value and len(value) != DIGEST_BYTES:
                raise StoreError(f"the store {self._name}: {folder}/{number:020d} is damaged: delete it to go back")
            return number, value or None


def _size(place: _Place) -> int:
    return place.end - place.start


def _read_index(data: bytes) -> _Places:
    """The places in an index; none if it is damaged: the objects of its pack are then missing."""
    index = data[DIGEST_BYTES:]
    if data[:DIGEST_BYTES] != digest_of(index):
        return []
    try:
        places = _decode_places(index)
    except (DecodeError, ValidationError):
        return []
    sound = all(len(place.digest) == DIGEST_BYTES and 0 <= place.start <= place.end for place in places)
    return places if sound else []


def _folder(name: str) -> str:
    return f"refs/{check_name(name).encode().hex()}"


def _name(folder: str) -> str | None:
    try:
        return bytes.fromhex(folder).decode()
    except ValueError:
        return None
