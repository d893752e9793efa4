"""`git worktree`: several work trees of one repository, each with a HEAD and an index of its own."""

from __future__ import annotations

from contextlib import suppress

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.bin._kit import count, flag, value
from belljar.bin._kit.options import parse, read_options
from belljar.bin.git.branch import create_branch
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.hooks import tell_checkout
from belljar.bin.git.repository.refs import ZERO
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import previous_branch, resolve
from belljar.bin.git.repository.status import compute_status
from belljar.bin.git.repository.switching import guess_remote
from belljar.bin.git.repository.text import commit_subject, text_of
from belljar.bin.git.repository.tracking import configure_upstream
from belljar.bin.git.repository.work import check_out
from belljar.bin.git.repository.worktrees import Worktree, checked_out, list_worktrees

_USAGE = """\
usage: git worktree add [-f] [--detach] [--checkout] [--lock [--reason <string>]]
                        [-b <new-branch>] <path> [<commit-ish>]
   or: git worktree list [-v | --porcelain [-z]]
   or: git worktree lock [--reason <string>] <worktree>
   or: git worktree move <worktree> <new-path>
   or: git worktree prune [-n] [-v] [--expire <expire>]
   or: git worktree remove [-f] <worktree>
   or: git worktree unlock <worktree>
"""


@dataclass(frozen=True, slots=True)
class AddOptions:
    force: int = count("-f", "--force", "a branch may be checked out twice")
    branch: str | None = value("-b", "create a new branch", metavar="BRANCH")
    reset: str | None = value("-B", "create or reset a branch", metavar="BRANCH")
    detach: bool = flag("-d", "--detach", "detach HEAD")
    no_checkout: bool = flag("--no-checkout", "leave the work tree empty")
    checkout: bool = flag("--checkout", "(as by default)")
    lock: bool = flag("--lock", "lock it at once")
    reason: str = value("--reason", "why it is locked", metavar="TEXT", default="added with --lock")
    quiet: bool = flag("-q", "--quiet", "be quiet")
    guess: bool = flag("--guess-remote", "--no-guess-remote", "--track", "--no-track", "(accepted)")


@dataclass(frozen=True, slots=True)
class OtherOptions:
    force: int = count("-f", "--force", "in spite of changes; twice: of a lock")
    porcelain: bool = flag("--porcelain", "for machines")
    null: bool = flag("-z", "terminate lines with NUL")
    verbose: bool = flag("-v", "--verbose", "say more")
    dry_run: bool = flag("-n", "--dry-run", "only say what would be done")
    reason: str = value("--reason", "why it is locked", metavar="TEXT", default="")
    expire: str | None = value("--expire", "(all that can be is pruned)", metavar="TIME")


def worktree(repo: Repository, args: list[str]) -> int:
    verb, rest = (args[0], args[1:]) if args else ("", [])
    if verb == "add":
        return _add(repo, rest)
    action = {
        "list": _list, "lock": _lock, "move": _move, "prune": _prune, "remove": _remove, "unlock": _unlock,
    }.get(verb)  # fmt: skip
    if action is None:
        problem = f"unknown subcommand: `{verb}'" if verb else "need a subcommand"
        raise GitError(f"{problem}\n{_USAGE}", 129, "error: ")
    parsed = parse(OtherOptions, rest)
    return action(repo, OtherOptions(**parsed.values), parsed.operands)


# Adding.


