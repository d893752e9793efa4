"""`git merge-tree`: what a merge would give, written as a tree and nothing else."""

from __future__ import annotations

from dulwich.objects import Blob

from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.merging import merge_base, merge_trees
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_commit


def merge_tree(repo: Repository, args: list[str]) -> int:
    """`git merge-tree`: what a merge would give, written as a tree and nothing else."""
    names = [arg for arg in args if not arg.startswith("-")]
    if len(names) != 2:
        raise GitError("usage: git merge-tree [--write-tree] <branch1> <branch2>", 129, "")
    first, second = (find_commit(repo, name) for name in names)
    base = merge_base(repo, first, second)
    merged = merge_trees(repo, repo.tree_of(base), repo.tree_of(first), repo.tree_of(second), names[0], names[1])
    files = dict(merged.files)
    for path, (_, data, mode) in merged.conflicts.items():
        files[path] = (mode, repo.store.add(Blob.from_string(data or b"")))
    repo.process.print(repo.store.unflatten(files).decode())
    for path, (entry, _, _) in merged.conflicts.items():
        for stage, side in ((1, entry.ancestor), (2, entry.this), (3, entry.other)):
            if side is not None:
                repo.process.print(f"{side.mode:06o} {side.sha.decode()} {stage}\t{path}")
    if merged.conflicts:
        repo.process.print("\n" + "\n".join(merged.messages))
    return int(bool(merged.conflicts))
