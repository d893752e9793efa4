"""The files that are staged, changed, in conflict or untracked."""

from __future__ import annotations

from dulwich.index import ConflictedIndexEntry

from belljar.abi.dataclass import dataclass, field
from belljar.bin.git.repository.ignores import find_untracked
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.work import changed_files


@dataclass(slots=True)
class Status:
    staged: dict[str, str] = field(default_factory=dict)
    """Path to A, M, D, T."""
    changed: dict[str, str] = field(default_factory=dict)
    unmerged: dict[str, ConflictedIndexEntry] = field(default_factory=dict)
    untracked: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)


def compute_status(repo: Repository, *, untracked: str = "normal", ignored: bool = False) -> Status:
    status = Status(unmerged=repo.conflicts())
    head, index = repo.head_tree(), repo.staged()
    for path in index.keys() - head.keys():
        status.staged[path] = "A"
    for path in head.keys() - index.keys():
        if path not in status.unmerged:
            status.staged[path] = "D"
    for path in index.keys() & head.keys():
        if index[path] != head[path]:
            status.staged[path] = "M" if index[path][0] >> 12 == head[path][0] >> 12 else "T"
    status.staged = dict(sorted(status.staged.items()))
    status.changed = changed_files(repo)
    if untracked != "no" and repo.work:
        status.untracked, status.ignored = find_untracked(repo, everything=untracked == "all", ignored=ignored)
    return status
