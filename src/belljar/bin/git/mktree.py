"""`git mktree`: a tree from lines as ls-tree shows them."""

from __future__ import annotations

from dulwich.objects import ObjectID, Tree

from belljar.abi.paths import fsencode
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.text import input_lines
from belljar.bin.git.repository.tree import parse_mode, parse_name


def mktree(repo: Repository, args: list[str]) -> int:
    tree = Tree()
    for line in input_lines(repo):
        if not line:
            continue
        head, _, path = line.partition("\t")
        words = head.split()
        if len(words) != 3 or not path:
            raise GitError(f"input format error: {line}")
        tree.add(fsencode(path), parse_mode(words[0]), ObjectID(parse_name(words[2])))
    repo.process.print(repo.store.add(tree).decode())
    return 0
