"""`git check-ref-format`: whether a ref may have a name."""

from __future__ import annotations

from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.refs import check_name
from belljar.bin.git.repository.repo import Repository


def check_ref_format(repo: Repository, args: list[str]) -> int:
    branch = "--branch" in args
    names = [arg for arg in args if not arg.startswith("-")]
    if not names:
        raise GitError("usage: git check-ref-format [--normalize] [<options>] <refname>", 129, "")
    good = check_name(names[0]) and (branch or "/" in names[0] or "--allow-onelevel" in args)
    if not good:
        if branch:
            raise GitError(f"'{names[0]}' is not a valid branch name")
        return 1
    if branch or "--normalize" in args:
        repo.process.print(names[0])
    return 0
