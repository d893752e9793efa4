"""`git merge-file`: the changes from one file to another, merged into a third."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import choice, flag, many
from belljar.bin._kit.options import parse
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.merging import Names, merge_texts
from belljar.bin.git.repository.repo import Repository


@dataclass(frozen=True, slots=True)
class Options:
    stdout: bool = flag("-p", "--stdout", "send results to standard output")
    diff3: bool = flag("--diff3", "--zdiff3", "show what both sides changed, too")
    quiet: bool = flag("-q", "--quiet", "do not warn about conflicts")
    labels: tuple[str, ...] = many("-L", "names for the files in conflict markers", metavar="NAME")
    favour: str = choice({"--ours": "ours", "--theirs": "theirs", "--union": "union"}, "the side that wins", "")


def merge_file(repo: Repository, args: list[str]) -> int:
    parsed = parse(Options, args)
    options, paths, process = Options(**parsed.values), parsed.operands, repo.process
    if len(paths) != 3:
        raise GitError("usage: git merge-file [<options>] [-L <name>]... <file1> <orig-file> <file2>", 129, "")
    texts = []
    for path in paths:
        try:
            texts.append(process.read_file(path))
        except SysError as error:
            raise GitError(f"Could not stat {path}\nerror: {error.reason}", 255, "error: ") from None
    ours, base, theirs = [*options.labels, *paths[len(options.labels) :]]
    names = Names(ours, theirs, base if options.diff3 else None, options.favour)
    merged, clean = merge_texts(process, texts[1], texts[0], texts[2], names)
    if options.stdout:
        process.stdout.write(merged)
    else:
        process.write_file(paths[0], merged)
    return 0 if clean else min(127, merged.count(f"<<<<<<< {ours}\n".encode("utf-8", "surrogateescape")))
