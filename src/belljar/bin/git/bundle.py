"""`git bundle`: objects and refs in one file, which can be cloned and fetched from."""

from __future__ import annotations

from io import BytesIO

from dulwich.object_format import DEFAULT_OBJECT_FORMAT
from dulwich.pack import write_pack_objects

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsencode
from belljar.bin._kit import flag, value
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.arguments import negate_revisions
from belljar.bin.git.repository.bundles import Bundle, read_bundle
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.history import walk
from belljar.bin.git.repository.merging import ancestors
from belljar.bin.git.repository.remote import missing_objects
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_commit, find_object, full_name
from belljar.bin.git.repository.text import commit_subject


@dataclass(frozen=True, slots=True)
class Options:
    all: bool = flag("--all", "all refs")
    branches: bool = flag("--branches", "all branches")
    tags: bool = flag("--tags", "all tags")
    quiet: bool = flag("-q", "--quiet", "be quiet")
    version: str | None = value("--version", "(version 2)", metavar="N")
    progress: bool = flag("--progress", "--all-progress", "--all-progress-implied", "(accepted)")


def bundle(repo: Repository, args: list[str]) -> int:
    verb, rest = (args[0], args[1:]) if args else ("", [])
    options, operands = read_options(Options, negate_revisions(rest))
    if verb not in ("create", "verify", "list-heads", "unbundle") or not operands:
        raise GitError("usage: git bundle (create | verify | list-heads | unbundle) <file> [<rev>...]", 129, "")
    if verb == "create":
        return _create(repo, operands[0], operands[1:], options)
    found = read_bundle(repo.process, operands[0])
    if verb == "verify":
        return _verify(repo, operands[0], found, options)
    if verb == "unbundle":
        _check(repo, found)
        repo.store.add_pack(found.pack)
    for ref, sha in found.refs.items():
        if len(operands) == 1 or ref in operands[1:]:
            repo.process.print(f"{sha.decode()} {ref}")
    return 0


def _create(repo: Repository, file: str, revisions: list[str], options: Options) -> int:
    refs: dict[str, bytes] = {}
    excluded: list[bytes] = []
    for revision in revisions:
        left, dots, right = revision.partition("..")
        if revision.startswith("^") or dots:
            excluded.append(find_commit(repo, (left if dots else revision[1:]) or "HEAD"))
        if not revision.startswith("^"):
            name = (right or "HEAD") if dots else revision
            if ref := ("HEAD" if name == "HEAD" else full_name(repo, name)):
                refs[ref] = find_object(repo, name)
    folders = [("refs/", options.all), ("refs/heads/", options.branches), ("refs/tags/", options.tags)]
    for folder, wanted in folders:
        if wanted:
            refs |= repo.refs.under(folder)
    head = repo.head()
    if options.all and head is not None:
        refs["HEAD"] = head
    if not refs:
        raise GitError("Refusing to create empty bundle.")
    hidden = set().union(*(ancestors(repo, sha) for sha in excluded)) if excluded else set()
    edges = _edges(repo, list(refs.values()), excluded, hidden)
    known = set(missing_objects(repo, excluded, set(), None)) if excluded else set()
    names = missing_objects(repo, list(refs.values()), known, None)
    if not names:
        raise GitError("Refusing to create empty bundle.")
    lines = ["# v2 git bundle"]
    lines += [f"-{sha.decode()} {commit_subject(repo, sha)}" for sha in edges]
    lines += [f"{sha.decode()} {ref}" for ref, sha in refs.items()]
    out = BytesIO()
    write_pack_objects(out, [(repo.store.get(sha), None) for sha in names], object_format=DEFAULT_OBJECT_FORMAT)
    data = fsencode("\n".join(lines) + "\n\n") + out.getvalue()
    if file == "-":
        repo.process.stdout.write(data)
    else:
        repo.process.write_file(file, data)
    return 0


def _edges(repo: Repository, tips: list[bytes], excluded: list[bytes], hidden: set[bytes]) -> list[bytes]:
    """The commits that must be there already: parents of what is in the bundle that are not in it."""
    commits = [bytes(repo.store.commit(tip).id) for tip in tips]
    found: dict[bytes, None] = {}
    for sha in walk(repo, commits, excluded):
        for parent in repo.store.commit(sha).parents:
            if bytes(parent) in hidden:
                found[bytes(parent)] = None
    return list(found)


def _check(repo: Repository, found: Bundle) -> None:
    missing = [sha for sha in found.requires if sha not in repo.store]
    if missing:
        listed = "\n".join(f"error: {sha.decode()} " for sha in missing)
        raise GitError(f"Repository lacks these prerequisite commits:\n{listed}", 1, "error: ")


def _verify(repo: Repository, file: str, found: Bundle, options: Options) -> int:
    _check(repo, found)
    say = repo.process.print
    if not options.quiet:
        count = len(found.refs)
        say("The bundle contains this ref:" if count == 1 else f"The bundle contains these {count} refs:")
        for ref, sha in found.refs.items():
            say(f"{sha.decode()} {ref}")
        needed = len(found.requires)
        if needed:
            say("The bundle requires this ref:" if needed == 1 else f"The bundle requires these {needed} refs:")
            for sha in found.requires:
                say(f"{sha.decode()} ")
        else:
            say("The bundle records a complete history.")
        say("The bundle uses this hash algorithm: sha1")
    repo.process.stdout.flush()
    repo.process.error(f"{file} is okay\n")
    return 0
