"""git's commands that look: log, show, diff, blame, grep, rev-parse, ls-files, reflog, describe, cat-file ..."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from dulwich.objects import Blob, Commit, Tag, Tree

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import flag, many, value
from belljar.bin._kit.options import parse
from belljar.bin.diff.script import find_changes
from belljar.bin.git.diff_output import (
    DiffOptions,
    check_space,
    colored,
    filter_pairs,
    look_of,
    render_pairs,
    show_pairs,
    wants_form,
)
from belljar.bin.git.diffs import Pair, compare, counts, hunks, patch, split_lines
from belljar.bin.git.errors import GitError
from belljar.bin.git.formats import NAMED, Formatter, decorations
from belljar.bin.git.history import Graph, date, subject_of, text_of, topological, walk
from belljar.bin.git.merging import ancestors, merge_base
from belljar.bin.git.repo import Repository, mode_of
from belljar.bin.git.store import Flat
from belljar.bin.git.work import changed_files, hash_blob, match_paths, relative, stat_of
from belljar.kernel.process import Process
from belljar.regex import RegexError
from belljar.regex import compile as compile_regex


@dataclass(frozen=True, slots=True)
class LogOptions(DiffOptions):
    number: str | None = value("-n", "--max-count", "limit the number of commits", metavar="N")
    skip: str | None = value("--skip", "skip commits", metavar="N")
    oneline: bool = flag("--oneline", "--pretty=oneline --abbrev-commit")
    graph: bool = flag("--graph", "draw a graph")
    all: bool = flag("--all", "all refs")
    branches: bool = flag("--branches", "all branches")
    form: str | None = value("--format", "--pretty", "how to show commits", metavar="FORMAT", bare="medium")
    date: str = value("--date", "how to show dates", metavar="STYLE", default="default")
    author: tuple[str, ...] = many("--author", "limit by author", metavar="PATTERN")
    grep: tuple[str, ...] = many("--grep", "limit by message", metavar="PATTERN")
    ignore_case: bool = flag("-i", "--regexp-ignore-case", "ignore case in patterns")
    since: str | None = value("--since", "--after", "newer than a date", metavar="DATE")
    until: str | None = value("--until", "--before", "older than a date", metavar="DATE")
    decorate: str | None = value("--decorate", "show names of refs", metavar="STYLE", bare="short")
    no_decorate: bool = flag("--no-decorate", "don't show names of refs")
    reverse: bool = flag("--reverse", "oldest first")
    no_merges: bool = flag("--no-merges", "leave merges out")
    merges: bool = flag("--merges", "only merges")
    first_parent: bool = flag("--first-parent", "follow only the first parent")
    topo: bool = flag("--topo-order", "no parents before their children; lines of development together")
    date_order: bool = flag("--date-order", "--author-date-order", "no parents before their children")
    abbrev_commit: bool = flag("--abbrev-commit", "abbreviate names")
    no_abbrev: bool = flag("--no-abbrev-commit", "don't")
    abbrev: str | None = value("--abbrev", "digits of an abbreviated name", metavar="N", bare="7")
    follow: bool = flag("--follow", "follow a file through renames")
    pickaxe: str | None = value("-S", "changes in the number of a string", metavar="STRING")
    pickaxe_regex: str | None = value("-G", "changes that match", metavar="PATTERN")
    left: bool = flag("--left-right", "mark the side of a...b that a commit is on")
    count: bool = flag("--count", "only the number of commits")
    tags: bool = flag("--tags", "all tags")
    remotes: bool = flag("--remotes", "all remote branches")
    committer: tuple[str, ...] = many("--committer", "limit by committer", metavar="PATTERN")
    invert_grep: bool = flag("--invert-grep", "messages that do not match --grep")
    all_match: bool = flag("--all-match", "messages that match every --grep")
    extended: bool = flag("-E", "--extended-regexp", "patterns are extended ones")
    fixed: bool = flag("-F", "--fixed-strings", "patterns are plain text")
    full_history: bool = flag("--full-history", "--sparse", "--dense", "(nothing is simplified away here)")
    by_decoration: bool = flag("--simplify-by-decoration", "only commits that refs point to")
    ancestry_path: bool = flag("--ancestry-path", "only what is between the ends of a range")
    cherry_pick: bool = flag("--cherry-pick", "leave out commits whose change is on the other side too")
    parents: bool = flag("--parents", "show the parents too")
    min_parents: str | None = value("--min-parents", "limit by the number of parents", metavar="N")
    max_parents: str | None = value("--max-parents", "limit by the number of parents", metavar="N")
    objects: bool = flag("--objects", "trees and files, too")
    no_walk: str | None = value("--no-walk", "only the commits that are named", metavar="ORDER", bare="sorted")
    conflicting: bool = flag("--merge", "commits that touch files in conflict")
    show_signature: bool = flag("--show-signature", "(there are no keys here)")
    first_parent_merges: bool = flag("-m", "-c", "--cc", "(merges are shown against their first parent)")


# diff


def split_operands(repo: Repository, args: list[str], operands: list[str]) -> tuple[list[str], list[str]]:
    """Revisions, then paths; `--` or the first word that is no revision divides them."""
    if "--" in args:
        paths = args[args.index("--") + 1 :]
        return operands[: len(operands) - len(paths)], paths
    revisions: list[str] = []
    for index, word in enumerate(operands):
        if _is_revision(repo, word):
            revisions.append(word)
            continue
        paths = operands[index:]
        for path in paths:
            if (
                not any(c in path for c in "*?[")
                and stat_of(repo, relative(repo, path)) is None
                and path not in repo.index
            ):
                known = match_paths(repo, [path], list(repo.index))
                if not known:
                    repo.revision(path)
        return revisions, paths
    return revisions, []


def _is_revision(repo: Repository, word: str) -> bool:
    for part in re.split(r"\.\.\.?", word.lstrip("^")):
        try:
            repo.resolve(part or "HEAD")
        except (KeyError, GitError):
            return False
    return True


def diff(repo: Repository, args: list[str]) -> int:
    parsed = parse(DiffOptions, _numbers(args))
    options = DiffOptions(**parsed.values)
    if options.no_index:
        return diff_files(repo, options, parsed.operands)
    revisions, paths = split_operands(repo, args, parsed.operands)
    contents: dict[str, bytes] = {}
    if len(revisions) == 1 and ".." in revisions[0]:
        dots = "..." if "..." in revisions[0] else ".."
        left, _, right = revisions[0].partition(dots)
        first, second = repo.revision(left or "HEAD"), repo.revision(right or "HEAD")
        if dots == "...":
            first = merge_base(repo, first, second) or first
        old, new = repo.tree_of(first), repo.tree_of(second)
    elif len(revisions) == 2:
        sides = [repo.named(revision) for revision in revisions]
        if all(isinstance(repo.store.get(side), Blob) for side in sides):
            name = revisions[0].partition(":")[2] or "a"
            old, new = {name: (0o100644, sides[0])}, {name: (0o100644, sides[1])}
        else:
            old, new = (repo.tree_at(side) for side in sides)
    elif options.cached:
        old = repo.tree_of(repo.revision(revisions[0])) if revisions else repo.head_tree()
        new = repo.staged()
    else:
        index = repo.staged()
        old = repo.tree_at(repo.named(revisions[0])) if revisions else index
        new = dict(index)
        for path, letter in changed_files(repo).items():
            stat = stat_of(repo, path)
            if letter == "D" or stat is None:
                del new[path]
                continue
            contents[path] = repo.read_work(path, stat)
            new[path] = (mode_of(stat), hash_blob(contents[path]))
        for path in repo.conflicts() if not revisions else ():
            if not paths or match_paths(repo, paths, [path]):
                _combined(repo, path)
    if paths:
        names = set(match_paths(repo, paths, list(old.keys() | new.keys())))
        old, new = _only(old, names), _only(new, names)
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


def diff_files(repo: Repository, options: DiffOptions, names: list[str]) -> int:
    """`git diff --no-index`: two files, or two directories, whatever repository they are in."""
    if len(names) != 2:
        raise GitError("usage: git diff --no-index [<options>] <path> <path>", 129, "")
    process = repo.process
    try:
        folders = [process.fs.stat(name).is_dir for name in names]
    except SysError as error:
        raise GitError(f"Could not access '{error.path or names[0]}'", 1, "error: ") from None
    if folders[0] != folders[1]:
        tail = names[folders.index(False)].rpartition("/")[2]
        names = [f"{name.rstrip('/')}/{tail}" if folder else name for name, folder in zip(names, folders, strict=True)]
    tops = [name.rstrip("/") for name in names]
    found = [_files_below(process, top) for top in tops] if all(folders) else [{"": tops[0]}, {"": tops[1]}]
    pairs: list[Pair] = []
    for below in sorted(found[0].keys() | found[1].keys()):
        sides = [found[0].get(below), found[1].get(below)]
        data = [process.read_file(side) if side is not None else b"" for side in sides]
        modes = [mode_of(process.fs.stat(side)) if side is not None else 0 for side in sides]
        if data[0] == data[1] and modes[0] == modes[1]:
            continue
        shas = [hash_blob(d) if side is not None else b"0" * 40 for d, side in zip(data, sides, strict=True)]
        shown = [side.lstrip("/") if side is not None else None for side in sides]
        pairs.append(Pair(shown[0], shown[1], modes[0], modes[1], data[0], data[1], shas[0], shas[1]))
    show_pairs(repo, pairs, options)
    return int(bool(pairs))


def _files_below(process: Process, top: str) -> dict[str, str]:
    found: dict[str, str] = {}
    stack = [""]
    while stack:
        folder = stack.pop()
        for entry in process.fs.readdir(top + folder):
            process.budget.charge()
            path = f"{folder}/{entry.name}"
            if entry.is_dir:
                stack.append(path)
            else:
                found[path] = top + path
    return found


def _combined(repo: Repository, path: str) -> None:
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


def _only(tree: Flat, names: set[str]) -> Flat:
    return {path: entry for path, entry in tree.items() if path in names}


def _numbers(args: list[str]) -> list[str]:
    """-3 means -n 3, before any `--`."""
    out: list[str] = []
    for index, arg in enumerate(args):
        if arg == "--":
            return out + args[index:]
        out.append(f"-n{arg[1:]}" if re.fullmatch(r"-\d+", arg) else arg)
    return out


# log and show


def _negated(args: list[str]) -> list[str]:
    """Revisions behind --not are ones to leave out."""
    out: list[str] = []
    negative = False
    for index, arg in enumerate(args):
        if arg == "--":
            return out + args[index:]
        if arg == "--not":
            negative = not negative
        elif negative and not arg.startswith("-"):
            out.append(arg[1:] if arg.startswith("^") else f"^{arg}")
        else:
            out.append(arg)
    return out


@dataclass(slots=True)
class Selection:
    """What a log is of: the commits in order, and the side of `a...b` that each is on."""

    options: LogOptions
    commits: list[bytes]
    paths: list[str]
    marks: dict[bytes, str]
    known: set[bytes]
    """The commits that there would be without a limit of their number."""
    followed: dict[bytes, list[Pair]]
    """What each commit did to the file of --follow, under the name that it had then."""


def choose(repo: Repository, args: list[str]) -> Selection:
    """The commits that a command line of `git log` or `git rev-list` means."""
    args = _negated(args)
    parsed = parse(LogOptions, _numbers(args))
    options = LogOptions(**parsed.values)
    revisions, paths = split_operands(repo, args, parsed.operands)
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
    keep = _filter(repo, options, [] if options.follow else paths)
    if options.follow:
        keep = _following(repo, keep, relative(repo, paths[0]), followed)
    if options.no_walk:
        source: Iterator[bytes] = iter(dict.fromkeys(starts))
    else:
        source = _first_parents(repo, starts, excluded) if options.first_parent else walk(repo, starts, excluded)
    if options.graph or options.topo or options.date_order:
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
    return Selection(options, chosen, paths, marks, known, followed)


def log(repo: Repository, args: list[str]) -> int:
    chosen = choose(repo, args)
    if chosen.options.count:
        repo.process.print(count_text(chosen))
        return 0
    _print_log(repo, chosen)
    return 0


def whatchanged(repo: Repository, args: list[str]) -> int:
    """`git whatchanged`: a log with what each commit changed, merges left out."""
    return log(repo, ["--raw", "--no-merges", *args])


def count_text(chosen: Selection) -> str:
    if not chosen.options.left:
        return str(len(chosen.commits))
    left = sum(chosen.marks.get(sha) == "<" for sha in chosen.commits)
    return f"{left}\t{len(chosen.commits) - left}"


def _sides(repo: Repository, revisions: list[str]) -> dict[bytes, str]:
    for revision in revisions:
        if "..." in revision:
            left, _, right = revision.partition("...")
            first = ancestors(repo, repo.revision(left or "HEAD"))
            second = ancestors(repo, repo.revision(right or "HEAD"))
            return {**dict.fromkeys(first - second, "<"), **dict.fromkeys(second - first, ">")}
    return {}


def patch_id(repo: Repository, sha: bytes) -> bytes | None:
    """What a commit changes, so that the same change elsewhere is recognised; None for a merge."""
    commit = repo.store.commit(sha)
    if len(commit.parents) > 1:
        return None
    pairs = commit_pairs(repo, commit, [])
    text = [f"{pair.old} {pair.new}\n".encode() + hunks(repo.process, pair.before, pair.after) for pair in pairs]
    return re.sub(rb"(?m)^@@.*\n", b"", b"".join(text))


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
            first, second = repo.revision(left or "HEAD"), repo.revision(right or "HEAD")
            starts += [first, second]
            base = merge_base(repo, first, second)
            excluded += [base] if base else []
        elif ".." in revision:
            left, _, right = revision.partition("..")
            excluded.append(repo.revision(left or "HEAD"))
            starts.append(repo.revision(right or "HEAD"))
        elif revision.startswith("^"):
            excluded.append(repo.revision(revision[1:]))
        else:
            starts.append(repo.revision(revision))
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


def _first_parents(repo: Repository, starts: list[bytes], excluded: list[bytes]):  # type: ignore[no-untyped-def]
    hidden = set().union(*(ancestors(repo, sha) for sha in excluded)) if excluded else set()
    for sha in starts:
        while sha not in hidden:
            repo.process.budget.charge()
            yield sha
            parents = repo.store.commit(sha).parents
            if not parents:
                break
            sha = bytes(parents[0])


def _filter(repo: Repository, options: LogOptions, paths: list[str]):  # type: ignore[no-untyped-def]
    try:
        syntax = "fixed" if options.fixed else "egrep" if options.extended else "grep"
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
                needle = options.pickaxe.encode("utf-8", "surrogateescape")
                pairs = [p for p in pairs if p.before.count(needle) != p.after.count(needle)]
            if wanted:
                pairs = [p for p in pairs if wanted.test(patch(repo.process, p).partition(b"\n@@")[2])]
            return bool(pairs)
        return True

    return keep


def _following(
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


def commit_pairs(repo: Repository, commit: Commit, paths: list[str]) -> list[Pair]:
    """What a commit changed from its first parent."""
    old = repo.tree_of(bytes(commit.parents[0])) if commit.parents else {}
    new = repo.tree_of(bytes(commit.id))
    if paths:
        names = set(match_paths(repo, paths, list(old.keys() | new.keys())))
        old, new = _only(old, names), _only(new, names)
    return compare(repo, old, new)


def _formatter(
    repo: Repository, options: LogOptions, marks: dict[bytes, str] | None = None
) -> tuple[Formatter, bool, bool]:
    """The formatter, whether a newline ends each commit (or stands between), and whether it is a one-line form."""
    form = "medium" if options.form is None else options.form
    short = options.abbrev_commit
    ends = True
    if options.oneline or form == "oneline":
        short = options.oneline or (options.abbrev_commit and not options.no_abbrev)
        form = "oneline"
    elif form.startswith("format:"):
        form, ends = form[7:], False
    elif form.startswith("tformat:"):
        form = form[8:]
    elif form not in NAMED and form != "reference" and "%" not in form and form:
        raise GitError(f"invalid --pretty format: {form}")
    decorate = options.decorate not in (None, "no", "false", "auto") and not options.no_decorate
    if options.decorate is None and repo.process.isatty(1) and not options.no_decorate:
        decorate = True
    full = form == "oneline" and not short
    digits = 7
    if options.abbrev is not None and options.abbrev.isdecimal():
        digits = min(40, max(4, int(options.abbrev[:3])))
    color = colored(repo, options.color, never=options.no_color)
    formatter = Formatter(
        repo, form, options.date, decorate=decorate, full=full, digits=digits, color=color, marks=marks
    )
    return formatter, ends, form not in NAMED or form == "oneline"


def _print_log(repo: Repository, chosen: Selection) -> None:
    process, options, commits = repo.process, chosen.options, chosen.commits
    formatter, ends, compact = _formatter(repo, options, chosen.marks if options.left else None)
    wants_diff = wants_form(options)
    graph = Graph() if options.graph else None
    end = "\0" if options.null else "\n"
    for number, sha in enumerate(commits):
        commit = repo.store.commit(sha)
        process.budget.charge(10)
        text = formatter.show(sha)
        pairs: list[Pair] = []
        if wants_diff and (len(commit.parents) < 2 or options.first_parent_merges or options.first_parent):
            found = chosen.followed[sha] if options.follow else commit_pairs(repo, commit, chosen.paths)
            pairs = filter_pairs(found, options.filter)
        if graph is not None:
            parents = [bytes(parent) for parent in commit.parents if parent in chosen.known]
            star, lines, rest = graph.step(sha, parents)
            first, *others = text.split("\n")
            process.print((star + first).rstrip() if not first else star + first)
            last = number == len(commits) - 1
            pending = list(lines)
            if pairs:
                body = b"".join(render_pairs(repo, pairs, options, default=options.patch)).decode(
                    "utf-8", "surrogateescape"
                )
                others += ["", *body.split("\n")[:-1]] if not compact else body.split("\n")[:-1]
            for other in others:
                prefix = pending.pop(0) if pending and (not compact or pairs) else rest
                process.print(prefix + other)
            for line in pending:
                process.print(line)
            if not compact and not last:
                process.print(graph.between())
            continue
        if number and (not compact or not ends):
            process.print("", end=end)
        process.print(
            text, end=end if compact and ends and text else "" if compact and (not ends or not text) else "\n"
        )
        if pairs:
            if not compact:
                process.print("")
            elif formatter.form != "oneline" and text:
                process.print("" if ends else "\n", end="\n" if ends else "")
            show_pairs(repo, pairs, options, default=options.patch)
    if commits and compact and not ends and process.isatty(1):
        process.print("")


def show(repo: Repository, args: list[str]) -> int:
    parsed = parse(LogOptions, _numbers(args))
    options = LogOptions(**parsed.values)
    revisions, paths = split_operands(repo, args, parsed.operands)
    process = repo.process
    for number, revision in enumerate(revisions or ["HEAD"]):
        try:
            sha = repo.resolve(revision)
        except KeyError:
            repo.revision(revision)
            raise
        item = repo.store.get(sha)
        if isinstance(item, Blob):
            process.stdout.write(bytes(item.data))
            continue
        if isinstance(item, Tree):
            process.print(f"tree {revision}\n")
            for entry in item.iteritems():
                name = text_of(entry.path or b"")
                process.print(name + ("/" if entry.mode == 0o040000 else ""))
            continue
        if number:
            process.print("")
        if isinstance(item, Tag):
            process.print(f"tag {text_of(item.name)}")
            if item.tagger:
                process.print(f"Tagger: {text_of(item.tagger)}")
                process.print(f"Date:   {date(item.tag_time or 0, item.tag_timezone or 0, options.date)}")
            process.print(f"\n{text_of(item.message or b'')}")
            sha = bytes(item.object[1])
        commit = repo.store.commit(sha)
        formatter, _, compact = _formatter(repo, options)
        text = formatter.show(bytes(commit.id))
        process.print(text, end="\n" if text or not compact else "")
        merge = len(commit.parents) > 1
        if (not merge or options.stat is not None or options.first_parent_merges) and not options.no_patch:
            pairs = filter_pairs(commit_pairs(repo, commit, paths), options.filter)
            if pairs:
                if not compact or (formatter.form != "oneline" and text):
                    process.print("")
                show_pairs(repo, pairs, options)
    return 0


# Others that look.


def rev_parse(repo: Repository, args: list[str]) -> int:
    process = repo.process
    short = abbreviated = verify = quiet = symbolic = full_name = pending_path = False
    for arg in args:
        match arg:
            case "--show-toplevel":
                process.print(repo.work or repo.git)
            case "--git-dir":
                here = process.fs.getcwd()
                process.print(
                    ".git" if repo.git == here.rstrip("/") + "/.git" else repo.git if repo.git != here else "."
                )
            case "--absolute-git-dir":
                process.print(repo.git)
            case "--is-inside-work-tree":
                process.print("true" if repo.work else "false")
            case "--is-bare-repository":
                process.print("false" if repo.work else "true")
            case "--is-inside-git-dir":
                process.print("true" if process.fs.getcwd().startswith(repo.git) else "false")
            case "--show-prefix":
                prefix = relative(repo, ".")
                process.print(prefix + "/" if prefix else "")
            case "--show-cdup":
                prefix = relative(repo, ".")
                process.print("../" * (prefix.count("/") + 1) if prefix else "")
            case "--abbrev-ref":
                abbreviated = True
            case "--verify":
                verify = True
            case "-q" | "--quiet":
                quiet = True
            case _ if arg == "--short" or arg.startswith("--short="):
                short = True
            case "--all" | "--branches" | "--tags" | "--remotes":
                folder = {"--all": "", "--branches": "heads/", "--tags": "tags/", "--remotes": "remotes/"}[arg]
                for ref, sha in repo.refs.under(f"refs/{folder}").items():
                    process.print(re.sub(r"^refs/(heads|tags|remotes)/", "", ref) if symbolic else sha.decode())
            case "--symbolic":
                symbolic = True
            case "--symbolic-full-name":
                full_name = True
            case "--local-env-vars" | "--git-common-dir" | "--show-superproject-working-tree":
                if arg == "--git-common-dir":
                    process.print(".git" if repo.git == process.fs.getcwd().rstrip("/") + "/.git" else repo.git)
            case "--show-object-format":
                process.print("sha1")
            case "--is-shallow-repository":
                process.print("true" if repo.store.shallow else "false")
            case "--git-path":
                pending_path = True
            case _ if pending_path:
                process.print(f".git/{arg}")
                pending_path = False
            case "--" | "--revs-only" | "--no-flags" | "--flags" | "--no-revs" | "--end-of-options":
                continue
            case _ if arg.startswith("-"):
                process.print(arg)
            case _:
                try:
                    sha = repo.resolve(arg)
                except KeyError:
                    if verify:
                        if quiet:
                            return 1
                        raise GitError("Needed a single revision") from None
                    process.print(arg)
                    repo.revision(arg)
                    raise
                if full_name:
                    process.print(_full_name(repo, arg))
                elif abbreviated:
                    branch = repo.refs.branch() if arg in ("HEAD", "@") else None
                    if arg.endswith(("@{u}", "@{upstream}")):
                        upstream = repo.upstream((repo.refs.branch() or "").removeprefix("refs/heads/"))
                        process.print((upstream or "").removeprefix("refs/remotes/"))
                        continue
                    process.print((branch or arg).removeprefix("refs/heads/"))
                else:
                    process.print(sha.decode()[:7] if short else sha.decode())
    return 0


def _full_name(repo: Repository, name: str) -> str:
    """The ref that a name stands for; nothing if it is none."""
    if name in ("HEAD", "@"):
        return repo.refs.branch() or "HEAD"
    for prefix in ("", "refs/", "refs/tags/", "refs/heads/", "refs/remotes/"):
        if (prefix or name.startswith("refs/")) and repo.refs.get(prefix + name) is not None:
            return prefix + name
    return ""


def reflog(repo: Repository, args: list[str]) -> int:
    words = [arg for arg in _numbers(args) if arg != "show"]
    if words[:1] and words[0] in ("expire", "delete", "exists"):
        return 0 if words[0] == "exists" and repo.refs.read_log(words[-1]) else int(words[0] == "exists")
    parsed = parse(LogOptions, words)
    options = LogOptions(**parsed.values)
    name = parsed.operands[0] if parsed.operands else "HEAD"
    ref = name if name in ("HEAD", "stash") or name.startswith("refs/") else f"refs/heads/{name}"
    limit = int(options.number[:9]) if options.number and options.number.isdecimal() else None
    entries = list(reversed(repo.refs.read_log("refs/stash" if ref == "stash" else ref)))
    for number, (_, new, _, message) in enumerate(entries[:limit]):
        if options.form is not None:
            text = options.form.removeprefix("format:").removeprefix("tformat:")
            text = text.replace("%gd", f"{name}@{{{number}}}").replace("%gs", message)
            repo.process.print(Formatter(repo, text, options.date).show(new))
        else:
            repo.process.print(f"{new[:7].decode()} {name}@{{{number}}}: {message}")
    return 0


def merge_base_command(repo: Repository, args: list[str]) -> int:
    names = [arg for arg in args if not arg.startswith("-")]
    if len(names) != 2:
        raise GitError("usage: git merge-base [--is-ancestor] <commit> <commit>", 129, "")
    first, second = repo.revision(names[0]), repo.revision(names[1])
    base = merge_base(repo, first, second)
    if "--is-ancestor" in args:
        return 0 if base == first else 1
    if base is None:
        return 1
    repo.process.print(base.decode())
    return 0


def cherry(repo: Repository, args: list[str]) -> int:
    """`git cherry`: which commits of a branch have their change upstream already."""
    names = [arg for arg in args if not arg.startswith("-")]
    current = (repo.refs.branch() or "").removeprefix("refs/heads/")
    upstream_name = names[0] if names else repo.upstream(current)
    if not upstream_name:
        raise GitError("Could not find a tracked remote branch, please specify <upstream> manually.", 128, "")
    upstream, head = repo.revision(upstream_name), repo.revision(names[1] if len(names) > 1 else "HEAD")
    known = {patch_id(repo, sha) for sha in walk(repo, [upstream], [head])}
    for sha in reversed(list(walk(repo, [head], [upstream]))):
        commit = repo.store.commit(sha)
        if len(commit.parents) > 1:
            continue
        subject = f" {subject_of(text_of(commit.message))}" if "-v" in args else ""
        repo.process.print(f"{'-' if patch_id(repo, sha) in known else '+'} {sha.decode()}{subject}")
    return 0


def rev_list(repo: Repository, args: list[str]) -> int:
    chosen = choose(repo, args)
    options, process = chosen.options, repo.process
    if options.count:
        process.print(count_text(chosen))
        return 0
    if options.form is not None and not options.oneline:
        formatter = _formatter(repo, options)[0]
        for sha in chosen.commits:
            process.print(f"commit {sha.decode()}\n{formatter.show(sha)}")
        return 0
    for sha in chosen.commits:
        name = sha.decode()[:7] if options.abbrev_commit or options.oneline else sha.decode()
        line = f"{chosen.marks.get(sha, '')}{name}"
        commit = repo.store.commit(sha)
        if options.parents:
            line = " ".join([line, *(parent.decode() for parent in commit.parents)])
        if options.oneline:
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
                below = [(bytes(e.sha or b""), text_of(e.path or b"")) for e in item.iteritems()]
                stack += [(child, f"{path}/{part}" if path else part) for child, part in reversed(below)]


def exists(repo: Repository, path: str) -> bool:
    try:
        repo.process.fs.stat(path)
    except SysError:
        return False
    return True
