"""`git describe`: a commit by the tag before it."""

from __future__ import annotations

from dulwich.objects import Tag

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import flag, many, value
from belljar.bin._kit.options import read_options
from belljar.bin.git.name_rev import name_rev
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.history import walk
from belljar.bin.git.repository.merging import ancestors
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import resolve
from belljar.bin.git.repository.work import changed_files
from belljar.libc.pattern import compile_pattern


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
    options, operands = read_options(DescribeOptions, args)
    if options.contains:
        return name_rev(repo, ["--tags", "--name-only", *(operands or ["HEAD"])])
    if options.dirty is not None and operands:
        raise GitError("option '--dirty' and commit-ishes cannot be used together")
    digits = int(options.abbrev[:3]) if options.abbrev and options.abbrev.isdecimal() else 7
    for name in operands or ["HEAD"]:
        try:
            start = bytes(repo.store.commit(resolve(repo, name)).id)
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
