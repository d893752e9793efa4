"""`git commit`: the index as a new commit."""

from __future__ import annotations

import re

from dulwich.index import ConflictedIndexEntry, IndexEntry

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsencode
from belljar.bin._kit import count, flag, many, value
from belljar.bin._kit.options import read_options
from belljar.bin.git.add import stage_hunks
from belljar.bin.git.repository.editor import REMARKS, edit_message
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.hooks import edit_by_hook, run_hook
from belljar.bin.git.repository.merge_state import check_merged, end_step, read_state
from belljar.bin.git.repository.pathspec import match_paths
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_commit
from belljar.bin.git.repository.status import compute_status
from belljar.bin.git.repository.status_text import long_status, short_status
from belljar.bin.git.repository.summary import show_summary
from belljar.bin.git.repository.text import commit_subject, strip_space, subject_of, text_of
from belljar.bin.git.repository.work import changed_files, restage


@dataclass(frozen=True, slots=True)
class CommitOptions:
    message: tuple[str, ...] = many("-m", "--message", "commit message", metavar="MESSAGE")
    file: str | None = value("-F", "--file", "read message from file", metavar="FILE")
    all: bool = flag("-a", "--all", "commit all changed files")
    amend: bool = flag("--amend", "amend previous commit")
    allow_empty: bool = flag("--allow-empty", "ok to record an empty change")
    allow_empty_message: bool = flag("--allow-empty-message", "ok to record a change with an empty message")
    no_edit: bool = flag("--no-edit", "use the message as it is")
    quiet: bool = flag("-q", "--quiet", "suppress summary after successful commit")
    no_verify: bool = flag("-n", "--no-verify", "bypass the pre-commit and commit-msg hooks")
    author: str | None = value("--author", "override author for commit", metavar="AUTHOR")
    date: str | None = value("--date", "override date for commit", metavar="DATE")
    reuse: str | None = value("-C", "--reuse-message", "reuse message from specified commit", metavar="COMMIT")
    signoff: bool = flag("-s", "--signoff", "add a Signed-off-by trailer")
    dry_run: bool = flag("--dry-run", "show what would be committed")
    verbose: int = count("-v", "--verbose", "(accepted)")
    fixup: str | None = value("--fixup", "a commit that mends another one, for rebase --autosquash", metavar="COMMIT")
    squash: str | None = value("--squash", "a commit that melds into another one", metavar="COMMIT")
    patch: bool = flag("-p", "--patch", "choose hunks")
    include: bool = flag("-i", "--include", "named files as well as what is staged")
    only: bool = flag("-o", "--only", "named files alone (as by default)")
    porcelain: bool = flag("--porcelain", "--short", "show what would be committed, for machines")
    trailers: tuple[str, ...] = many("--trailer", "add a trailer", metavar="TOKEN=VALUE")
    edit: bool = flag("-e", "--edit", "edit the message in any case")
    gpg: bool = flag("--no-gpg-sign", "--no-status", "--status", "--cleanup", "(accepted)")
    reset_author: bool = flag("--reset-author", "the commit is authored by me now")


