"""`git hash-object`: the name that a file has as an object."""

from __future__ import annotations

from dulwich.errors import ObjectFormatException
from dulwich.objects import Blob, Commit, ShaFile, Tag, Tree

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import flag, value
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.text import input_lines

_KINDS = {"blob": Blob, "tree": Tree, "commit": Commit, "tag": Tag}


@dataclass(frozen=True, slots=True)
class Options:
    write: bool = flag("-w", "write the object")
    kind: str = value("-t", "the object's type", metavar="TYPE", default="blob")
    stdin: bool = flag("--stdin", "read the object from standard input")
    paths: bool = flag("--stdin-paths", "read names of files from standard input")
    no_filters: bool = flag("--no-filters", "--literally", "(there are none)")


def hash_object(repo: Repository, args: list[str]) -> int:
    options, operands = read_options(Options, args)
    if options.kind not in _KINDS:
        raise GitError(f'invalid object type "{options.kind}"')
    names = [*(["-"] if options.stdin else []), *operands]
    if options.paths:
        names += [line for line in input_lines(repo) if line]
    for name in names:
        try:
            item = ShaFile.from_raw_string(_KINDS[options.kind].type_num, repo.process.read_file(name))
            item.check()
        except (ObjectFormatException, ValueError):
            raise GitError(f"corrupt {options.kind}") from None
        except SysError as error:
            raise GitError(f"could not open '{name}' for reading: {error.reason}") from None
        if options.write:
            repo.store.add(item)
        repo.process.print(bytes(item.id).decode())
    return 0
