"""`git rev-list`: names of commits, and of all that is in them."""

from __future__ import annotations

from dulwich.objects import Tree

from belljar.bin.git.log import make_formatter
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.selection import choose, count_text
from belljar.bin.git.repository.store import SUBMODULE
from belljar.bin.git.repository.text import subject_of, text_of


def rev_list(repo: Repository, args: list[str]) -> int:
    chosen = choose(repo, args)
    options, process = chosen.options, repo.process
    if options.count:
        process.print(count_text(chosen))
        return 0
    if options.form not in (None, "oneline"):
        formatter = make_formatter(repo, options)[0]
        for sha in chosen.commits:
            process.print(f"commit {sha.decode()}\n{formatter.show(sha)}")
        return 0
    for sha in chosen.commits:
        name = sha.decode()[:7] if options.abbrev_commit else sha.decode()
        line = f"{chosen.marks.get(sha, '')}{name}"
        commit = repo.store.commit(sha)
        if options.parents:
            line = " ".join([line, *(parent.decode() for parent in commit.parents)])
        if options.form == "oneline":
            line += f" {subject_of(text_of(commit.message))}"
        process.print(line)
    if options.objects:
        _list_objects(repo, chosen.commits)
    return 0


def _list_objects(repo: Repository, commits: list[bytes]) -> None:
    """Trees and files of commits, each once, with the path where it is first seen."""
    seen: set[bytes] = set()
    for sha in commits:
        stack: list[tuple[bytes, str]] = [(bytes(repo.store.commit(sha).tree), "")]
        while stack:
            name, path = stack.pop()
            if name in seen:
                continue
            seen.add(name)
            repo.process.budget.charge()
            repo.process.print(f"{name.decode()} {path}")
            item = repo.store.get(name)
            if isinstance(item, Tree):
                below = [(bytes(e.sha or b""), text_of(e.path or b"")) for e in item.iteritems() if e.mode != SUBMODULE]
                stack += [(child, f"{path}/{part}" if path else part) for child, part in reversed(below)]
