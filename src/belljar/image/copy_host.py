"""Files of the host for an image: in the order of their names, with nothing of this machine but names and contents."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from belljar.abi.errors import ImageError
from belljar.abi.limits import MIB
from belljar.abi.paths import fsencode
from belljar.image.tree import FileTree, Node, split_path
from belljar.store.tree import Kind


def copy_into(tree: FileTree, source: str, target: str, like: Node) -> Iterator[bytes]:
    """Copy a file or directory of the host's to a path of the tree; gives the pieces of contents, to be stored.

    Owner and time are those of `like`; of a mode only whether the file may be run is kept, since the rest depends on
    who checked it out. A directory's contents go into the target; a file becomes the target, or goes into it if that
    ends with a slash. ImageError.
    """
    place = Path(source).expanduser()
    parts = split_path(fsencode(target.lstrip("/")))
    try:
        if place.is_dir():
            tree.way(parts, make=like)
            for name, path in _below(place):
                yield from _add(tree, [*parts, *name.split(b"/")], path, like)
        else:
            if target.endswith("/"):
                parts.append(os.fsencode(place.name))
            yield from _add(tree, parts, place, like)
    except OSError as error:
        where = "" if error.filename in (None, str(place)) else f"{os.fsdecode(error.filename)}: "
        raise ImageError(f"{where}{error.strerror or error}") from None


def _below(place: Path) -> Iterator[tuple[bytes, Path]]:
    """Everything below a directory, by its relative path: a directory before what is in it."""
    waiting = [(b"", place)]
    while waiting:
        above, directory = waiting.pop()
        for name in sorted(os.listdir(os.fsencode(directory))):
            path = directory / os.fsdecode(name)
            relative = above + b"/" + name if above else name
            yield relative, path
            if path.is_dir() and not path.is_symlink():
                waiting.append((relative, path))


def _add(tree: FileTree, parts: list[bytes], path: Path, like: Node) -> Iterator[bytes]:
    found = path.lstat()
    if stat.S_ISDIR(found.st_mode):
        tree.way(parts, make=like)
    elif stat.S_ISLNK(found.st_mode):
        tree.put(parts, Node(Kind.SYMLINK, 0o777, target=os.fsencode(os.readlink(path))), like)
    elif stat.S_ISREG(found.st_mode):
        node = Node(Kind.FILE, 0o755 if found.st_mode & 0o111 else 0o644)
        with open(path, "rb") as file:
            yield from node.fill(iter(lambda: file.read(MIB), b""))
        tree.put(parts, node, like)
    else:
        raise ImageError(f"{path} can't be copied: it is neither a file, a directory nor a symbolic link")
