"""HEAD, the index and the work tree moved to another branch or commit, as `checkout` and `switch` do."""

from __future__ import annotations

import re

from dulwich.objects import Blob

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import choice, flag, value
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.history import walk
from belljar.bin.git.repository.hooks import tell_checkout
from belljar.bin.git.repository.merging import apply_merge, merge_trees
from belljar.bin.git.repository.refs import ZERO, check_name
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_commit, previous_branch, resolve
from belljar.bin.git.repository.text import commit_subject
from belljar.bin.git.repository.tracking import configure_upstream, tracking_text
from belljar.bin.git.repository.work import changed_files, check_out, work_files
from belljar.bin.git.repository.worktrees import checked_out


@dataclass(frozen=True, slots=True)
class SwitchOptions:
    """The options of `git switch`; those of `git checkout` have other names for some, and a few more."""

    create: str | None = value("-c", "--create", "create and switch to a new branch", metavar="BRANCH")
    reset: str | None = value("-C", "--force-create", "create or reset and switch to a branch", metavar="BRANCH")
    orphan: str | None = value("--orphan", "new unparented branch", metavar="BRANCH")
    force: bool = flag("-f", "--force", "--discard-changes", "throw away local modifications")
    quiet: bool = flag("-q", "--quiet", "be quiet")
    detach: bool = flag("-d", "--detach", "detach HEAD")
    track: str | None = value("-t", "--track", "set upstream", metavar="MODE", bare="direct")
    no_track: bool = flag("--no-track", "don't set upstream")
    guess: bool = choice({"--guess": True, "--no-guess": False}, "a remote's branch of that name will do", default=True)
    merge: bool = flag("-m", "--merge", "merge local modifications with the new branch")
    shared: bool = flag("--ignore-other-worktrees", "the branch may be checked out elsewhere")
    accepted: bool = flag(
        "--progress", "--no-progress", "--recurse-submodules", "--no-recurse-submodules", "--overwrite-ignore",
        "--no-overwrite-ignore", "-l", "(accepted)",
    )  # fmt: skip


def start_branch(repo: Repository, options: SwitchOptions, operands: list[str]) -> int | None:
    """Do what options that make a branch ask for; None if there is none of them."""
    name = options.create if options.create is not None else options.reset
    if name is None and options.orphan is not None:
        return _start_orphan(repo, options.orphan, quiet=options.quiet)
    if name is None and options.track is not None and not options.detach:
        if not operands:
            raise GitError("--track needs a branch name")
        name = re.sub(r"^(?:refs/)?(?:remotes/)?", "", operands[0]).partition("/")[2]
        if not name:
            raise GitError("missing branch name; try -b")
    if name is None:
        return None
    return switch_new(repo, name, operands[0] if operands else "HEAD", options, reset=options.reset is not None)


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


def switch_new(repo: Repository, name: str, start: str, options: SwitchOptions, *, reset: bool = False) -> int:
    """Make a branch, or reset one, from a start; then switch to it."""
    quiet = options.quiet
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
    if start == "-":
        start = previous_branch(repo) or start
    try:
        sha = bytes(repo.store.commit(resolve(repo, start)).id)
    except KeyError:
        raise GitError(f"'{start}' is not a commit and a branch '{name}' cannot be created from it") from None
    _move(repo, sha, options, name)
    old, head = _here(repo), repo.head() or sha
    detached = repo.refs.branch() is None
    repo.refs.set(f"refs/heads/{name}", sha, f"branch: Created from {start}", repo.signature())
    repo.refs.write("HEAD", f"ref: refs/heads/{name}")
    repo.refs.log("HEAD", head, sha, f"checkout: moving from {old} to {name}", repo.signature())
    if not quiet:
        if detached:
            _tell_left(repo, head, sha)
        words = "Switched to and reset branch" if existed else "Switched to a new branch"
        repo.process.error(f"{words} '{name}'\n")
    if repo.refs.get(f"refs/remotes/{start}") is not None and not options.no_track:
        remote, _, short = start.partition("/")
        configure_upstream(repo, name, remote, short)
        if not quiet:
            repo.process.print(f"branch '{name}' set up to track '{start}'.")
    elif options.track is not None and repo.refs.get(f"refs/heads/{start}") is not None:
        configure_upstream(repo, name, ".", start)
        if not quiet:
            repo.process.print(f"branch '{name}' set up to track '{start}'.")
    return tell_checkout(repo, head, sha)


def _start_orphan(repo: Repository, name: str, *, quiet: bool) -> int:
    if not check_name(name):
        raise GitError(f"'{name}' is not a valid branch name")
    if repo.refs.get(f"refs/heads/{name}") is not None:
        raise GitError(f"a branch named '{name}' already exists")
    repo.refs.write("HEAD", f"ref: refs/heads/{name}")
    if not quiet:
        repo.process.error(f"Switched to a new branch '{name}'\n")
    return 0


