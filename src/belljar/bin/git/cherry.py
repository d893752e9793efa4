"""`git cherry`: which commits of a branch have their change upstream already."""

from __future__ import annotations

from belljar.bin.git.repository.changes import patch_id
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.history import walk
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_commit
from belljar.bin.git.repository.text import subject_of, text_of


def cherry(repo: Repository, args: list[str]) -> int:
    """`git cherry`: which commits of a branch have their change upstream already."""
    names = [arg for arg in args if not arg.startswith("-")]
    current = (repo.refs.branch() or "").removeprefix("refs/heads/")
    upstream_name = names[0] if names else repo.upstream(current)
    if not upstream_name:
        raise GitError("Could not find a tracked remote branch, please specify <upstream> manually.", 128, "")
    upstream, head = find_commit(repo, upstream_name), find_commit(repo, names[1] if len(names) > 1 else "HEAD")
    known = {patch_id(repo, sha) for sha in walk(repo, [upstream], [head])}
    for sha in reversed(list(walk(repo, [head], [upstream]))):
        commit = repo.store.commit(sha)
        if len(commit.parents) > 1:
            continue
        subject = f" {subject_of(text_of(commit.message))}" if "-v" in args else ""
        repo.process.print(f"{'-' if patch_id(repo, sha) in known else '+'} {sha.decode()}{subject}")
    return 0
