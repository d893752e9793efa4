"""`git mktree`: a tree from lines as ls-tree shows them."""

from __future__ import annotations

from dulwich.objects import ObjectID, Tree

from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.text import input_lines


def mktree(repo: Repository, args: list[str]) -> int:
    tree = Tree()
    for line in input_lines(repo):
        if not line:
            continue
        head, _, path = line.partition("\t")
        words = head.split()
        if len(words) != 3 or not path:
            raise GitError(f"input format error: {line}")
        tree.add(path.encode("utf-8", "surrogateescape"), int(words[0], 8), ObjectID(words[2].encode()))
    repo.process.print(repo.store.add(tree).decode())
    return 0
