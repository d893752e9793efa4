"""The two kinds of bash arrays: indexed (sparse, in index order) and associative (in bash's own hash order)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from belljar.abi.paths import fsencode

FNV_OFFSET: Final = 2166136261
FNV_PRIME: Final = 16777619
BUCKETS: Final = 1024
LOAD: Final = 2
GROWTH: Final = 4


class Array:
    """An indexed array. `items` is in index order while `ordered`; read through the methods."""

    __slots__ = ("items", "last", "ordered")

    def __init__(self, items: dict[int, str] | None = None) -> None:
        self.items: dict[int, str] = items if items is not None else {}
        self.ordered = True
        self.last = -1
        """The highest index; -1 when empty."""
        if items:
            self.last = max(items)
            self.ordered = False
            self.sort()

    @classmethod
    def of(cls, values: Iterable[str]) -> Array:
        """The values at 0, 1, 2 ..."""
        fresh = cls()
        fresh.items = dict(enumerate(values))
        fresh.last = len(fresh.items) - 1
        return fresh

    def copy(self) -> Array:
        fresh = Array()
        fresh.items = self.items.copy()
        fresh.last = self.last
        fresh.ordered = self.ordered
        return fresh

    def __len__(self) -> int:
        return len(self.items)

    def scalar(self) -> str | None:
        return self.items.get(0)

    def get(self, index: int) -> str | None:
        return self.items.get(index)

    def set(self, index: int, value: str) -> None:
        if index > self.last:
            self.last = index
        elif index not in self.items:
            self.ordered = False
        self.items[index] = value

    def append(self, value: str) -> None:
        self.last += 1
        self.items[self.last] = value

    def remove(self, index: int) -> bool:
        if self.items.pop(index, None) is None:
            return False
        if index == self.last:
            self.last = max(self.items, default=-1) if not self.ordered else next(reversed(self.items), -1)
        return True

    def sort(self) -> None:
        if not self.ordered:
            self.items = dict(sorted(self.items.items()))
            self.ordered = True

    def values(self) -> list[str]:
        self.sort()
        return list(self.items.values())

    def indices(self) -> list[int]:
        self.sort()
        return list(self.items)

    def keys(self) -> list[str]:
        """The indices as text, as `${!a[@]}` gives them."""
        return [str(index) for index in self.indices()]

    def pairs(self) -> list[tuple[str, str]]:
        self.sort()
        return [(str(index), value) for index, value in self.items.items()]


class Assoc:
    """An associative array. Scripts see bash's order, which is that of its hash table, worked out when asked for."""

    __slots__ = ("_order", "items")

    def __init__(self) -> None:
        self.items: dict[str, str] = {}
        self._order: list[str] | None = None

    def copy(self) -> Assoc:
        fresh = Assoc()
        fresh.items = self.items.copy()
        fresh._order = self._order
        return fresh

    def __len__(self) -> int:
        return len(self.items)

    def scalar(self) -> str | None:
        return self.items.get("0")

    def get(self, key: str) -> str | None:
        return self.items.get(key)

    def set(self, key: str, value: str) -> None:
        if self._order is not None and key not in self.items:
            self._order = None
        self.items[key] = value

    def remove(self, key: str) -> bool:
        self._order = None
        return self.items.pop(key, None) is not None

    def keys(self) -> list[str]:
        if self._order is None:
            self._order = hash_order(self.items)
        return self._order

    def values(self) -> list[str]:
        items = self.items
        return [items[key] for key in self.keys()]

    def pairs(self) -> list[tuple[str, str]]:
        items = self.items
        return [(key, items[key]) for key in self.keys()]


def hash_key(key: str) -> int:
    """Bash's hash of a string: FNV-1 on 32 bits, the bytes taken as signed."""
    value = FNV_OFFSET
    for byte in fsencode(key):
        value = (value * FNV_PRIME) & 0xFFFFFFFF
        value ^= byte if byte < 128 else byte | 0xFFFFFF00
    return value


def hash_order(keys: Iterable[str]) -> list[str]:
    """The order a walk over bash's hash table gives for keys inserted in this order."""
    buckets = BUCKETS
    table: dict[int, list[str]] = {}
    hashes: dict[str, int] = {}
    for count, key in enumerate(keys):
        if count >= buckets * LOAD:
            buckets *= GROWTH
            old, table = table, {}
            for place in sorted(old):
                for moved in reversed(old[place]):
                    table.setdefault(hashes[moved] & (buckets - 1), []).append(moved)
        value = hashes[key] = hash_key(key)
        table.setdefault(value & (buckets - 1), []).append(key)
    return [key for place in sorted(table) for key in reversed(table[place])]
