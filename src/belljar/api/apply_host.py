"""Applying reviewed changes to a directory of the owner's machine: they are checked, staged, then moved into place."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from belljar.abi.paths import fsdecode
from belljar.api.arrivals import Arrival, refused_files
from belljar.api.errors import ConflictError, ProtectedFileError
from belljar.api.local_host import Found, LocalTree
from belljar.kernel.fs.protection import CONFLICT, Protection, Trust

if TYPE_CHECKING:
    from belljar.api.review import FileChange, FileState


def arrival_of(change: FileChange) -> Arrival:
    path, new = change.path.split("/"), change.new
    if new is None:
        return Arrival(path, "removed")
    if new.type == "symlink":
        return Arrival(path, "symlink", fsdecode(new.data or b""))
    return Arrival(path, "directory" if new.type == "directory" else "file")


def apply_changes(changes: Sequence[FileChange], host_dir: str, trust: Trust) -> list[str]:
    """Make the changes; gives the paths that were changed. ProtectedFileError, ConflictError, OSError.

    A host program that changes a file between the check and the move of that file, which is looked at once more,
    is a ConflictError too; then the files before it in the list were changed already.
    """
    tree = LocalTree(host_dir)
    tree.check_usable()
    protection = Protection(trust, tree.above)
    todo = _check_unchanged(tree, changes, protection)
    refused = refused_files(protection, [*map(arrival_of, changes)], tree.has, tree.count_names)
    if refused:
        raise ProtectedFileError(refused)
    with _staged(tree, todo) as stage:
        _move(tree, todo, stage)
    return [change.path for change, _ in todo]


def _check_unchanged(
    tree: LocalTree, changes: Sequence[FileChange], protection: Protection
) -> list[tuple[FileChange, Found | None]]:
    """Changes that are to be made, each with what is there now. ConflictError if that is not what it was."""
    todo: list[tuple[FileChange, Found | None]] = []
    conflicts: list[str] = []
    removed = {change.path for change in changes if change.new is None}
    for change in changes:
        try:
            found = tree.look(change.path.split("/"))
        except (OSError, ValueError):  # a symlink is in the way, or it can't be read
            conflicts.append(change.path)
            continue
        if _is(found, change.new):
            continue
        older = change.conflict and not protection.trusts(CONFLICT, change.path.split("/"))
        if older or not _is(found, change.old) or _is_needed(tree, change, removed):
            conflicts.append(change.path)
        todo.append((change, found))
    if conflicts:
        raise ConflictError(conflicts)
    return todo


def _is_needed(tree: LocalTree, change: FileChange, removed: set[str]) -> bool:
    """Whether a directory that is to become a file has other files in it than those that are removed."""
    if change.old is None or change.old.type != "directory" or change.new is None:
        return False
    return any(f"{change.path}/{name}" not in removed for name in tree.list(change.path.split("/")))


def _is(found: Found | None, state: FileState | None) -> bool:
    if found is None or state is None:
        return found is None and state is None
    return (found.mode, found.digest) == (state.mode, state.digest)


@contextmanager
def _staged(tree: LocalTree, todo: Sequence[tuple[FileChange, Found | None]]) -> Iterator[str]:
    """A directory in the tree with all new files and symlinks, by their index; removed in the end."""
    stage = f".belljar-{os.urandom(8).hex()}"
    tree.make_directory([stage])
    made = []
    try:
        for index, (change, found) in enumerate(todo):
            if change.new is not None and change.new.type != "directory":
                made.append([stage, str(index)])
                assert change.new.data is not None
                if change.new.type == "symlink":
                    tree.make_symlink(made[-1], change.new.data)
                else:
                    executable = change.new.mode & 0o100 != 0
                    with tree.replacing(made[-1], 0o777 if executable else 0o666) as file:
                        file.write(change.new.data)
                        if found is not None and found.type == "file":
                            os.chmod(file.fileno(), found.permissions_if(executable))
        yield stage
    finally:
        for path in made:
            with suppress(FileNotFoundError):
                tree.remove(path)
        tree.remove_directory([stage])


def _move(tree: LocalTree, todo: Sequence[tuple[FileChange, Found | None]], stage: str) -> None:
    """Removals first, the deepest before those above them: what is new may need their names."""
    for change, found in reversed(todo):
        path = change.path.split("/")
        becomes = None if change.new is None else change.new.type
        if found is None or becomes == "directory" == found.type:
            continue
        if found.type == "directory":
            tree.remove_directory(path)
        elif becomes in (None, "directory"):
            tree.check_version(path, found)
            tree.remove(path)
    for index, (change, found) in enumerate(todo):
        path = change.path.split("/")
        if change.new is None:
            continue
        if change.new.type == "directory":
            tree.make_directory(path)
            continue
        if found is not None and found.type != "directory":
            tree.check_version(path, found)
        tree.move([stage, str(index)], path)
