"""The store that is used where none is named."""

from __future__ import annotations

import os
from typing import Final

from belljar.store.errors import StoreError
from belljar.store.store import Store

_opened: Final[dict[str, Store]] = {}


def default_location() -> str:
    """$BELLJAR_STORE (a path, or a URL for fsspec), else `belljar/store.db` in the user's data directory."""
    if chosen := os.environ.get("BELLJAR_STORE"):
        return chosen
    base = os.environ.get("XDG_DATA_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".local", "share")
    return os.path.join(base, "belljar", "store.db")


def open_store(location: str, *, must_exist: bool = False) -> Store:
    """The store at a path (an SQLite file; an existing directory: packs), or at a URL. StoreError."""
    if must_exist and "://" not in location and not os.path.exists(os.path.expanduser(location)):
        raise StoreError(f"there is no store at {location}")
    is_packs = "://" in location or os.path.isdir(location)
    return Store.fsspec(location) if is_packs else Store.sqlite(location)


def default_store() -> Store:
    """The store at `default_location`: one for the whole process, which nobody closes."""
    location = default_location()
    if location not in _opened:
        _opened[location] = open_store(location)
    return _opened[location]


def disk_bytes(location: str) -> int | None:
    """The size on disk of a store on this machine; None for one elsewhere."""
    if os.path.isfile(location):  # with SQLite's log
        return sum(os.path.getsize(path) for path in (location, f"{location}-wal") if os.path.exists(path))
    if os.path.isdir(location):
        files = (os.path.join(top, name) for top, _, names in os.walk(location) for name in names)
        return sum(os.path.getsize(path) for path in files if os.path.exists(path))
    return None
