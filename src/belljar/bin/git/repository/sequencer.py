"""Commits put on top of HEAD one after the other, as `cherry-pick` and `revert` do, and how such a row goes on."""

from __future__ import annotations

import re
from contextlib import suppress

from dulwich.objects import Commit

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.bin._kit import choice, flag, many, value
from belljar.bin.git.repository.editor import REMARKS, edit_message
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.history import walk
from belljar.bin.git.repository.hooks import edit_by_hook, run_hook
from belljar.bin.git.repository.merge_state import (
    check_clean,
    check_merged,
    forget_merge,
    read_state,
    remove_state,
    reset_merge,
)
from belljar.bin.git.repository.merging import apply_merge, chosen_side, merge_trees
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_commit, resolve
from belljar.bin.git.repository.status import compute_status
from belljar.bin.git.repository.status_text import long_status
from belljar.bin.git.repository.summary import show_summary
from belljar.bin.git.repository.text import add_trailer, commit_subject, subject_of, text_of
from belljar.bin.git.repository.work import check_out


@dataclass(frozen=True, slots=True)
class PickOptions:
    action: str | None = choice(
        {"--abort": "abort", "--continue": "continue", "--skip": "skip", "--quit": "quit"}, "go on"
    )
    no_commit: bool = flag("-n", "--no-commit", "don't commit")
    record: bool = flag("-x", "append the name of the commit")
    edit: bool = choice({"-e": True, "--edit": True, "--no-edit": False}, "edit the message", default=False)
    mainline: str | None = value("-m", "--mainline", "parent number of a merge", metavar="N")
    signoff: bool = flag("-s", "--signoff", "add a Signed-off-by trailer")
    ff: bool = flag("--ff", "allow fast-forward")
    allow_empty: bool = flag("--allow-empty", "keep commits that are empty to begin with")
    keep_redundant: bool = flag("--keep-redundant-commits", "keep commits that become empty")
    favour: tuple[str, ...] = many("-X", "--strategy-option", "ours, theirs", metavar="OPTION")
    strategy: str | None = value("--strategy", "ort, recursive or resolve", metavar="STRATEGY")
    cleanup: str | None = value("--cleanup", "(accepted)", metavar="MODE")
    accepted: bool = flag("--allow-empty-message", "--rerere-autoupdate", "--no-gpg-sign", "(accepted)")


@dataclass(frozen=True, slots=True)
class Kind:
    """A sequencer command: pick or revert."""

    name: str
    verb: str
    """In messages: could not ... a commit."""
    marker: str
    """The file that names the commit under way."""


PICK = Kind("cherry-pick", "apply", "CHERRY_PICK_HEAD")
REVERT = Kind("revert", "revert", "REVERT_HEAD")
_STUCK = """\
error: could not {verb} {name}... {subject}
hint: After resolving the conflicts, mark them with
hint: "git add/rm <pathspec>", then run
hint: "git {command} --continue".
hint: You can instead skip this commit with "git {command} --skip".
hint: To abort and get back to the state before "git {command}",
hint: run "git {command} --abort"."""
_STUCK_UNCOMMITTED = """\
error: could not {verb} {name}... {subject}
hint: after resolving the conflicts, mark the corrected paths
hint: with 'git add <paths>' or 'git rm <paths>'"""
_EMPTY = """\
The previous cherry-pick is now empty, possibly due to conflict resolution.
If you wish to commit it anyway, use:

    git commit --allow-empty

Otherwise, please use 'git cherry-pick --skip'"""


def named_commits(repo: Repository, names: list[str], *, newest_first: bool = False) -> list[bytes]:
    """Commits by name or range, in the order in which they are taken."""
    found: list[bytes] = []
    for name in names:
        left, dots, right = name.partition("..")
        try:
            if dots:
                row = list(walk(repo, [find_commit(repo, right or "HEAD")], [find_commit(repo, left or "HEAD")]))
                found += row if newest_first else reversed(row)
            else:
                found.append(bytes(repo.store.commit(resolve(repo, name)).id))
        except (KeyError, GitError):
            raise GitError(f"bad revision '{name}'") from None
    return found


def start(repo: Repository, kind: Kind, commits: list[bytes], options: PickOptions) -> int:
    """Take commits; a row of more than one is written down, so that it can go on after a conflict."""
    if len(commits) > 1:
        if read_state(repo, "sequencer/todo") is not None:
            raise GitError(
                f"a cherry-pick or revert is already in progress\n"
                f'hint: try "git {kind.name} (--continue | --skip | --abort | --quit)"\nfatal: {kind.name} failed',
                128,
                "error: ",
            )
        with suppress(SysError):
            repo.process.fs.mkdir(f"{repo.git}/sequencer")
        repo.process.write_file(f"{repo.git}/sequencer/head", (repo.head() or b"") + b"\n")
        repo.process.write_file(f"{repo.git}/sequencer/opts", _options_text(options))
    return _go_on(repo, kind, commits, options)


