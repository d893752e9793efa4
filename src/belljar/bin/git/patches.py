"""Patches in and out: git apply, format-patch and am."""

from __future__ import annotations

import re
from contextlib import suppress
from email.utils import parsedate_tz

from dulwich.objects import Blob

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import normalise
from belljar.bin._kit import choice, count, flag, many, value
from belljar.bin._kit.options import parse
from belljar.bin.git.diffs import mode_lines, patch, split_lines, stat_text, totals_text
from belljar.bin.git.errors import GitError
from belljar.bin.git.formats import file_name, mail
from belljar.bin.git.history import subject_of, text_of, walk
from belljar.bin.git.history_commands import commit_pairs, select
from belljar.bin.git.repo import Repository, mode_of
from belljar.bin.git.work import changed_files, check_out, make_parents, remove_file, stat_of, write_file
from belljar.bin.patch.apply import Applier
from belljar.bin.patch.parse import FilePatch, Malformed, Reader


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
    zero: bool = flag("--unidiff-zero", "--recount", "--inaccurate-eof", "-z", "(accepted)")
    allow_empty: bool = flag("--allow-empty", "a patch without changes is none of an error")
    exclude: tuple[str, ...] = many("--exclude", "leave files out", metavar="PATTERN")
    include: tuple[str, ...] = many("--include", "only these files", metavar="PATTERN")


@dataclass(slots=True)
class Change:
    """What a patch makes of one file."""

    old: str | None
    new: str | None
    mode: int
    data: bytes
    added: int
    removed: int
    patch: FilePatch
    rejected: list[int]


def apply(repo: Repository, args: list[str]) -> int:
    parsed = parse(ApplyOptions, args)
    options = ApplyOptions(**parsed.values)
    for name in parsed.operands or ["-"]:
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
    """What each file would become; raises GitError, before anything is touched, if a part does not fit."""
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
    from belljar.shell.pattern import compile_pattern

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
    lines = [f"diff a/{path} b/{path}\t(rejected hunks)\n".encode("utf-8", "surrogateescape")]
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


# format-patch


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
    parsed = parse(FormatOptions, words)
    options = FormatOptions(**parsed.values)
    ranges = list(parsed.operands)
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
    tail = b"" if options.no_signature else b"-- \n" + options.signature.encode() + b"\n\n"
    return "".join(out).encode("utf-8", "surrogateescape") + body + tail


# am


@dataclass(frozen=True, slots=True)
class AmOptions:
    action: str | None = choice(
        {"--continue": "continue", "-r": "continue", "--resolved": "continue", "--abort": "abort", "--skip": "skip",
         "--quit": "quit"}, "go on",
    )  # fmt: skip
    signoff: bool = flag("-s", "--signoff", "sign off")
    keep: bool = flag("-k", "--keep", "subjects as they are")
    three_way: bool = flag("-3", "--3way", "(hunks are looked for where they fit)")
    quiet: bool = flag("-q", "--quiet", "be quiet")
    strip: str = value("-p", "leading parts of names to remove", metavar="N", default="1")
    loose: bool = flag("--ignore-whitespace", "--ignore-space-change", "white space in context may differ")
    whitespace: str | None = value("--whitespace", "(white space is left as it is)", metavar="ACTION")
    committer_date: bool = flag("--committer-date-is-author-date", "one time for both")


@dataclass(frozen=True, slots=True)
class Letter:
    author: bytes
    time: tuple[int, int]
    message: str
    data: bytes


def am(repo: Repository, args: list[str]) -> int:
    parsed = parse(AmOptions, args)
    options = AmOptions(**parsed.values)
    state = f"{repo.git}/rebase-apply"
    if options.action is not None:
        return _am_resume(repo, state, options)
    with suppress(SysError):
        repo.process.fs.stat(state)
        raise GitError(f"previous rebase directory {state} still exists but mbox given.")
    letters: list[bytes] = []
    for name in parsed.operands or ["-"]:
        try:
            data = repo.process.read_file(name)
        except SysError as error:
            raise GitError(f"could not open '{name}' for reading: {error.reason}") from None
        letters += [part for part in re.split(rb"(?m)^(?=From [0-9a-f]{40} )", data) if part.strip()]
    if repo.staged() != repo.head_tree():
        raise GitError("Dirty index: cannot apply patches", 128, "error: ")
    repo.process.fs.mkdir(state)
    for number, data in enumerate(letters, 1):
        repo.process.write_file(f"{state}/{number:04d}", data)
    repo.process.write_file(f"{state}/next", b"1\n")
    repo.process.write_file(f"{state}/last", f"{len(letters)}\n".encode())
    repo.process.write_file(f"{state}/orig-head", (repo.head() or b"") + b"\n")
    return _am_run(repo, state, options)


