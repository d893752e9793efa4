"""Files of the owner's machine, for upload and download: the only place the API reads or writes them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from pathlib import Path


def walk_local(top: str | os.PathLike[str]) -> Iterator[tuple[str, bool, int | None]]:
    """Relative path, whether it is a directory, and mode; the top itself is "". Symlinks below it are left out."""
    from pathlib import Path  # not at the top: it is slow to load, and few programs transfer files

    root = Path(top)
    if not root.is_dir():
        yield "", False, root.stat().st_mode & 0o777
        return
    yield "", True, None
    for directory, names, files in os.walk(root):
        for name in sorted(names):
            yield str((Path(directory) / name).relative_to(root)), True, None
        for name in sorted(files):
            path = Path(directory) / name
            if path.is_file() and not path.is_symlink():
                yield str(path.relative_to(root)), False, path.stat().st_mode & 0o777


def read_local(top: str | os.PathLike[str], relative: str, size: int) -> Iterator[bytes]:
    """A file in pieces of at most `size` bytes; one at least, if an empty one."""
    with open(os.path.join(top, relative) if relative else top, "rb") as file:
        yield file.read(size)
        while data := file.read(size):
            yield data


def make_local_directory(top: str | os.PathLike[str], relative: str) -> None:
    """A directory below `top`. A name that would leave it is refused, whoever sent it."""
    _local_path(top, relative).mkdir(parents=True, exist_ok=True)


def create_local(top: str | os.PathLike[str], relative: str, mode: int) -> BinaryIO:
    """A new, empty file below `top`, in place of what is there; not through a symlink."""
    target = _local_path(top, relative)
    target.parent.mkdir(parents=True, exist_ok=True)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | getattr(os, "O_NOFOLLOW", 0)
    return os.fdopen(os.open(target, flags, mode & 0o777 | 0o600), "wb")


def _local_path(top: str | os.PathLike[str], relative: str) -> Path:
    """ValueError for what would leave `top`, or go through a symlink below it."""
    from pathlib import Path  # not at the top: it is slow to load, and few programs transfer files

    root = Path(top)
    parts = [part for part in relative.split("/") if part]
    if any(part in (".", "..") or "\0" in part for part in parts):
        raise ValueError(f"refusing to write {relative!r}: it would leave {top}")
    target = root.joinpath(*parts)
    for above in [*reversed(target.parents)][len(root.parents) :]:
        if above != root and above.is_symlink():
            raise ValueError(f"refusing to write through the symlink {above}")
    return target
