"""`git hash-object`: the name that a file has as an object."""

from __future__ import annotations

from dulwich.objects import Blob

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import flag, value
from belljar.bin._kit.options import parse
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.text import input_lines


@dataclass(frozen=True, slots=True)
class Options:
    write: bool = flag("-w", "write the object")
    kind: str = value("-t", "the object's type", metavar="TYPE", default="blob")
    stdin: bool = flag("--stdin", "read the object from standard input")
    paths: bool = flag("--stdin-paths", "read names of files from standard input")
    no_filters: bool = flag("--no-filters", "--literally", "(there are none)")


def hash_object(repo: Repository, args: list[str]) -> int:
    parsed = parse(Options, args)
    options = Options(**parsed.values)
    if options.kind != "blob":
        raise GitError(f"objects of type '{options.kind}' are not made here: git mktree, commit-tree or tag do")
    names = [*(["-"] if options.stdin else []), *parsed.operands]
    if options.paths:
        names += [line for line in input_lines(repo) if line]
    for name in names:
        try:
            blob = Blob.from_string(repo.process.read_file(name))
        except SysError as error:
            raise GitError(f"could not open '{name}' for reading: {error.reason}") from None
        if options.write:
            repo.store.add(blob)
        repo.process.print(bytes(blob.id).decode())
    return 0
