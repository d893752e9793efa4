"""`git checkout`: another branch or commit, or files of one."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import choice, flag, value
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.hooks import tell_checkout
from belljar.bin.git.repository.merging import Names, merge_texts
from belljar.bin.git.repository.pathspec import match_paths
from belljar.bin.git.repository.refs import ZERO
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_object, resolve
from belljar.bin.git.repository.store import Flat
from belljar.bin.git.repository.switching import (
    SwitchOptions,
    guess_remote,
    is_commit,
    start_branch,
    switch_new,
    switch_to,
)
from belljar.bin.git.repository.text import input_lines, text_of
from belljar.bin.git.repository.work import changed_files, write_file
from belljar.bin.git.restore import discard_hunks, restore_paths


@dataclass(frozen=True, slots=True)
class CheckoutOptions(SwitchOptions):
    create: str | None = value("-b", "create and checkout a new branch", metavar="BRANCH")
    reset: str | None = value("-B", "create or reset and checkout a branch", metavar="BRANCH")
    force: bool = flag("-f", "--force", "throw away local modifications")
    patch: bool = flag("-p", "--patch", "choose hunks")
    side: str | None = choice(
        {"--ours": "ours", "--theirs": "theirs", "-2": "ours", "-3": "theirs"}, "check out a side of a conflict"
    )
    style: str | None = value("--conflict", "recreate conflicts in a style: merge or diff3", metavar="STYLE")
    names_from: str | None = value("--pathspec-from-file", "read paths from a file", metavar="FILE")


def checkout(repo: Repository, args: list[str]) -> int:
    options, operands = read_options(CheckoutOptions, args)
    if (status := start_branch(repo, options, operands)) is not None:
        return status
    separated = "--" in args
    paths = args[args.index("--") + 1 :] if separated else []
    before = operands[: len(operands) - len(paths)] if separated else operands
    if options.names_from is not None:
        source = options.names_from
        lines = input_lines(repo) if source == "-" else text_of(repo.process.read_file(source)).split("\n")
        paths, separated = [line for line in lines if line], True
    if options.patch and not (before and is_commit(repo, before[0])):
        return discard_hunks(repo, [*before, *paths])
    if paths:
        return _restore(repo, paths, _tree(repo, before[0]) if before else None, options, quiet=True)
    if not before:
        if repo.head() is None:
            raise GitError("You are on a branch yet to be born")
        return switch_to(repo, "HEAD", options, advise=True)
    if len(before) > 1:
        if _is_tree(repo, before[0]):
            return _restore(repo, before[1:], _tree(repo, before[0]), options)
        return _restore(repo, before, None, options)
    name = before[0]
    if is_commit(repo, name):
        return switch_to(repo, name, options, advise=True)
    if options.guess and (guessed := guess_remote(repo, name)):
        return switch_new(repo, name, guessed, options)
    if separated:
        raise GitError(f"invalid reference: {name}")
    return _restore(repo, before, None, options)


def _is_tree(repo: Repository, name: str) -> bool:
    try:
        repo.tree_at(resolve(repo, name))
    except (KeyError, GitError):
        return False
    return True


def _tree(repo: Repository, name: str) -> Flat:
    return repo.tree_at(find_object(repo, name))


def _recreate(repo: Repository, specs: list[str], options: CheckoutOptions, *, quiet: bool) -> int:
    """Write files in conflict again as the merge left them, with its markers."""
    chosen = match_paths(repo, specs, list(repo.conflicts()))
    base = "base" if options.style in ("diff3", "zdiff3") else None
    for path in chosen:
        entry = repo.conflicts()[path]
        if entry.this is None or entry.other is None:
            raise GitError(f"path '{path}' does not have necessary versions", 1, "error: ")
        sides = [repo.store.blob(bytes(side.sha)) if side is not None else b""
                 for side in (entry.ancestor, entry.this, entry.other)]  # fmt: skip
        names = Names("ours", "theirs", base)
        write_file(repo, path, entry.this.mode, merge_texts(repo.process, sides[0], sides[1], sides[2], names)[0])
    if not options.quiet and not quiet:
        repo.process.error(f"Recreated {len(chosen)} merge conflict{'s' if len(chosen) != 1 else ''}\n")
    return 0


def _restore(
    repo: Repository, paths: list[str], tree: Flat | None, options: CheckoutOptions, *, quiet: bool = False
) -> int:
    if (
        tree is None
        and (options.merge or options.style is not None)
        and match_paths(repo, paths, list(repo.conflicts()))
    ):
        return _recreate(repo, paths, options, quiet=quiet)
    stale = set(changed_files(repo)) | set(repo.conflicts())
    if tree is not None:
        staged = repo.staged()
        stale |= {path for path, entry in tree.items() if staged.get(path) != entry}
    number = len(stale & set(match_paths(repo, paths, list(repo.index if tree is None else tree))))
    restore_paths(repo, paths, tree, index=tree is not None, work=True, side=options.side)
    head = repo.head() or ZERO
    if not options.quiet and not quiet:
        source = "the index" if tree is None else repo.store.unflatten(tree)[:7].decode()
        repo.process.error(f"Updated {number} path{'s' if number != 1 else ''} from {source}\n")
    return tell_checkout(repo, head, head, files=True)
