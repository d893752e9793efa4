"""git's commands that look: log, show, diff, blame, grep, rev-parse, ls-files, reflog, describe, cat-file ..."""

from __future__ import annotations

import re

from dulwich.index import IndexEntry
from dulwich.objects import Blob, Commit, Tag, Tree

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import choice, flag, many, value
from belljar.bin._kit.options import parse
from belljar.bin.diff.script import find_changes
from belljar.bin.git.diffs import Pair, compare, counts, mode_lines, patch, quote_path, split_lines, stat_text
from belljar.bin.git.errors import GitError
from belljar.bin.git.history import Formatter, Graph, date, subject_of, text_of, topological, walk, who
from belljar.bin.git.merging import ancestors, merge_base
from belljar.bin.git.repo import Repository, mode_of
from belljar.bin.git.store import Flat
from belljar.bin.git.work import changed_files, find_untracked, hash_blob, match_paths, relative, stat_of
from belljar.regex import RegexError
from belljar.regex import compile as compile_regex


@dataclass(frozen=True, slots=True)
class DiffOptions:
    patch: bool = flag("-p", "-u", "--patch", "generate patch")
    no_patch: bool = flag("-s", "--no-patch", "suppress diff output")
    stat: str | None = value("--stat", "show a diffstat", metavar="WIDTH", bare="")
    shortstat: bool = flag("--shortstat", "only the last line of --stat")
    numstat: bool = flag("--numstat", "lines added and removed in numbers")
    summary: bool = flag("--summary", "creations, renames and mode changes")
    name_only: bool = flag("--name-only", "show only names of changed files")
    name_status: bool = flag("--name-status", "show only names and status of changed files")
    cached: bool = flag("--cached", "--staged", "compare the index with a commit")
    quiet: bool = flag("--quiet", "no output, only a status")
    exit_code: bool = flag("--exit-code", "exit with 1 if there were differences")
    unified: str | None = value("-U", "--unified", "lines of context", metavar="N")
    no_renames: bool = flag("--no-renames", "turn off rename detection")
    find_renames: str | None = value("-M", "--find-renames", "(always on)", metavar="N", bare="")
    color: str | None = value("--color", "(ignored)", metavar="WHEN", bare="")
    no_color: bool = flag("--no-color", "(ignored)")
    null: bool = flag("-z", "separate names with NUL")
    check: bool = flag("--check", "warn about whitespace errors")
    no_ext: bool = flag("--no-ext-diff", "(ignored)")
    filter: str | None = value("--diff-filter", "select by status letters", metavar="LETTERS")


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
    topo: bool = flag("--topo-order", "--date-order", "no parents before their children")
    abbrev: bool = flag("--abbrev-commit", "abbreviate names")
    no_abbrev: bool = flag("--no-abbrev-commit", "don't")
    follow: bool = flag("--follow", "follow a file through renames")
    pickaxe: str | None = value("-S", "changes in the number of a string", metavar="STRING")
    pickaxe_regex: str | None = value("-G", "changes that match", metavar="PATTERN")
    left: bool = flag("--left-right", "(accepted)")
    count: bool = flag("--count", "only the number of commits")


