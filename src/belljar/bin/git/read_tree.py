"""`git read-tree`: a tree into the index, the work tree left alone."""

from __future__ import annotations

from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_object


def read_tree(repo: Repository, args: list[str]) -> int:
    """`git read-tree`: a tree into the index, the work tree left alone."""
    names = [arg for arg in args if not arg.startswith("-")]
    if "--empty" not in args and (
        len(names) != 1 or any(arg not in ("--reset", "-q") for arg in args if arg not in names)
    ):
        raise GitError(
            "git read-tree [--reset] <tree> and --empty are what is there: use git merge or checkout for more"
        )
    tree = repo.tree_at(find_object(repo, names[0])) if names else {}
    repo.index.clear()
    for path, entry in tree.items():
        repo.index[path] = repo.bare_entry(*entry)
    repo.write_index()
    return 0
