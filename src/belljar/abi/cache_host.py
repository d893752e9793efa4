"""Where belljar keeps what it could make again: a directory of this user's own, and nobody else's."""

from __future__ import annotations

import os
import stat
import sys

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""Where this belljar is installed: what was made by another is not used."""


def cache_directory() -> str | None:
    """$BELLJAR_CACHE, else belljar in the user's caches, made if need be; None if no place is ours alone."""
    if chosen := os.environ.get("BELLJAR_CACHE"):
        return private_directory(os.path.abspath(chosen))
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".cache")
    return private_directory(os.path.join(base, "belljar"))


def private_directory(path: str) -> str | None:
    """That directory, if it is or can be made ours alone; None if not."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
        found = os.lstat(path)
    except OSError:
        return None
    ours = (
        stat.S_ISDIR(found.st_mode)
        and (sys.platform == "win32" or found.st_uid == os.geteuid())
        and not found.st_mode & 0o022
    )
    return path if ours else None