def _go_on(repo: Repository, kind: Kind, commits: list[bytes], options: PickOptions) -> int:
    kept = read_state(repo, "sequencer/head") is not None
    for number, sha in enumerate(commits):
        if kept:
            word = "revert" if kind is REVERT else "pick"
            rows = (f"{word} {each[:7].decode()} {commit_subject(repo, each)}\n" for each in commits[number:])
            repo.process.write_file(f"{repo.git}/sequencer/todo", fsencode("".join(rows)))
        try:
            status = _take(repo, kind, sha, options)
        except GitError:
            if kept and number == 0 and read_state(repo, kind.marker) is None:
                remove_state(repo, f"{repo.git}/sequencer")  # refused before anything was done
            raise
        if status:
            return status
    remove_state(repo, f"{repo.git}/sequencer")
    return 0


def _take(repo: Repository, kind: Kind, sha: bytes, options: PickOptions) -> int:
    commit = repo.store.commit(sha)
    subject = subject_of(text_of(commit.message))
    if repo.conflicts():
        check_merged(repo, "Cherry-picking" if kind is PICK else "Reverting", f"{kind.name} failed")
    if not options.no_commit and repo.staged() != repo.head_tree():
        raise GitError(
            f"your local changes would be overwritten by {kind.name}.\n"
            f"hint: commit your changes or stash them to proceed.\nfatal: {kind.name} failed",
            128,
            "error: ",
        )
    if options.ff and kind is PICK and [bytes(parent) for parent in commit.parents] == [repo.head()]:
        check_out(repo, repo.head_tree(), repo.tree_of(sha), what="cherry-pick")
        repo.refs.set("HEAD", sha, "cherry-pick: fast-forward", repo.signature())
        return 0
    conflicts = apply_commit(
        repo,
        sha,
        reverse=kind is REVERT,
        mainline=options.mainline,
        what=kind.name,
        favour=chosen_side(options.favour),
        staged=options.no_commit,
    )
    message = _message(repo, kind, sha, options)
    if conflicts:
        if not options.no_commit:
            repo.process.write_file(f"{repo.git}/{kind.marker}", sha + b"\n")
        listed = "".join(f"#\t{path}\n" for path in conflicts)
        repo.process.write_file(f"{repo.git}/MERGE_MSG", fsencode(f"{message}\n# Conflicts:\n{listed}"))
        text = _STUCK_UNCOMMITTED if options.no_commit else _STUCK
        raise GitError(text.format(verb=kind.verb, name=sha[:7].decode(), subject=subject, command=kind.name), 1, "")
    if options.no_commit:
        if kind is REVERT:
            repo.process.write_file(f"{repo.git}/{kind.marker}", sha + b"\n")
        repo.process.write_file(f"{repo.git}/MERGE_MSG", fsencode(message))
        return 0
    if repo.staged() == repo.head_tree() and not _may_be_empty(repo, commit, options):
        if kind is PICK:
            repo.process.write_file(f"{repo.git}/{kind.marker}", sha + b"\n")
            repo.process.write_file(f"{repo.git}/MERGE_MSG", fsencode(message))
        repo.process.print(long_status(repo, compute_status(repo)), end="")
        if kind is PICK:
            raise GitError(_EMPTY, 1, "")
        return 1
    return _commit(repo, kind, commit, message, options)


def _may_be_empty(repo: Repository, commit: Commit, options: PickOptions) -> bool:
    if options.keep_redundant:
        return True
    parent = repo.tree_of(bytes(commit.parents[0])) if commit.parents else {}
    return options.allow_empty and parent == repo.tree_of(bytes(commit.id))


def _message(repo: Repository, kind: Kind, sha: bytes, options: PickOptions) -> str:
    commit = repo.store.commit(sha)
    message = text_of(commit.message)
    if kind is REVERT:
        message = f'Revert "{subject_of(message)}"\n\nThis reverts commit {sha.decode()}.\n'
        if options.mainline is not None:
            kept = commit.parents[int(options.mainline[:4]) - 1].decode()
            message = message.removesuffix(".\n") + f", reversing\nchanges made to {kept}.\n"
    elif options.record:
        message = add_trailer(message, f"(cherry picked from commit {sha.decode()})")
    if options.signoff:
        message = add_trailer(message, f"Signed-off-by: {text_of(repo.identity('COMMITTER'))}")
    return message


def _commit(
    repo: Repository, kind: Kind, commit: Commit, message: str, options: PickOptions, *, resumed: bool = False
) -> int:
    prepared = edit_by_hook(repo, "prepare-commit-msg", "COMMIT_EDITMSG", message, "message")
    if prepared is None:
        return 1
    if options.edit:
        prepared = edit_message(repo, prepared + REMARKS).strip("\n") + "\n"
    made = commit_again(repo, commit if kind is PICK else None, prepared, kind.name)
    forget_merge(repo)
    run_hook(repo, "post-commit", committing=True)
    show_summary(repo, made, dated=kind is PICK or not resumed)
    return 0