def _add(repo: Repository, args: list[str]) -> int:
    options, words = read_options(AddOptions, args)
    if not 1 <= len(words) <= 2:
        raise GitError(_USAGE, 129, "")
    process = repo.process
    path = process.absolute(words[0])
    sha, branch, upstream = _choose(repo, path, words[1] if len(words) > 1 else None, options)
    if branch is not None and not options.force and (place := _place_of(repo, branch)) is not None:
        raise GitError(f"'{branch}' is already checked out at '{place}'")
    with suppress(SysError):
        if not process.fs.stat(path).is_dir or process.fs.readdir(path):
            raise GitError(f"'{words[0]}' already exists")
    if branch is not None and (options.reset is not None or repo.refs.get(f"refs/heads/{branch}") is None):
        create_branch(repo, branch, sha.decode(), force=options.reset is not None)
        if upstream:
            remote, _, short = upstream.partition("/")
            configure_upstream(repo, branch, remote, short)
    git = _free_name(repo, path.rpartition("/")[2])
    process.fs.makedirs(f"{git}/logs")
    process.fs.makedirs(path)
    for name, text in (
        ("commondir", "../.."), ("gitdir", f"{path}/.git"), ("ORIG_HEAD", sha.decode()),
        ("HEAD", f"ref: refs/heads/{branch}" if branch is not None else sha.decode()),
        *([("locked", options.reason)] if options.lock else []),
    ):  # fmt: skip
        process.write_file(f"{git}/{name}", fsencode(f"{text}\n"))
    process.write_file(f"{path}/.git", fsencode(f"gitdir: {git}\n"))
    made = Repository(process, path, git, repo.settings)
    try:
        made.refs.log("HEAD", ZERO, sha, "", repo.signature())
        if not options.no_checkout:
            made.refs.log("HEAD", sha, sha, "reset: moving to HEAD", repo.signature())
            check_out(made, {}, made.tree_of(sha))
            if not options.quiet:
                process.print(f"HEAD is now at {sha[:7].decode()} {commit_subject(repo, sha)}")
        return tell_checkout(made, ZERO, sha)
    finally:
        made.close()


def _choose(repo: Repository, path: str, start: str | None, options: AddOptions) -> tuple[bytes, str | None, str]:
    """The commit, the branch if it is to be on one, and what that is to follow; said as git says it."""
    name = path.rpartition("/")[2]
    new = options.branch or options.reset
    branch, upstream = new, ""
    if start == "-":
        start = previous_branch(repo) or start
    if new is None and not options.detach:
        if start is None:
            branch = name
        elif repo.refs.get(f"refs/heads/{start}") is not None:
            branch = start
        elif not _is_commit(repo, start) and (guessed := guess_remote(repo, start)):
            branch, upstream, start = start, guessed, guessed
    exists = branch is not None and repo.refs.get(f"refs/heads/{branch}") is not None
    if exists and new is None:
        start = branch
    try:
        sha = bytes(repo.store.commit(resolve(repo, start or "HEAD")).id)
    except KeyError:
        raise GitError(f"invalid reference: {start or 'HEAD'}") from None
    if branch is None:
        what = f"detached HEAD {sha[:7].decode()}"
    elif exists and options.reset is not None:
        was = (repo.refs.get(f"refs/heads/{branch}") or ZERO)[:7].decode()
        what = f"resetting branch '{branch}'; was at {was}"
    else:
        what = f"checking out '{branch}'" if exists and new is None else f"new branch '{branch}'"
    if not options.quiet:
        repo.process.error(f"Preparing worktree ({what})\n")
    if exists and options.branch is not None:
        raise GitError(f"a branch named '{branch}' already exists")
    return sha, branch, upstream


def _is_commit(repo: Repository, name: str) -> bool:
    try:
        repo.store.commit(resolve(repo, name))
    except (KeyError, GitError):
        return False
    return True


def _place_of(repo: Repository, branch: str) -> str | None:
    """The work tree, this one too, that has a branch checked out."""
    ref = f"refs/heads/{branch}"
    return repo.work or repo.git if repo.refs.branch() == ref else checked_out(repo, ref)


def _free_name(repo: Repository, name: str) -> str:
    base = f"{repo.common}/worktrees/{name}"
    taken = {tree.git for tree in list_worktrees(repo)}
    number = 0
    while (git := f"{base}{number or ''}") in taken:
        number += 1
    return git


# The others.


def _find(repo: Repository, name: str) -> Worktree:
    """One by its path, or by the end of it if that is enough."""
    trees = list_worktrees(repo)
    path = repo.process.absolute(name)
    found = [tree for tree in trees if tree.path == path]
    found = found or [tree for tree in trees if tree.path.endswith("/" + name.strip("/"))]
    if len(found) != 1:
        raise GitError(f"'{name}' is not a working tree")
    return found[0]


def _linked(repo: Repository, words: list[str], number: int = 1) -> Worktree:
    if len(words) != number:
        raise GitError(_USAGE, 129, "")
    tree = _find(repo, words[0])
    if not tree.linked:
        raise GitError(f"'{words[0]}' is a main working tree")
    return tree


