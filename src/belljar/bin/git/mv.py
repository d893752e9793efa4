"""`git mv`: a file or folder under another name, in the work tree and the index."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import flag
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.pathspec import relative
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.work import stat_of


@dataclass(frozen=True, slots=True)
class Options:
    force: bool = flag("-f", "--force", "force move/rename even if target exists")
    skip: bool = flag("-k", "skip move/rename errors")
    verbose: bool = flag("-v", "--verbose", "be verbose")
    dry_run: bool = flag("-n", "--dry-run", "dry run")


def mv(repo: Repository, args: list[str]) -> int:
    options, operands = read_options(Options, args)
    if len(operands) < 2:
        raise GitError("usage: git mv [<options>] <source>... <destination>", 129, "")
    *sources, destination = operands
    target = relative(repo, destination)
    stat = stat_of(repo, target) if target else None
    into = not target or (stat is not None and stat.is_dir)
    for source in sources:
        name = relative(repo, source)
        new = f"{target}/{name.rpartition('/')[2]}".lstrip("/") if into else target
        moved = [path for path in repo.index if path == name or path.startswith(name + "/")]
        if stat_of(repo, name) is None:
            raise GitError(f"bad source, source={name}, destination={new}")
        if not moved:
            raise GitError(f"not under version control, source={name}, destination={new}")
        if stat_of(repo, new) is not None and not options.force:
            raise GitError(f"destination exists, source={name}, destination={new}")
        if options.verbose or options.dry_run:
            repo.process.print(f"Renaming {name} to {new}")
        if options.dry_run:
            continue
        repo.process.fs.rename(repo.path(name), repo.path(new))
        for path in moved:
            repo.index[new + path[len(name) :]] = repo.index.pop(path)
    repo.write_index()
    return 0
