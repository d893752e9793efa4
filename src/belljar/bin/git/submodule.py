"""`git submodule`: there are none here; commands that would use them say so."""

from __future__ import annotations

from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.store import SUBMODULE


def submodule(repo: Repository, args: list[str]) -> int:
    """`git submodule`: there are none here; commands that would use them say so."""
    verb = next((arg for arg in args if not arg.startswith("-")), "status")
    known = [path for path, (mode, _) in repo.staged().items() if mode == SUBMODULE]
    if verb in ("add", "foreach", "summary") or known:
        raise GitError("submodules are not there in this git: clone the other repository by itself")
    return 0
