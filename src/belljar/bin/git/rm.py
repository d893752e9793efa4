"""`git rm`: files out of the index and the work tree."""

from __future__ import annotations

from dulwich.index import IndexEntry

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import flag
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.pathspec import match_paths, relative
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.store import Flat
from belljar.bin.git.repository.work import differs, remove_file, stat_of


@dataclass(frozen=True, slots=True)
class RmOptions:
    cached: bool = flag("--cached", "only remove from the index")
    force: bool = flag("-f", "--force", "override the up-to-date check")
    recursive: bool = flag("-r", "allow recursive removal")
    quiet: bool = flag("-q", "--quiet", "do not list removed files")
    dry_run: bool = flag("-n", "--dry-run", "dry run")
    ignore: bool = flag("--ignore-unmatch", "exit with a zero status even if nothing matched")


def rm(repo: Repository, args: list[str]) -> int:
    options, operands = read_options(RmOptions, args)
    if not operands:
        raise GitError("No pathspec was given. Which files should I remove?")
    chosen: list[str] = []
    for spec in operands:
        found = match_paths(repo, [spec], list(repo.index))
        name = relative(repo, spec)
        if not found:
            if options.ignore:
                continue
            raise GitError(f"pathspec '{spec}' did not match any files")
        if name not in found and not options.recursive and not any(char in spec for char in "*?["):
            raise GitError(f"not removing '{spec}' recursively without -r")
        chosen += found
    head = repo.head_tree()
    if not options.force:
        _check_removal(repo, chosen, head, cached=options.cached)
    for path in sorted(set(chosen)):
        if not options.quiet:
            repo.process.print(f"rm '{path}'")
        if options.dry_run:
            continue
        del repo.index[path]
        if not options.cached:
            remove_file(repo, path)
    if not options.dry_run:
        repo.write_index()
    return 0


def _check_removal(repo: Repository, chosen: list[str], head: Flat, *, cached: bool) -> None:
    both, staged, local = [], [], []
    for path in chosen:
        entry, stat = repo.index[path], stat_of(repo, path)
        if not isinstance(entry, IndexEntry) or stat is None:
            continue
        in_head = head.get(path) == (entry.mode, bytes(entry.sha))
        dirty = differs(repo, path, entry, stat)
        if dirty and not in_head:
            both.append(path)
        elif not cached and not in_head:
            staged.append(path)
        elif not cached and dirty:
            local.append(path)
    for names, what, hint in (
        (both, "staged content different from both the\nfile and the HEAD", "use -f to force removal"),
        (staged, "changes staged in the index", "use --cached to keep the file, or -f to force removal"),
        (local, "local modifications", "use --cached to keep the file, or -f to force removal"),
    ):
        if names:
            have = "file has" if len(names) == 1 else "files have"
            listed = "".join(f"    {name}\n" for name in names)
            raise GitError(f"the following {have} {what}:\n{listed}({hint})", 1, "error: ")
