"""The commits that a command line of `git log` means, in order."""

from __future__ import annotations

from collections.abc import Iterator

from belljar.abi.dataclass import dataclass
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.arguments import attach_numbers, negate_revisions, split_operands
from belljar.bin.git.repository.changes import patch_id
from belljar.bin.git.repository.commit_filter import follow_file, make_filter
from belljar.bin.git.repository.diffs import Pair
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.formats import decorations
from belljar.bin.git.repository.history import topological, walk
from belljar.bin.git.repository.line_log import parse_ranges, trace_lines
from belljar.bin.git.repository.log_options import LogOptions
from belljar.bin.git.repository.merging import ancestors, merge_base
from belljar.bin.git.repository.pathspec import relative
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_commit


@dataclass(slots=True)
class Selection:
    """The commits of a log in order, and the side of `a...b` that each is on."""

    options: LogOptions
    commits: list[bytes]
    paths: list[str]
    marks: dict[bytes, str]
    known: set[bytes]
    """The commits that there would be without a limit of their number."""
    followed: dict[bytes, list[Pair]]
    """Each commit's change of the --follow file, under the name that it had then."""
    traced: dict[bytes, bytes]
    """Each commit's change of the -L lines, as a patch."""


def choose(repo: Repository, args: list[str]) -> Selection:
    """The commits that a command line of `git log` or `git rev-list` means."""
    args = negate_revisions(args)
    options, operands = read_options(LogOptions, attach_numbers(args))
    revisions, paths = split_operands(repo, args, operands)
    if options.conflicting:
        if not (other := repo.refs.get("MERGE_HEAD")):
            raise GitError("--merge without MERGE_HEAD?")
        revisions, paths = [f"HEAD...{other.decode()}"], [f":/{path}" for path in repo.conflicts()] or paths
    starts, excluded = select(repo, revisions, options)
    if not starts:
        branch = (repo.refs.branch() or "HEAD").removeprefix("refs/heads/")
        raise GitError(f"your current branch '{branch}' does not have any commits yet")
    followed: dict[bytes, list[Pair]] = {}
    if options.follow and len(paths) != 1:
        raise GitError("--follow requires exactly one pathspec")
    keep = make_filter(repo, options, [] if options.follow else paths)
    if options.follow:
        keep = follow_file(repo, keep, relative(repo, paths[0]), followed)
    traced: dict[bytes, bytes] = {}
    if options.lines:
        if paths:
            raise GitError("-L<range>:<file> cannot be used with pathspec")
        if options.stat is not None or options.numstat or options.raw or options.name_only or options.name_status:
            raise GitError("-L does not yet support diff formats besides -p and -s")
        keep = trace_lines(repo, keep, {starts[0]: parse_ranges(repo, options.lines, starts[0])}, traced)
    if options.no_walk:
        source: Iterator[bytes] = iter(dict.fromkeys(starts))
    else:
        source = _first_parents(repo, starts, excluded) if options.first_parent else walk(repo, starts, excluded)
    if options.graph or options.topo or options.date_order or options.lines:
        source = iter(topological(repo, list(source), by_date=options.date_order))
    marks = _sides(repo, revisions) if options.left or options.cherry_pick else {}
    if options.cherry_pick:
        source = iter(_without_twins(repo, list(source), marks))
    if options.ancestry_path:
        source = iter(_between(repo, list(source), excluded))
    limit = int(options.number[:9]) if options.number and options.number.lstrip("-").isdecimal() else -1
    skip = int(options.skip[:9]) if options.skip and options.skip.isdecimal() else 0
    labels = decorations(repo) if options.by_decoration else {}
    chosen: list[bytes] = []
    known: set[bytes] = set()
    for sha in source:
        if limit >= 0 and len(chosen) >= limit + skip:
            if options.graph and not paths:
                known.update([sha, *source])
            break
        if keep(sha) and (not options.by_decoration or sha in labels or not repo.store.commit(sha).parents):
            chosen.append(sha)
    known.update(chosen)
    chosen = chosen[skip:]
    if options.reverse:
        chosen.reverse()
    return Selection(options, chosen, paths, marks, known, followed, traced)


def count_text(chosen: Selection) -> str:
    if not chosen.options.left:
        return str(len(chosen.commits))
    left = sum(chosen.marks.get(sha) == "<" for sha in chosen.commits)
    return f"{left}\t{len(chosen.commits) - left}"


def _sides(repo: Repository, revisions: list[str]) -> dict[bytes, str]:
    for revision in revisions:
        if "..." in revision:
            left, _, right = revision.partition("...")
            first = ancestors(repo, find_commit(repo, left or "HEAD"))
            second = ancestors(repo, find_commit(repo, right or "HEAD"))
            return {**dict.fromkeys(first - second, "<"), **dict.fromkeys(second - first, ">")}
    return {}


def _without_twins(repo: Repository, commits: list[bytes], marks: dict[bytes, str]) -> list[bytes]:
    """Commits whose change is not on the other side, too."""
    ids = {sha: patch_id(repo, sha) for sha in commits}
    seen = {side: {ids[sha] for sha in commits if marks.get(sha) == side} for side in "<>"}
    return [sha for sha in commits if ids[sha] is None or ids[sha] not in seen["<" if marks.get(sha) == ">" else ">"]]


def _between(repo: Repository, commits: list[bytes], bottoms: list[bytes]) -> list[bytes]:
    """Commits that descend from one of the bottoms."""
    known = set(bottoms)
    for sha in topological(repo, commits)[::-1]:
        if any(parent in known for parent in repo.store.commit(sha).parents):
            known.add(sha)
    return [sha for sha in commits if sha in known]


def select(
    repo: Repository, revisions: list[str], options: LogOptions | None = None
) -> tuple[list[bytes], list[bytes]]:
    """Commits to start from and to leave out, as `a..b`, `^a`, `a...b`, names and `--all` say."""
    starts: list[bytes] = []
    excluded: list[bytes] = []
    for revision in revisions:
        if "..." in revision:
            left, _, right = revision.partition("...")
            first, second = find_commit(repo, left or "HEAD"), find_commit(repo, right or "HEAD")
            starts += [first, second]
            base = merge_base(repo, first, second)
            excluded += [base] if base else []
        elif ".." in revision:
            left, _, right = revision.partition("..")
            excluded.append(find_commit(repo, left or "HEAD"))
            starts.append(find_commit(repo, right or "HEAD"))
        elif revision.startswith("^"):
            excluded.append(find_commit(repo, revision[1:]))
        else:
            starts.append(find_commit(repo, revision))
    folders: list[str] = []
    if options is not None:
        wanted = ((options.all, "refs/"), (options.branches, "refs/heads/"), (options.tags, "refs/tags/"),
                  (options.remotes, "refs/remotes/"))  # fmt: skip
        folders = [folder for given, folder in wanted if given]
    for folder in folders:
        for sha in repo.refs.under(folder).values():
            try:
                starts.append(bytes(repo.store.commit(sha).id))
            except (KeyError, GitError):
                continue
    head = repo.head()
    if head is not None and ("refs/" in folders or (not starts and not folders)):
        starts.append(head)
    return starts, excluded


def _first_parents(repo: Repository, starts: list[bytes], excluded: list[bytes]) -> Iterator[bytes]:
    hidden: set[bytes] = set().union(*(ancestors(repo, sha) for sha in excluded))
    for sha in starts:
        while sha not in hidden:
            repo.process.budget.charge()
            yield sha
            parents = repo.store.commit(sha).parents
            if not parents:
                break
            sha = bytes(parents[0])
