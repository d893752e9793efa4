"""`git ls-files`: what is in the index, and what of the work tree is not."""

from __future__ import annotations

from dulwich.index import IndexEntry

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import flag
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.diffs import quote_path
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.ignores import find_untracked
from belljar.bin.git.repository.pathspec import from_here, match_paths
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.sparse import is_left_out
from belljar.bin.git.repository.work import changed_files


@dataclass(frozen=True, slots=True)
class Options:
    stage: bool = flag("-s", "--stage", "show mode, object and stage")
    others: bool = flag("-o", "--others", "show untracked files")
    ignored: bool = flag("-i", "--ignored", "show only ignored files")
    modified: bool = flag("-m", "--modified", "show modified files")
    deleted: bool = flag("-d", "--deleted", "show deleted files")
    cached: bool = flag("-c", "--cached", "show cached files")
    unmerged: bool = flag("-u", "--unmerged", "show unmerged files")
    standard: bool = flag("--exclude-standard", "leave ignored files out")
    directory: bool = flag("--directory", "show a directory that is untracked as one")
    null: bool = flag("-z", "terminate with NUL")
    error: bool = flag("--error-unmatch", "fail if a path is not known")
    tags: bool = flag("-t", "-v", "show a letter for the state")
    full: bool = flag("--full-name", "names from the top of the work tree")


def ls_files(repo: Repository, args: list[str]) -> int:
    options, operands = read_options(Options, args)
    end = "\0" if options.null else "\n"
    rows: list[tuple[str, str]] = []
    if options.others:
        untracked, hidden = find_untracked(
            repo, everything=not options.directory, ignored=options.ignored or not options.standard
        )
        rows += [("?", path) for path in (hidden if options.ignored else untracked + hidden)]
    changed = changed_files(repo) if options.modified or options.deleted else {}
    if (
        options.cached
        or options.stage
        or options.unmerged
        or not (options.others or options.modified or options.deleted)
    ):
        rows += [
            ("S" if is_left_out(entry) else "H" if isinstance(entry, IndexEntry) else "M", path)
            for path, entry in repo.index.items()
        ]
    if options.deleted:
        rows += [("R", path) for path, letter in changed.items() if letter == "D"]
    if options.modified:
        rows += [("C", path) for path in changed]
    names = [path for _, path in rows]
    kept = set(match_paths(repo, operands or ["."], names))
    for spec in operands if options.error else ():
        if not match_paths(repo, [spec], names):
            raise GitError(
                f"pathspec '{spec}' did not match any file(s) known to git\nDid you forget to 'git add'?", 1, "error: "
            )
    for letter, path in sorted(set(rows) if not options.tags else rows, key=lambda row: row[1]):
        if path not in kept:
            continue
        shown = path if options.full else from_here(repo, path)
        shown = shown if options.null else quote_path(shown)
        mark = f"{letter} " if options.tags else ""
        entry = repo.index.get(path)
        if not (options.stage or options.unmerged) or entry is None:
            repo.process.print(mark + shown, end=end)
            continue
        stages = (
            [(0, entry)] if isinstance(entry, IndexEntry) else [(1, entry.ancestor), (2, entry.this), (3, entry.other)]
        )
        for stage, item in stages:
            if item is not None and (stage or not options.unmerged):
                repo.process.print(f"{mark}{item.mode:06o} {item.sha.decode()} {stage}\t{shown}", end=end)
    return 0
