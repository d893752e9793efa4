"""Roots of native sandboxes as data: directories to lay over one another, and host directories bound over those."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from belljar.image.record import ImageRecord
from belljar.store.store import Objects

ID_COUNT: Final = 65_536
"""User ids, and group ids, that a sandbox of a privileged owner has."""
NOBODY: Final = 65_534


class Bind(Struct, frozen=True):
    """A directory or file of the host, with everything mounted below it: read-only, nosuid, nodev."""

    source: str
    target: str
    """Absolute; the root has a directory or an empty file there."""


class RootSource(Struct, frozen=True):
    """Where a root comes from: the files and settings of an image, and host directories below and over them."""

    objects: Objects
    record: ImageRecord
    directory: str = ""
    """A directory of the host that is the root; the files of `record` lie over it. "": there is none."""
    binds: tuple[Bind, ...] = ()
    digest: str = ""
    """Identifies it in a snapshot. "": the digest of the record does."""
    kept: bool = False
    """Whether it is of a sandbox: its directories are left as they were, the user's too."""


class Root(Struct):
    """A root on this machine's disk. Nothing in it goes away before `release` is called, or this process ends."""

    lowers: list[str]
    """Directories for an overlay, top first. They must not be written to. On the way to them there may be directories
    that only this process's user can search: open them before changing to another user or user namespace.
    """
    binds: list[Bind]
    digest: str
    env: dict[str, str]
    cwd: str
    user: str
    skipped: list[str]
    """What the image has and the root has not, as text for people: device nodes."""
    release: Callable[[], None]
    """Idempotent."""


def host_id(number: int, base: int | None) -> int:
    """The host's user or group id for one of an image. -1 (leave it alone) without a `base`: then all files are this
    process's user's, who is root in the sandbox.
    """
    if base is None:
        return -1
    return base + (number if number < ID_COUNT else NOBODY)
