"""`git fsck`: that everything which refs reach is there and whole."""

from __future__ import annotations

from dulwich.objects import Tree

from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.store import SUBMODULE
from belljar.bin.git.repository.tree import rows


def fsck(repo: Repository, args: list[str]) -> int:
    """`git fsck`: that everything which refs reach is there and whole."""
    stack = [*repo.refs.under("refs/").values(), *([head] if (head := repo.head()) else [])]
    seen: set[bytes] = set()
    status = 0
    while stack:
        sha = stack.pop()
        if sha in seen:
            continue
        seen.add(sha)
        repo.process.budget.charge()
        try:
            item = repo.store.get(sha)
        except KeyError:
            repo.process.print(f"missing object {sha.decode()}")
            status = 2
            continue
        if isinstance(item, Tree):
            stack += [row.sha for row in rows(item) if row.mode != SUBMODULE]
        elif item.type_name == b"commit":
            commit = repo.store.commit(sha)
            stack += [bytes(commit.tree), *(bytes(parent) for parent in commit.parents)]
        elif item.type_name == b"tag":
            stack.append(bytes(repo.store.commit(sha).id))
    return status
