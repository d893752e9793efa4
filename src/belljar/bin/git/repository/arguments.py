"""Revisions, numbers and paths on a command line, told apart."""

from __future__ import annotations

import re

from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.pathspec import match_paths, relative
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_commit, resolve
from belljar.bin.git.repository.work import stat_of

_ONELINE = ("--pretty=oneline", "--abbrev-commit")


def split_operands(repo: Repository, args: list[str], operands: list[str]) -> tuple[list[str], list[str]]:
    """Revisions, then paths; `--` or the first word that is no revision divides them."""
    if "--" in args:
        paths = args[args.index("--") + 1 :]
        return operands[: len(operands) - len(paths)], paths
    revisions: list[str] = []
    for index, word in enumerate(operands):
        if _is_revision(repo, word):
            revisions.append(word)
            continue
        paths = operands[index:]
        for path in paths:
            if (
                not any(c in path for c in "*?[")
                and stat_of(repo, relative(repo, path)) is None
                and path not in repo.index
            ):
                known = match_paths(repo, [path], list(repo.index))
                if not known:
                    find_commit(repo, path)
        return revisions, paths
    return revisions, []


def _is_revision(repo: Repository, word: str) -> bool:
    for part in re.split(r"\.\.\.?", word.lstrip("^")):
        try:
            resolve(repo, part or "HEAD")
        except (KeyError, GitError):
            return False
    return True


def attach_numbers(args: list[str]) -> list[str]:
    """-3 means -n 3, and --oneline what it stands for, before any `--`."""
    out: list[str] = []
    args = expand_oneline(args)
    for index, arg in enumerate(args):
        if arg == "--":
            return out + args[index:]
        out.append(f"-n{arg[1:]}" if re.fullmatch(r"-\d+", arg) else arg)
    return out


def expand_oneline(args: list[str]) -> list[str]:
    """--oneline stands for two other options, so that the last format given wins."""
    end = args.index("--") if "--" in args else len(args)
    words = [word for arg in args[:end] for word in (_ONELINE if arg == "--oneline" else (arg,))]
    return words + args[end:]


def negate_revisions(args: list[str]) -> list[str]:
    """Revisions behind --not are ones to leave out."""
    out: list[str] = []
    negative = False
    for index, arg in enumerate(args):
        if arg == "--":
            return out + args[index:]
        if arg == "--not":
            negative = not negative
        elif negative and not arg.startswith("-"):
            out.append(arg[1:] if arg.startswith("^") else f"^{arg}")
        else:
            out.append(arg)
    return out
