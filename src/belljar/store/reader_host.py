"""Reads objects of a store on demand: by way of a bounded cache that the process shares, and within a deadline."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from time import monotonic
from typing import Any, Final, Generic, TypeVar

from belljar.store.errors import StoreError
from belljar.store.objects import Digest
from belljar.store.store import Objects

T = TypeVar("T")

DEADLINE_SECONDS: Final = 10.0
_STUCK_MAX: Final = 4
"""Reads past their deadline that may be under way."""
_ALONE_SECONDS: Final = 60.0
_AT_ONCE: Final = 256
"""Objects asked for by one read."""


class _Late(StoreError):
    """The store has not answered in time."""


class Kept(Generic[T]):
    """Objects as `decode` makes them, the least recently used of which go when they take more than `bytes_max`.

    One per process and kind: an object is known by its digest, whichever store it came from. The last one stays
    however large it is, so that a huge directory is not decoded for each of its entries.
    """

    def __init__(self, decode: Callable[[bytes], T], bytes_max: int, factor: int) -> None:
        """`factor`: bytes of memory that a byte of an object takes once it is decoded."""
        self.decode = decode
        self.bytes = 0
        self._bytes_max = bytes_max
        self._factor = factor
        self._lock = threading.Lock()
        self._items: dict[Digest, tuple[T, int]] = {}

    def get(self, digest: Digest) -> T | None:
        with self._lock:
            item = self._items.pop(digest, None)
            if item is None:
                return None
            self._items[digest] = item
            return item[0]

    def __contains__(self, digest: Digest) -> bool:
        return digest in self._items

    def put(self, digest: Digest, data: bytes) -> T:
        """Decode an object and keep it. StoreError."""
        value, cost = self.decode(data), len(data) * self._factor
        with self._lock:
            old = self._items.pop(digest, None)
            self.bytes += cost - (0 if old is None else old[1])
            self._items[digest] = value, cost
            while self.bytes > self._bytes_max and len(self._items) > 1:
                self.bytes -= self._items.pop(next(iter(self._items)))[1]
        return value


class Reader:
    """Reads from one store. Every wait for it ends at the deadline, whatever the store does."""

    def __init__(self, objects: Objects, seconds: float = DEADLINE_SECONDS) -> None:
        self._objects = objects
        self._seconds = seconds
        self._stuck: set[threading.Thread] = set()
        self._alone_until = 0.0
        """Time before which nothing is read ahead: something that was is to blame for a failure, perhaps."""

    def get(self, kept: Kept[T], digest: Digest, ahead: Callable[[], Iterable[Digest]] = tuple) -> T:
        """One object. If it has to be read, so are those of `ahead`, by the same read of the store. StoreError."""
        found = kept.get(digest)
        if found is not None:
            return found
        others = [] if monotonic() < self._alone_until else list(ahead())
        try:
            read = dict(self.load(kept, [digest, *others]))
        except StoreError as error:
            if not others:
                raise
            self._alone_until = monotonic() + _ALONE_SECONDS
            if isinstance(error, _Late):
                raise
            read = dict(self.load(kept, [digest]))
        if digest not in read:
            # Raises for what the matter is: it is missing, damaged, or of another kind.
            return kept.put(digest, self._call(lambda: self._objects.read([digest])[0], self._seconds))
        return read[digest]

    def load(self, kept: Kept[T], digests: Sequence[Digest]) -> Iterator[tuple[Digest, T]]:
        """Each object that can be read, of these. StoreError if the store fails, or has not given all by the deadline.

        One after the other: all listings that a large directory needs would not fit into memory.
        """
        deadline = monotonic() + self._seconds
        absent: list[Digest] = []
        for digest in dict.fromkeys(digests):
            value = kept.get(digest)
            if value is None:
                absent.append(digest)
            else:
                yield digest, value
        for start in range(0, len(absent), _AT_ONCE):
            some = absent[start : start + _AT_ONCE]
            read = partial(self._objects.read_valid, some)
            for digest, data in self._call(read, max(0.0, deadline - monotonic())).items():
                try:
                    value = kept.put(digest, data)
                except StoreError:
                    continue  # whoever needs it is told
                yield digest, value

    def _call(self, work: Callable[[], T], seconds: float) -> T:
        """Call a function on a thread that is left alone when the time is over. StoreError."""
        late = _Late(f"the store has not answered for {self._seconds:g} s")
        self._stuck = {thread for thread in self._stuck if thread.is_alive()}
        if len(self._stuck) >= _STUCK_MAX:
            raise late
        result: list[Any] = []

        def run() -> None:
            try:
                result.append((work(), None))
            except BaseException as error:  # noqa: BLE001 - raised where it is waited for
                result.append((None, error))

        thread = threading.Thread(target=run, name="belljar-store", daemon=True)
        thread.start()
        thread.join(seconds)
        if not result:
            self._stuck.add(thread)
            raise late
        value, error = result[0]
        if isinstance(error, StoreError) or not isinstance(error, Exception | None):
            raise error
        if error is not None:
            raise StoreError(f"the store failed: {error!r}") from error
        return value  # type: ignore[no-any-return]
