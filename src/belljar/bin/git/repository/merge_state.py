"""A merge that is under way: what must not be in its way, and what it leaves in .git."""

from __future__ import annotations

from contextlib import suppress

from belljar.abi.errors import SysError
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.sparse import Sparse
from belljar.bin.git.repository.store import Flat
from belljar.bin.git.repository.text import text_of
from belljar.bin.git.repository.work import changed_files, check_out_entry, refusal, remove_file, stat_of


def check_clean(repo: Repository, ours: Flat, new: Flat, conflicts: set[str]) -> None:
    """Local changes must not be in the way of a merge."""
    touched = {path for path in ours.keys() | new.keys() if ours.get(path) != new.get(path)} | conflicts
    staged = repo.staged()
    dirty = {path for path in staged.keys() | ours.keys() if staged.get(path) != ours.get(path)}
    blocked = sorted(touched & (set(changed_files(repo)) | dirty))
    strangers = sorted(p for p in touched - ours.keys() if p not in repo.index and stat_of(repo, p) is not None)
    if blocked or strangers:
        raise refusal(blocked, strangers, "merge")


def read_state(repo: Repository, name: str) -> str | None:
    """A file of .git that tells of something under way; None if there is none."""
    try:
        return text_of(repo.process.read_file(f"{repo.git}/{name}")).strip()
    except SysError:
        return None


def check_merged(repo: Repository, doing: str, failure: str = "Exiting because of an unresolved conflict.") -> None:
    """Raise GitError if files are in conflict."""
    if repo.conflicts():
        raise GitError(
            f"{doing} is not possible because you have unmerged files.\n"
            "hint: Fix them up in the work tree, and then use 'git add/rm <file>'\n"
            "hint: as appropriate to mark resolution and make a commit.\n"
            f"fatal: {failure}",
            128,
            "error: ",
        )


def forget_merge(repo: Repository) -> None:
    for name in ("MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "CHERRY_PICK_HEAD", "REVERT_HEAD"):
        with suppress(SysError):
            repo.process.fs.unlink(f"{repo.git}/{name}")


def end_step(repo: Repository) -> None:
    """Forget a merge that was committed, and a row of picks whose last one it was."""
    forget_merge(repo)
    if len((read_state(repo, "sequencer/todo") or "").split("\n")) < 2:
        remove_state(repo, f"{repo.git}/sequencer")


def reset_merge(repo: Repository, tree: Flat) -> None:
    """Give up what was merged: staged and conflicted files as a tree has them, other changes kept."""
    staged, sparse = repo.staged(), Sparse(repo)
    touched = {path for path in staged.keys() | tree.keys() if staged.get(path) != tree.get(path)}
    for path in sorted(touched | set(repo.conflicts())):
        repo.process.budget.charge()
        if path in tree:
            mode, sha = tree[path]
            repo.index[path] = check_out_entry(repo, path, mode, sha, sparse)
        else:
            remove_file(repo, path)
            repo.index.pop(path, None)
    repo.write_index()


def remove_state(repo: Repository, folder: str) -> None:
    """The folder in which a row of steps keeps how far it is."""
    with suppress(SysError):
        for entry in list(repo.process.fs.readdir(folder)):
            repo.process.fs.unlink(f"{folder}/{entry.name}")
        repo.process.fs.rmdir(folder)
