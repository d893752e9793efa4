"""`git cherry-pick`: what other commits changed, on top of HEAD."""

from __future__ import annotations

from dulwich.objects import Commit

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.bin._kit import choice, flag, value
from belljar.bin._kit.options import parse
from belljar.bin.git.commit import show_summary
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.history import walk
from belljar.bin.git.repository.hooks import edit_by_hook, run_hook
from belljar.bin.git.repository.merge_state import check_clean, check_merged, forget_merge
from belljar.bin.git.repository.merging import apply_merge, merge_trees
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_commit, resolve
from belljar.bin.git.repository.text import subject_of, text_of
from belljar.bin.git.repository.work import check_out


def apply_commit(
    repo: Repository,
    sha: bytes,
    *,
    reverse: bool = False,
    mainline: str | None = None,
    quiet: bool = False,
    what: str = "cherry-pick",
) -> list[str]:
    """Put one commit's change on top of HEAD, in the index and the work tree; the paths in conflict."""
    commit = repo.store.commit(sha)
    against = 0
    if mainline is not None:
        if not mainline.isdecimal() or int(mainline[:4]) < 1:
            raise GitError("-m option expects a number greater than zero", 129, "error: ")
        against = int(mainline[:4]) - 1
        if len(commit.parents) < 2:
            reason = f"mainline was specified but commit {sha.decode()} is not a merge."
            raise GitError(f"{reason}\nfatal: {what} failed", 128, "error: ")
        if against >= len(commit.parents):
            reason = f"commit {sha.decode()} does not have parent {against + 1}"
            raise GitError(f"{reason}\nfatal: {what} failed", 128, "error: ")
    elif len(commit.parents) > 1:
        reason = f"commit {sha.decode()} is a merge but no -m option was given."
        raise GitError(f"{reason}\nfatal: {what} failed", 128, "error: ")
    parent = repo.tree_of(bytes(commit.parents[against])) if commit.parents else {}
    mine = repo.tree_of(sha)
    base, theirs = (mine, parent) if reverse else (parent, mine)
    subject = subject_of(text_of(commit.message))
    label = f"{sha[:7].decode()} ({subject})"
    before = f"parent of {label}" if commit.parents else "(empty tree)"
    label, other = (before, label) if reverse else (label, before)
    ours = repo.head_tree()
    merged = merge_trees(repo, base, ours, theirs, "HEAD", label, base_name=other)
    check_clean(repo, ours, merged.files, set(merged.conflicts))
    apply_merge(repo, ours, merged)
    for line in merged.messages:
        if not quiet or merged.conflicts:
            repo.process.print(line)
    return list(merged.conflicts)


@dataclass(frozen=True, slots=True)
class PickOptions:
    action: str | None = choice(
        {"--abort": "abort", "--continue": "continue", "--skip": "skip", "--quit": "quit"}, "go on"
    )
    no_commit: bool = flag("-n", "--no-commit", "don't commit")
    record: bool = flag("-x", "append the name of the commit")
    no_edit: bool = flag("--no-edit", "accept the message")
    edit: bool = flag("-e", "--edit", "(accepted)")
    mainline: str | None = value("-m", "--mainline", "parent number of a merge", metavar="N")


def cherry_pick(repo: Repository, args: list[str]) -> int:
    parsed = parse(PickOptions, args)
    options = PickOptions(**parsed.values)
    if options.action is not None:
        return resume(repo, options.action, "CHERRY_PICK_HEAD", "cherry-pick")
    for sha in picks(repo, parsed.operands):
        commit = repo.store.commit(sha)
        conflicts = apply_commit(repo, sha, mainline=options.mainline)
        message = text_of(commit.message)
        if options.record:
            message = message.rstrip("\n") + f"\n\n(cherry picked from commit {sha.decode()})\n"
        if conflicts:
            repo.process.write_file(f"{repo.git}/CHERRY_PICK_HEAD", sha + b"\n")
            repo.process.write_file(f"{repo.git}/MERGE_MSG", fsencode(message))
            subject = subject_of(message)
            raise GitError(
                f"error: could not apply {sha[:7].decode()}... {subject}\n"
                "hint: After resolving the conflicts, mark them with\n"
                'hint: "git add/rm <pathspec>", then run\n'
                'hint: "git cherry-pick --continue".\n'
                'hint: You can instead skip this commit with "git cherry-pick --skip".\n'
                'hint: To abort and get back to the state before "git cherry-pick",\n'
                'hint: run "git cherry-pick --abort".',
                1,
                "",
            )
        if options.no_commit:
            continue
        if repo.staged() == repo.head_tree():
            raise GitError(
                "The previous cherry-pick is now empty, possibly due to conflict resolution.\n"
                "If you wish to commit it anyway, use:\n\n    git commit --allow-empty\n\n"
                "Otherwise, please use 'git cherry-pick --skip'",
                1,
                "",
            )
        prepared = edit_by_hook(repo, "prepare-commit-msg", "COMMIT_EDITMSG", message, "message")
        if prepared is None:
            return 1
        commit_again(repo, commit, prepared, "cherry-pick")
        run_hook(repo, "post-commit", committing=True)
        show_summary(repo, repo.head() or b"", dated=True)
    return 0


def picks(repo: Repository, names: list[str], *, newest_first: bool = False) -> list[bytes]:
    """Commits by name or range, in the order in which they are taken."""
    picks: list[bytes] = []
    for name in names:
        if ".." in name:
            left, _, right = name.partition("..")
            found = list(walk(repo, [find_commit(repo, right or "HEAD")], [find_commit(repo, left)]))
            picks += found if newest_first else reversed(found)
            continue
        try:
            picks.append(bytes(repo.store.commit(resolve(repo, name)).id))
        except KeyError:
            raise GitError(f"bad revision '{name}'") from None
    return picks


def commit_again(repo: Repository, commit: Commit, message: str, what: str) -> bytes:
    head = repo.head()
    sha = repo.make_commit(
        repo.store.unflatten(repo.staged()),
        [head] if head is not None else [],
        message,
        commit.author,
        (commit.author_time, commit.author_timezone),
    )
    repo.refs.set("HEAD", sha, f"{what}: {subject_of(message)}", repo.signature())
    return sha


def resume(repo: Repository, action: str, marker: str, what: str) -> int:
    try:
        sha = repo.process.read_file(f"{repo.git}/{marker}").strip()
    except SysError:
        raise GitError(f"no cherry-pick or revert in progress\nfatal: {what} failed", 128, "error: ") from None
    if action in ("abort", "skip"):
        check_out(repo, repo.head_tree(), repo.head_tree(), force=True)
        forget_merge(repo)
        return 0
    check_merged(repo, "Committing")
    message = text_of(repo.process.read_file(f"{repo.git}/MERGE_MSG"))
    commit_again(repo, repo.store.commit(sha), message, what)
    forget_merge(repo)
    show_summary(repo, repo.head() or b"", dated=True)
    return 0