def show_pairs(repo: Repository, pairs: list[Pair], options: DiffOptions, *, default: bool = True) -> None:
    """Differences in the form that options ask for; a patch if none does and `default`."""
    process = repo.process
    if options.filter:
        wanted = options.filter
        pairs = [
            pair
            for pair in pairs
            if (pair.letter[0] in wanted) or (wanted.islower() and pair.letter[0].lower() not in wanted)
        ]
    if options.quiet or options.no_patch:
        return
    any_form = False
    if options.name_only or options.name_status:
        end = "\0" if options.null else "\n"
        for pair in pairs:
            if options.name_only:
                process.print(quote_path(pair.path), end=end)
            elif pair.letter.startswith("R"):
                process.print(f"{pair.letter}\t{quote_path(str(pair.old))}\t{quote_path(pair.path)}", end=end)
            else:
                process.print(f"{pair.letter}\t{quote_path(pair.path)}", end=end)
        return
    if options.numstat:
        any_form = True
        for pair in pairs:
            added, removed = counts(process, pair)
            numbers = "-\t-" if pair.binary else f"{added}\t{removed}"
            process.print(f"{numbers}\t{quote_path(pair.path)}")
    if options.stat is not None or options.shortstat:
        any_form = True
        width = (
            int(options.stat.partition(",")[0][:9])
            if options.stat and options.stat.partition(",")[0].isdecimal()
            else 80
        )
        process.print(stat_text(process, pairs, width, summary_only=options.shortstat and options.stat is None), end="")
    if options.summary:
        any_form = True
        process.print(mode_lines(pairs), end="")
    if options.patch or (default and not any_form):
        if any_form and pairs:
            process.print("")
        context = int(options.unified[:9]) if options.unified and options.unified.isdecimal() else 3
        for pair in pairs:
            process.stdout.write(patch(process, pair, context))


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
        sides = [repo.resolve(revision) for revision in revisions]
        if all(isinstance(repo.store.get(side), Blob) for side in sides):
            name = revisions[0].partition(":")[2] or "a"
            old, new = {name: (0o100644, sides[0])}, {name: (0o100644, sides[1])}
        else:
            old, new = (repo.tree_of(repo.revision(revision)) for revision in revisions)
    elif options.cached:
        old = repo.tree_of(repo.revision(revisions[0])) if revisions else repo.head_tree()
        new = repo.staged()
    else:
        index = repo.staged()
        old = repo.tree_of(repo.revision(revisions[0])) if revisions else index
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
    pairs = compare(repo, old, new, contents, renames=not options.no_renames)
    show_pairs(repo, pairs, options)
    return int(bool(pairs)) if options.exit_code or options.quiet else 0


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


def log(repo: Repository, args: list[str]) -> int:
    parsed = parse(LogOptions, _numbers(args))
    options = LogOptions(**parsed.values)
    revisions, paths = split_operands(repo, args, parsed.operands)
    starts, excluded = select(repo, revisions, everything=options.all, branches=options.branches)
    if not starts:
        branch = (repo.refs.branch() or "HEAD").removeprefix("refs/heads/")
        raise GitError(f"your current branch '{branch}' does not have any commits yet")
    keep = _filter(repo, options, paths)
    source = _first_parents(repo, starts, excluded) if options.first_parent else walk(repo, starts, excluded)
    limit = int(options.number[:9]) if options.number and options.number.lstrip("-").isdecimal() else -1
    skip = int(options.skip[:9]) if options.skip and options.skip.isdecimal() else 0
    if options.graph or options.topo:
        ordered = topological(repo, list(source))
        source = iter(ordered)
    chosen: list[bytes] = []
    for sha in source:
        if limit >= 0 and len(chosen) >= limit + skip:
            break
        if keep(sha):
            chosen.append(sha)
    chosen = chosen[skip:]
    if options.reverse:
        chosen.reverse()
    if options.count:
        repo.process.print(str(len(chosen)))
        return 0
    _print_log(repo, options, chosen, paths)
    return 0


def select(
    repo: Repository, revisions: list[str], *, everything: bool = False, branches: bool = False
) -> tuple[list[bytes], list[bytes]]:
    """Commits to start from and to leave out, as `a..b`, `^a`, `a...b` and names say."""
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
    if everything or branches:
        for sha in repo.refs.under("refs/heads/" if branches else "refs/").values():
            try:
                starts.append(bytes(repo.store.commit(sha).id))
            except (KeyError, GitError):
                continue
    head = repo.head()
    if head is not None and (everything or (not revisions and not branches)):
        starts.insert(0, head)
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
        authors = [compile_regex(p, syntax="grep", ignore_case=options.ignore_case) for p in options.author]
        greps = [compile_regex(p, syntax="grep", ignore_case=options.ignore_case) for p in options.grep]
        wanted = compile_regex(options.pickaxe_regex, syntax="ere") if options.pickaxe_regex else None
    except RegexError as error:
        raise GitError(str(error)) from None
    since = repo.parse_date(options.since)[0] if options.since else None
    until = repo.parse_date(options.until)[0] if options.until else None

    def keep(sha: bytes) -> bool:
        commit = repo.store.commit(sha)
        if (options.no_merges and len(commit.parents) > 1) or (options.merges and len(commit.parents) < 2):
            return False
        if authors and not any(regex.test(text_of(commit.author)) for regex in authors):
            return False
        if greps and not any(regex.test(line) for regex in greps for line in text_of(commit.message).split("\n")):
            return False
        if (since is not None and commit.commit_time < since) or (until is not None and commit.commit_time > until):
            return False
        if paths or options.pickaxe or wanted:
            pairs = commit_pairs(repo, commit, paths)
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


