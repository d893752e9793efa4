"""`git status`: what is staged, changed and untracked, for people or for scripts."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsencode
from belljar.bin._kit import flag, value
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.diffs import compare, quote_path
from belljar.bin.git.repository.pathspec import match_paths
from belljar.bin.git.repository.repo import Repository, mode_of
from belljar.bin.git.repository.status import Status, compute_status
from belljar.bin.git.repository.status_text import conflict_kind, long_status, short_status, staged_pairs
from belljar.bin.git.repository.tracking import divergence
from belljar.bin.git.repository.work import stat_of


@dataclass(frozen=True, slots=True)
class StatusOptions:
    short: bool = flag("-s", "--short", "show status concisely")
    branch: bool = flag("-b", "--branch", "show branch information")
    porcelain: str | None = value("--porcelain", "machine-readable output", metavar="VERSION", bare="v1")
    untracked: str = value(
        "-u", "--untracked-files", "show untracked files", metavar="MODE", default="normal", bare="all"
    )
    ignored: str | None = value("--ignored", "show ignored files", metavar="MODE", bare="traditional")
    null: bool = flag("-z", "terminate entries with NUL")
    long: bool = flag("--long", "show status in long format")


def status(repo: Repository, args: list[str]) -> int:
    options, operands = read_options(StatusOptions, args)
    found = compute_status(repo, untracked=options.untracked, ignored=options.ignored is not None)
    if operands:
        for table in (found.staged, found.changed, found.unmerged):
            keep = set(match_paths(repo, operands, list(table)))
            for path in [path for path in table if path not in keep]:
                del table[path]
        found.untracked = match_paths(repo, operands, found.untracked)
    if options.porcelain in ("v2", "2"):
        text = machine_status(repo, found, branch=options.branch, end="\0" if options.null else "\n")
        repo.process.stdout.write(fsencode(text))
    elif options.short or options.porcelain is not None or options.null:
        end, machine = "\0" if options.null else "\n", options.porcelain is not None
        text = short_status(repo, found, branch=options.branch, end=end, machine=machine)
        repo.process.stdout.write(fsencode(text))
    else:
        repo.process.print(long_status(repo, found, hidden=options.untracked == "no"), end="")
    return 0


def machine_status(repo: Repository, found: Status, *, branch: bool, end: str) -> str:
    """--porcelain=v2: modes and objects of each side."""
    out: list[str] = []
    if branch:
        head, name = repo.head(), repo.refs.branch()
        out.append(f"# branch.oid {head.decode() if head else '(initial)'}")
        out.append(f"# branch.head {name.removeprefix('refs/heads/') if name else '(detached)'}")
        upstream = repo.upstream(name.removeprefix("refs/heads/")) if name else None
        if upstream is not None:
            out.append(f"# branch.upstream {upstream.removeprefix('refs/remotes/')}")
            if repo.refs.get(upstream) is not None:
                ahead, behind = divergence(repo, upstream)
                out.append(f"# branch.ab +{ahead} -{behind}")
    tree, index = repo.head_tree(), repo.staged()
    absent = (0, b"0" * 40)
    rows: dict[str, str] = {}
    renames = {new: (letter, old) for letter, old, new in staged_pairs(repo, found)}
    for path in renames.keys() | found.changed.keys():
        letter, old = renames.get(path, (".", path))
        stat = stat_of(repo, path)
        worktree = mode_of(stat) if stat is not None else 0
        before, now = tree.get(old, absent), index.get(path, absent)
        shown = quote_path(path) if end == "\n" else path
        sides = f"N... {before[0]:06o} {now[0]:06o} {worktree if path in index else 0:06o}"
        objects = f"{before[1].decode()} {now[1].decode()}"
        state = f"{letter}{found.changed.get(path, '.')}"
        if letter == "R":
            score = next(p.similarity for p in compare(repo, {old: before}, {path: now}))
            gap = "\t" if end == "\n" else "\0"
            was = quote_path(old) if end == "\n" else old
            rows[path] = f"2 {state} {sides} {objects} R{score} {shown}{gap}{was}"
        else:
            rows[path] = f"1 {state} {sides} {objects} {shown}"
    for path, entry in found.unmerged.items():
        stat = stat_of(repo, path)
        items = (entry.ancestor, entry.this, entry.other)
        modes = " ".join(f"{item.mode if item else 0:06o}" for item in items)
        names = " ".join((bytes(item.sha) if item else b"0" * 40).decode() for item in items)
        worktree = mode_of(stat) if stat is not None else 0
        rows[path] = f"u {conflict_kind(entry)[0]} N... {modes} {worktree:06o} {names} {quote_path(path)}"
    kinds = ("1", "2", "u")
    out += [rows[path] for path in sorted(rows, key=lambda path: (rows[path][0] == kinds[2], path))]
    out += [f"? {quote_path(path)}" for path in found.untracked] + [f"! {quote_path(p)}" for p in found.ignored]
    return "".join(line + end for line in out)
