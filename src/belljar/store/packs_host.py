"""A store of whole files: the objects of one write are one pack with its index, so that a snapshot is a few requests.

    format                "belljar store 1"
    objects/ID.pack       objects, as `compression.py` keeps them, one after the other
    objects/ID.index      where they are. Written after its pack: a pack without a sound index does not count.
    refs/NAME.NUMBER      values of a ref, in the order of their numbers; the last one holds
    condemned/NAME        when a collection found first that this pack or unfinished file is needed no more

Files are only ever created, each once, or deleted: no renaming, no appending. A ref is changed by creating the file
with the next number (`refs_host.py`). A file that is shorter than it says was left by a writer that ended
midway, before it had acknowledged anything: it counts as not there.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Final

from msgspec import DecodeError, Struct, ValidationError, msgpack

from belljar.store.compression import compress, decompress
from belljar.store.condemned_host import Marks
from belljar.store.errors import StoreError
from belljar.store.files_host import UNFINISHED, Files
from belljar.store.objects import DIGEST_BYTES, Digest, digest_of
from belljar.store.refs_host import NumberedRefs
from belljar.store.store import BATCH_BYTES, Store, Swept, check_name

_FORMAT: Final = b"belljar store 1\n"
_GAP_BYTES: Final = 64 << 10
"""Bytes read for nothing rather than by another request."""
_SMALL_BYTES: Final = 1 << 20
_SMALL_PACKS: Final = 64
"""A collection makes one pack of so many small ones: whoever opens the store reads each index."""


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
        self._lock = threading.Lock()
        """Held while the next two change; never during a request."""
        self._packs: dict[str, _Places] = {}
        self._where: dict[Digest, tuple[str, _Place]] = {}
        self._refs = NumberedRefs(files, name)
        self._format: bytes | None = None

    def __repr__(self) -> str:
        return f"Store.fsspec({self._name!r})"

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
            condemned = set(self._files.names("condemned"))  # first: a mark goes after its pack
            self._refresh()
            self._files.sync("objects")  # another writer's index may not be durable yet
            where = self._where
            doubtful = {each for each in digests if each not in where or where[each][0] in condemned}
            if condemned and doubtful:  # another pack may have them, too
                sound = (places for pack, places in list(self._packs.items()) if pack not in condemned)
                doubtful -= {place.digest for places in sound for place in places}
            return doubtful

    def write(self, objects: Mapping[Digest, bytes]) -> None:
        if objects:
            with self._use(writes=True):
                self._write(dict(zip(objects, compress(objects.values()), strict=True)))

    def get(self, name: str) -> Digest | None:
        with self._use():
            return self._refs.get(check_name(name))

    def list(self, prefix: str = "") -> dict[str, Digest]:
        with self._use():
            return {name: digest for name, digest in self._refs.all().items() if name.startswith(prefix)}

    def set(self, name: str, digest: Digest, expected: Digest | None) -> None:
        with self._use(writes=True):
            self._refs.change(check_name(name), digest, expected)

    def delete(self, name: str, expected: Digest) -> None:
        with self._use(writes=True):
            self._refs.change(check_name(name), None, expected)

    def sweep(self, needed: Collection[Digest], now: float, grace: float) -> Swept:
        """As `Store.sweep`, by whole packs. A pack that is condemned stays so, or else a collection that does not know
        yet would remove it: what is needed of it is written anew.
        """
        with self._use(writes=True):
            self._refresh()
            marks = Marks(self._files, now, grace)
            packs = dict(self._packs)
            sizes = {pack: sum(map(_size, places)) for pack, places in packs.items()}
            home: dict[Digest, str] = {}
            for pack in sorted(packs, key=lambda pack: (pack in marks, pack)):
                for place in packs[pack]:
                    home.setdefault(place.digest, pack)
            used = {
                pack: [place for place in places if place.digest in needed and home[place.digest] == pack]
                for pack, places in packs.items()
            }
            for pack in self._rewrite(used, sizes, marks):
                used[pack] = []
            garbage = [pack for pack in packs if not used[pack]]
            condemned = sum(len(packs[pack]) for pack in garbage if pack not in marks)
            due = [pack for pack in garbage if marks.is_due_or_add(pack)]
            self._remove(due, marks)
            self._remove_unfinished(marks)
            self._refresh()
        return Swept(condemned, sum(len(packs[pack]) for pack in due), sum(sizes[pack] for pack in due))

    def digests(self) -> Iterator[Digest]:
        with self._use():
            self._refresh()
            found = list(self._where)
        yield from found

    @contextmanager
    def _use(self, *, writes: bool = False) -> Iterator[None]:
        try:
            self._check_format(writes=writes)
            yield
        except OSError as error:
            raise StoreError(f"the store {self._name}: {error}") from error

    def _check_format(self, *, writes: bool) -> None:
        if self._format is None:
            self._format = self._files.read(["format"]).get("format")
        if self._format is None and writes:
            with suppress(FileExistsError):
                self._files.create("format", _FORMAT)
            self._format = _FORMAT
        if self._format is not None and not _FORMAT.startswith(self._format):
            raise StoreError(f"{self._name} is no store that this version of belljar can read: {self._format[:40]!r}")

    # Packs

    def _refresh(self) -> None:
        """Read the indexes that are new, and forget the packs that are gone."""
        known = set(self._packs)
        names = self._files.names("objects")
        there = {name.removesuffix(".index") for name in names if name.endswith(".index")}
        read = self._files.read([f"objects/{pack}.index" for pack in there - known]) if there - known else {}
        with self._lock:
            gone = known - there
            for pack in gone:
                self._packs.pop(pack, None)
            if gone:  # another pack may have the same objects
                self._where = {place.digest: (pack, place) for pack, places in self._packs.items() for place in places}
            for path, data in read.items():
                places = _read_index(data)
                if places is not None:
                    self._add(path.removeprefix("objects/").removesuffix(".index"), places)

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
        with self._lock:
            self._add(pack, places)

    def _read(self, digests: Sequence[Digest]) -> dict[Digest, bytes]:
        wanted: dict[str, list[_Place]] = {}
        for digest in digests:
            if found := self._where.get(digest):
                pack, place = found
                wanted.setdefault(pack, []).append(place)
        read: dict[Digest, bytes] = {}
        for pack, places in wanted.items():
            with suppress(FileNotFoundError):
                kept = self._read_kept(pack, places)
                read |= {place.digest: decompress(data) for place, data in kept.items()}
        return read

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

    # Collection

    def _rewrite(self, used: Mapping[str, _Places], sizes: Mapping[str, int], marks: Marks) -> Collection[str]:
        """Write to new packs what is used of those that are condemned or half empty, and of small ones if there are
        many. The old packs.
        """
        small = {pack for pack, places in used.items() if places and sizes[pack] < _SMALL_BYTES}
        if len(small) < _SMALL_PACKS:
            small = set()
        moved: list[str] = []
        batch: dict[Digest, bytes] = {}
        for pack, places in used.items():
            if places and (pack in small or pack in marks or sum(map(_size, places)) < sizes[pack] / 2):
                with suppress(FileNotFoundError):  # another collection has removed it
                    kept = self._read_kept(pack, places)
                    batch |= {place.digest: data for place, data in kept.items()}
                    moved.append(pack)
            if sum(map(len, batch.values())) >= BATCH_BYTES:
                self._write(batch)
                batch = {}
        if batch:
            self._write(batch)
        return moved

    def _remove(self, packs: Sequence[str], marks: Marks) -> None:
        # An index without its pack would be a lie, and so would be a condemned pack without its mark.
        for suffix in (".index", ".pack"):
            for pack in packs:
                self._files.remove(f"objects/{pack}{suffix}")
            self._files.sync("objects")
        for pack in packs:
            marks.remove(pack)

    def _remove_unfinished(self, marks: Marks) -> None:
        """Remove what writers left that ended midway, old values of refs, and marks of what is gone."""
        packs = {name.partition(".")[0] for name in self._files.names("objects")}
        self._remove([pack for pack in packs - self._packs.keys() if marks.is_due_or_add(pack)], marks)
        unfinished = set(self._files.names(UNFINISHED))
        for name in unfinished:
            if marks.is_due_or_add(name):
                self._files.remove(f"{UNFINISHED}/{name}")
        for name in marks.names() - packs - unfinished - self._refs.sweep(marks):
            marks.remove(name)


def _size(place: _Place) -> int:
    return place.end - place.start


def _read_index(data: bytes) -> _Places | None:
    """The places in an index; None if it is damaged: the objects of its pack are then missing."""
    index = data[DIGEST_BYTES:]
    if data[:DIGEST_BYTES] != digest_of(index):
        return None
    try:
        places = _decode_places(index)
    except (DecodeError, ValidationError):
        return None
    sound = all(len(place.digest) == DIGEST_BYTES and 0 <= place.start <= place.end for place in places)
    return places if sound else None