def _formatter(repo: Repository, options: LogOptions) -> tuple[Formatter, bool, bool]:
    """The formatter, whether a newline ends each commit (or stands between), and whether it is a one-line form."""
    form = options.form or "medium"
    short = options.abbrev
    ends = True
    if options.oneline or form == "oneline":
        short = options.oneline or options.abbrev
        form = "oneline"
    elif form.startswith("format:"):
        form, ends = form[7:], False
    elif form.startswith("tformat:"):
        form = form[8:]
    decorate = options.decorate not in (None, "no", "false", "auto") and not options.no_decorate
    if options.decorate == "auto":
        decorate = False
    if options.decorate is None and repo.process.isatty(1) and not options.no_decorate:
        decorate = True
    full = form == "oneline" and not short
    named = {"oneline", "short", "medium", "full", "fuller", "raw"}
    coded = form not in named
    return Formatter(repo, form, options.date, decorate=decorate, full=full), ends, coded or form == "oneline"


def _print_log(repo: Repository, options: LogOptions, commits: list[bytes], paths: list[str]) -> None:
    process = repo.process
    formatter, ends, compact = _formatter(repo, options)
    wants_diff = (
        options.patch or options.stat is not None or options.name_only or options.name_status or options.numstat
        or options.shortstat or options.summary
    )  # fmt: skip
    graph = Graph() if options.graph else None
    shown = set(commits)
    for number, sha in enumerate(commits):
        commit = repo.store.commit(sha)
        process.budget.charge(10)
        text = formatter.show(sha)
        if graph is not None:
            parents = [bytes(parent) for parent in commit.parents if parent in shown]
            star, lines, rest = graph.step(sha, parents)
            first, *others = text.split("\n")
            process.print((star + first).rstrip() if not first else star + first)
            last = number == len(commits) - 1
            pending = list(lines)
            for other in others:
                prefix = pending.pop(0) if pending and not compact else rest
                process.print(prefix + other)
            for line in pending:
                process.print(line)
            if not compact and not last:
                process.print(graph.between())
            continue
        if (number and not compact) or (number and not ends):
            process.print("")
        process.print(text, end="\n" if ends or not compact else "")
        if wants_diff and len(commit.parents) < 2:
            pairs = commit_pairs(repo, commit, paths)
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
        formatter, ends, compact = _formatter(repo, options)
        text = formatter.show(bytes(commit.id))
        process.print(text, end="\n" if ends or text else "")
        merge = len(commit.parents) > 1
        if (not merge or options.stat is not None) and not options.no_patch:
            pairs = commit_pairs(repo, commit, paths)
            if pairs:
                if not compact or (formatter.form != "oneline" and text):
                    process.print("")
                show_pairs(repo, pairs, options)
    return 0


# Others that look.


def rev_parse(repo: Repository, args: list[str]) -> int:
    process = repo.process
    short = abbreviated = verify = quiet = False
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
            case "--all":
                for sha in repo.refs.under("refs/").values():
                    process.print(sha.decode())
            case _ if arg.startswith("--"):
                continue
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
                if abbreviated:
                    branch = repo.refs.branch() if arg in ("HEAD", "@") else None
                    if arg.endswith(("@{u}", "@{upstream}")):
                        upstream = repo.upstream((repo.refs.branch() or "").removeprefix("refs/heads/"))
                        process.print((upstream or "").removeprefix("refs/remotes/"))
                        continue
                    process.print((branch or arg).removeprefix("refs/heads/"))
                else:
                    process.print(sha.decode()[:7] if short else sha.decode())
    return 0


