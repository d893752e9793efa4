"""`git apply`: a patch on the work tree, the index, or both."""

from __future__ import annotations

import re

from dulwich.objects import Blob

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode, normalise
from belljar.bin._kit import count, flag, many, value
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.diffs import split_lines, totals_text
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.repo import Repository, mode_of
from belljar.bin.git.repository.work import changed_files, make_parents, remove_file, stat_of, write_file
from belljar.bin.patch.apply import Applier
from belljar.bin.patch.parse import FilePatch, Malformed, Reader
from belljar.libc.pattern import compile_pattern


@dataclass(frozen=True, slots=True)
class ApplyOptions:
    reverse: bool = flag("-R", "--reverse", "apply in reverse")
    check: bool = flag("--check", "only see if it can be applied")
    stat: bool = flag("--stat", "only show a diffstat")
    numstat: bool = flag("--numstat", "only show numbers of lines")
    summary: bool = flag("--summary", "only show creations and mode changes")
    index: bool = flag("--index", "change the index, too")
    cached: bool = flag("--cached", "change only the index")
    apply: bool = flag("--apply", "apply in spite of --stat and the like")
    strip: str = value("-p", "leading parts of names to remove", metavar="N", default="1")
    directory: str = value("--directory", "put this before names", metavar="DIR", default="")
    reject: bool = flag("--reject", "apply what fits, leave the rest in .rej files")
    three_way: bool = flag("-3", "--3way", "(hunks are looked for where they fit)")
    verbose: int = count("-v", "--verbose", "say what is done")
    quiet: bool = flag("-q", "--quiet", "say nothing")
    whitespace: str | None = value("--whitespace", "(white space is left as it is)", metavar="ACTION")
    loose: bool = flag("--ignore-whitespace", "--ignore-space-change", "white space in context may differ")
    recount: bool = flag("--recount", "don't trust the line counts of hunks' headers")
    zero: bool = flag("--unidiff-zero", "--inaccurate-eof", "-z", "(accepted)")
    allow_empty: bool = flag("--allow-empty", "a patch without changes is none of an error")
    exclude: tuple[str, ...] = many("--exclude", "leave files out", metavar="PATTERN")
    include: tuple[str, ...] = many("--include", "only these files", metavar="PATTERN")


@dataclass(slots=True)
class Change:
    """A patch's change of one file."""

    old: str | None
    new: str | None
    mode: int
    data: bytes
    added: int
    removed: int
    patch: FilePatch
    rejected: list[int]


def apply(repo: Repository, args: list[str]) -> int:
    options, operands = read_options(ApplyOptions, args)
    for name in operands or ["-"]:
        try:
            data = repo.process.read_file(name)
        except SysError as error:
            raise GitError(f"can't open patch '{name}': {error.reason}", 128, "error: ") from None
        changes = plan_changes(repo, data, options)
        only = options.stat or options.numstat or options.summary or options.check
        _report(repo, changes, options)
        if not only or options.apply:
            write_changes(repo, changes, options)
            if any(change.rejected for change in changes):
                return 1
    return 0


def plan_changes(repo: Repository, data: bytes, options: ApplyOptions) -> list[Change]:
    """Compute the new contents of each file; raises GitError, before anything is touched, if a hunk does not apply."""
    try:
        found = Reader(data, repo.process.budget.charge, "unified").read()
    except Malformed as error:
        line = re.search(r"line (\d+)", str(error))
        raise GitError(f"corrupt patch at line {line[1] if line else 1}", 128, "error: ") from None
    found = [item for item in found if item.hunks or item.rename_to or item.mode is not None or item.creates]
    if not found:
        if options.allow_empty:
            return []
        raise GitError('No valid patches in input (allow with "--allow-empty")', 128, "error: ")
    only = (options.stat or options.numstat or options.summary) and not options.apply and not options.check
    changes: list[Change] = []
    errors: list[str] = []
    ahead: dict[str, bytes | None] = {}
    for item in found:
        if options.reverse:
            item.turn_round()
        old, new = (
            _name(item.rename_from or item.old_name, options, item.rename_from is not None),
            _name(item.rename_to or item.new_name, options, item.rename_to is not None),
        )
        path = new if new is not None else old
        if path is None or not _wanted(path, options):
            continue
        if item.creates or item.old_name is None:
            old = None
        if item.deletes or item.new_name is None:
            new = None
        added = sum(mark == b"+" for hunk in item.hunks for mark, _ in hunk.lines)
        removed = sum(mark == b"-" for hunk in item.hunks for mark, _ in hunk.lines)
        change = Change(old, new, 0, b"", added, removed, item, [])
        if not only:
            errors += _fit(repo, change, options, ahead)
        changes.append(change)
    if errors:
        raise GitError("\n".join(errors), 1, "")
    return changes


def _name(name: str | None, options: ApplyOptions, plain: bool) -> str | None:
    if name is None:
        return None
    parts = name.split("/")
    depth = int(options.strip[:3]) if options.strip.isdecimal() else 1
    kept = parts if plain else parts[depth:] if len(parts) > depth else parts[-1:]
    whole = "/".join([options.directory.rstrip("/"), *kept] if options.directory else kept)
    clean = normalise("/" + whole).lstrip("/")
    if ".." in whole.split("/") or clean.split("/")[0] == ".git":
        raise GitError(f"invalid path '{whole}'", 128, "error: ")
    return clean


