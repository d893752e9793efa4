"""`git checkout`: another branch or commit, or files of one."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import choice, flag, value
from belljar.bin._kit.options import parse
from belljar.bin.git.repository.hooks import tell_checkout
from belljar.bin.git.repository.pathspec import match_paths
from belljar.bin.git.repository.refs import ZERO
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_commit
from belljar.bin.git.repository.store import Flat
from belljar.bin.git.repository.work import changed_files
from belljar.bin.git.restore import discard_hunks, restore_paths
from belljar.bin.git.switch import guess_remote, is_commit, start_orphan, switch_new, switch_to


@dataclass(frozen=True, slots=True)
class CheckoutOptions:
    create: str | None = value("-b", "create and checkout a new branch", metavar="BRANCH")
    reset: str | None = value("-B", "create or reset and checkout a branch", metavar="BRANCH")
    orphan: str | None = value("--orphan", "new unparented branch", metavar="BRANCH")
    force: bool = flag("-f", "--force", "throw away local modifications")
    quiet: bool = flag("-q", "--quiet", "be quiet")
    detach: bool = flag("--detach", "detach HEAD")
    track: str | None = value("-t", "--track", "set upstream", metavar="MODE", bare="direct")
    patch: bool = flag("-p", "--patch", "choose hunks")
    side: str | None = choice({"--ours": "ours", "--theirs": "theirs"}, "check out a side of a conflict")


def checkout(repo: Repository, args: list[str]) -> int:
    parsed = parse(CheckoutOptions, args)
    options, operands = CheckoutOptions(**parsed.values), parsed.operands
    new = options.create or options.reset
    if new is not None:
        start = operands[0] if operands else "HEAD"
        return switch_new(repo, new, start, reset=options.reset is not None, force=options.force, quiet=options.quiet)
    if options.orphan is not None:
        return start_orphan(repo, options.orphan, quiet=options.quiet)
    separated = "--" in args
    paths = args[args.index("--") + 1 :] if separated else []
    before = operands[: len(operands) - len(paths)] if separated else operands
    if options.patch and not (before and is_commit(repo, before[0])):
        return discard_hunks(repo, [*before, *paths])
    if separated and paths:
        tree = repo.tree_of(find_commit(repo, before[0])) if before else None
        return _restore(repo, paths, tree, options, quiet=True)
    if not before:
        return _switch(repo, "HEAD", options) if options.detach else 0
    if len(before) > 1:
        if is_commit(repo, before[0]):
            return _restore(repo, before[1:], repo.tree_of(find_commit(repo, before[0])), options)
        return _restore(repo, before, None, options)
    name = before[0]
    if is_commit(repo, name):
        return _switch(repo, name, options)
    if guessed := guess_remote(repo, name):
        return switch_new(repo, name, guessed, force=options.force, quiet=options.quiet)
    return _restore(repo, before, None, options)


def _switch(repo: Repository, name: str, options: CheckoutOptions) -> int:
    return switch_to(repo, name, detach=options.detach, force=options.force, quiet=options.quiet, advise=True)


def _restore(
    repo: Repository, paths: list[str], tree: Flat | None, options: CheckoutOptions, *, quiet: bool = False
) -> int:
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