def ls_files(repo: Repository, args: list[str]) -> int:
    @dataclass(frozen=True, slots=True)
    class Options:
        stage: bool = flag("-s", "--stage", "show mode, object and stage")
        others: bool = flag("-o", "--others", "show untracked files")
        modified: bool = flag("-m", "--modified", "show modified files")
        deleted: bool = flag("-d", "--deleted", "show deleted files")
        cached: bool = flag("-c", "--cached", "show cached files")
        unmerged: bool = flag("-u", "--unmerged", "show unmerged files")
        standard: bool = flag("--exclude-standard", "leave ignored files out")
        null: bool = flag("-z", "terminate with NUL")
        error: bool = flag("--error-unmatch", "fail if a path is not known")

    parsed = parse(Options, args)
    options = Options(**parsed.values)
    end = "\0" if options.null else "\n"
    names: list[str] = []
    if options.others:
        untracked, hidden = find_untracked(repo, everything=True, ignored=not options.standard)
        names += untracked + hidden
    if options.modified:
        names += list(changed_files(repo))
    elif options.deleted:
        names += [path for path, letter in changed_files(repo).items() if letter == "D"]
    if options.cached or not (options.others or options.modified or options.deleted):
        names += list(repo.index)
    prefix = relative(repo, ".")
    specs = parsed.operands or ["."]
    chosen = sorted(set(match_paths(repo, specs, names)))
    if options.error:
        for spec in parsed.operands:
            if not match_paths(repo, [spec], names):
                raise GitError(
                    f"pathspec '{spec}' did not match any file(s) known to git\nDid you forget to 'git add'?",
                    1,
                    "error: ",
                )
    for path in chosen:
        shown = path[len(prefix) + 1 :] if prefix else path
        entry = repo.index.get(path)
        if not (options.stage or options.unmerged) or entry is None:
            repo.process.print(quote_path(shown), end=end)
            continue
        stages = (
            [(0, entry)] if isinstance(entry, IndexEntry) else [(1, entry.ancestor), (2, entry.this), (3, entry.other)]
        )
        for stage, item in stages:
            if item is not None and (stage or not options.unmerged):
                repo.process.print(f"{item.mode:06o} {item.sha.decode()} {stage}\t{quote_path(shown)}", end=end)
    return 0


def blame(repo: Repository, args: list[str]) -> int:
    operands = [arg for arg in args if not arg.startswith("-")]
    revision = operands[0] if len(operands) > 1 else "HEAD"
    path = relative(repo, operands[-1])
    start = repo.revision(revision)
    tree = repo.tree_of(start)
    if path not in tree:
        raise GitError(f"no such path '{path}' in {revision}")
    data = repo.store.blob(tree[path][1])
    lines = split_lines(data)
    owners: list[tuple[bytes, int] | None] = [None] * len(lines)
    todo = [(start, data, list(enumerate(range(len(lines)))))]
    while todo:
        sha, text, wanted = todo.pop()
        repo.process.budget.charge(10)
        commit = repo.store.commit(sha)
        left = dict(wanted)
        for parent in commit.parents:
            before = repo.tree_of(bytes(parent)).get(path)
            if before is None:
                continue
            old = repo.store.blob(before[1])
            mapping = _same_lines(repo, old, text)
            passed = [(final, mapping[line]) for final, line in left.items() if line in mapping]
            if passed:
                todo.append((bytes(parent), old, passed))
            left = {final: line for final, line in left.items() if line not in mapping}
        for final, line in left.items():
            owners[final] = (sha, line)
    width = len(str(len(lines)))
    names = [who(repo.store.commit(owner[0]).author)[0] for owner in owners if owner]
    wide = max((len(name) for name in names), default=0)
    for index, shown in enumerate(lines):
        owner = owners[index]
        assert owner is not None
        commit = repo.store.commit(owner[0])
        mark = f"^{owner[0].decode()[:7]}" if not commit.parents else owner[0].decode()[:8]
        name = who(commit.author)[0]
        when = date(commit.author_time, commit.author_timezone, "iso")
        head = f"{mark} ({name:<{wide}} {when} {index + 1:>{width}}) "
        repo.process.stdout.write(head.encode("utf-8", "surrogateescape") + shown.rstrip(b"\n") + b"\n")
    return 0


def _same_lines(repo: Repository, old: bytes, new: bytes) -> dict[int, int]:
    """Line numbers of the new text that the old one has, and where."""
    a, b = split_lines(old), split_lines(new)
    mapping: dict[int, int] = {}
    at_a = at_b = 0
    for change in find_changes(a, b, repo.process.budget.charge):
        mapping.update(zip(range(at_b, change.low_b), range(at_a, change.low_a), strict=True))
        at_a, at_b = change.high_a, change.high_b
    mapping.update(zip(range(at_b, len(b)), range(at_a, len(a)), strict=True))
    return mapping


