"""`git cherry-pick`: what other commits changed, on top of HEAD."""

from __future__ import annotations

from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.sequencer import PICK, PickOptions, named_commits, resume, start


def cherry_pick(repo: Repository, args: list[str]) -> int:
    options, operands = read_options(PickOptions, args)
    if options.action is not None:
        return resume(repo, PICK, options)
    if not operands:
        raise GitError("usage: git cherry-pick [<options>] <commit>...", 129, "")
    return start(repo, PICK, named_commits(repo, operands), options)
