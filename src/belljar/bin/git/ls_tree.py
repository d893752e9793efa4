"""`git ls-tree`: what is in a tree."""

from __future__ import annotations

from collections.abc import Iterator

from dulwich.objects import Tree

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import flag
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.diffs import quote_path
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.pathspec import from_here, relative
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import resolve
from belljar.bin.git.repository.store import DIRECTORY
from belljar.bin.git.repository.tree import Row, rows


@dataclass(frozen=True, slots=True)
class Options:
    recursive: bool = flag("-r", "go into trees")
    trees: bool = flag("-t", "show trees while going into them")
    only_trees: bool = flag("-d", "show only trees")
    long: bool = flag("-l", "--long", "show sizes")
    names: bool = flag("--name-only", "--name-status", "show only names")
    objects: bool = flag("--object-only", "show only objects")
    null: bool = flag("-z", "terminate with NUL")
    full: bool = flag("--full-name", "names from the top of the tree")
    whole: bool = flag("--full-tree", "the whole tree, wherever we are")


def ls_tree(repo: Repository, args: list[str]) -> int:
    options, operands = read_options(Options, args)
    if not operands:
        raise GitError("usage: git ls-tree [<options>] <tree-ish> [<path>...]", 129, "")
    try:
        sha = resolve(repo, operands[0])
    except KeyError:
        raise GitError(f"Not a valid object name {operands[0]}") from None
    top = repo.store.get(sha)
    if not isinstance(top, Tree):
        top = repo.store.tree(bytes(repo.store.commit(sha).tree))
    here = "" if options.whole or not repo.work else relative(repo, ".")
    wanted = [w if options.whole or not repo.work else relative(repo, w) + "/" * w.endswith("/") for w in operands[1:]]
    if here and not wanted:
        wanted = [here + "/"]

    def visit(tree: Tree, prefix: str) -> Iterator[Row]:
        for row in rows(tree, prefix):
            repo.process.budget.charge()
            inside = not wanted or any(
                row.path == w.rstrip("/") or row.path.startswith(w.rstrip("/") + "/") for w in wanted
            )
            above = any(w.startswith(row.path + "/") for w in wanted)
            folder = row.mode == DIRECTORY
            enter = folder and ((options.recursive and (inside or above) and not options.only_trees) or above)
            if (not folder and inside and not options.only_trees) or (
                folder and inside and not (above and not options.trees) and (not enter or options.trees)
            ):
                yield row
            if enter:
                yield from visit(repo.store.tree(row.sha), row.path + "/")

    end = "\0" if options.null else "\n"
    for row in visit(top, ""):
        size = ""
        if options.long:
            blob = row.kind == "blob"
            size = f" {len(repo.store.blob(row.sha)) if blob else '-':>7}"
        if here and not options.full:
            row = Row(row.mode, row.sha, from_here(repo, row.path))
        shown = quote_path(row.path) if options.names else row.sha.decode() if options.objects else row.text(size)
        repo.process.print(shown, end=end)
    return 0
