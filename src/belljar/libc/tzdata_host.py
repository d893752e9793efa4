"""The zone files of the tzdata package, kept in memory: a sealed worker can't open them any more."""

from __future__ import annotations

import os
from functools import cache

import msgspec

_packed: bytes | memoryview | None = None


def names_file() -> str:
    """The path of the package's list of zones."""
    import tzdata

    return os.path.join(os.path.dirname(tzdata.__file__), "zones")


def _read() -> dict[str, bytes]:
    with open(names_file(), encoding="ascii") as file:
        names = file.read().split()
    top = os.path.join(os.path.dirname(names_file()), "zoneinfo")
    files = {}
    for name in names:
        with open(os.path.join(top, name), "rb", 0) as file:
            files[name] = file.read()
    return files


def pack() -> bytes:
    """Every zone file in one buffer, for `use`."""
    return msgspec.msgpack.encode(zone_files())


def use(packed: bytes | memoryview) -> None:
    """Take the zone files from a buffer that `pack` made instead of reading them."""
    global _packed
    _packed = packed


@cache
def zone_files() -> dict[str, bytes]:
    """The contents (TZif) of each zone's file by name. Must have been called once, or `use`, before the lock."""
    return _read() if _packed is None else msgspec.msgpack.decode(_packed, type=dict[str, bytes])
