"""The lines that tell of a commit just made."""

from __future__ import annotations

from belljar.bin.git.repository.diffs import compare, mode_lines, stat_text
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.text import date, subject_of, text_of


def show_summary(repo: Repository, sha: bytes, *, dated: bool = False, root: bool = False) -> None:
    made = repo.store.commit(sha)
    branch = repo.refs.branch()
    name = branch.removeprefix("refs/heads/") if branch else "detached HEAD"
    first = " (root-commit)" if root else ""
    repo.process.print(f"[{name}{first} {sha[:7].decode()}] {subject_of(text_of(made.message))}")
    if made.author != made.committer:
        repo.process.print(f" Author: {text_of(made.author)}")
    if dated or (made.author_time, made.author_timezone) != (made.commit_time, made.commit_timezone):
        repo.process.print(f" Date: {date(made.author_time, made.author_timezone)}")
    if len(made.parents) < 2:
        pairs = compare(repo, repo.tree_of(made.parents[0]) if made.parents else {}, repo.tree_of(sha))
        repo.process.print(stat_text(repo.process, pairs, summary_only=True) + mode_lines(pairs), end="")
