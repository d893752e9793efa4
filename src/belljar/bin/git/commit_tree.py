"""`git commit-tree`: a commit of a tree, on no branch."""

from __future__ import annotations

from dulwich.objects import Tree

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import many, value
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_commit, find_object
from belljar.bin.git.repository.text import text_of


@dataclass(frozen=True, slots=True)
class Options:
    parents: tuple[str, ...] = many("-p", "a parent", metavar="COMMIT")
    message: tuple[str, ...] = many("-m", "a paragraph of the message", metavar="MESSAGE")
    file: str | None = value("-F", "read the message from a file", metavar="FILE")


def commit_tree(repo: Repository, args: list[str]) -> int:
    options, operands = read_options(Options, args)
    if len(operands) != 1:
        raise GitError("must give exactly one tree")
    sha = find_object(repo, operands[0])
    if not isinstance(repo.store.get(sha), Tree):
        raise GitError(f"{sha.decode()} is not a valid 'tree' object")
    text = "\n\n".join(options.message) if options.message else text_of(repo.process.read_file(options.file or "-"))
    parents = [find_commit(repo, name) for name in options.parents]
    repo.process.print(repo.make_commit(sha, parents, text.rstrip("\n") + "\n").decode())
    return 0
