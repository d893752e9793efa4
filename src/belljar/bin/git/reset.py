"""`git reset`: HEAD, and with it the index and the work tree, to another commit."""

from __future__ import annotations

from dulwich.index import IndexEntry

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import choice, flag
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.diffs import compare
from belljar.bin.git.repository.merge_state import end_step, reset_merge
from belljar.bin.git.repository.pathspec import relative, restrict
from belljar.bin.git.repository.picking import UNSTAGE, Picker, put_into_index
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_commit, resolve
from belljar.bin.git.repository.text import commit_subject
from belljar.bin.git.repository.work import changed_files, check_out, stat_of
from belljar.bin.git.restore import restore_paths


@dataclass(frozen=True, slots=True)
class ResetOptions:
    mode: str = choice(
        {"--soft": "soft", "--mixed": "mixed", "--hard": "hard", "--merge": "merge", "--keep": "keep"},
        "what is reset",
        default="mixed",
    )
    quiet: bool = flag("-q", "--quiet", "be quiet")
    patch: bool = flag("-p", "--patch", "choose hunks")


def reset(repo: Repository, args: list[str]) -> int:
    separator = args.index("--") if "--" in args else None
    options, operands = read_options(ResetOptions, args)
    revision, paths = "HEAD", operands
    behind = len(args) - separator - 1 if separator is not None else 0
    if len(operands) > behind:
        try:
            resolve(repo, operands[0])
            revision, paths = operands[0], operands[1:]
        except KeyError:
            known = operands[0] in repo.index or stat_of(repo, relative(repo, operands[0])) is not None
            if separator is not None or not known:
                find_commit(repo, operands[0])
    if options.patch:
        return _unstage_hunks(repo, revision, paths)
    if paths:
        tree = repo.tree_of(find_commit(repo, revision)) if repo.head() is not None else {}
        restore_paths(repo, paths, tree, index=True, work=False)
        _unstaged(repo, quiet=options.quiet)
        return 0
    if repo.head() is None and revision == "HEAD":
        repo.index.clear()
        repo.write_index()
        return 0
    sha = find_commit(repo, revision)
    old = repo.head()
    tree = repo.tree_of(sha)
    if options.mode == "hard":
        check_out(repo, repo.head_tree(), tree, force=True)
        end_step(repo)
    elif options.mode == "merge" and repo.conflicts():
        reset_merge(repo, tree)
        end_step(repo)
    elif options.mode in ("keep", "merge"):
        check_out(repo, repo.head_tree(), tree, what="reset")
    elif options.mode == "mixed":
        index = repo.index
        for path in list(index):
            if path not in tree:
                del index[path]
        for path, wanted in tree.items():
            entry = index.get(path)
            if not isinstance(entry, IndexEntry) or (entry.mode, bytes(entry.sha)) != wanted:
                index[path] = repo.bare_entry(*wanted)
        repo.write_index()
        end_step(repo)
    if old is not None:
        repo.process.write_file(f"{repo.git}/ORIG_HEAD", old + b"\n")
    repo.refs.set("HEAD", sha, f"reset: moving to {revision}", repo.signature())
    if options.mode == "hard" and not options.quiet:
        subject = commit_subject(repo, sha)
        repo.process.print(f"HEAD is now at {sha[:7].decode()} {subject}")
    elif options.mode == "mixed":
        _unstaged(repo, quiet=options.quiet)
    return 0


def _unstage_hunks(repo: Repository, revision: str, paths: list[str]) -> int:
    """`reset -p`: hunks out of the index."""
    tree = repo.tree_of(find_commit(repo, revision)) if repo.head() is not None else {}
    old, new = restrict(repo, paths, tree, repo.staged())
    return put_into_index(repo, Picker(repo, UNSTAGE).pick(compare(repo, old, new, renames=False)))


def _unstaged(repo: Repository, *, quiet: bool) -> None:
    changed = changed_files(repo)
    if changed and not quiet:
        repo.process.print("Unstaged changes after reset:")
        for path, letter in changed.items():
            repo.process.print(f"{letter}\t{path}")