def _here(repo: Repository) -> str:
    current = repo.refs.branch()
    return current.removeprefix("refs/heads/") if current else (repo.head() or b"").decode()


def _move(repo: Repository, sha: bytes, options: SwitchOptions, name: str) -> None:
    """Check a commit out over what HEAD has."""
    head = repo.head_tree()
    try:
        check_out(repo, head, repo.tree_of(sha), force=options.force)
    except GitError:
        if not options.merge:
            raise
        files, contents = work_files(repo)
        for data in contents.values():
            repo.store.add(Blob.from_string(data))
        ours = repo.tree_of(sha)
        merged = merge_trees(repo, head, ours, files, name, "local")
        check_out(repo, head, ours, force=True)
        before = dict(repo.index)
        apply_merge(repo, ours, merged)
        for path, entry in before.items():
            if path not in merged.conflicts:
                repo.index[path] = entry  # what differs stays unstaged
        repo.write_index()


def switch_to(repo: Repository, name: str, options: SwitchOptions, *, advise: bool) -> int:
    """Switch to a branch or commit. `advise`: say what it means to be on no branch."""
    process, quiet = repo.process, options.quiet
    if name == "-":
        name = previous_branch(repo) or name
    if repo.conflicts() and not options.force:
        listed = "".join(f"{path}: needs merge\n" for path in repo.conflicts())
        raise GitError(f"{listed}error: you need to resolve your current index first", 1, "")
    sha = find_commit(repo, name)
    ref = f"refs/heads/{name}"
    on_branch = repo.refs.get(ref) is not None and not options.detach
    if on_branch and not options.shared and (elsewhere := checked_out(repo, ref)) is not None:
        raise GitError(f"'{name}' is already checked out at '{elsewhere}'")
    old, head = _here(repo), repo.head()
    detached = repo.refs.branch() is None
    _move(repo, sha, options, name)
    if not quiet:
        for path, letter in sorted(_local_changes(repo, sha).items()):
            process.print(f"{letter}\t{path}")
    if name == "HEAD" and not options.detach:
        if not quiet and not detached:
            _print_tracking(repo, old)
        return tell_checkout(repo, sha, sha)
    if on_branch and repo.refs.branch() == ref:
        if not quiet:
            process.error(f"Already on '{name}'\n")
            _print_tracking(repo, name)
        return tell_checkout(repo, sha, sha)
    repo.refs.write("HEAD", f"ref: {ref}" if on_branch else sha.decode())
    repo.refs.log("HEAD", head or sha, sha, f"checkout: moving from {old} to {name}", repo.signature())
    if not quiet:
        if detached and head is not None:
            _tell_left(repo, head, sha)
        advise = advise and not detached and not options.detach and repo.config_bool("advice.detachedHead", True)
        _report(repo, name, sha, on_branch=on_branch, advise=advise)
    return tell_checkout(repo, head or ZERO, sha)


def _local_changes(repo: Repository, sha: bytes) -> dict[str, str]:
    """Letters for what was changed and is kept."""
    kept = changed_files(repo)
    staged, tree = repo.staged(), repo.tree_of(sha)
    for path in staged.keys() | tree.keys():
        if staged.get(path) != tree.get(path):
            kept[path] = "A" if path not in tree else "D" if path not in staged else "M"
    return kept


def _tell_left(repo: Repository, left: bytes, sha: bytes) -> None:
    """Say where HEAD was without a branch, and which commits no branch has."""
    if left == sha:
        return
    tips = [tip for tip in repo.refs.under("refs/").values() if is_commit(repo, tip.decode())]
    lost = list(walk(repo, [left], [sha, *(bytes(repo.store.commit(tip).id) for tip in tips)]))
    if not lost:
        repo.process.error(f"Previous HEAD position was {left[:7].decode()} {commit_subject(repo, left)}\n")
        return
    rows = "".join(f"  {each[:7].decode()} {commit_subject(repo, each)}\n" for each in lost[:4])
    if len(lost) > 4:
        rows += f" ... and {len(lost) - 4} more.\n"
    many = len(lost) > 1
    repo.process.error(
        f"Warning: you are leaving {len(lost)} commit{'s' if many else ''} behind, not connected to\n"
        f"any of your branches:\n\n{rows}\n"
        f"If you want to keep {'them' if many else 'it'} by creating a new branch, this may be a good time\n"
        f"to do so with:\n\n git branch <new-branch-name> {left[:7].decode()}\n\n"
    )


def _report(repo: Repository, name: str, sha: bytes, *, on_branch: bool, advise: bool) -> None:
    """Say where HEAD is now."""
    process = repo.process
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
