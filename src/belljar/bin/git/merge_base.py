"""`git merge-base`: where two histories part."""

from __future__ import annotations

from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.merging import merge_base
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_commit


def merge_base_command(repo: Repository, args: list[str]) -> int:
    names = [arg for arg in args if not arg.startswith("-")]
    if len(names) != 2:
        raise GitError("usage: git merge-base [--is-ancestor] <commit> <commit>", 129, "")
    first, second = find_commit(repo, names[0]), find_commit(repo, names[1])
    base = merge_base(repo, first, second)
    if "--is-ancestor" in args:
        return 0 if base == first else 1
    if base is None:
        return 1
    repo.process.print(base.decode())
    return 0