def commit_again(repo: Repository, commit: Commit | None, message: str, what: str) -> bytes:
    """Commit the index on HEAD, with the author of `commit` if there is one."""
    head = repo.head()
    sha = repo.make_commit(
        repo.store.unflatten(repo.staged()),
        [head] if head is not None else [],
        message,
        commit.author if commit is not None else None,
        (commit.author_time, commit.author_timezone) if commit is not None else None,
    )
    repo.refs.set("HEAD", sha, f"{what}: {subject_of(message)}", repo.signature())
    return sha


def apply_commit(
    repo: Repository,
    sha: bytes,
    *,
    reverse: bool = False,
    mainline: str | None = None,
    quiet: bool = False,
    what: str = "cherry-pick",
    favour: str = "",
    staged: bool = False,
) -> list[str]:
    """Put one commit's change on top of HEAD, in the index and the work tree; the paths in conflict.

    `staged`: on top of the index as it is, instead.
    """
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
    ours = repo.staged() if staged else repo.head_tree()
    merged = merge_trees(repo, base, ours, theirs, "HEAD", label, base_name=other, favour=favour)
    try:
        check_clean(repo, ours, merged.files, set(merged.conflicts))
    except GitError as error:
        raise GitError(f"{error.message}\nfatal: {what} failed", 128, error.prefix) from None
    apply_merge(repo, ours, merged)
    for line in merged.messages:
        if not quiet or merged.conflicts:
            repo.process.print(line)
    return list(merged.conflicts)


def resume(repo: Repository, kind: Kind, options: PickOptions) -> int:
    """Go on with a row, or end it."""
    action = options.action
    if action == "quit":
        _forget(repo)
        return 0
    marked, todo = read_state(repo, kind.marker), read_state(repo, "sequencer/todo")
    if marked is None and todo is None:
        what = kind.name if action == "skip" else "cherry-pick or revert"
        raise GitError(f"no {what} in progress\nfatal: {kind.name} failed", 128, "error: ")
    rest = [bytes(repo.store.commit(resolve(repo, line.split()[1])).id) for line in (todo or "").split("\n")[1:]]
    kept = _options_from(read_state(repo, "sequencer/opts") or "", options)
    if action == "abort":
        head = repo.head()
        before = (read_state(repo, "sequencer/head") or "").encode() or head
        reset_merge(repo, repo.tree_of(before))
        if before is not None and before != head:
            repo.refs.set("HEAD", before, f"reset: moving to {before.decode()}", repo.signature())
        _forget(repo)
        return 0
    if action == "skip":
        reset_merge(repo, repo.head_tree())
        forget_merge(repo)
        return _go_on(repo, kind, rest, kept)
    check_merged(repo, "Committing")
    if marked is not None:
        if repo.staged() == repo.head_tree() and kind is PICK:
            repo.process.print(long_status(repo, compute_status(repo)), end="")
            raise GitError(_EMPTY, 1, "")
        lines = (read_state(repo, "MERGE_MSG") or "").split("\n")
        message = "\n".join(line for line in lines if not line.startswith("#")).strip("\n") + "\n"
        if repo.staged() != repo.head_tree():
            status = _commit(repo, kind, repo.store.commit(find_commit(repo, marked)), message, kept, resumed=True)
            if status:
                return status
        forget_merge(repo)
    return _go_on(repo, kind, rest, kept)


def _forget(repo: Repository) -> None:
    forget_merge(repo)
    remove_state(repo, f"{repo.git}/sequencer")


_KEPT = {
    "no-commit": "no_commit", "edit": "edit", "signoff": "signoff", "record-origin": "record", "allow-ff": "ff",
    "allow-empty": "allow_empty", "keep-redundant-commits": "keep_redundant",
}  # fmt: skip


def _options_text(options: PickOptions) -> bytes:
    """The options of a row in the form of git's own file."""
    rows = [f"\t{name} = true\n" for name, field in _KEPT.items() if getattr(options, field)]
    if options.mainline is not None:
        rows.append(f"\tmainline = {options.mainline}\n")
    rows += [f"\tstrategy-option = {word}\n" for word in options.favour]
    return fsencode("[options]\n" + "".join(rows))


def _options_from(text: str, given: PickOptions) -> PickOptions:
    pairs = re.findall(r"^\s*([a-z-]+) = (.*)$", text, re.M)
    fields: dict[str, object] = {_KEPT[name]: True for name, _ in pairs if name in _KEPT}
    mainline = next((text for name, text in pairs if name == "mainline"), given.mainline)
    favour = tuple(text for name, text in pairs if name == "strategy-option") or given.favour
    return PickOptions(**{"edit": given.edit, **fields, "mainline": mainline, "favour": favour})  # type: ignore[arg-type]
