"""`git diff`: the work tree, the index, commits and files beside each other."""

from __future__ import annotations

from dulwich.objects import Blob

from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.arguments import attach_numbers, split_operands
from belljar.bin.git.repository.combined import combined_patch
from belljar.bin.git.repository.diff_output import (
    DiffOptions,
    check_space,
    filter_pairs,
    look_of,
    show_pairs,
    wants_form,
)
from belljar.bin.git.repository.diffs import compare, counts
from belljar.bin.git.repository.merging import merge_base
from belljar.bin.git.repository.no_index import diff_paths
from belljar.bin.git.repository.pathspec import match_paths, relative, restrict
from belljar.bin.git.repository.repo import Repository, mode_of
from belljar.bin.git.repository.revisions import find_commit, find_object
from belljar.bin.git.repository.store import Flat
from belljar.bin.git.repository.work import hash_blob, stat_of, work_files


def diff(repo: Repository, args: list[str]) -> int:
    options, operands = read_options(DiffOptions, attach_numbers(args))
    if options.no_index:
        return diff_paths(repo, options, operands)
    revisions, paths = split_operands(repo, args, operands)
    contents: dict[str, bytes] = {}
    if len(revisions) == 1 and ".." in revisions[0]:
        dots = "..." if "..." in revisions[0] else ".."
        left, _, right = revisions[0].partition(dots)
        first, second = find_commit(repo, left or "HEAD"), find_commit(repo, right or "HEAD")
        if dots == "...":
            first = merge_base(repo, first, second) or first
        old, new = repo.tree_of(first), repo.tree_of(second)
    elif len(revisions) == 2:
        sides = [find_object(repo, revision) for revision in revisions]
        if all(isinstance(repo.store.get(side), Blob) for side in sides):
            name = revisions[0].partition(":")[2] or "a"
            old, new = {name: (0o100644, sides[0])}, {name: (0o100644, sides[1])}
        else:
            old, new = (repo.tree_at(side) for side in sides)
    elif options.cached:
        old = repo.tree_of(find_commit(repo, revisions[0])) if revisions else repo.head_tree()
        new = repo.staged()
    else:
        old = repo.tree_at(find_object(repo, revisions[0])) if revisions else repo.staged()
        new, contents = work_files(repo)
        conflicts = [path for path in repo.conflicts() if not paths or match_paths(repo, paths, [path])]
        stage = {"base": 0, "ours": 1, "theirs": 2}[options.side or "ours"]
        whole = not wants_form(options) and options.side is None and not revisions
        for path in conflicts:
            if not revisions:
                _show_conflict(repo, path, options, combined=whole)
            stat = stat_of(repo, path)
            side = _stages(repo, path)[stage]
            if whole or stat is None or stat.is_dir:
                continue
            contents[path] = repo.read_work(path, stat)
            new[path] = (mode_of(stat), hash_blob(contents[path]))
            if side is not None and not revisions:
                old[path] = side
    old, new = restrict(repo, paths, old, new)
    return show_diff(repo, old, new, contents, options)


def show_diff(repo: Repository, old: Flat, new: Flat, contents: dict[str, bytes], options: DiffOptions) -> int:
    """Print `git diff` of two trees; return its status."""
    if options.relative is not None:
        prefix = relative(repo, options.relative)
        cut = len(prefix) + 1 if prefix else 0
        old, new = (
            {p[cut:]: e for p, e in side.items() if not cut or p.startswith(prefix + "/")} for side in (old, new)
        )
        contents = {p[cut:]: data for p, data in contents.items() if not cut or p.startswith(prefix + "/")}
    pairs = compare(repo, old, new, contents, renames=not options.no_renames)
    if options.reverse_sides:
        pairs = [pair.reversed() for pair in pairs]
    if options.all_space or options.space_change or options.space_at_end or options.blank_lines:
        look = look_of(options)
        pairs = [p for p in pairs if p.old != p.new or p.old_mode != p.new_mode or any(counts(repo.process, p, look))]
    if options.check:
        return 2 if check_space(repo, filter_pairs(pairs, options.filter), look_of(options)) else 0
    show_pairs(repo, pairs, options, unstored=frozenset(contents))
    return int(bool(pairs)) if options.exit_code or options.quiet else 0


def _stages(repo: Repository, path: str) -> list[tuple[int, bytes] | None]:
    """Return a conflicted file's three stages: ancestor, ours, theirs."""
    entry = repo.conflicts()[path]
    sides = (entry.ancestor, entry.this, entry.other)
    return [(side.mode, bytes(side.sha)) if side is not None else None for side in sides]


def _show_conflict(repo: Repository, path: str, options: DiffOptions, *, combined: bool) -> None:
    """A file in conflict: both sides beside the work tree's text, or that it is in conflict."""
    process, stat = repo.process, stat_of(repo, path)
    _, ours, theirs = _stages(repo, path)
    if options.name_only or options.name_status:
        if "U" in (options.filter or "U"):
            process.print(f"U\t{path}" if options.name_status else path)
        return
    if options.stat is not None:
        process.print(f" {path} | Unmerged", end="")
        return
    if not combined or ours is None or theirs is None or stat is None:
        process.print(f"* Unmerged path {path}")
        return
    sides = [(mode, sha, repo.store.blob(sha)) for mode, sha in (ours, theirs)]
    text = combined_patch(process, path, sides, (mode_of(stat), b"0" * 40, repo.read_work(path, stat)))
    process.stdout.write(text)