def _am_run(repo: Repository, state: str, options: AmOptions) -> int:
    process = repo.process
    number, last = (int(process.read_file(f"{state}/{name}")) for name in ("next", "last"))
    while number <= last:
        letter = read_letter(repo, process.read_file(f"{state}/{number:04d}"), options)
        subject = subject_of(letter.message)
        if not options.quiet:
            process.print(f"Applying: {subject}")
        applying = ApplyOptions(index=True, strip=options.strip, loose=options.loose)
        try:
            write_changes(repo, plan_changes(repo, letter.data, applying), applying)
        except GitError as error:
            process.stdout.flush()
            process.error(f"{error.prefix}{error.message}\n" if error.status != 128 else f"error: {error.message}\n")
            process.print(f"Patch failed at {number:04d} {subject}")
            process.stdout.flush()
            process.error("hint: Use 'git am --show-current-patch=diff' to see the failed patch\n")
            process.print(
                'When you have resolved this problem, run "git am --continue".\n'
                'If you prefer to skip this patch, run "git am --skip" instead.\n'
                'To restore the original branch and stop patching, run "git am --abort".'
            )
            return 128
        _am_commit(repo, letter, options)
        number += 1
        process.write_file(f"{state}/next", f"{number}\n".encode())
    _am_end(repo, state)
    return 0


def _am_commit(repo: Repository, letter: Letter, options: AmOptions) -> None:
    message = letter.message
    if options.signoff:
        message = message.rstrip("\n") + f"\n\nSigned-off-by: {text_of(repo.identity('COMMITTER'))}\n"
    head = repo.head()
    parents = [head] if head is not None else []
    sha = repo.make_commit(repo.store.unflatten(repo.staged()), parents, message, letter.author, letter.time)
    repo.refs.set("HEAD", sha, f"am: {subject_of(message)}", repo.signature())


def _am_end(repo: Repository, state: str) -> None:
    for entry in list(repo.process.fs.readdir(state)):
        repo.process.fs.unlink(f"{state}/{entry.name}")
    repo.process.fs.rmdir(state)


def _am_resume(repo: Repository, state: str, options: AmOptions) -> int:
    process = repo.process
    try:
        number = int(process.read_file(f"{state}/next"))
    except (SysError, ValueError):
        raise GitError("Resolve operation not in progress, we are not resuming.") from None
    if options.action in ("abort", "quit"):
        if options.action == "abort":
            head = process.read_file(f"{state}/orig-head").strip()
            check_out(repo, repo.head_tree(), repo.tree_of(head), force=True)
            repo.refs.set("HEAD", head, "am --abort", repo.signature())
        _am_end(repo, state)
        return 0
    if options.action == "skip":
        check_out(repo, repo.head_tree(), repo.head_tree(), force=True)
    else:
        letter = read_letter(repo, process.read_file(f"{state}/{number:04d}"), options)
        process.print(f"Applying: {subject_of(letter.message)}")
        if repo.staged() == repo.head_tree():
            process.stdout.flush()
            raise GitError(
                "No changes - did you forget to use 'git add'?\n"
                "If there is nothing left to stage, chances are that something else\n"
                "already introduced the same changes; you might want to skip this patch.",
                128,
                "",
            )
        _am_commit(repo, letter, options)
    process.write_file(f"{state}/next", f"{number + 1}\n".encode())
    return _am_run(repo, state, options)


def read_letter(repo: Repository, data: bytes, options: AmOptions) -> Letter:
    """A mail of format-patch: who, when, the message and the patch."""
    head, _, rest = data.partition(b"\n\n")
    fields: dict[str, str] = {}
    for line in re.sub(r"\n[ \t]+", " ", text_of(head)).split("\n"):
        name, colon, content = line.partition(": ")
        if colon:
            fields.setdefault(name.lower(), content)
    if "from" not in fields or "subject" not in fields:
        raise GitError("Patch format detection failed.", 128, "")
    subject = fields["subject"]
    if not options.keep:
        subject = re.sub(r"^(\s*(\[[^]]*\]|[Rr][Ee]:)\s*)+", "", subject)
    body, _, after = rest.partition(b"\n---\n") if not rest.startswith(b"---\n") else (b"", b"", rest[4:])
    if not after:
        at = rest.find(b"diff --git ")
        body, after = (rest[:at], rest[at:]) if at >= 0 else (rest, b"")
    message = "\n\n".join(part for part in (subject.strip(), text_of(body).strip("\n")) if part) + "\n"
    parsed = parsedate_tz(fields.get("date", ""))
    when = repo.parse_date(fields["date"]) if parsed else repo.now("AUTHOR")
    author = fields["from"].encode("utf-8", "surrogateescape")
    return Letter(author, when, message, re.sub(rb"(?m)^-- \n.*\n?\s*\Z", b"", after))