def grep(repo: Repository, args: list[str]) -> int:
    @dataclass(frozen=True, slots=True)
    class Options:
        number: bool = flag("-n", "--line-number", "show line numbers")
        ignore_case: bool = flag("-i", "--ignore-case", "ignore case")
        names: bool = flag("-l", "--files-with-matches", "--name-only", "show only names")
        count: bool = flag("-c", "--count", "show the number of matches")
        invert: bool = flag("-v", "--invert-match", "show lines that don't match")
        word: bool = flag("-w", "--word-regexp", "match whole words")
        syntax: str = choice(
            {
                "-E": "egrep",
                "--extended-regexp": "egrep",
                "-F": "fixed",
                "--fixed-strings": "fixed",
                "-G": "grep",
                "-P": "perl",
            },
            "kind of pattern",
            default="grep",
        )
        patterns: tuple[str, ...] = many("-e", "pattern", metavar="PATTERN")
        quiet: bool = flag("-q", "--quiet", "only a status")
        no_name: bool = flag("-h", "don't show names")
        cached: bool = flag("--cached", "search the index")

    parsed = parse(Options, args)
    options, operands = Options(**parsed.values), parsed.operands
    if not options.patterns:
        if not operands:
            raise GitError("no pattern given")
        operands = operands[1:]
    patterns = options.patterns or (parsed.operands[0],)
    try:
        from belljar.regex import compile_any

        regex = compile_any(
            list(patterns), syntax=options.syntax, ignore_case=options.ignore_case, whole_word=options.word
        )
    except RegexError as error:
        raise GitError(f"command line, '{patterns[0]}': {error}") from None
    revisions, paths = split_operands(repo, [], operands) if "--" not in args else split_operands(repo, args, operands)
    sources: list[tuple[str, str, bytes | None]] = []
    for revision in revisions:
        sources += [(f"{revision}:", path, sha) for path, (_, sha) in repo.tree_of(repo.revision(revision)).items()]
    if not revisions:
        sources = [("", path, bytes(e.sha) if options.cached and isinstance(e, IndexEntry) else None)
                   for path, e in sorted(repo.index.items())]  # fmt: skip
    found = False
    for prefix, path, sha in sources:
        if paths and not match_paths(repo, paths, [path]):
            continue
        stat = stat_of(repo, path) if sha is None else None
        if sha is None and (stat is None or stat.is_dir):
            continue
        data = repo.store.blob(sha) if sha is not None else repo.read_work(path, stat)  # type: ignore[arg-type]
        lines = data.split(b"\n")
        if lines and not lines[-1]:
            lines.pop()
        repo.process.budget.charge(1 + len(lines) // 4)
        hits = [(n, line) for n, line in enumerate(lines, 1) if regex.test(line) is not options.invert]
        if not hits:
            continue
        found = True
        if options.quiet:
            return 0
        name = prefix + path
        if options.names:
            repo.process.print(name)
        elif options.count:
            repo.process.print(f"{name}:{len(hits)}")
        elif b"\0" in data[:8000]:
            repo.process.print(f"Binary file {name} matches")
        else:
            for number, line in hits:
                head = ("" if options.no_name else f"{name}:") + (f"{number}:" if options.number else "")
                repo.process.stdout.write(head.encode("utf-8", "surrogateescape") + line + b"\n")
    return 0 if found else 1


def reflog(repo: Repository, args: list[str]) -> int:
    names = [arg for arg in args if not arg.startswith("-") and arg != "show"]
    name = names[0] if names else "HEAD"
    ref = name if name == "HEAD" or name.startswith("refs/") else f"refs/heads/{name}"
    for number, (_, new, _, message) in enumerate(reversed(repo.refs.read_log(ref))):
        repo.process.print(f"{new[:7].decode()} {name}@{{{number}}}: {message}")
    return 0


def cat_file(repo: Repository, args: list[str]) -> int:
    verb, name = (args[0], args[1]) if len(args) > 1 else ("", "")
    try:
        item = repo.store.get(repo.resolve(name))
    except KeyError:
        if verb == "-e":
            return 1
        raise GitError(f"Not a valid object name {name}") from None
    match verb:
        case "-t":
            repo.process.print(item.type_name.decode())
        case "-s":
            repo.process.print(str(len(item.as_raw_string())))
        case "-e":
            return 0
        case "-p":
            if isinstance(item, Tree):
                for e in item.iteritems():
                    kind = "tree" if e.mode == 0o040000 else "blob"
                    repo.process.print(f"{e.mode or 0:06o} {kind} {(e.sha or b'').decode()}\t{text_of(e.path or b'')}")
            else:
                repo.process.stdout.write(item.as_raw_string())
        case _:
            repo.process.stdout.write(item.as_raw_string())
    return 0


def merge_base_command(repo: Repository, args: list[str]) -> int:
    names = [arg for arg in args if not arg.startswith("-")]
    first, second = repo.revision(names[0]), repo.revision(names[1])
    base = merge_base(repo, first, second)
    if "--is-ancestor" in args:
        return 0 if base == first else 1
    if base is None:
        return 1
    repo.process.print(base.decode())
    return 0


def rev_list(repo: Repository, args: list[str]) -> int:
    parsed = parse(LogOptions, _numbers(args))
    options = LogOptions(**parsed.values)
    starts, excluded = select(repo, parsed.operands, everything=options.all)
    limit = int(options.number) if options.number else -1
    found = list(walk(repo, starts, excluded))
    found = found[:limit] if limit >= 0 else found
    if options.count:
        repo.process.print(str(len(found)))
    else:
        for sha in reversed(found) if options.reverse else found:
            repo.process.print(sha.decode())
    return 0


def shortlog(repo: Repository, args: list[str]) -> int:
    summary = any(arg.startswith("-") and "s" in arg for arg in args)
    by_number = any(arg.startswith("-") and "n" in arg for arg in args)
    starts, excluded = select(repo, [arg for arg in args if not arg.startswith("-")])
    table: dict[str, list[str]] = {}
    for sha in walk(repo, starts, excluded):
        commit = repo.store.commit(sha)
        table.setdefault(who(commit.author)[0], []).insert(0, subject_of(text_of(commit.message)))
    names = sorted(table, key=lambda name: (-len(table[name]), name)) if by_number else sorted(table)
    for name in names:
        if summary:
            repo.process.print(f"{len(table[name]):6d}\t{name}")
        else:
            repo.process.print(f"{name} ({len(table[name])}):")
            for subject in table[name]:
                repo.process.print(f"      {subject}")
            repo.process.print("")
    return 0


def describe(repo: Repository, args: list[str]) -> int:
    names = [arg for arg in args if not arg.startswith("-")]
    lightweight = "--tags" in args
    start = repo.revision(names[0] if names else "HEAD")
    tags: dict[bytes, str] = {}
    for name, sha in repo.refs.under("refs/tags/").items():
        if lightweight or isinstance(repo.store.get(sha), Tag):
            tags[bytes(repo.store.commit(sha).id)] = name.removeprefix("refs/tags/")
    for sha in walk(repo, [start], []):
        if sha in tags:
            distance = len(ancestors(repo, start) - ancestors(repo, sha))
            repo.process.print(tags[sha] if not distance else f"{tags[sha]}-{distance}-g{start[:7].decode()}")
            return 0
    if "--always" in args:
        repo.process.print(start[:7].decode())
        return 0
    raise GitError("No names found, cannot describe anything.")


def ls_tree(repo: Repository, args: list[str]) -> int:
    recursive = "-r" in args
    names_only = "--name-only" in args
    operands = [arg for arg in args if not arg.startswith("-")]
    sha = repo.resolve(operands[0])
    item = repo.store.get(sha)
    tree = bytes(repo.store.commit(sha).tree) if not isinstance(item, Tree) else sha
    rows: list[tuple[int, str, bytes, str]] = []
    if recursive:
        rows = [(mode, "blob", blob, path) for path, (mode, blob) in repo.store.flatten(tree).items()]
    else:
        top = repo.store.get(tree)
        assert isinstance(top, Tree)
        rows = [
            (e.mode or 0, "tree" if e.mode == 0o040000 else "blob", bytes(e.sha or b""), text_of(e.path or b""))
            for e in top.iteritems()
        ]
    for mode, kind, blob, path in rows:
        if len(operands) > 1 and not any(
            path == p.rstrip("/") or path.startswith(p.rstrip("/") + "/") for p in operands[1:]
        ):
            continue
        repo.process.print(quote_path(path) if names_only else f"{mode:06o} {kind} {blob.decode()}\t{quote_path(path)}")
    return 0


def exists(repo: Repository, path: str) -> bool:
    try:
        repo.process.fs.stat(path)
    except SysError:
        return False
    return True
