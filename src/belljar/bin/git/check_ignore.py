"""`git check-ignore`: which paths are ignored, and by which pattern."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import flag
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.ignores import Ignores
from belljar.bin.git.repository.pathspec import relative
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.text import input_lines
from belljar.bin.git.repository.work import stat_of


@dataclass(frozen=True, slots=True)
class Options:
    quiet: bool = flag("-q", "--quiet", "only a status")
    verbose: bool = flag("-v", "--verbose", "say which pattern it is")
    stdin: bool = flag("--stdin", "read names from standard input")
    non_matching: bool = flag("-n", "--non-matching", "show names that no pattern is for")
    no_index: bool = flag("--no-index", "tracked files, too")


def check_ignore(repo: Repository, args: list[str]) -> int:
    options, operands = read_options(Options, args)
    names = [line for line in input_lines(repo) if line] if options.stdin else operands
    if not names and not options.stdin:
        raise GitError("no path specified")
    ignores = Ignores(repo)
    found = False
    for name in names:
        path = relative(repo, name)
        stat = stat_of(repo, path)
        tracked = path in repo.index and not options.no_index
        folder = name.endswith("/") or (stat is not None and stat.is_dir)
        source = None if tracked else ignores.source(path, directory=folder)
        hit = source is not None and not source[2].startswith("!")
        found = found or hit or (source is not None and options.verbose)
        if options.quiet:
            continue
        if options.verbose and source is not None:
            repo.process.print(f"{source[0]}:{source[1]}:{source[2]}\t{name}")
        elif options.verbose and options.non_matching:
            repo.process.print(f"::\t{name}")
        elif hit:
            repo.process.print(name)
    return 0 if found else 1
