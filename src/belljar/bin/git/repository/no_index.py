"""`git diff --no-index`: files and folders, whatever repository they are in."""

from __future__ import annotations

from belljar.abi.errors import SysError
from belljar.bin.git.repository.diff_output import DiffOptions, show_pairs
from belljar.bin.git.repository.diffs import Pair
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.repo import Repository, mode_of
from belljar.bin.git.repository.work import hash_blob
from belljar.kernel.process import Process


def diff_paths(repo: Repository, options: DiffOptions, names: list[str]) -> int:
    """`git diff --no-index`: two files, or two directories, whatever repository they are in."""
    if len(names) != 2:
        raise GitError("usage: git diff --no-index [<options>] <path> <path>", 129, "")
    process = repo.process
    try:
        folders = [process.fs.stat(name).is_dir for name in names]
    except SysError as error:
        raise GitError(f"Could not access '{error.path or names[0]}'", 1, "error: ") from None
    if folders[0] != folders[1]:
        tail = names[folders.index(False)].rpartition("/")[2]
        names = [f"{name.rstrip('/')}/{tail}" if folder else name for name, folder in zip(names, folders, strict=True)]
    tops = [name.rstrip("/") for name in names]
    found = [_files_below(process, top) for top in tops] if all(folders) else [{"": tops[0]}, {"": tops[1]}]
    pairs: list[Pair] = []
    for below in sorted(found[0].keys() | found[1].keys()):
        sides = [found[0].get(below), found[1].get(below)]
        data = [process.read_file(side) if side is not None else b"" for side in sides]
        modes = [mode_of(process.fs.stat(side)) if side is not None else 0 for side in sides]
        if data[0] == data[1] and modes[0] == modes[1]:
            continue
        shas = [hash_blob(d) if side is not None else b"0" * 40 for d, side in zip(data, sides, strict=True)]
        shown = [side.lstrip("/") if side is not None else None for side in sides]
        pairs.append(Pair(shown[0], shown[1], modes[0], modes[1], data[0], data[1], shas[0], shas[1]))
    show_pairs(repo, pairs, options)
    return int(bool(pairs))


def _files_below(process: Process, top: str) -> dict[str, str]:
    found: dict[str, str] = {}
    stack = [""]
    while stack:
        folder = stack.pop()
        for entry in process.fs.readdir(top + folder):
            process.budget.charge()
            path = f"{folder}/{entry.name}"
            if entry.is_dir:
                stack.append(path)
            else:
                found[path] = top + path
    return found
