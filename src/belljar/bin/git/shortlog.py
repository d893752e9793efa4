"""`git shortlog`: commits by who made them."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import flag
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.history import walk
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.selection import select
from belljar.bin.git.repository.text import subject_of, text_of, who


@dataclass(frozen=True, slots=True)
class Options:
    summary: bool = flag("-s", "--summary", "only the number of commits")
    numbered: bool = flag("-n", "--numbered", "sort by the number of commits")
    email: bool = flag("-e", "--email", "show addresses")
    committer: bool = flag("-c", "--committer", "group by committer")
    all: bool = flag("--all", "all refs")
    no_merges: bool = flag("--no-merges", "leave merges out")


def shortlog(repo: Repository, args: list[str]) -> int:
    options, operands = read_options(Options, args)
    if not operands and not options.all and not repo.process.isatty(0):
        # As git does: without a revision and a terminal it reads a log from its input, which is empty here.
        if repo.process.read_file("-").strip():
            raise GitError("a log on standard input is not read here: name a revision (git shortlog HEAD)")
        return 0
    starts, excluded = select(repo, operands)
    if options.all:
        starts = [bytes(repo.store.commit(sha).id) for sha in repo.refs.under("refs/").values()]
    table: dict[str, list[str]] = {}
    for sha in walk(repo, starts, excluded):
        commit = repo.store.commit(sha)
        if options.no_merges and len(commit.parents) > 1:
            continue
        name, email = who(commit.committer if options.committer else commit.author)
        person = f"{name} <{email}>" if options.email else name
        table.setdefault(person, []).insert(0, subject_of(text_of(commit.message)))
    names = sorted(table, key=lambda name: (-len(table[name]), name)) if options.numbered else sorted(table)
    for name in names:
        if options.summary:
            repo.process.print(f"{len(table[name]):6d}\t{name}")
        else:
            repo.process.print(f"{name} ({len(table[name])}):")
            for subject in table[name]:
                repo.process.print(f"      {subject}")
            repo.process.print("")
    return 0
