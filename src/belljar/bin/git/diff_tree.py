"""`git diff-tree`: what differs between trees, for scripts."""

from __future__ import annotations

from belljar.bin._kit.options import parse
from belljar.bin.git.diff import show_diff
from belljar.bin.git.repository.changes import commit_pairs
from belljar.bin.git.repository.diff_output import DiffOptions, show_pairs, wants_form
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.log_options import LogOptions
from belljar.bin.git.repository.pathspec import restrict
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_commit, find_object, resolve


def diff_tree(repo: Repository, args: list[str]) -> int:
    plain = ("--no-commit-id", "-r", "-t", "--root", "-m", "--always", "--stdin")
    rest = [arg for arg in args if arg not in plain]
    parsed = parse(LogOptions, rest)
    options = LogOptions(**parsed.values)
    shown: DiffOptions = (
        options if wants_form(options) else LogOptions(**{**parsed.values, "raw": True, "full_index": True})
    )
    names = parsed.operands
    if not names:
        raise GitError("usage: git diff-tree [<options>] <tree-ish> [<tree-ish>] [<path>...]", 129, "")
    if len(names) > 1 and _is_tree(repo, names[1]):
        old, new = (repo.tree_at(find_object(repo, name)) for name in names[:2])
        old, new = restrict(repo, names[2:], old, new)
        return show_diff(repo, old, new, {}, shown)
    commit = repo.store.commit(find_commit(repo, names[0]))
    if not commit.parents and "--root" not in args:
        return 0
    pairs = commit_pairs(repo, commit, names[1:])
    if pairs and "--no-commit-id" not in args:
        repo.process.print(bytes(commit.id).decode())
    show_pairs(repo, pairs, shown)
    return 0


def _is_tree(repo: Repository, name: str) -> bool:
    try:
        repo.tree_at(resolve(repo, name))
    except (KeyError, GitError):
        return False
    return True
