"""A change of a sandbox's file, as the worker tells it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from belljar.abi.paths import fsdecode
from belljar.abi.wire import Plain, WireError

KINDS: Final = frozenset({"created", "modified", "deleted", "renamed", "attributes", "overflow"})


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a file: created, modified, deleted, renamed, attributes (mode, owner, times).

    `overflow` stands for changes that were too many to keep: look at the files yourself.
    """

    kind: str
    path: str
    to: str | None = None
    """Where a renamed file is now."""


def changes_from(value: Plain) -> list[Change]:
    """Check a worker's list of changes. WireError for anything that is no list of changes."""
    match value:
        case list():
            return [_change(item) for item in value]
    raise WireError("changes are a list")


def _change(item: Any) -> Change:
    match item:
        case [str(kind), bytes(path), None] if kind in KINDS:
            return Change(kind, fsdecode(path))
        case [str(kind), bytes(path), bytes(to)] if kind in KINDS:
            return Change(kind, fsdecode(path), fsdecode(to))
    raise WireError("a change is a kind and one or two paths")
