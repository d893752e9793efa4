"""`git pack-refs`: refs in one file instead of many."""

from __future__ import annotations

from belljar.bin.git.repository.repo import Repository


def pack_refs(repo: Repository, args: list[str]) -> int:
    repo.refs.pack(everything="--all" in args)
    return 0
