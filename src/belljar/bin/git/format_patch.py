"""`git format-patch`: commits as mails."""

from __future__ import annotations

import re
from contextlib import suppress

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.bin._kit import flag, value
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.changes import commit_pairs
from belljar.bin.git.repository.diffs import mode_lines, patch, stat_text
from belljar.bin.git.repository.formats import file_name, mail
from belljar.bin.git.repository.history import walk
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.selection import select
from belljar.bin.git.repository.text import text_of


@dataclass(frozen=True, slots=True)
class FormatOptions:
    number: str | None = value("-n", "--max-count", "how many commits", metavar="N")
    numbered: bool = flag("--numbered", "number the patches, even if it is one")
    no_number: bool = flag("-N", "--no-numbered", "don't number them")
    output: str | None = value("-o", "--output-directory", "where files are put", metavar="DIR")
    stdout: bool = flag("--stdout", "all to standard output")
    prefix: str = value("--subject-prefix", "instead of PATCH", metavar="TEXT", default="PATCH")
    keep: bool = flag("-k", "--keep-subject", "subjects as they are")
    start: str = value("--start-number", "the first number", metavar="N", default="1")
    root: bool = flag("--root", "from the first commit on")
    no_stat: bool = flag("-p", "--no-stat", "no diffstat")
    signature: str = value("--signature", "the last line", metavar="TEXT", default="2.39.5")
    no_signature: bool = flag("--no-signature", "no last line")
    quiet: bool = flag("-q", "--quiet", "say no names of files")
    signoff: bool = flag("-s", "--signoff", "sign off")


def format_patch(repo: Repository, args: list[str]) -> int:
    words = [f"-n{arg[1:]}" if re.fullmatch(r"-\d+", arg) else arg for arg in args]
    options, operands = read_options(FormatOptions, words)
    ranges = list(operands)
    if options.number is None and not options.root and len(ranges) == 1 and ".." not in ranges[0]:
        ranges = [f"{ranges[0]}.."]
    starts, excluded = select(repo, ranges)
    limit = int(options.number[:6]) if options.number and options.number.isdecimal() else None
    commits = [sha for sha in walk(repo, starts, excluded) if len(repo.store.commit(sha).parents) < 2][:limit]
    commits.reverse()
    first = int(options.start[:6]) if options.start.isdecimal() else 1
    total = first + len(commits) - 1
    if options.output is not None and not options.stdout:
        with suppress(SysError):
            repo.process.fs.mkdir(options.output)
    for number, sha in enumerate(commits, first):
        text = _patch_mail(repo, sha, number, total, options)
        if options.stdout:
            repo.process.stdout.write(text)
            continue
        name = f"{number:04d}-{file_name(text_of(repo.store.commit(sha).message))[:52]}.patch"
        path = f"{options.output.rstrip('/')}/{name}" if options.output is not None else name
        repo.process.write_file(path, text)
        if not options.quiet:
            repo.process.print(path)
    return 0


def _patch_mail(repo: Repository, sha: bytes, number: int, total: int, options: FormatOptions) -> bytes:
    commit = repo.store.commit(sha)
    prefix = options.prefix
    if (total > 1 or options.numbered) and not options.no_number:
        prefix += f" {number:0{len(str(total))}d}/{total}"
    head = mail(sha, commit, "" if options.keep else prefix)
    if options.signoff:
        head = head.rstrip("\n") + f"\n\nSigned-off-by: {text_of(repo.identity('COMMITTER'))}"
    pairs = commit_pairs(repo, commit, [])
    out = [head.rstrip("\n") + "\n"]
    if "\n\n" not in head.rstrip("\n"):
        out.append("\n")
    out.append("---\n")
    if not options.no_stat:
        out.append(stat_text(repo.process, pairs, 72) + mode_lines(pairs) + "\n")
    body = b"".join(patch(repo.process, pair) for pair in pairs)
    tail = b"" if options.no_signature else b"-- \n" + fsencode(options.signature) + b"\n\n"
    return fsencode("".join(out)) + body + tail
