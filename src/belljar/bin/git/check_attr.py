"""`git check-attr`: what .gitattributes files say of paths."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import flag
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.attributes import Attributes
from belljar.bin.git.repository.diffs import quote_path
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.pathspec import relative
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.text import input_lines


@dataclass(frozen=True, slots=True)
class Options:
    all: bool = flag("-a", "--all", "all attributes that are set")
    stdin: bool = flag("--stdin", "read names from standard input")
    null: bool = flag("-z", "separate with NUL")
    cached: bool = flag("--cached", "(the work tree's files are read)")


def check_attr(repo: Repository, args: list[str]) -> int:
    options, operands = read_options(Options, args)
    if options.all:
        names, paths = [], operands
    elif "--" in args:
        paths = args[args.index("--") + 1 :]
        names = operands[: len(operands) - len(paths)]
    else:
        names, paths = (operands, []) if options.stdin else (operands[:1], operands[1:])
    if options.stdin:
        paths = [line for line in input_lines(repo) if line]
    if not options.all and not names:
        raise GitError("No attribute specified", 129, "error: ")
    if not paths and not options.stdin:
        raise GitError("No file specified", 129, "error: ")
    attributes = Attributes(repo)
    for path in paths:
        found = attributes.of(relative(repo, path))
        for name in sorted(found) if options.all else names:
            state = found.get(name, "unspecified")
            if options.all and state == "unspecified":
                continue
            if options.null:
                repo.process.print(f"{path}\0{name}\0{state}\0", end="")
            else:
                repo.process.print(f"{quote_path(path)}: {name}: {state}")
    return 0
