"""The changes of a commit, and a way to recognise the same change elsewhere."""

from __future__ import annotations

import re

from dulwich.objects import Commit

from belljar.abi.paths import fsencode
from belljar.bin.git.repository.diffs import Pair, compare, hunks
from belljar.bin.git.repository.pathspec import restrict
from belljar.bin.git.repository.repo import Repository


def patch_id(repo: Repository, sha: bytes) -> bytes | None:
    """Hash a commit's change, to recognise the same change elsewhere; None for a merge."""
    commit = repo.store.commit(sha)
    if len(commit.parents) > 1:
        return None
    pairs = commit_pairs(repo, commit, [])
    text = [fsencode(f"{pair.old} {pair.new}\n") + hunks(repo.process, pair.before, pair.after) for pair in pairs]
    return re.sub(rb"(?m)^@@.*\n", b"", b"".join(text))


def commit_pairs(repo: Repository, commit: Commit, paths: list[str]) -> list[Pair]:
    """Compare a commit with its first parent."""
    old = repo.tree_of(bytes(commit.parents[0])) if commit.parents else {}
    new = repo.tree_of(bytes(commit.id))
    return compare(repo, *restrict(repo, paths, old, new))