def _wanted(path: str, options: ApplyOptions) -> bool:
    if any(compile_pattern(pattern).matches(path) for pattern in options.exclude):
        return False
    return not options.include or any(compile_pattern(pattern).matches(path) for pattern in options.include)


def _fit(repo: Repository, change: Change, options: ApplyOptions, ahead: dict[str, bytes | None]) -> list[str]:
    """Work out the new contents of a file; what is wrong, if something is. `ahead` is what earlier parts made."""
    item = change.patch
    path = change.new if change.new is not None else change.old
    assert path is not None
    before = b""
    if change.old is not None:
        found = _present(repo, change.old, options, ahead)
        if found is None:
            where = "does not exist in index" if options.index or options.cached else "No such file or directory"
            return [f"error: {change.old}: {where}"]
        change.mode, before = found
    elif path not in ahead:
        if (options.index or options.cached) and path in repo.index:
            return [f"error: {path}: already exists in index"]
        if not options.cached and stat_of(repo, path) is not None:
            return [f"error: {path}: already exists in working directory"]
    if item.mode is not None and change.new is not None:
        change.mode = item.mode
    change.mode = change.mode or 0o100644
    outcome = Applier(split_lines(before), 0, repo.process.budget.charge, options.loose).apply(item.hunks)
    if outcome.failed and not options.reject:
        return [f"error: patch failed: {path}:{outcome.failed[0][0].old_start}", f"error: {path}: patch does not apply"]
    for placed in outcome.done:
        if placed.remark and not options.quiet and not options.recount:
            repo.process.error(
                f"warning: {path}: hunk #{placed.hunk.number}: {placed.remark}; applied at line {placed.line}\n"
            )
    change.rejected = [hunk.number for hunk, _ in outcome.failed]
    change.data = b"".join(outcome.lines)
    if change.old is not None:
        ahead[change.old] = None
    if change.new is not None:
        ahead[change.new] = change.data
    return []


def _present(
    repo: Repository, path: str, options: ApplyOptions, ahead: dict[str, bytes | None]
) -> tuple[int, bytes] | None:
    if path in ahead:
        data = ahead[path]
        return (0o100644, data) if data is not None else None
    staged = repo.staged().get(path) if options.index or options.cached else None
    if options.index or options.cached:
        if staged is None:
            return None
        if options.index and path in changed_files(repo):
            raise GitError(f"{path}: does not match index", 1, "error: ")
        return staged[0], repo.store.blob(staged[1])
    stat = stat_of(repo, path)
    return (mode_of(stat), repo.read_work(path, stat)) if stat is not None and not stat.is_dir else None


def write_changes(repo: Repository, changes: list[Change], options: ApplyOptions) -> None:
    for change in changes:
        if change.old is not None and change.old != change.new:
            if not options.cached:
                remove_file(repo, change.old)
            if options.index or options.cached:
                repo.index.pop(change.old, None)
        if change.new is None:
            continue
        if options.verbose:
            repo.process.error(f"Applied patch {change.new} cleanly.\n")
        stat = None
        if not options.cached:
            make_parents(repo, change.new)
            stat = write_file(repo, change.new, change.mode, change.data)
        if options.index or options.cached:
            sha = repo.store.add(Blob.from_string(change.data))
            made = repo.entry(stat, change.mode, sha) if stat is not None else repo.bare_entry(change.mode, sha)
            repo.index[change.new] = made
        if change.rejected:
            _reject(repo, change)
    if options.index or options.cached:
        repo.write_index()


def _reject(repo: Repository, change: Change) -> None:
    path = str(change.new)
    total, failed = len(change.patch.hunks), len(change.rejected)
    repo.process.error(f"Applying patch {path} with {failed} reject{'' if failed == 1 else 's'}...\n")
    lines = [fsencode(f"diff a/{path} b/{path}\t(rejected hunks)\n")]
    for hunk in change.patch.hunks:
        if hunk.number not in change.rejected:
            continue
        repo.process.error(f"Rejected hunk #{hunk.number} of {total}.\n")
        lines.append(f"@@ -{hunk.old_start},{hunk.old_count} +{hunk.new_start},{hunk.new_count} @@\n".encode())
        lines += [mark + line for mark, line in hunk.lines]
    repo.process.write_file(repo.path(f"{path}.rej"), b"".join(lines))


def _report(repo: Repository, changes: list[Change], options: ApplyOptions) -> None:
    process = repo.process
    if options.numstat:
        for change in changes:
            process.print(f"{change.added}\t{change.removed}\t{change.new or change.old}")
    if options.stat:
        width = max((len(str(change.new or change.old)) for change in changes), default=0)
        for change in changes:
            bar = "+" * change.added + "-" * change.removed
            process.print(f" {change.new or change.old!s:<{width}} | {change.added + change.removed:4d} {bar}")
        added, removed = sum(change.added for change in changes), sum(change.removed for change in changes)
        process.print(totals_text(len(changes), added, removed))
    if options.summary:
        for change in changes:
            if change.old is None:
                process.print(f" create mode {change.patch.mode or 0o100644:06o} {change.new}")
            elif change.new is None:
                process.print(f" delete mode {change.patch.mode or 0o100644:06o} {change.old}")
            elif change.old != change.new:
                process.print(f" rename {change.old} => {change.new} (100%)")
