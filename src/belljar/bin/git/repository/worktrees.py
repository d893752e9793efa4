"""The work trees of a repository: the main one, and those that `git worktree add` linked to it."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.bin.git.repository.repo import Repository


@dataclass(frozen=True, slots=True)
class Worktree:
    path: str
    git: str
    """Its own folder of the repository."""
    head: bytes | None
    branch: str | None
    """In full; None if HEAD is detached."""
    locked: str | None = None
    """Why it must stay."""
    lost: str | None = None
    """Why it can be pruned."""

    @property
    def linked(self) -> bool:
        return "/worktrees/" in self.git


def list_worktrees(repo: Repository) -> list[Worktree]:
    """All of them, the main one first."""
    main = repo.common.removesuffix("/.git") if repo.common.endswith("/.git") else repo.common
    found = [_worktree(repo, main, repo.common)]
    try:
        entries = repo.process.fs.readdir(f"{repo.common}/worktrees")
    except SysError:
        return found
    linked = []
    for entry in entries:
        repo.process.budget.charge()
        git = f"{repo.common}/worktrees/{entry.name}"
        text = _read(repo, f"{git}/gitdir")
        path = (text or "").removesuffix("/.git")
        lost = None
        if text is None:
            lost = "gitdir file does not exist"
        elif _read(repo, text) is None:
            lost = "gitdir file points to non-existent location"
        linked.append(_worktree(repo, path, git, _read(repo, f"{git}/locked"), lost))
    return found + sorted(linked, key=lambda tree: tree.path)


def checked_out(repo: Repository, ref: str) -> str | None:
    """Return where another work tree has a branch checked out."""
    for tree in list_worktrees(repo):
        if tree.git != repo.git and tree.branch == ref:
            return tree.path
    return None


def _worktree(repo: Repository, path: str, git: str, locked: str | None = None, lost: str | None = None) -> Worktree:
    text = _read(repo, f"{git}/HEAD") or ""
    branch = text[5:].strip() if text.startswith("ref: ") else None
    head = repo.refs.get(branch) if branch is not None else fsencode(text) or None
    return Worktree(path, git, head, branch, locked, lost if locked is None else None)


def _read(repo: Repository, path: str) -> str | None:
    try:
        return repo.process.read_file(path).decode("utf-8", "surrogateescape").strip()
    except SysError:
        return None
