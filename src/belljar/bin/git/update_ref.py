"""`git update-ref`: a ref to another object, if it is where it is thought to be."""

from __future__ import annotations

import re

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import flag, value
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.refs import ZERO, check_name
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_object


@dataclass(frozen=True, slots=True)
class Options:
    delete: bool = flag("-d", "delete the ref")
    message: str = value("-m", "the reason, for the log", metavar="REASON", default="")
    no_deref: bool = flag("--no-deref", "--create-reflog", "(accepted)")


def update_ref(repo: Repository, args: list[str]) -> int:
    options, operands = read_options(Options, args)
    words = operands
    if not words or (not options.delete and len(words) < 2):
        raise GitError("usage: git update-ref [<options>] <refname> <new-val> [<old-val>]", 129, "")
    name = words[0]
    if name != "HEAD" and (not name.startswith("refs/") or not check_name(name)):
        raise GitError(f"update_ref failed for ref '{name}': refusing to update ref with bad name '{name}'")
    expected = words[1 if options.delete else 2] if len(words) > (1 if options.delete else 2) else None
    if expected is not None:
        old = repo.refs.get(name) or ZERO
        wanted = _object(repo, expected)
        if old == ZERO and wanted != ZERO:
            raise GitError(
                f"update_ref failed for ref '{name}': cannot lock ref '{name}': unable to resolve reference '{name}'"
            )
        if old != wanted:
            raise GitError(
                f"update_ref failed for ref '{name}': cannot lock ref '{name}': "
                f"is at {old.decode()} but expected {wanted.decode()}"
            )
    if options.delete:
        repo.refs.delete(name)
        return 0
    repo.refs.set(name, find_object(repo, words[1]), options.message, repo.signature())
    return 0


def _object(repo: Repository, name: str) -> bytes:
    """The object of a name; 40 digits are one, be it there or not."""
    if not name.strip("0"):
        return ZERO
    return name.encode() if re.fullmatch(r"[0-9a-f]{40}", name) else find_object(repo, name)
