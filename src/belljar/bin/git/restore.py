"""`git restore`: files back from the index or a commit."""

from __future__ import annotations

from dulwich.index import ConflictedIndexEntry, IndexEntry

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import choice, flag, value
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.diffs import compare
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.pathspec import match_paths, restrict
from belljar.bin.git.repository.picking import DISCARD, Picker
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_commit
from belljar.bin.git.repository.store import Flat
from belljar.bin.git.repository.work import remove_file, work_files, write_file


@dataclass(frozen=True, slots=True)
class RestoreOptions:
    staged: bool = flag("-S", "--staged", "restore the index")
    worktree: bool = flag("-W", "--worktree", "restore the working tree")
    source: str | None = value("-s", "--source", "which tree-ish to check out from", metavar="TREE")
    side: str | None = choice(
        {"--ours": "ours", "--theirs": "theirs", "-2": "ours", "-3": "theirs"}, "check out a side"
    )
    quiet: bool = flag("-q", "--quiet", "be quiet")
    patch: bool = flag("-p", "--patch", "choose hunks")


def restore(repo: Repository, args: list[str]) -> int:
    options, operands = read_options(RestoreOptions, args)
    if options.patch and not options.staged and options.source is None:
        return discard_hunks(repo, operands)
    if not operands:
        raise GitError("you must specify path(s) to restore")
    source = options.source or ("HEAD" if options.staged else None)
    tree: Flat | None = None
    if source:
        tree = repo.tree_of(find_commit(repo, source)) if source != "HEAD" or repo.head() else {}
    return restore_paths(
        repo,
        operands,
        tree,
        index=options.staged,
        work=options.worktree or not options.staged,
        side=options.side,
    )


def discard_hunks(repo: Repository, specs: list[str]) -> int:
    """`restore -p`, `checkout -p`: hunks out of the work tree."""
    new, contents = work_files(repo)
    old, new = restrict(repo, specs, repo.staged(), new)
    for picked in Picker(repo, DISCARD).pick(compare(repo, old, new, contents, renames=False)):
        if picked.data is None:
            remove_file(repo, picked.path)
        else:
            write_file(repo, picked.path, picked.mode, picked.data)
    return 0


def restore_paths(
    repo: Repository, specs: list[str], tree: Flat | None, *, index: bool, work: bool, side: str | None = None
) -> int:
    """Files from a tree, or from the index, back into the index and the work tree. The number of files."""
    known = list(dict.fromkeys([*repo.index, *(tree or {})]))
    chosen: list[str] = []
    for spec in specs:
        found = match_paths(repo, [spec], known)
        if not found:
            raise GitError(f"pathspec '{spec}' did not match any file(s) known to git", 1, "error: ")
        chosen += found
    for path in sorted(set(chosen)):
        entry = repo.index.get(path)
        if tree is not None:
            wanted = tree.get(path)
        elif isinstance(entry, ConflictedIndexEntry):
            picked = entry.this if side == "ours" else entry.other if side == "theirs" else None
            if picked is None:
                raise GitError(f"path '{path}' is unmerged", 1, "error: ")
            wanted = (picked.mode, bytes(picked.sha))
        else:
            wanted = (entry.mode, bytes(entry.sha)) if entry is not None else None
        if index:
            if wanted is None:
                repo.index.pop(path, None)
            elif not isinstance(entry, IndexEntry) or (entry.mode, bytes(entry.sha)) != wanted:
                repo.index[path] = repo.bare_entry(*wanted)
        if work:
            if wanted is None:
                remove_file(repo, path)
                continue
            stat = write_file(repo, path, wanted[0], repo.contents(wanted))
            now = repo.index.get(path)
            if isinstance(now, IndexEntry) and (now.mode, bytes(now.sha)) == wanted:
                repo.index[path] = repo.entry(stat, *wanted)
    repo.write_index()
    return 0
