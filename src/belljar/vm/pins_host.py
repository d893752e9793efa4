"""The Debian packages that machines are made of, by their digests: `pins.txt`, which tools/pin_microvm.py writes."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Final

from belljar.image.debian.control import Package

TOOLS: Final = "tools"
KERNEL: Final = "kernel"
MIRROR: Final = "http://deb.debian.org"
"""Over http: what is fetched is known by its digest."""
_SNAPSHOT: Final = "https://snapshot.debian.org/archive"
"""Keeps every version that Debian ever had; mirrors keep the newest."""


@cache
def _lines() -> tuple[str, list[list[str]]]:
    first, *rest = Path(__file__).with_name("pins.txt").read_text().splitlines()
    return first.split()[1], [line.split() for line in rest]


def pinned(kind: str, mirror: str = "") -> list[tuple[Package, list[str]]]:
    """The packages of a kind, each with the mirrors that may have it, the likeliest first."""
    stamp, rows = _lines()
    found = []
    for _, name, version, archive, path, size, digest, _ in (row for row in rows if row[0] == kind):
        first = f"{(mirror or MIRROR).rstrip('/')}/{archive}"
        fields = {"package": name, "version": version, "filename": path, "size": size, "sha256": digest}
        found.append((Package(fields, first), [first, f"{_SNAPSHOT}/{archive}/{stamp}"]))
    return found


def base_names(kind: str) -> set[str]:
    """The packages of a system that every Debian has."""
    return {row[1] for row in _lines()[1] if row[0] == kind and row[7] == "base"}


def kinds() -> list[str]:
    """Built-in systems there are, such as "debian:12"."""
    return sorted({row[0] for row in _lines()[1]} - {TOOLS, KERNEL})


def key_of(names: Sequence[str]) -> str:
    """A name for what is made of the packages of these kinds."""
    rows = (" ".join(row) for row in _lines()[1] if row[0] in names)
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()[:16]
