"""Walking commits: from which, without which, and in what order."""

from __future__ import annotations

import heapq
from collections.abc import Iterator

from belljar.bin.git.repository.repo import Repository


def walk(repo: Repository, starts: list[bytes], excluded: list[bytes]) -> Iterator[bytes]:
    """Commits, the newest first; those the excluded ones reach are left out."""
    hidden: set[bytes] = set()
    stack = list(excluded)
    while stack:
        sha = stack.pop()
        if sha not in hidden:
            repo.process.budget.charge()
            hidden.add(sha)
            stack += [bytes(parent) for parent in repo.store.commit(sha).parents]
    seen: set[bytes] = set()
    queue: list[tuple[int, int, bytes]] = []
    count = 0
    for sha in starts:
        if sha not in seen and sha not in hidden:
            seen.add(sha)
            heapq.heappush(queue, (-repo.store.commit(sha).commit_time, count, sha))
            count += 1
    while queue:
        repo.process.budget.charge()
        _, _, sha = heapq.heappop(queue)
        yield sha
        for parent in repo.store.commit(sha).parents:
            if parent not in seen and parent not in hidden:
                seen.add(bytes(parent))
                heapq.heappush(queue, (-repo.store.commit(parent).commit_time, count, bytes(parent)))
                count += 1


def topological(repo: Repository, commits: list[bytes], *, by_date: bool = False) -> list[bytes]:
    """No commit before its children; lines of development stay together, or the newest comes first."""
    known = set(commits)
    children = dict.fromkeys(commits, 0)
    for sha in commits:
        for parent in repo.store.commit(sha).parents:
            if parent in known:
                children[bytes(parent)] += 1
    out: list[bytes] = []
    ready: list[tuple[int, int, bytes]] = []
    """A stack for lines of development, a heap for dates: what comes next is the smallest."""
    count = len(commits)
    for number, sha in enumerate(commits):
        if not children[sha]:
            ready.append((-repo.store.commit(sha).commit_time if by_date else 0, number, sha))
    heapq.heapify(ready)
    while ready:
        repo.process.budget.charge()
        sha = heapq.heappop(ready)[2]
        out.append(sha)
        for parent in repo.store.commit(sha).parents:
            if parent in known:
                children[bytes(parent)] -= 1
                if not children[bytes(parent)]:
                    count += 1
                    time = repo.store.commit(parent).commit_time
                    heapq.heappush(ready, (-time, count, bytes(parent)) if by_date else (0, -count, bytes(parent)))
    return out
