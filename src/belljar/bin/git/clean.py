"""`git clean`: untracked files removed."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import count, flag
from belljar.bin._kit.options import parse
from belljar.bin.git.repository.diffs import quote_path
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.ignores import find_untracked
from belljar.bin.git.repository.pathspec import match_paths
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.work import stat_of


@dataclass(frozen=True, slots=True)
class Options:
    force: int = count("-f", "--force", "force")
    dry_run: bool = flag("-n", "--dry-run", "dry run")
    directories: bool = flag("-d", "remove whole directories")
    ignored: bool = flag("-x", "remove ignored files, too")
    only_ignored: bool = flag("-X", "remove only ignored files")
    quiet: bool = flag("-q", "--quiet", "be quiet")


def clean(repo: Repository, args: list[str]) -> int:
    parsed = parse(Options, args)
    options = Options(**parsed.values)
    if not options.force and not options.dry_run:
        raise GitError("clean.requireForce defaults to true and neither -i, -n, nor -f given; refusing to clean")
    untracked, hidden = find_untracked(repo, everything=False, ignored=True)
    names = hidden if options.only_ignored else sorted(untracked + hidden) if options.ignored else untracked
    if parsed.operands:
        names = match_paths(repo, parsed.operands, names)
    for name in names:
        if name.endswith("/") and not options.directories:
            continue
        if not options.quiet or options.dry_run:
            repo.process.print(f"{'Would remove' if options.dry_run else 'Removing'} {quote_path(name)}")
        if not options.dry_run:
            _remove_tree(repo, name.rstrip("/"))
    return 0


def _remove_tree(repo: Repository, path: str) -> None:
    stat = stat_of(repo, path)
    if stat is None:
        return
    repo.process.budget.charge()
    full = repo.path(path)
    if not stat.is_dir:
        repo.process.fs.unlink(full)
        return
    for entry in repo.process.fs.readdir(full):
        _remove_tree(repo, f"{path}/{entry.name}")
    repo.process.fs.rmdir(full)
