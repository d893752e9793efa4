"""A branch beside the one that it follows: how far apart they are."""

from __future__ import annotations

from belljar.abi.paths import fsencode
from belljar.bin.git.repository.config import read_config, write_config
from belljar.bin.git.repository.merging import ancestors
from belljar.bin.git.repository.repo import Repository


def divergence(repo: Repository, upstream: str, tip: bytes | None = None) -> tuple[int, int]:
    """Return how many commits a tip (or HEAD) has that the upstream has not, and the other way."""
    head, other = tip or repo.head(), repo.refs.get(upstream)
    if head is None or other is None:
        return 0, 0
    ours, theirs = ancestors(repo, head), ancestors(repo, other)
    return len(ours - theirs), len(theirs - ours)


def tracking_text(repo: Repository, branch: str) -> str:
    upstream = repo.upstream(branch)
    if upstream is None or repo.head() is None:
        return ""
    name = upstream.removeprefix("refs/remotes/").removeprefix("refs/heads/")
    if repo.refs.get(upstream) is None:
        return (
            f"Your branch is based on '{name}', but the upstream is gone.\n"
            '  (use "git branch --unset-upstream" to fixup)\n\n'
        )
    ahead, behind = divergence(repo, upstream)
    if not ahead and not behind:
        return f"Your branch is up to date with '{name}'.\n\n"
    if not behind:
        return (
            f"Your branch is ahead of '{name}' by {ahead} commit{'s' if ahead > 1 else ''}.\n"
            '  (use "git push" to publish your local commits)\n\n'
        )
    if not ahead:
        return (
            f"Your branch is behind '{name}' by {behind} commit{'s' if behind > 1 else ''}, "
            "and can be fast-forwarded.\n"
            '  (use "git pull" to update your local branch)\n\n'
        )
    return (
        f"Your branch and '{name}' have diverged,\n"
        f"and have {ahead} and {behind} different commits each, respectively.\n"
        '  (use "git pull" to merge the remote branch into yours)\n\n'
    )


def configure_upstream(repo: Repository, name: str, remote: str, branch_name: str) -> None:
    path = f"{repo.common}/config"
    config = read_config(repo.process, path)
    section = (b"branch", fsencode(name))
    config.set(section, b"remote", fsencode(remote))
    config.set(section, b"merge", fsencode(f"refs/heads/{branch_name}"))
    write_config(repo.process, path, config)
