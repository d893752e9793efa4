"""`git diff-index`, `git diff-files`: the work tree beside a tree or the index, for scripts."""

from __future__ import annotations

from belljar.bin._kit.options import parse
from belljar.bin.git.diff import show_diff
from belljar.bin.git.repository.diff_output import DiffOptions, wants_form
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.pathspec import restrict
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_object
from belljar.bin.git.repository.store import Flat
from belljar.bin.git.repository.work import work_files


def diff_index(repo: Repository, args: list[str]) -> int:
    parsed = parse(DiffOptions, args)
    options = DiffOptions(**parsed.values)
    if not parsed.operands:
        raise GitError("usage: git diff-index [-m] [--cached] [<common-diff-options>] <tree-ish> [<path>...]", 129, "")
    if not wants_form(options):
        options = DiffOptions(**{**parsed.values, "raw": True, "full_index": True})
    old = repo.tree_at(find_object(repo, parsed.operands[0]))
    return _against_work(repo, old, options, parsed.operands[1:])


def diff_files(repo: Repository, args: list[str]) -> int:
    parsed = parse(DiffOptions, args)
    options = DiffOptions(**parsed.values)
    if not wants_form(options):
        options = DiffOptions(**{**parsed.values, "raw": True, "full_index": True})
    return _against_work(repo, repo.staged(), options, parsed.operands)


def _against_work(repo: Repository, old: Flat, options: DiffOptions, paths: list[str]) -> int:
    new, contents = (repo.staged(), {}) if options.cached else work_files(repo)
    old, new = restrict(repo, paths, old, new)
    return show_diff(repo, old, new, contents, options)
