"""`git switch`: another branch or commit in the work tree."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import flag, value
from belljar.bin._kit.options import parse
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.hooks import tell_checkout
from belljar.bin.git.repository.refs import ZERO, check_name
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_commit, previous_branch, resolve
from belljar.bin.git.repository.text import commit_subject
from belljar.bin.git.repository.tracking import configure_upstream, tracking_text
from belljar.bin.git.repository.work import changed_files, check_out
from belljar.bin.git.repository.worktrees import checked_out


@dataclass(frozen=True, slots=True)
class SwitchOptions:
    create: str | None = value("-c", "--create", "create and switch to a new branch", metavar="BRANCH")
    reset: str | None = value("-C", "--force-create", "create or reset and switch to a branch", metavar="BRANCH")
    orphan: str | None = value("--orphan", "new unparented branch", metavar="BRANCH")
    force: bool = flag("-f", "--force", "--discard-changes", "throw away local modifications")
    quiet: bool = flag("-q", "--quiet", "be quiet")
    detach: bool = flag("-d", "--detach", "detach HEAD")
    track: str | None = value("-t", "--track", "set upstream", metavar="MODE", bare="direct")


def switch(repo: Repository, args: list[str]) -> int:
    parsed = parse(SwitchOptions, args)
    options, operands = SwitchOptions(**parsed.values), parsed.operands
    new = options.create or options.reset
    if new is not None:
        start = operands[0] if operands else "HEAD"
        return switch_new(repo, new, start, reset=options.reset is not None, force=options.force, quiet=options.quiet)
    if options.orphan is not None:
        return start_orphan(repo, options.orphan, quiet=options.quiet)
    if not operands:
        raise GitError("missing branch or commit argument")
    name = operands[0]
    if name == "-":
        name = previous_branch(repo) or name
    if repo.refs.get(f"refs/heads/{name}") is None and not options.detach:
        guessed = guess_remote(repo, name)
        if guessed:
            return switch_new(repo, name, guessed, force=options.force, quiet=options.quiet)
        if is_commit(repo, name):
            raise GitError(
                f"a branch is expected, got commit '{name}'\n"
                "hint: If you want to detach HEAD at the commit, try again with the --detach option."
            )
        raise GitError(f"invalid reference: {name}")
    return switch_to(repo, name, detach=options.detach, force=options.force, quiet=options.quiet, advise=False)


def is_commit(repo: Repository, name: str) -> bool:
    if name == "-":
        return previous_branch(repo) is not None
    try:
        repo.store.commit(resolve(repo, name))
    except (KeyError, GitError):
        return False
    return True


def guess_remote(repo: Repository, name: str) -> str | None:
    """A remote-tracking branch of that name, if just one remote has it."""
    found = [ref for ref in repo.refs.under("refs/remotes/") if ref.split("/", 3)[-1] == name]
    return found[0].removeprefix("refs/remotes/") if len(found) == 1 else None


def switch_new(
    repo: Repository, name: str, start: str, *, reset: bool = False, force: bool = False, quiet: bool = False
) -> int:
    """A new branch, or one that is `reset`, from a start; then to it."""
    if not check_name(name):
        raise GitError(f"'{name}' is not a valid branch name")
    if repo.head() is None and start == "HEAD":
        repo.refs.write("HEAD", f"ref: refs/heads/{name}")
        if not quiet:
            repo.process.error(f"Switched to a new branch '{name}'\n")
        return 0
    existed = repo.refs.get(f"refs/heads/{name}") is not None
    if existed and not reset:
        raise GitError(f"a branch named '{name}' already exists")
    try:
        sha = bytes(repo.store.commit(resolve(repo, start)).id)
    except KeyError:
        raise GitError(f"'{start}' is not a commit and a branch '{name}' cannot be created from it") from None
    _move(repo, sha, force=force)
    old = _here(repo)
    repo.refs.set(f"refs/heads/{name}", sha, f"branch: Created from {start}", repo.signature())
    head = repo.head() or sha
    repo.refs.write("HEAD", f"ref: refs/heads/{name}")
    repo.refs.log("HEAD", head, sha, f"checkout: moving from {old} to {name}", repo.signature())
    if not quiet:
        repo.process.error(
            f"Switched to and reset branch '{name}'\n" if existed else f"Switched to a new branch '{name}'\n"
        )
    if repo.refs.get(f"refs/remotes/{start}") is not None:
        remote, _, short = start.partition("/")
        configure_upstream(repo, name, remote, short)
        if not quiet:
            repo.process.print(f"branch '{name}' set up to track '{start}'.")
    return tell_checkout(repo, head, sha)


def start_orphan(repo: Repository, name: str, *, quiet: bool) -> int:
    repo.refs.write("HEAD", f"ref: refs/heads/{name}")
    if not quiet:
        repo.process.error(f"Switched to a new branch '{name}'\n")
    return 0


def _here(repo: Repository) -> str:
    current = repo.refs.branch()
    return current.removeprefix("refs/heads/") if current else (repo.head() or b"").decode()


def _move(repo: Repository, sha: bytes, *, force: bool) -> None:
    check_out(repo, repo.head_tree(), repo.tree_of(sha), force=force)


def switch_to(repo: Repository, name: str, *, detach: bool, force: bool, quiet: bool, advise: bool) -> int:
    """To a branch or commit. `advise`: say what it means to be on no branch."""
    process = repo.process
    if name == "-":
        name = previous_branch(repo) or name
    if repo.conflicts() and not force:
        listed = "".join(f"{path}: needs merge\n" for path in repo.conflicts())
        raise GitError(f"{listed}error: you need to resolve your current index first", 1, "")
    sha = find_commit(repo, name)
    ref = f"refs/heads/{name}"
    on_branch = repo.refs.get(ref) is not None and not detach
    if on_branch and (elsewhere := checked_out(repo, ref)) is not None:
        raise GitError(f"'{name}' is already checked out at '{elsewhere}'")
    old, head = _here(repo), repo.head()
    detached = repo.refs.branch() is None
    _move(repo, sha, force=force)
    kept = changed_files(repo)
    staged, tree = repo.staged(), repo.tree_of(sha)
    for path in staged.keys() | tree.keys():
        if staged.get(path) != tree.get(path):
            kept[path] = "A" if path not in tree else "D" if path not in staged else "M"
    for path, letter in sorted(kept.items()):
        if not quiet:
            process.print(f"{letter}\t{path}")
    if on_branch and repo.refs.branch() == ref:
        if not quiet:
            process.error(f"Already on '{name}'\n")
        _print_tracking(repo, name)
        return tell_checkout(repo, sha, sha)
    repo.refs.write("HEAD", f"ref: {ref}" if on_branch else sha.decode())
    repo.refs.log("HEAD", head or sha, sha, f"checkout: moving from {old} to {name}", repo.signature())
    if not quiet:
        _report(
            repo,
            name,
            head if detached else None,
            sha,
            on_branch=on_branch,
            advise=advise and not detached and not detach,
        )
    return tell_checkout(repo, head or ZERO, sha)


def _report(repo: Repository, name: str, left: bytes | None, sha: bytes, *, on_branch: bool, advise: bool) -> None:
    """Where HEAD is now; `left` is the commit that it was on without a branch."""
    process = repo.process
    if left is not None and left != sha:
        process.error(f"Previous HEAD position was {left[:7].decode()} {commit_subject(repo, left)}\n")
    if on_branch:
        process.error(f"Switched to branch '{name}'\n")
        _print_tracking(repo, name)
        return
    if advise:
        process.error(_DETACHED.format(name=name))
    process.error(f"HEAD is now at {sha[:7].decode()} {commit_subject(repo, sha)}\n")


def _print_tracking(repo: Repository, name: str) -> None:
    text = tracking_text(repo, name)
    repo.process.print(text.rstrip("\n"), end="\n" if text else "")


_DETACHED = """Note: switching to '{name}'.

You are in 'detached HEAD' state. You can look around, make experimental
changes and commit them, and you can discard any commits you make in this
state without impacting any branches by switching back to a branch.

If you want to create a new branch to retain commits you create, you may
do so (now or later) by using -c with the switch command. Example:

  git switch -c <new-branch-name>

Or undo this operation with:

  git switch -

Turn off this advice by setting config variable advice.detachedHead to false

"""
