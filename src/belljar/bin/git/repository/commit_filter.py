"""Which commits a log is to show: by author, message, date, path and content."""

from __future__ import annotations

from collections.abc import Callable

from dulwich.objects import Commit

from belljar.abi.paths import fsencode
from belljar.bin.git.repository.changes import commit_pairs
from belljar.bin.git.repository.diff_output import filter_pairs
from belljar.bin.git.repository.diffs import Pair, patch
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.log_options import LogOptions
from belljar.bin.git.repository.pathspec import match_paths
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.text import text_of
from belljar.regex import RegexError
from belljar.regex import compile as compile_regex


def make_filter(repo: Repository, options: LogOptions, paths: list[str]) -> Callable[[bytes], bool]:
    try:
        syntax = "fixed" if options.fixed else "perl" if options.perl else "egrep" if options.extended else "grep"
        authors = [compile_regex(p, syntax=syntax, ignore_case=options.ignore_case) for p in options.author]
        committers = [compile_regex(p, syntax=syntax, ignore_case=options.ignore_case) for p in options.committer]
        greps = [compile_regex(p, syntax=syntax, ignore_case=options.ignore_case) for p in options.grep]
        wanted = compile_regex(options.pickaxe_regex, syntax="ere") if options.pickaxe_regex else None
    except RegexError as error:
        raise GitError(str(error)) from None
    since = repo.parse_date(options.since)[0] if options.since else None
    until = repo.parse_date(options.until)[0] if options.until else None
    fewest = int(options.min_parents[:9]) if options.min_parents and options.min_parents.isdecimal() else 0
    most = int(options.max_parents[:9]) if options.max_parents and options.max_parents.isdecimal() else 1 << 30

    def keep(sha: bytes) -> bool:
        commit = repo.store.commit(sha)
        if (options.no_merges and len(commit.parents) > 1) or (options.merges and len(commit.parents) < 2):
            return False
        if authors and not any(regex.test(text_of(commit.author)) for regex in authors):
            return False
        if committers and not any(regex.test(text_of(commit.committer)) for regex in committers):
            return False
        if not fewest <= len(commit.parents) <= most:
            return False
        if greps:
            lines = text_of(commit.message).split("\n")
            hits = [any(regex.test(line) for line in lines) for regex in greps]
            if (all(hits) if options.all_match else any(hits)) is options.invert_grep:
                return False
        if (since is not None and commit.commit_time < since) or (until is not None and commit.commit_time > until):
            return False
        if paths or options.pickaxe or wanted or options.filter:
            pairs = filter_pairs(commit_pairs(repo, commit, paths), options.filter)
            if len(commit.parents) > 1 and not _merge_touches(repo, commit, paths):
                return False
            if options.pickaxe:
                needle = fsencode(options.pickaxe)
                pairs = [p for p in pairs if p.before.count(needle) != p.after.count(needle)]
            if wanted:
                pairs = [p for p in pairs if wanted.test(patch(repo.process, p).partition(b"\n@@")[2])]
            return bool(pairs)
        return True

    return keep


def follow_file(
    repo: Repository, keep: Callable[[bytes], bool], path: str, followed: dict[bytes, list[Pair]]
) -> Callable[[bytes], bool]:
    """Commits that changed a file, which has the name from before a rename in all that is older."""
    current = path

    def touches(sha: bytes) -> bool:
        nonlocal current
        if not keep(sha):
            return False
        found = [pair for pair in commit_pairs(repo, repo.store.commit(sha), []) if pair.path == current]
        if found:
            followed[sha] = found
            current = found[0].old or current
        return bool(found)

    return touches


def _merge_touches(repo: Repository, commit: Commit, paths: list[str]) -> bool:
    tree = repo.tree_of(bytes(commit.id))
    for parent in commit.parents:
        other = repo.tree_of(bytes(parent))
        names = match_paths(repo, paths, [p for p in tree.keys() | other.keys() if tree.get(p) != other.get(p)])
        if not names:
            return False
    return True
