"""Commits in terms of refs and people: describe, name-rev, shortlog."""

from __future__ import annotations

from dulwich.objects import Tag

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import flag, many, value
from belljar.bin._kit.options import parse
from belljar.bin.git.errors import GitError
from belljar.bin.git.history import subject_of, text_of, walk, who
from belljar.bin.git.history_commands import select
from belljar.bin.git.merging import ancestors
from belljar.bin.git.repo import Repository
from belljar.bin.git.work import changed_files
from belljar.shell.pattern import compile_pattern


@dataclass(frozen=True, slots=True)
class DescribeOptions:
    tags: bool = flag("--tags", "use tags that have no message, too")
    all: bool = flag("--all", "use any ref")
    long: bool = flag("--long", "always the long form")
    always: bool = flag("--always", "show the commit's name if nothing else is there")
    exact: bool = flag("--exact-match", "only if a tag is on the commit itself")
    first_parent: bool = flag("--first-parent", "follow only the first parent")
    abbrev: str | None = value("--abbrev", "digits of a name", metavar="N", bare="7")
    match: tuple[str, ...] = many("--match", "only tags that match", metavar="PATTERN")
    exclude: tuple[str, ...] = many("--exclude", "no tags that match", metavar="PATTERN")
    dirty: str | None = value("--dirty", "say if the work tree has changes", metavar="MARK", bare="-dirty")
    contains: bool = flag("--contains", "a tag that comes after the commit")


def describe(repo: Repository, args: list[str]) -> int:
    parsed = parse(DescribeOptions, args)
    options = DescribeOptions(**parsed.values)
    if options.contains:
        return name_rev(repo, ["--tags", "--name-only", *(parsed.operands or ["HEAD"])])
    if options.dirty is not None and parsed.operands:
        raise GitError("option '--dirty' and commit-ishes cannot be used together")
    digits = int(options.abbrev[:3]) if options.abbrev and options.abbrev.isdecimal() else 7
    for name in parsed.operands or ["HEAD"]:
        try:
            start = bytes(repo.store.commit(repo.resolve(name)).id)
        except KeyError:
            raise GitError(f"Not a valid object name {name}") from None
        text = _describe(repo, start, options, digits)
        if options.dirty is not None and (changed_files(repo) or repo.staged() != repo.head_tree()):
            text += options.dirty
        repo.process.print(text)
    return 0


def _describe(repo: Repository, start: bytes, options: DescribeOptions, digits: int) -> str:
    names, plain = _candidates(repo, options)
    for sha in [start] if options.exact else walk(repo, [start], []):
        if sha not in names:
            continue
        distance = len(ancestors(repo, start) - ancestors(repo, sha))
        if (not distance and not options.long) or not digits:
            return names[sha]
        return f"{names[sha]}-{distance}-g{start[:digits].decode()}"
    if options.always:
        return start[: digits or 7].decode()
    if options.exact:
        raise GitError(f"no tag exactly matches '{start.decode()}'")
    if plain and not options.tags:
        raise GitError(
            f"No annotated tags can describe '{start.decode()}'.\nHowever, there were unannotated tags: try --tags."
        )
    if names:
        raise GitError(f"No tags can describe '{start.decode()}'.\nTry --always, or create some tags.")
    raise GitError("No names found, cannot describe anything.")


def _candidates(repo: Repository, options: DescribeOptions) -> tuple[dict[bytes, str], bool]:
    """Names by commit, the best for each; and whether there are tags that do not count."""
    names: dict[bytes, str] = {}
    ranks: dict[bytes, int] = {}
    plain = False
    for ref, sha in repo.refs.under("refs/" if options.all else "refs/tags/").items():
        short = ref.removeprefix("refs/") if options.all else ref.removeprefix("refs/tags/")
        tail = ref.removeprefix("refs/tags/")
        if (options.match and not any(compile_pattern(p).matches(tail) for p in options.match)) or any(
            compile_pattern(p).matches(tail) for p in options.exclude
        ):
            continue
        annotated = isinstance(repo.store.get(sha), Tag)
        if not annotated and not options.tags and not options.all:
            plain = True
            continue
        try:
            commit = bytes(repo.store.commit(sha).id)
        except KeyError:
            continue
        rank = 2 if annotated else 1 if ref.startswith("refs/tags/") else 0
        if rank > ranks.get(commit, -1):
            names[commit], ranks[commit] = short, rank
    return names, plain


