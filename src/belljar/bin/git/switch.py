"""`git switch`: another branch or commit in the work tree."""

from __future__ import annotations

from belljar.bin._kit.options import parse
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import full_name, previous_branch
from belljar.bin.git.repository.switching import (
    SwitchOptions,
    guess_remote,
    is_commit,
    start_branch,
    switch_new,
    switch_to,
)
from belljar.bin.git.repository.work import check_out


def switch(repo: Repository, args: list[str]) -> int:
    parsed = parse(SwitchOptions, args)
    options, operands = SwitchOptions(**parsed.values), parsed.operands
    new = options.create if options.create is not None else options.reset
    if new is not None and operands and not is_commit(repo, operands[0]):
        raise GitError(f"invalid reference: {operands[0]}")
    if (status := start_branch(repo, options, operands)) is not None:
        if options.orphan is not None:
            check_out(repo, repo.staged(), {})  # unlike checkout, it begins with no files
        return status
    if not operands and not options.detach:
        raise GitError("missing branch or commit argument")
    name = operands[0] if operands else "HEAD"
    if name == "-":
        name = previous_branch(repo) or name
    if repo.refs.get(f"refs/heads/{name}") is None and not options.detach:
        guessed = guess_remote(repo, name) if options.guess else None
        if guessed:
            return switch_new(repo, name, guessed, options)
        if is_commit(repo, name):
            kind = _kind(repo, name)
            raise GitError(
                f"a branch is expected, got {kind} '{name}'\n"
                "hint: If you want to detach HEAD at the commit, try again with the --detach option."
            )
        raise GitError(f"invalid reference: {name}")
    return switch_to(repo, name, options, advise=False)


def _kind(repo: Repository, name: str) -> str:
    """The word for something that is no branch."""
    ref = full_name(repo, name)
    if ref.startswith("refs/tags/"):
        return "tag"
    return "remote branch" if ref.startswith("refs/remotes/") else "commit"