def commit(repo: Repository, args: list[str]) -> int:
    options, operands = read_options(CommitOptions, args)
    process = repo.process
    at_first = dict(repo.index)
    if options.all:
        for path in [*changed_files(repo), *repo.conflicts()]:
            restage(repo, path)
        repo.write_index()
    if options.patch:
        stage_hunks(repo, operands)
    before_staging = dict(repo.index)
    named: list[str] = []
    for spec in operands if not options.patch else ():
        names = match_paths(repo, [spec], list(repo.index))
        named += names
        if not names:
            raise GitError(f"pathspec '{spec}' did not match any file(s) known to git", 1, "error: ")
        for path in names:
            restage(repo, path)
        repo.write_index()
    for path in repo.conflicts():
        process.print(f"U\t{path}")
    check_merged(repo, "Committing")
    if not options.no_verify and (refused := run_hook(repo, "pre-commit", committing=True)) is not None:
        if refused:
            if options.all or options.patch or named:
                _unstage(repo, at_first)
            return 1
        repo.forget_index()
    head = repo.head()
    merge_head = read_state(repo, "MERGE_HEAD")
    picked = read_state(repo, "CHERRY_PICK_HEAD")
    parents = [head] if head is not None else []
    author, author_time = None, None
    if options.amend:
        if head is None:
            raise GitError("You have nothing to amend.")
        old = repo.store.commit(head)
        parents = [bytes(parent) for parent in old.parents]
        if not options.reset_author:
            author, author_time = old.author, (old.author_time, old.author_timezone)
    elif picked:
        old = repo.store.commit(find_commit(repo, picked))
        author, author_time = old.author, (old.author_time, old.author_timezone)
    if merge_head:
        parents += [find_commit(repo, line) for line in merge_head.split()]
    if options.author is not None:
        author = fsencode(options.author)
        author_time = author_time or repo.now("AUTHOR")
    if options.date is not None:
        author_time = repo.parse_date(options.date)
    index = repo.staged()
    if named and not options.include:
        if merge_head:
            raise GitError("cannot do a partial commit during a merge.")
        alone = {path: index[path] for path in named if path in index}
        index = {path: e for path, e in repo.head_tree().items() if path not in named} | alone
    before = repo.tree_of(parents[0]) if parents else {}
    if options.porcelain:
        text = short_status(repo, compute_status(repo), branch=False, machine=True)
        process.stdout.write(fsencode(text))
        _unstage(repo, before_staging)
        return 0 if index != before else 1
    if index == before and not options.allow_empty and not options.amend and not merge_head:
        found = compute_status(repo)
        process.print(long_status(repo, found, committing=True), end="")
        return 1
    if options.dry_run:
        process.print(long_status(repo, compute_status(repo), committing=True), end="")
        _unstage(repo, before_staging)
        return 0
    message = _message(repo, options, head)
    if message is None:
        if options.all or options.patch or named:
            _unstage(repo, at_first)
        return 1
    who = repo.identity("AUTHOR") if author is None else author
    sha = repo.make_commit(repo.store.unflatten(index), parents, message, who, author_time)
    subject = subject_of(message)
    kind = "commit (amend)" if options.amend else "commit (merge)" if merge_head else "commit"
    if head is None:
        kind = "commit (initial)"
    repo.refs.set("HEAD", sha, f"{kind}: {subject}", repo.signature())
    end_step(repo)
    run_hook(repo, "post-commit", committing=True)
    if options.amend and head is not None:
        run_hook(repo, "post-rewrite", "amend", given=head + b" " + sha + b"\n")
    if not options.quiet:
        show_summary(repo, sha, dated=bool(picked) or (options.amend and not options.reset_author), root=head is None)
    return 0


def _unstage(repo: Repository, before: dict[str, IndexEntry | ConflictedIndexEntry]) -> None:
    """Restore the index: nothing was committed."""
    repo.index.clear()
    repo.index.update(before)
    repo.write_index()


def _message(repo: Repository, options: CommitOptions, head: bytes | None) -> str | None:
    """The message as the options, the user's editor and hooks make it; None if a hook refuses it."""
    draft, source = _draft(repo, options, head)
    text = strip_space(draft).rstrip("\n") if draft is not None else REMARKS
    for trailer in options.trailers:
        token, _, content = re.sub(r"\s*[=:]\s*", "=", trailer, count=1).partition("=")
        apart = "\n" if re.search(r"\n\n(?:[\w-]+: [^\n]*\n?)+\Z", text) else "\n\n"
        text += f"{apart}{token}: {content}"
    if options.signoff:
        text += f"\n\nSigned-off-by: {text_of(repo.identity('COMMITTER'))}"
    text += "\n" if text and draft is not None else ""
    prepared = edit_by_hook(repo, "prepare-commit-msg", "COMMIT_EDITMSG", text, *source)
    if prepared is None:
        return None
    text = edit_message(repo, prepared) if draft is None else prepared
    if not strip_space(text) and not options.allow_empty_message:
        raise GitError("Aborting commit due to empty commit message.", 1, "")
    checked = text if options.no_verify else edit_by_hook(repo, "commit-msg", "COMMIT_EDITMSG", text)
    if checked is None:
        return None
    text = strip_space(checked)
    if not text and not options.allow_empty_message:
        raise GitError("Aborting commit due to empty commit message.", 1, "")
    return text


def _draft(repo: Repository, options: CommitOptions, head: bytes | None) -> tuple[str | None, tuple[str, ...]]:
    """Return the initial message, None if it is to be typed; and its source, as prepare-commit-msg gets it."""
    if options.fixup is not None or options.squash is not None:
        word, name = ("fixup", options.fixup) if options.fixup is not None else ("squash", str(options.squash))
        target = find_commit(repo, str(name).removeprefix("amend:").removeprefix("reword:"))
        return "\n\n".join([f"{word}! {commit_subject(repo, target)}", *options.message]), ("message",)
    if options.message:
        return "\n\n".join(options.message), ("message",)
    if options.file is not None:
        return text_of(repo.process.read_file(options.file)), ("message",)
    if options.reuse is not None:
        sha = find_commit(repo, options.reuse)
        return text_of(repo.store.commit(sha).message), ("commit", options.reuse)
    if merge := read_state(repo, "MERGE_MSG"):
        # Without an editor nobody takes the remarks for such, and they stay.
        kept = (line for line in merge.split("\n") if options.no_edit or not line.startswith("#"))
        return "\n".join(kept), ("merge",)
    if options.amend and head is not None:
        return text_of(repo.store.commit(head).message), ("commit", "HEAD")
    return None, ()
