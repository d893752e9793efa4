"""`git gc`, `git prune`: objects are loose files here and stay so."""

from __future__ import annotations

from belljar.bin.git.repository.repo import Repository


def collect(repo: Repository, args: list[str]) -> int:
    """`git gc`, `git prune`: objects are loose files here and stay so; there is nothing to be done."""
    return 0
