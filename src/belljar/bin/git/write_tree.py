"""`git write-tree`: the index as a tree."""

from __future__ import annotations

from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.repo import Repository


def write_tree(repo: Repository, args: list[str]) -> int:
    if repo.conflicts():
        listed = "".join(f"{path}: unmerged\n" for path in repo.conflicts())
        raise GitError(f"{listed}fatal: git-write-tree: error building trees", 128, "")
    repo.process.print(repo.store.unflatten(repo.staged()).decode())
    return 0
