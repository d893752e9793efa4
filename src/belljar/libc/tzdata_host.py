"""The zone files of the tzdata package, kept in memory: a sealed worker can't open them any more."""

from __future__ import annotations

import os
from functools import cache

import msgspec

_packed: bytes | memoryview | None = None


def pack() -> bytes:
    """Every zone file in one buffer."""
    import tzdata

    top = os.path.dirname(tzdata.__file__)
    with open(f"{top}/zones", encoding="ascii") as file:
        names = file.read().split()
    files = {}
    for name in names:
        with open(f"{top}/zoneinfo/{name}", "rb", 0) as file:
            files[name] = file.read()
    return msgspec.msgpack.encode(files)


def use(packed: bytes | memoryview) -> None:
    """Take the zone files from a buffer that `pack` made instead of reading them."""
    global _packed
    _packed = packed


@cache
def zone_files() -> dict[str, bytes]:
    """The contents (TZif) of each zone's file by name. Must have been called once, or `use`, before the lock."""
    return msgspec.msgpack.decode(pack() if _packed is None else _packed, type=dict[str, bytes])
