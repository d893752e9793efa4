"""Paths on a command line: which files of a tree they mean."""

from __future__ import annotations

from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.store import Flat
from belljar.libc.pattern import compile_pattern


def folders_above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]


def match_paths(repo: Repository, specs: list[str], names: list[str]) -> list[str]:
    """The names that pathspecs mean: a file, all below a folder, or a pattern."""
    wanted = [relative(repo, spec) for spec in specs]
    found = []
    for name in names:
        for spec in wanted:
            repo.process.budget.charge()
            if spec in ("", name) or name.startswith(spec.rstrip("/") + "/"):
                found.append(name)
                break
            if any(char in spec for char in "*?[") and compile_pattern(spec).matches(name):
                found.append(name)
                break
    return found


def relative(repo: Repository, spec: str) -> str:
    """A path as the index has it: from the top of the work tree."""
    if spec.startswith(":/"):
        return spec[2:]
    full = repo.process.absolute(spec)
    top = repo.work.rstrip("/")
    if full == (top or "/"):
        return ""
    if not full.startswith(top + "/"):
        raise GitError(f"{spec}: '{spec}' is outside repository at '{repo.work}'")
    return full[len(top) + 1 :]


def restrict(repo: Repository, paths: list[str], old: Flat, new: Flat) -> tuple[Flat, Flat]:
    """Two trees with only the files that the paths mean; as they are if there are none."""
    if not paths:
        return old, new
    names = set(match_paths(repo, paths, list(old.keys() | new.keys())))
    return (
        {path: entry for path, entry in old.items() if path in names},
        {path: entry for path, entry in new.items() if path in names},
    )
