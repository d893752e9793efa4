"""`git revert`: what commits changed, undone on top of HEAD."""

from __future__ import annotations

from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.sequencer import REVERT, PickOptions, named_commits, resume, start


def revert(repo: Repository, args: list[str]) -> int:
    options, operands = read_options(PickOptions, args)
    if options.action is not None:
        return resume(repo, REVERT, options)
    if not operands:
        raise GitError("usage: git revert [<options>] <commit>...", 129, "")
    return start(repo, REVERT, named_commits(repo, operands, newest_first=True), options)