def _list(repo: Repository, options: OtherOptions, words: list[str]) -> int:
    trees = list_worktrees(repo)
    end = "\0" if options.null else "\n"
    width = max(len(tree.path) for tree in trees)
    for tree in trees:
        bare = not tree.linked and not tree.git.endswith("/.git")
        head = text_of(tree.head or ZERO)
        if options.porcelain:
            rows = [f"worktree {tree.path}"]
            rows += ["bare"] if bare else [f"HEAD {head}", f"branch {tree.branch}" if tree.branch else "detached"]
            rows += [f"locked {tree.locked}".rstrip()] if tree.locked is not None else []
            rows += [f"prunable {tree.lost}"] if tree.lost is not None else []
            repo.process.print("".join(row + end for row in rows) + end, end="")
            continue
        on = f"[{tree.branch.removeprefix('refs/heads/')}]" if tree.branch else "(detached HEAD)"
        note = " locked" if tree.locked is not None else " prunable" if tree.lost is not None else ""
        repo.process.print(f"{tree.path:<{width}} " + (" (bare)" if bare else f" {head[:7]} {on}{note}"))
    return 0


def _lock(repo: Repository, options: OtherOptions, words: list[str]) -> int:
    tree = _linked(repo, words)
    if tree.locked is not None:
        raise GitError(f"'{words[0]}' is already locked" + (f", reason: {tree.locked}" if tree.locked else ""))
    repo.process.write_file(f"{tree.git}/locked", fsencode(f"{options.reason}\n"))
    return 0


def _unlock(repo: Repository, options: OtherOptions, words: list[str]) -> int:
    tree = _linked(repo, words)
    if tree.locked is None:
        raise GitError(f"'{words[0]}' is not locked")
    repo.process.fs.unlink(f"{tree.git}/locked")
    return 0


def _check_unlocked(tree: Worktree, what: str, options: OtherOptions) -> None:
    if tree.locked is not None and options.force < 2:
        reason = f", lock reason: {tree.locked}" if tree.locked else ";"
        raise GitError(f"cannot {what} a locked working tree{reason}\nuse '{what} -f -f' to override or unlock first")


def _move(repo: Repository, options: OtherOptions, words: list[str]) -> int:
    tree = _linked(repo, words, 2)
    _check_unlocked(tree, "move", options)
    path = repo.process.absolute(words[1])
    with suppress(SysError):
        if repo.process.fs.stat(path).is_dir:
            path = f"{path.rstrip('/')}/{tree.path.rpartition('/')[2]}"
            repo.process.fs.stat(path)
        raise GitError(f"target '{words[1]}' already exists")
    repo.process.fs.rename(tree.path, path)
    repo.process.write_file(f"{tree.git}/gitdir", fsencode(f"{path}/.git\n"))
    return 0


def _remove(repo: Repository, options: OtherOptions, words: list[str]) -> int:
    tree = _linked(repo, words)
    _check_unlocked(tree, "remove", options)
    if tree.lost is None:
        inside = Repository(repo.process, tree.path, tree.git, repo.settings)
        try:
            found = compute_status(inside)
        finally:
            inside.close()
        if not options.force and (found.staged or found.changed or found.unmerged or found.untracked):
            raise GitError(f"'{words[0]}' contains modified or untracked files, use --force to delete it")
        repo.process.run(["rm", "-rf", "--", tree.path])
    _forget(repo, tree)
    return 0


def _prune(repo: Repository, options: OtherOptions, words: list[str]) -> int:
    for tree in list_worktrees(repo):
        if tree.lost is None or not tree.linked:
            continue
        if options.verbose or options.dry_run:
            repo.process.error(f"Removing worktrees/{tree.git.rpartition('/')[2]}: {tree.lost}\n")
        if not options.dry_run:
            _forget(repo, tree)
    return 0


def _forget(repo: Repository, tree: Worktree) -> None:
    repo.process.run(["rm", "-rf", "--", tree.git])
    with suppress(SysError):
        repo.process.fs.rmdir(f"{repo.common}/worktrees")