def name_rev(repo: Repository, args: list[str]) -> int:
    """`git name-rev`: a commit as steps back from a ref."""

    @dataclass(frozen=True, slots=True)
    class Options:
        tags: bool = flag("--tags", "only tags")
        name_only: bool = flag("--name-only", "only the name")
        no_undefined: bool = flag("--no-undefined", "fail if there is no name")
        always: bool = flag("--always", "the commit's own name if there is no other")

    parsed = parse(Options, args)
    options = Options(**parsed.values)
    names: dict[bytes, tuple[tuple[int, int, int], str]] = {}
    for ref, sha in repo.refs.under("refs/tags/" if options.tags else "refs/").items():
        try:
            tip = bytes(repo.store.commit(sha).id)
        except KeyError:
            continue
        tag = ref.startswith("refs/tags/")
        if options.name_only and options.tags:
            label = ref.removeprefix("refs/tags/")
        else:
            label = ref.removeprefix("refs/heads/") if not tag else ref.removeprefix("refs/")
        annotated = isinstance(repo.store.get(sha), Tag)
        stack = [(tip, label + ("^0" if annotated else ""), label, 0, 0)]
        while stack:
            commit, shown, base, steps, merges = stack.pop()
            repo.process.budget.charge()
            score = (0 if tag else 1, merges, steps)
            if commit in names and names[commit][0] <= score:
                continue
            names[commit] = (score, shown)
            for number, parent in enumerate(repo.store.commit(commit).parents):
                if number == 0:
                    stack.append((bytes(parent), f"{base}~{steps + 1}", base, steps + 1, merges))
                else:
                    side = f"{shown.removesuffix('^0')}^{number + 1}"
                    stack.append((bytes(parent), side, side, 0, merges + 1))
    for name in parsed.operands:
        try:
            wanted = bytes(repo.store.commit(repo.resolve(name)).id)
        except KeyError:
            repo.process.error(f"Could not get sha1 for {name}. Skipping.\n")
            continue
        found = names[wanted][1] if wanted in names else wanted[:7].decode() if options.always else "undefined"
        if found == "undefined" and options.no_undefined:
            raise GitError(f"cannot describe '{wanted.decode()}'")
        repo.process.print(found if options.name_only else f"{name} {found}")
    return 0


def shortlog(repo: Repository, args: list[str]) -> int:
    @dataclass(frozen=True, slots=True)
    class Options:
        summary: bool = flag("-s", "--summary", "only the number of commits")
        numbered: bool = flag("-n", "--numbered", "sort by the number of commits")
        email: bool = flag("-e", "--email", "show addresses")
        committer: bool = flag("-c", "--committer", "group by committer")
        all: bool = flag("--all", "all refs")
        no_merges: bool = flag("--no-merges", "leave merges out")

    parsed = parse(Options, args)
    options = Options(**parsed.values)
    if not parsed.operands and not options.all and not repo.process.isatty(0):
        # As git does: without a revision and a terminal it reads a log from its input, which is empty here.
        if repo.process.read_file("-").strip():
            raise GitError("a log on standard input is not read here: name a revision (git shortlog HEAD)")
        return 0
    starts, excluded = select(repo, parsed.operands)
    if options.all:
        starts = [bytes(repo.store.commit(sha).id) for sha in repo.refs.under("refs/").values()]
    table: dict[str, list[str]] = {}
    for sha in walk(repo, starts, excluded):
        commit = repo.store.commit(sha)
        if options.no_merges and len(commit.parents) > 1:
            continue
        name, email = who(commit.committer if options.committer else commit.author)
        person = f"{name} <{email}>" if options.email else name
        table.setdefault(person, []).insert(0, subject_of(text_of(commit.message)))
    names = sorted(table, key=lambda name: (-len(table[name]), name)) if options.numbered else sorted(table)
    for name in names:
        if options.summary:
            repo.process.print(f"{len(table[name]):6d}\t{name}")
        else:
            repo.process.print(f"{name} ({len(table[name])}):")
            for subject in table[name]:
                repo.process.print(f"      {subject}")
            repo.process.print("")
    return 0
