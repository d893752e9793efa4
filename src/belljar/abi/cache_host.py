"""The cache directory: owned by this user, and writable by nobody else."""

from __future__ import annotations

import os
import stat
import sys

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""Directory of this installation: files cached by another one are not used."""
DRAFTS = "BELLJAR_DRAFTS"
"""Variable with the directories for what is not finished; whoever set it removes them (cli/guarded_host.py)."""


def cache_directory() -> str | None:
    """The first of `cache_directories` that can be written to; None if there is none, or if others can write to it."""
    for path in _candidates():
        found = private_directory(path)
        if found is None and os.path.isdir(path):
            return None  # somebody else's, or open to others: not to be passed over in silence
        if found is not None and os.access(found, os.W_OK | os.X_OK):
            return found
    return None


def cache_directories() -> list[str]:
    """Cache directories to read from; they may be read-only by now."""
    return [path for path in _candidates() if os.path.isdir(path) and is_private(path)]


def _candidates() -> list[str]:
    """$BELLJAR_CACHE alone if it is set; else the user's caches, then a directory for temporary files."""
    if chosen := os.environ.get("BELLJAR_CACHE"):
        return [os.path.abspath(chosen)]
    found: list[str] = []
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):
        base = os.path.join(os.path.expanduser("~"), ".cache")
    if os.path.isabs(base):  # "~" stays what it is for a user without a home
        found.append(os.path.join(base, "belljar"))
    if sys.platform != "win32":
        shared = (os.environ.get("TMPDIR", ""), "/tmp", "/var/tmp")
        found += [os.path.join(base, f"belljar-{os.geteuid()}") for base in shared if _is_safe_for_all(base)]
    return found


def private_directory(path: str) -> str | None:
    """The directory, created if missing, if only this user can write to it; else None."""
    try:
        os.makedirs(path, mode=0o700, exist_ok=True)
    except OSError:
        return None
    return path if is_private(path) else None


def draft_directory(place: str | os.PathLike[str]) -> str:
    """The directory in which to make what is renamed into `place`: on the same file system.

    It is `place` itself, unless `belljar prepare` or the like set one that it will remove.
    """
    for path in filter(None, os.environ.get(DRAFTS, "").split(os.pathsep)):
        try:
            if os.stat(path).st_dev == os.stat(place).st_dev:
                return path
        except OSError:
            continue
    return os.fspath(place)


def is_private(path: str) -> bool:
    """Whether it is a directory of ours, not a link to one, and nobody else can write to it."""
    try:
        found = os.lstat(path)
    except OSError:
        return False
    return (
        stat.S_ISDIR(found.st_mode)
        and (sys.platform == "win32" or found.st_uid == os.geteuid())
        and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


def _is_safe_for_all(path: str) -> bool:
    """Whether nobody can replace another user's files in that directory."""
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return False
    return (
        os.path.isabs(path)
        and stat.S_ISDIR(mode)
        and bool(mode & stat.S_ISVTX or not mode & (stat.S_IWGRP | stat.S_IWOTH))
    )
