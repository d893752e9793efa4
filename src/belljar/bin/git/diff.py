"""`git diff`: the work tree, the index, commits and files beside each other."""

from __future__ import annotations

from dulwich.objects import Blob

from belljar.bin._kit.options import parse
from belljar.bin.diff.script import find_changes
from belljar.bin.git.repository.arguments import attach_numbers, split_operands
from belljar.bin.git.repository.diff_output import DiffOptions, check_space, filter_pairs, look_of, show_pairs
from belljar.bin.git.repository.diffs import compare, counts, split_lines
from belljar.bin.git.repository.merging import merge_base
from belljar.bin.git.repository.no_index import diff_paths
from belljar.bin.git.repository.pathspec import match_paths, relative, restrict
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_commit, find_object
from belljar.bin.git.repository.store import Flat
from belljar.bin.git.repository.work import stat_of, work_files


def diff(repo: Repository, args: list[str]) -> int:
    parsed = parse(DiffOptions, attach_numbers(args))
    options = DiffOptions(**parsed.values)
    if options.no_index:
        return diff_paths(repo, options, parsed.operands)
    revisions, paths = split_operands(repo, args, parsed.operands)
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
        for path in repo.conflicts() if not revisions else ():
            if not paths or match_paths(repo, paths, [path]):
                _show_conflict(repo, path)
    old, new = restrict(repo, paths, old, new)
    return show_diff(repo, old, new, contents, options)


def show_diff(repo: Repository, old: Flat, new: Flat, contents: dict[str, bytes], options: DiffOptions) -> int:
    """What `git diff` says of two trees; its status."""
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


def _show_conflict(repo: Repository, path: str) -> None:
    """A file in conflict: git's combined form, both sides beside the work tree's text."""
    entry = repo.conflicts()[path]
    stat = stat_of(repo, path)
    process = repo.process
    if entry.this is None or entry.other is None or stat is None:
        process.print(f"* Unmerged path {path}")
        return
    ours, theirs = repo.store.blob(bytes(entry.this.sha)), repo.store.blob(bytes(entry.other.sha))
    text = repo.read_work(path, stat)
    lines, a, b = split_lines(text), split_lines(ours), split_lines(theirs)
    process.print(f"diff --cc {path}")
    process.print(f"index {entry.this.sha[:7].decode()},{entry.other.sha[:7].decode()}..0000000")
    process.print(f"--- a/{path}\n+++ b/{path}")
    rows: list[bytes] = []
    new_a = {i for c in find_changes(a, lines, process.budget.charge) for i in range(c.low_b, c.high_b)}
    new_b = {i for c in find_changes(b, lines, process.budget.charge) for i in range(c.low_b, c.high_b)}
    for i, line in enumerate(lines):
        marks = (b"+" if i in new_a else b" ") + (b"+" if i in new_b else b" ")
        rows.append(marks + (line if line.endswith(b"\n") else line + b"\n"))
    head = f"@@@ -1,{len(a)} -1,{len(b)} +1,{len(lines)} @@@\n"
    process.stdout.write(head.encode() + b"".join(rows))
