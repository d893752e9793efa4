"""`git hook run`: a hook by itself."""

from __future__ import annotations

from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.hooks import run_hook
from belljar.bin.git.repository.repo import Repository


def hook(repo: Repository, args: list[str]) -> int:
    before, rest = (args[: args.index("--")], args[args.index("--") + 1 :]) if "--" in args else (args, [])
    words = [arg for arg in before if not arg.startswith("-")]
    if len(words) != 2 or words[0] != "run":
        raise GitError("usage: git hook run [--ignore-missing] <hook-name> [-- <hook-args>]", 129, "")
    status = run_hook(repo, words[1], *rest)
    if status is None:
        if "--ignore-missing" in before:
            return 0
        raise GitError(f"cannot find a hook named {words[1]}", 1, "error: ")
    return status
